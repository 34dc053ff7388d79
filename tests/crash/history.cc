// Replays effects into plain maps, those on collections through their shadow, and compares.
#include "tests/crash/history.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/record/record.h"
#include "tests/crash/shadow.h"
#include "tests/crash/shown.h"

namespace idemd::testing {

using storage::DbIndex;
using storage::Effect;
using storage::EffectKind;
using storage::Lsn;

namespace {

uint64_t FenceOf(absl::string_view value) {
  storage::Record record;
  std::string scratch;
  if (storage::ParseText(value, scratch, record) != storage::ParseVerdict::kRecord) return 0;
  return record.fence;
}

std::string Prefix(DbIndex db) { return absl::StrCat(db, " "); }

void EraseDb(DbIndex db, Keys* keys) {
  const std::string prefix = Prefix(db);
  std::erase_if(*keys, [&](const auto& entry) {
    return absl::string_view(entry.first).substr(0, prefix.size()) == prefix;
  });
}

void SwapDbs(DbIndex a, DbIndex b, Keys* keys) {
  Keys swapped;
  for (auto& [name, held] : *keys) {
    const size_t space = name.find(' ');
    DbIndex db = 0;
    (void)absl::SimpleAtoi(name.substr(0, space), &db);
    const DbIndex to = db == a ? b : db == b ? a : db;
    swapped[NameOf(to, absl::string_view(name).substr(space + 1))] = std::move(held);
  }
  *keys = std::move(swapped);
}

std::string Describe(const Keys& keys, const std::string& name) {
  const auto found = keys.find(name);
  if (found == keys.end()) return "nothing";
  return absl::StrCat("\"", found->second.value.substr(0, 400), "\" until ",
                      found->second.deadline_ms);
}

// The names under which two maps differ.
std::set<std::string> Different(const Keys& a, const Keys& b) {
  std::set<std::string> names;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      names.insert(i++->first);
    } else if (i == a.end() || j->first < i->first) {
      names.insert(j++->first);
    } else {
      if (!(i->second == j->second)) names.insert(i->first);
      ++i, ++j;
    }
  }
  return names;
}

}  // namespace

std::string NameOf(DbIndex db, absl::string_view key) { return absl::StrCat(Prefix(db), key); }

Keys KeysOf(storage::Store& store) {
  Keys keys;
  storage::Unit unit(store);
  unit.LockAll();
  std::string scratch;
  for (DbIndex db = 0; db < storage::kDatabases; ++db) {
    std::vector<std::string>
        names;  // a walk does not show the bytes of strings that were edited in place
    unit.ForEach(db,
                 [&](absl::string_view key, const storage::KeyView&) { names.emplace_back(key); });
    for (const std::string& name : names) {
      const storage::KeyView view = unit.Find(db, storage::HashedKey(name), false);
      keys[NameOf(db, name)] = {view.collection != nullptr
                                    ? Shown(*view.collection)
                                    : std::string(storage::StringValue(view, scratch)),
                                view.deadline_ms};
    }
  }
  return keys;
}

std::string Differences(const Keys& expected, const Keys& found) {
  std::string text;
  int left = 3;
  for (const std::string& name : Different(expected, found)) {
    if (left-- == 0) break;
    absl::StrAppend(&text, "\n    ", name, ": expected ", Describe(expected, name), ", found ",
                    Describe(found, name));
  }
  return text;
}

History::History() = default;
History::~History() = default;

void History::Add(Lsn lsn, absl::Span<const Effect> effects) {
  Unit& unit = units_.emplace_back();
  unit.lsn = lsn;
  for (const Effect& effect : effects) {
    unit.effects.push_back({effect, std::string(effect.key), std::string(effect.value), {}});
    if (effect.kind == EffectKind::kSet) unit.fence = std::max(unit.fence, FenceOf(effect.value));
  }
}

void History::Understand() {
  for (; understood_ < units_.size(); ++understood_) {
    for (Copy& copy : units_[understood_].effects) {
      const bool parts =
          copy.effect.kind == EffectKind::kRestore || copy.effect.kind == EffectKind::kCommand;
      if (shadow_ == nullptr && !parts) continue;
      if (shadow_ == nullptr) shadow_ = std::make_unique<Shadow>();
      Effect effect = copy.effect;
      effect.key = copy.key;
      effect.value = copy.value;
      shadow_->Do(effect);
      if (parts) copy.shown = shadow_->Value(effect.db, effect.key);
    }
  }
}

void History::Apply(const Unit& unit, Keys* keys) {
  for (const Copy& copy : unit.effects) {
    const Effect& effect = copy.effect;
    const std::string name = NameOf(effect.db, copy.key);
    switch (effect.kind) {
      case EffectKind::kSet:
        (*keys)[name] = {copy.value, effect.deadline_ms};
        break;
      case EffectKind::kDelete:
        keys->erase(name);
        break;
      case EffectKind::kExpireAt:
      case EffectKind::kPersist:
        if (const auto found = keys->find(name); found != keys->end())
          found->second.deadline_ms =
              effect.kind == EffectKind::kPersist ? storage::kNoDeadline : effect.deadline_ms;
        break;
      case EffectKind::kFlushDb:
        EraseDb(effect.db, keys);
        break;
      case EffectKind::kFlushAll:
        keys->clear();
        break;
      case EffectKind::kSwapDb:
        SwapDbs(effect.db, effect.other_db, keys);
        break;
      case EffectKind::kRestore:
      case EffectKind::kCommand:
        if (!copy.shown.has_value()) {
          keys->erase(name);
          break;
        }
        (*keys)[name].value = *copy.shown;
        if (effect.kind == EffectKind::kRestore) (*keys)[name].deadline_ms = effect.deadline_ms;
        break;
    }
  }
}

void History::Settle(Lsn lsn) {
  Understand();
  while (!units_.empty() && units_.front().lsn <= lsn) {
    Apply(units_.front(), &settled_);
    settled_lsn_ = units_.front().lsn;
    settled_fence_ = std::max(settled_fence_, units_.front().fence);
    units_.pop_front();
    --understood_;
  }
}

std::optional<Lsn> History::Match(Lsn lsn, const Keys& found) {
  Understand();
  Keys keys = settled_;
  auto next = units_.begin();
  Lsn at = settled_lsn_;
  for (; next != units_.end() && next->lsn <= lsn; ++next) {
    Apply(*next, &keys);
    at = next->lsn;
  }
  std::set<std::string> wrong = Different(keys, found);
  while (true) {
    if (wrong.empty()) return at;
    if (next == units_.end()) return std::nullopt;
    const bool whole =
        std::any_of(next->effects.begin(), next->effects.end(),
                    [](const Copy& copy) { return copy.effect.kind >= EffectKind::kFlushDb; });
    Apply(*next, &keys);
    at = next->lsn;
    if (whole) {
      wrong = Different(keys, found);
    } else {
      for (const Copy& copy : next->effects) {
        const std::string name = NameOf(copy.effect.db, copy.key);
        const auto a = keys.find(name);
        const auto b = found.find(name);
        const bool same =
            a == keys.end() ? b == found.end() : b != found.end() && a->second == b->second;
        same ? (void)wrong.erase(name) : (void)wrong.insert(name);
      }
    }
    ++next;
  }
}

void History::ForgetAfter(Lsn lsn, storage::Store& store) {
  Understand();
  while (!units_.empty() && units_.back().lsn > lsn) units_.pop_back();
  understood_ = units_.size();
  if (shadow_ != nullptr) shadow_->BeLike(store);
}

Keys History::now() {
  Understand();
  Keys keys = settled_;
  for (const Unit& unit : units_) Apply(unit, &keys);
  return keys;
}

uint64_t History::FenceUpTo(Lsn lsn) const {
  uint64_t fence = settled_fence_;
  for (const Unit& unit : units_)
    if (unit.lsn <= lsn) fence = std::max(fence, unit.fence);
  return fence;
}

std::vector<Effect> WatchedLog::Told(absl::Span<const Effect> effects) const {
  std::vector<Effect> told;
  for (const Effect& effect : effects) {
    const bool part = effect.kind == EffectKind::kCommand;
    if (fault_ == Fault::kForgetsDeletes && effect.kind == EffectKind::kDelete) continue;
    if (fault_ == Fault::kForgetsParts && part && absl::StrContains(effect.value, "\r\nSADD\r\n"))
      continue;
    told.push_back(effect);
    if (fault_ == Fault::kDoublesParts && part) told.push_back(effect);
  }
  return told;
}

Lsn WatchedLog::Append(absl::Span<const Effect> effects) {
  if (fault_ == Fault::kNone) {
    last_ = log_.Append(effects);
  } else if (const std::vector<Effect> told = Told(effects); !told.empty()) {
    last_ = log_.Append(told);
  }
  history_.Add(last_, effects);
  SetRefusing(log_.refusing());
  return last_;
}

void WatchedLog::Release(Lsn lsn) {
  if (fault_ != Fault::kAnswersEarly) log_.Release(lsn);
  SetRefusing(log_.refusing());
}

}  // namespace idemd::testing

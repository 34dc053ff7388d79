// Both forms of a sorted set, and the step from the small one to the large one.
#include "storage/collection/sorted_set.h"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "storage/check.h"
#include "storage/key/hashed_key.h"

namespace idemd::storage {
namespace {

constexpr size_t kDigits = 32;  // of a score as a small set has it
// Below it a whole number is kept as one.
constexpr double kWholeMax = static_cast<double>(int64_t{1} << 62);
// A small set is left before its listpack gets near what one can hold.
constexpr size_t kSmallBytesMax = Listpack::kBytesMax / 2;

absl::string_view ScoreText(double score, char (&room)[kDigits]) {
  const bool whole = std::abs(score) < kWholeMax && std::trunc(score) == score;
  const auto end = whole ? std::to_chars(room, room + kDigits, static_cast<int64_t>(score)).ptr
                         : std::to_chars(room, room + kDigits, score).ptr;
  return {room, static_cast<size_t>(end - room)};
}

size_t SlotBytes(size_t capacity) { return capacity == 0 ? 0 : capacity * (sizeof(void*) + 1) + 16; }

}  // namespace

SortedSet::Limits& SortedSet::limits() {
  static Limits limits;
  return limits;
}

SortedSet::SortedSet(size_t members, size_t longest) {
  if (!FitsSmall(members, longest)) large_ = std::make_unique<Large>();
}

SortedSet::~SortedSet() = default;

size_t SortedSet::memory_bytes() const {
  if (large_ == nullptr) return sizeof(*this) + small_.memory_bytes();
  return sizeof(*this) + sizeof(Large) + small_.memory_bytes() + SlotBytes(large_->index.capacity()) +
         large_->tree.memory_bytes() + large_->member_bytes;
}

std::unique_ptr<Collection> SortedSet::Clone() const {
  auto copy = std::make_unique<SortedSet>();
  if (large_ == nullptr) {
    copy->small_ = Listpack(small_);
    return copy;
  }
  copy->large_ = std::make_unique<Large>();
  copy->large_->index.reserve(size());
  bool added = false;
  for (ScoreTree::Place at = large_->tree.At(0); at; at.Next())
    copy->large_->FindOrAdd((*at).text(), (*at).score, &added);
  return copy;
}

// --- the large form

size_t SortedSet::Hash::operator()(absl::string_view text) const { return TextHash(text); }

SortedSet::Large::~Large() {
  for (ScoredMember* const member : index) ScoredMember::Free(member);
}

ScoredMember* SortedSet::Large::Find(absl::string_view text) const {
  const auto it = index.find(text);
  return it == index.end() ? nullptr : *it;
}

ScoredMember* SortedSet::Large::FindOrAdd(absl::string_view text, double score, bool* added) {
  *added = false;
  const auto it = index.lazy_emplace(text, [&](const auto& construct) {
    construct(ScoredMember::Make(text, score));
    *added = true;
  });
  if (!*added) return *it;
  member_bytes += malloc_usable_size(*it);
  tree.Insert(*it);
  return *it;
}

void SortedSet::Large::Erase(ScoredMember* member) {
  tree.Erase(member);
  index.erase(index.find(member->text()));
  member_bytes -= malloc_usable_size(member);
  ScoredMember::Free(member);
}

void SortedSet::Large::ShrinkIndex() {
  constexpr size_t kWorthwhile = 1024;
  if (index.capacity() > kWorthwhile && index.size() < index.capacity() / 8) index.rehash(0);
}

void SortedSet::BecomeLarge() {
  auto large = std::make_unique<Large>();
  Listpack::Digits digits;
  bool added = false;
  for (Listpack::At at = small_.First(); at != Listpack::kNone;) {
    const Listpack::At score_at = small_.Next(at);
    large->FindOrAdd(small_.Text(at, digits), ScoreAt(score_at), &added);
    at = small_.Next(score_at);
  }
  small_ = Listpack();
  large_ = std::move(large);
}

void SortedSet::BecomeSmall() {
  const std::unique_ptr<Large> large = std::move(large_);
  for (ScoreTree::Place at = large->tree.At(0); at; at.Next()) InsertSmall((*at).text(), (*at).score);
}

// --- the small form

double SortedSet::ScoreAt(Listpack::At at) const {
  const Listpack::Value value = small_.Get(at);
  if (value.is_number) return static_cast<double>(value.number);
  double score = 0;
  std::from_chars(value.text.data(), value.text.data() + value.text.size(), score);
  return score;
}

bool SortedSet::FitsSmall(size_t members, size_t longest) const {
  return static_cast<int64_t>(members) <= limits().entries.load(std::memory_order_relaxed) &&
         static_cast<int64_t>(longest) <= limits().value_bytes.load(std::memory_order_relaxed) &&
         small_.size() + longest < kSmallBytesMax;
}

void SortedSet::InsertSmall(absl::string_view member, double score) {
  char room[kDigits];
  const absl::string_view score_text = ScoreText(score, room);
  const auto before = [&](Listpack::At at, Listpack::At score_at) {
    const double here = ScoreAt(score_at);
    if (score != here) return score < here;
    Listpack::Digits digits;
    return member < small_.Text(at, digits);
  };
  // Most come in order.
  const Listpack::At last = small_.Last();
  if (last == Listpack::kNone || !before(small_.Previous(last), last)) {
    small_.Append(member);
    small_.Append(score_text);
    return;
  }
  for (Listpack::At at = small_.First(); at != Listpack::kNone;) {
    const Listpack::At score_at = small_.Next(at);
    if (before(at, score_at)) {
      at = small_.InsertBefore(at, member);
      small_.InsertAfter(at, score_text);
      return;
    }
    at = small_.Next(score_at);
  }
}

template <class Predicate>
size_t SortedSet::CountSmall(const Predicate& before) const {
  size_t count = 0;
  for (Listpack::At at = small_.First(); at != Listpack::kNone && before(at); ++count) at = small_.Next(small_.Next(at));
  return count;
}

// --- one member

SortedSet::Result SortedSet::Decide(std::optional<double> old, double score, const Rule& rule) {
  if (!old) return {rule.only_old ? Outcome::kRefused : Outcome::kAdded, score};
  if (rule.only_new) return {Outcome::kRefused, *old};
  if (rule.add) score += *old;
  if (std::isnan(score)) return {Outcome::kNan, score};
  if ((rule.only_above && score <= *old) || (rule.only_below && score >= *old)) return {Outcome::kRefused, score};
  return {score == *old ? Outcome::kSame : Outcome::kMoved, score};
}

SortedSet::Result SortedSet::Set(absl::string_view member, double score, const Rule& rule) {
  if (large_ != nullptr) return SetLarge(member, score, rule);
  const Listpack::At at = FindSmall(member);
  if (at != Listpack::kNone) {
    const Result result = Decide(ScoreAt(small_.Next(at)), score, rule);
    if (result.outcome == Outcome::kMoved) {
      small_.Erase(at, 2);
      InsertSmall(member, result.score);
    }
    return result;
  }
  const Result result = Decide(std::nullopt, score, rule);
  if (result.outcome != Outcome::kAdded) return result;
  if (FitsSmall(SmallPairs() + 1, member.size())) {
    InsertSmall(member, score);
    return result;
  }
  BecomeLarge();
  return SetLarge(member, score, rule);
}

SortedSet::Result SortedSet::SetLarge(absl::string_view member, double score, const Rule& rule) {
  bool added = false;
  ScoredMember* const found = rule.only_old ? large_->Find(member) : large_->FindOrAdd(member, score, &added);
  if (added) return {Outcome::kAdded, score};
  const Result result = Decide(found == nullptr ? std::nullopt : std::optional(found->score), score, rule);
  if (result.outcome == Outcome::kMoved) large_->tree.Move(found, result.score);
  return result;
}

bool SortedSet::Remove(absl::string_view member) {
  if (large_ == nullptr) {
    const Listpack::At at = FindSmall(member);
    if (at != Listpack::kNone) small_.Erase(at, 2);
    return at != Listpack::kNone;
  }
  ScoredMember* const found = large_->Find(member);
  if (found == nullptr) return false;
  large_->Erase(found);
  large_->ShrinkIndex();
  return true;
}

std::optional<double> SortedSet::Score(absl::string_view member) const {
  if (large_ == nullptr) {
    const Listpack::At at = FindSmall(member);
    return at == Listpack::kNone ? std::nullopt : std::optional(ScoreAt(small_.Next(at)));
  }
  const ScoredMember* const found = large_->Find(member);
  return found == nullptr ? std::nullopt : std::optional(found->score);
}

std::optional<size_t> SortedSet::Rank(absl::string_view member) const {
  if (large_ == nullptr) {
    const Listpack::At found = FindSmall(member);
    if (found == Listpack::kNone) return std::nullopt;
    return CountSmall([=](Listpack::At at) { return at != found; });
  }
  const ScoredMember* const found = large_->Find(member);
  return found == nullptr ? std::nullopt : std::optional(large_->tree.Rank(found));
}

// --- ranges

size_t SortedSet::CountBelow(double score, bool equal) const {
  if (large_ != nullptr) return large_->tree.CountBelow(score, equal);
  return CountSmall([&](Listpack::At at) {
    const double here = ScoreAt(small_.Next(at));
    return here < score || (equal && here == score);
  });
}

size_t SortedSet::CountBelow(absl::string_view member, bool equal) const {
  if (large_ != nullptr) return large_->tree.CountBelow(member, equal);
  return CountSmall([&](Listpack::At at) {
    Listpack::Digits digits;
    const int compared = small_.Text(at, digits).compare(member);
    return compared < 0 || (equal && compared == 0);
  });
}

void SortedSet::ForEach(absl::FunctionRef<void(absl::string_view member)> each) const {
  ForRange(0, size(), false, [each](absl::string_view member, double) { each(member); });
}

void SortedSet::ForRange(size_t first, size_t count, bool reverse, Each each) const {
  const size_t all = size();
  if (first >= all) return;
  count = std::min(count, all - first);
  const size_t start = reverse ? all - 1 - first : first;
  if (large_ != nullptr) {
    for (ScoreTree::Place at = large_->tree.At(start); count > 0; --count) {
      each((*at).text(), (*at).score);
      reverse ? at.Previous() : at.Next();
    }
    return;
  }
  Listpack::Digits digits;
  for (Listpack::At at = small_.Seek(static_cast<int64_t>(2 * start)); count > 0; --count) {
    const Listpack::At score_at = small_.Next(at);
    each(small_.Text(at, digits), ScoreAt(score_at));
    if (count > 1) at = reverse ? small_.Previous(small_.Previous(at)) : small_.Next(score_at);
  }
}

void SortedSet::RemoveRange(size_t first, size_t count) {
  const size_t all = size();
  if (first >= all) return;
  count = std::min(count, all - first);
  if (large_ == nullptr) {
    small_.Erase(small_.Seek(static_cast<int64_t>(2 * first)), 2 * count);
    return;
  }
  if (count == all) {
    large_ = std::make_unique<Large>();
    return;
  }
  for (; count > 0; --count) large_->Erase(const_cast<ScoredMember*>(&*large_->tree.At(first)));
  large_->ShrinkIndex();
}

void SortedSet::CheckInvariants() const {
  if (large_ == nullptr) {
    Check(small_.count() % 2 == 0, "a small sorted set has a score for each member");
    return;
  }
  large_->tree.CheckInvariants();
  Check(large_->tree.size() == large_->index.size(), "index and tree hold the same");
  size_t bytes = 0;
  for (const ScoredMember* const member : large_->index)
    bytes += malloc_usable_size(const_cast<ScoredMember*>(member));
  Check(bytes == large_->member_bytes, "the bytes of the members are known");
}

}  // namespace idemd::storage

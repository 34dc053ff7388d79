// Strings and deadlines are left to the history's map: here is only what has parts.
#include "tests/crash/shadow.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/journal/commands_text.h"
#include "storage/snapshot/rdb_reader.h"
#include "tests/crash/shown.h"

namespace idemd::testing {

using storage::DbIndex;
using storage::Effect;
using storage::EffectKind;
using storage::HashedKey;
using storage::Unit;

Shadow::Shadow() : store_(clock_, log_), replay_(store_, tokens_, nullptr) { store_.SetReplaying(true); }

void Shadow::BeLike(storage::Store& store) {
  {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  }
  problem_.clear();
  Unit from(store);
  from.LockAll();
  for (DbIndex db = 0; db < storage::kDatabases; ++db) {
    std::vector<std::string> names;  // a walk does not show what is in a collection
    from.ForEach(db, [&](absl::string_view key, const storage::KeyView& view) {
      if (view.type != storage::ValueType::kString && view.type != storage::ValueType::kRecord)
        names.emplace_back(key);
    });
    for (const std::string& name : names) {
      const HashedKey key(name);
      Unit to(store_);
      to.Lock(key);
      to.SetCollection(db, key, from.Find(db, key, false).collection->Clone(), storage::kNoDeadline);
    }
  }
}

void Shadow::Restore(const Effect& effect) {
  std::unique_ptr<storage::Collection> collection;
  const absl::StatusOr<std::string> text = storage::ReadDumpPayload(effect.value, &collection);
  if (!text.ok() || collection == nullptr) {
    problem_ = absl::StrCat("a payload that is none: ", text.status().message());
    return;
  }
  Unit unit(store_);
  const HashedKey key(effect.key);
  unit.Lock(key);
  unit.SetCollection(effect.db, key, std::move(collection), storage::kNoDeadline);
}

void Shadow::RunCommand(const Effect& effect) {
  std::vector<absl::string_view> words;
  size_t size = 0;
  if (server::ReadCommand(effect.value, &words, &size) != server::CommandVerdict::kCommand ||
      size != effect.value.size()) {
    problem_ = "a command that is none";
    return;
  }
  DbIndex db = effect.db;
  if (const absl::Status done = replay_.Run(words, &db); !done.ok())
    problem_ = std::string(done.message());
}

void Shadow::Do(const Effect& effect) {
  switch (effect.kind) {
    case EffectKind::kSet:
    case EffectKind::kDelete: {
      Unit unit(store_);
      const HashedKey key(effect.key);
      unit.Lock(key);
      unit.Remove(effect.db, key);
      return;
    }
    case EffectKind::kRestore:
      return Restore(effect);
    case EffectKind::kCommand:
      return RunCommand(effect);
    case EffectKind::kExpireAt:
    case EffectKind::kPersist:
      return;
    case EffectKind::kFlushDb:
    case EffectKind::kFlushAll:
    case EffectKind::kSwapDb: {
      Unit unit(store_);
      unit.LockAll();
      if (effect.kind == EffectKind::kFlushDb) unit.FlushDb(effect.db);
      if (effect.kind == EffectKind::kFlushAll) unit.FlushAll();
      if (effect.kind == EffectKind::kSwapDb) unit.SwapDb(effect.db, effect.other_db);
      return;
    }
  }
}

std::optional<std::string> Shadow::Value(DbIndex db, absl::string_view key) {
  if (!problem_.empty()) return problem_;
  Unit unit(store_);
  const HashedKey name(key);
  unit.Lock(name);
  const storage::KeyView view = unit.Find(db, name, false);
  if (view.collection == nullptr) return std::nullopt;
  return Shown(*view.collection);
}

}  // namespace idemd::testing

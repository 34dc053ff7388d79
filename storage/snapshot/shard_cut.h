// One shard's tables as of a cut: which are to be walked, how far that is, and what became of them since.
//
//   Begin(tables)   ---- under all locks: the cut
//     SaveNext()    ---- the walker, a bounded step under the shard's lock; again and again
//     Save(...)     <--- each key once: from SaveNext(), or from whoever changes a line that is not saved
//     Drop(table)   ---- a writer whose unit takes a table out of the store: it is kept until it has been walked
//   End()           ---- what is left is forgotten
//
// Threads     the holder of the shard's lock, for everything.
// Lifetime    a table that is not dropped outlives the cut. A dropped one is given to Free() when it has been walked, once.
// Invariants  [N1] Save() gets each key that was in a table at Begin() once, with what it held then and the number that its
//                  database had then.
//             [N2] The same if the table is dropped or goes to another database before it has been walked.
//             [N3] Tables that are made after Begin() are left alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "storage/effect.h"
#include "storage/table/table.h"

namespace idemd::storage {

template <class Entry, class Sync, class Shape = ServerShape>
class BasicShardCut {
 public:
  using Table = BasicTable<Entry, Sync, Shape>;

  // Databases have the numbers below `databases`.
  explicit BasicShardCut(DbIndex databases) : tables_(databases) {}
  BasicShardCut(const BasicShardCut&) = delete;
  BasicShardCut& operator=(const BasicShardCut&) = delete;

  // `table` is that of database `db` now. `epoch`: the same for all tables of a cut, and of no other cut.
  void Begin(uint32_t epoch, DbIndex db, Table& table) { table.BeginCut(tables_[db].emplace(*this, epoch, db, table)); }
  // Whether somebody who takes the table out of the store leaves it to this cut.
  [[nodiscard]] bool Drop(Table& table) {
    if (table.cut() == nullptr) return false;
    auto* const one = static_cast<OneTable*>(table.cut());
    if constexpr (Sync::kFault == Fault::kDroppedForgotten) {
      tables_[one->db].reset();
      return false;
    }
    one->dropped = true;
    return true;
  }
  // Goes on until `enough` says so, which is asked after each line, or all is saved. Whether all is.
  bool SaveNext(absl::FunctionRef<bool()> enough) {
    for (; next_ < tables_.size(); ++next_) {
      std::optional<OneTable>& one = tables_[next_];
      if (!one) continue;
      if (!one->table.SaveNext(&one->position, enough)) return false;
      Leave(one);
    }
    return true;
  }
  void End() {
    for (std::optional<OneTable>& one : tables_)
      if (one) Leave(one);
  }

 protected:
  ~BasicShardCut() = default;
  virtual void Save(DbIndex db, const Item<Entry>& item) = 0;
  // Nobody can find the table any more, but readers may still be in it.
  virtual void Free(Table* table) = 0;

 private:
  struct OneTable final : Cut<Entry> {
    OneTable(BasicShardCut& of, uint32_t epoch, DbIndex db_then, Table& of_db)
        : Cut<Entry>(epoch), owner(of), db(db_then), table(of_db) {}
    void Save(const Item<Entry>& item) override { owner.Save(db, item); }

    BasicShardCut& owner;
    const DbIndex db;  // at the cut
    Table& table;
    uint64_t position = 0;
    bool dropped = false;
  };
  void Leave(std::optional<OneTable>& one) {
    one->table.EndCut();
    if (one->dropped) Free(&one->table);
    one.reset();
  }

  std::vector<std::optional<OneTable>> tables_;  // by database, at the cut; those that are not walked yet
  size_t next_ = 0;                              // none before
};

}  // namespace idemd::storage

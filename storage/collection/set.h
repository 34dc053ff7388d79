// A set: an intset while it holds nothing but a few integers, else a table of texts.
//
// Threads   as collection.h.
// Lifetime  what members are shown as is good until the set is changed, or the room that was given is used again.
// Limits    2^32 - 2 members.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"
#include "storage/collection/dense_table.h"
#include "storage/collection/intset.h"
#include "storage/collection/listpack.h"
#include "storage/collection/rdb_collection.h"
#include "storage/collection/short_text.h"

namespace idemd::storage {

class Set final : public Collection {
 public:
  static constexpr ValueType kType = ValueType::kSet;
  using Digits = Listpack::Digits;
  using EachMember = absl::FunctionRef<void(absl::string_view member)>;

  // The setting set-max-intset-entries: above so many members it is a table.
  static inline std::atomic<uint64_t> intset_members_max{512};

  Set() = default;
  Set(const Set& other);
  ~Set() override;

  ValueType type() const override { return kType; }
  size_t size() const override { return table_ == nullptr ? ints_.size() : table_->size(); }
  size_t memory_bytes() const override;
  const char* encoding() const override { return table_ == nullptr ? "intset" : "hashtable"; }
  std::unique_ptr<Collection> Clone() const override { return std::make_unique<Set>(*this); }
  uint8_t rdb_type() const override;
  void AppendRdb(RdbStrings strings, std::string& out) const override;
  void ForEach(EachMember each) const override;

  bool Contains(absl::string_view member) const;
  bool Add(absl::string_view member);     // false: it is there
  bool Remove(absl::string_view member);  // false: it is not
  // The member at a place below size(); where it stands means nothing, and changes with the set.
  absl::string_view At(size_t place, Digits& room) const;
  // As DenseTable::Scan(); an intset comes whole.
  uint64_t Scan(uint64_t cursor, uint64_t count, EachMember each) const;
  // From a file; this set is empty.
  void TakeInts(Intset ints);
  // As if its members were added to a fresh one: an intset if that can be.
  void Remake();
  bool is_intset() const { return table_ == nullptr; }
  const Intset& ints() const { return ints_; }  // of an intset

 private:
  struct TextOf {
    static absl::string_view Of(const ShortText& text) { return text.view(); }
  };
  using Table = DenseTable<ShortText, TextOf>;

  void MakeTable();
  void Append(absl::string_view member, uint64_t hash);

  Intset ints_;                   // empty once there is a table
  std::unique_ptr<Table> table_;
  size_t text_bytes_ = 0;         // of the table's members
};

// A set of type 2 (members), 11 (intset) or 20 (listpack).
std::unique_ptr<Collection> ReadRdbSet(uint8_t type, RdbScanner& scan);

}  // namespace idemd::storage

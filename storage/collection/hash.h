// A hash: a listpack of fields and values by turns while it is small, else a table of pairs.
//
// Threads   as collection.h.
// Lifetime  what fields and values are shown as is good until the hash is changed, or the room that was given is used again.
// Limits    2^32 - 2 fields.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/collection/collection.h"
#include "storage/collection/dense_table.h"
#include "storage/collection/listpack.h"
#include "storage/collection/rdb_collection.h"

namespace idemd::storage {

class Hash final : public Collection {
 public:
  static constexpr ValueType kType = ValueType::kHash;
  using Digits = Listpack::Digits;
  using EachPair = absl::FunctionRef<void(absl::string_view field, absl::string_view value)>;

  // The settings hash-max-listpack-entries and hash-max-listpack-value: above so many fields, or with a field or value of more
  // bytes, it is a table.
  static inline std::atomic<uint64_t> small_fields_max{512};
  static inline std::atomic<uint64_t> small_bytes_max{64};

  Hash() = default;
  Hash(const Hash& other);
  ~Hash() override;

  ValueType type() const override { return kType; }
  size_t size() const override { return table_ == nullptr ? small_fields_ : table_->size(); }
  size_t memory_bytes() const override;
  const char* encoding() const override { return table_ == nullptr ? "listpack" : "hashtable"; }
  std::unique_ptr<Collection> Clone() const override { return std::make_unique<Hash>(*this); }
  uint8_t rdb_type() const override;
  void AppendRdb(RdbStrings strings, std::string& out) const override;
  void ForEach(absl::FunctionRef<void(absl::string_view field)> each) const override;

  // False: there is no such field.
  bool Get(absl::string_view field, Digits& room, absl::string_view* value) const;
  bool Contains(absl::string_view field) const;
  // True: the field is new. Neither text lies in this hash.
  bool Set(absl::string_view field, absl::string_view value);
  bool Remove(absl::string_view field);  // false: there is no such field
  // Fields and values by turns from a file; this hash is empty. False: a field has no value, or comes twice.
  [[nodiscard]] bool TakePack(Listpack pack);
  void ForEachPair(EachPair each) const;
  // Those at places below size(), in the order given; where a field stands means nothing, and changes with the hash.
  void PairsAt(absl::Span<const uint32_t> places, EachPair each) const;
  // As DenseTable::Scan(); a small hash comes whole.
  uint64_t Scan(uint64_t cursor, uint64_t count, EachPair each) const;

 private:
  // Varints of both sizes, the field, the value.
  struct Pair {
    char* bytes;
    absl::string_view field() const;
    void Read(absl::string_view* field, absl::string_view* value) const;
  };
  struct FieldOf {
    static absl::string_view Of(const Pair& pair) { return pair.field(); }
  };
  using Table = DenseTable<Pair, FieldOf>;

  static Pair MakePair(char* old, absl::string_view field, absl::string_view value);
  void MakeTable();
  void Append(absl::string_view field, absl::string_view value, uint64_t hash);
  bool SetSmall(absl::string_view field, absl::string_view value);

  Listpack pack_;                 // empty once there is a table
  size_t small_fields_ = 0;       // in it
  std::unique_ptr<Table> table_;
  size_t pair_bytes_ = 0;         // of the table's pairs
};

// A hash of type 4 (pairs), 9 (zipmap), 13 (ziplist), 16 (listpack), 24 or 25 (with lifetimes, of which none is set).
std::unique_ptr<Collection> ReadRdbHash(uint8_t type, RdbScanner& scan);

}  // namespace idemd::storage

// The two forms of a hash, and the way from one to the other.
#include "storage/collection/hash.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "storage/collection/number_text.h"
#include "storage/varint.h"

namespace idemd::storage {

absl::string_view Hash::Pair::field() const {
  const char* at = bytes;
  const size_t size = ReadVarint(&at);
  ReadVarint(&at);
  return {at, size};
}

void Hash::Pair::Read(absl::string_view* field, absl::string_view* value) const {
  const char* at = bytes;
  const size_t field_bytes = ReadVarint(&at), value_bytes = ReadVarint(&at);
  *field = {at, field_bytes};
  *value = {at + field_bytes, value_bytes};
}

// In place of `old`, whose memory is used again; its field may be `field`.
Hash::Pair Hash::MakePair(char* old, absl::string_view field, absl::string_view value) {
  const size_t head = VarintBytes(field.size()) + VarintBytes(value.size());
  const size_t bytes = head + field.size() + value.size();
  char* made = old;
  // What it has is taken when it fits and no more than half is left over.
  const size_t room = old == nullptr ? 0 : malloc_usable_size(old);
  if (bytes > room || bytes < room / 2) made = static_cast<char*>(std::malloc(bytes));
  if (made == nullptr) throw std::bad_alloc();
  std::memmove(made + head, field.data(), field.size());
  WriteVarint(WriteVarint(made, field.size()), value.size());
  if (!value.empty()) std::memcpy(made + head + field.size(), value.data(), value.size());
  if (made != old) std::free(old);
  return {made};
}

Hash::Hash(const Hash& other) : Collection(other), pack_(other.pack_), small_fields_(other.small_fields_) {
  if (other.table_ == nullptr) return;
  table_ = std::make_unique<Table>();
  other.ForEachPair([&](absl::string_view field, absl::string_view value) { Append(field, value, ElementHash(field)); });
}

Hash::~Hash() {
  if (table_ == nullptr) return;
  for (uint32_t i = 0; i < table_->size(); ++i) std::free((*table_)[i].bytes);
}

size_t Hash::memory_bytes() const {
  const size_t table = table_ == nullptr ? 0 : sizeof(Table) + table_->memory_bytes();
  return sizeof(Hash) + pack_.memory_bytes() + table + pair_bytes_;
}

// --- reading

bool Hash::Get(absl::string_view field, Digits& room, absl::string_view* value) const {
  if (table_ != nullptr) {
    const uint32_t place = table_->Find(field);
    if (place == Table::kNone) return false;
    absl::string_view same;
    (*table_)[place].Read(&same, value);
    return true;
  }
  const Listpack::At at = pack_.Find(pack_.First(), field, 1);
  if (at == Listpack::kNone) return false;
  *value = pack_.Text(pack_.Next(at), room);
  return true;
}

bool Hash::Contains(absl::string_view field) const {
  if (table_ != nullptr) return table_->Find(field) != Table::kNone;
  return pack_.Find(pack_.First(), field, 1) != Listpack::kNone;
}

void Hash::ForEachPair(EachPair each) const {
  if (table_ != nullptr) {
    absl::string_view field, value;
    for (uint32_t i = 0; i < table_->size(); ++i) {
      (*table_)[i].Read(&field, &value);
      each(field, value);
    }
    return;
  }
  Digits field_room, value_room;
  for (Listpack::At at = pack_.First(); at != Listpack::kNone;) {
    const Listpack::At value_at = pack_.Next(at);
    each(pack_.Text(at, field_room), pack_.Text(value_at, value_room));
    at = pack_.Next(value_at);
  }
}

void Hash::ForEach(absl::FunctionRef<void(absl::string_view field)> each) const {
  ForEachPair([&](absl::string_view field, absl::string_view) { each(field); });
}

void Hash::PairsAt(absl::Span<const uint32_t> places, EachPair each) const {
  if (table_ != nullptr) {
    absl::string_view field, value;
    for (const uint32_t place : places) {
      (*table_)[place].Read(&field, &value);
      each(field, value);
    }
    return;
  }
  std::vector<Listpack::At> fields;
  fields.reserve(small_fields_);
  for (Listpack::At at = pack_.First(); at != Listpack::kNone; at = pack_.Next(pack_.Next(at))) fields.push_back(at);
  Digits field_room, value_room;
  for (const uint32_t place : places)
    each(pack_.Text(fields[place], field_room), pack_.Text(pack_.Next(fields[place]), value_room));
}

uint64_t Hash::Scan(uint64_t cursor, uint64_t count, EachPair each) const {
  if (table_ == nullptr) {
    ForEachPair(each);
    return 0;
  }
  return table_->Scan(cursor, count, [&](const Pair& pair) {
    absl::string_view field, value;
    pair.Read(&field, &value);
    each(field, value);
  });
}

// --- changing

void Hash::Append(absl::string_view field, absl::string_view value, uint64_t hash) {
  const Pair pair = MakePair(nullptr, field, value);
  table_->Append(pair, hash);
  pair_bytes_ += malloc_usable_size(pair.bytes);
}

void Hash::MakeTable() {
  auto table = std::make_unique<Table>();
  const Listpack pack = std::move(pack_);
  pack_ = Listpack();
  table_ = std::move(table);
  small_fields_ = 0;
  Digits field_room, value_room;
  for (Listpack::At at = pack.First(); at != Listpack::kNone;) {
    const Listpack::At value_at = pack.Next(at);
    const absl::string_view field = pack.Text(at, field_room);
    Append(field, pack.Text(value_at, value_room), ElementHash(field));
    at = pack.Next(value_at);
  }
}

// Into the listpack, which may have to become a table thereafter.
bool Hash::SetSmall(absl::string_view field, absl::string_view value) {
  const Listpack::At at = pack_.Find(pack_.First(), field, 1);
  const bool is_new = at == Listpack::kNone;
  if (is_new) {
    pack_.Append(field);
    pack_.Append(value);
    ++small_fields_;
  } else {
    pack_.Replace(pack_.Next(at), value);
  }
  // As in Redis, which a limit that was lowered meanwhile reaches with any change.
  if (small_fields_ > small_fields_max.load(std::memory_order_relaxed)) MakeTable();
  return is_new;
}

bool Hash::Set(absl::string_view field, absl::string_view value) {
  if (table_ == nullptr) {
    const uint64_t most = small_bytes_max.load(std::memory_order_relaxed);
    constexpr size_t kElementExtra = 16;
    if (field.size() <= most && value.size() <= most &&
        pack_.size() + field.size() + value.size() + 2 * kElementExtra <= Listpack::kBytesMax)
      return SetSmall(field, value);
    MakeTable();
  }
  const uint64_t hash = ElementHash(field);
  const uint32_t place = table_->Find(field, hash);
  if (place == Table::kNone) {
    Append(field, value, hash);
    return true;
  }
  Pair& pair = (*table_)[place];
  pair_bytes_ -= malloc_usable_size(pair.bytes);
  pair = MakePair(pair.bytes, pair.field(), value);
  pair_bytes_ += malloc_usable_size(pair.bytes);
  return false;
}

bool Hash::TakePack(Listpack pack) {
  constexpr size_t kUsualFields = 32;
  absl::InlinedVector<Listpack::Value, kUsualFields> fields;
  for (Listpack::At at = pack.First(); at != Listpack::kNone; at = pack.Next(at)) {
    Listpack::Value field = pack.Get(at);
    // Who wrote the file may have written a number as text.
    if (!field.is_number && ReadCanonicalInt64(field.text, &field.number)) field.is_number = true;
    if (field.is_number) field.text = {};
    fields.push_back(field);
    at = pack.Next(at);
    if (at == Listpack::kNone) return false;
  }
  const size_t count = fields.size();
  const auto order = [](const Listpack::Value& v) { return std::make_tuple(v.is_number, v.number, v.text); };
  std::sort(fields.begin(), fields.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  const auto same = [&](const auto& a, const auto& b) { return order(a) == order(b); };
  if (std::adjacent_find(fields.begin(), fields.end(), same) != fields.end()) return false;
  pack_ = std::move(pack);
  small_fields_ = count;
  if (count > small_fields_max.load(std::memory_order_relaxed)) MakeTable();
  return true;
}

bool Hash::Remove(absl::string_view field) {
  if (table_ == nullptr) {
    const Listpack::At at = pack_.Find(pack_.First(), field, 1);
    if (at == Listpack::kNone) return false;
    pack_.Erase(at, 2);
    --small_fields_;
    return true;
  }
  const uint64_t hash = ElementHash(field);
  const uint32_t place = table_->Find(field, hash);
  if (place == Table::kNone) return false;
  char* const bytes = (*table_)[place].bytes;
  table_->Remove(place, hash);
  pair_bytes_ -= malloc_usable_size(bytes);
  std::free(bytes);
  return true;
}

}  // namespace idemd::storage

// The two forms of a set, and the way from one to the other.
#include "storage/collection/set.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "storage/collection/number_text.h"

namespace idemd::storage {
namespace {

// However many the setting allows: a block of memory of this many numbers is the last that is moved on every change.
constexpr uint64_t kIntsetMembersMost = uint64_t{1} << 30;

uint64_t IntsetMembersMax() { return std::min(Set::intset_members_max.load(std::memory_order_relaxed), kIntsetMembersMost); }

absl::string_view DigitsOf(int64_t number, Set::Digits& room) {
  const auto end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), number).ptr;
  return {room.bytes, static_cast<size_t>(end - room.bytes)};
}

}  // namespace

Set::Set(const Set& other) : Collection(other), ints_(other.ints_) {
  if (other.table_ == nullptr) return;
  table_ = std::make_unique<Table>();
  for (uint32_t i = 0; i < other.table_->size(); ++i) {
    const absl::string_view member = (*other.table_)[i].view();
    Append(member, ElementHash(member));
  }
}

Set::~Set() {
  if (table_ == nullptr) return;
  for (uint32_t i = 0; i < table_->size(); ++i) (*table_)[i].Free();
}

size_t Set::memory_bytes() const {
  const size_t table = table_ == nullptr ? 0 : sizeof(Table) + table_->memory_bytes();
  return sizeof(Set) + ints_.memory_bytes() + table + text_bytes_;
}

void Set::ForEach(EachMember each) const {
  Digits room;
  for (size_t i = 0; i < size(); ++i) each(At(i, room));
}

absl::string_view Set::At(size_t place, Digits& room) const {
  if (table_ != nullptr) return (*table_)[static_cast<uint32_t>(place)].view();
  return DigitsOf(ints_[place], room);
}

uint64_t Set::Scan(uint64_t cursor, uint64_t count, EachMember each) const {
  if (table_ != nullptr) return table_->Scan(cursor, count, [&](const ShortText& text) { each(text.view()); });
  ForEach(each);
  return 0;
}

bool Set::Contains(absl::string_view member) const {
  if (table_ != nullptr) return table_->Find(member) != Table::kNone;
  int64_t number = 0;
  return ReadCanonicalInt64(member, &number) && ints_.Contains(number);
}

void Set::Append(absl::string_view member, uint64_t hash) {
  const ShortText text = ShortText::Make(member);
  table_->Append(text, hash);
  text_bytes_ += text.memory_bytes();
}

void Set::MakeTable() {
  table_ = std::make_unique<Table>();
  Digits room;
  for (size_t i = 0; i < ints_.size(); ++i) {
    const absl::string_view digits = DigitsOf(ints_[i], room);
    Append(digits, ElementHash(digits));
  }
  ints_ = Intset();
}

bool Set::Add(absl::string_view member) {
  if (table_ == nullptr) {
    int64_t number = 0;
    if (ReadCanonicalInt64(member, &number)) {
      if (!ints_.Add(number)) return false;
      if (ints_.size() > IntsetMembersMax()) MakeTable();
      return true;
    }
    MakeTable();
  }
  const uint64_t hash = ElementHash(member);
  if (table_->Find(member, hash) != Table::kNone) return false;
  Append(member, hash);
  return true;
}

void Set::TakeInts(Intset ints) {
  ints_ = std::move(ints);
  if (ints_.size() > IntsetMembersMax()) MakeTable();
}

void Set::Remake() {
  Set fresh;
  ForEach([&](absl::string_view member) { fresh.Add(member); });
  std::swap(ints_, fresh.ints_);
  std::swap(table_, fresh.table_);
  std::swap(text_bytes_, fresh.text_bytes_);
}

bool Set::Remove(absl::string_view member) {
  if (table_ == nullptr) {
    int64_t number = 0;
    return ReadCanonicalInt64(member, &number) && ints_.Remove(number);
  }
  const uint64_t hash = ElementHash(member);
  const uint32_t place = table_->Find(member, hash);
  if (place == Table::kNone) return false;
  ShortText text = (*table_)[place];
  table_->Remove(place, hash);
  text_bytes_ -= text.memory_bytes();
  text.Free();  // `member` may lie in it
  return true;
}

}  // namespace idemd::storage

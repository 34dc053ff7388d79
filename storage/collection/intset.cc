// Searching, and inserting by moving what is behind.
#include "storage/collection/intset.h"

#include <malloc.h>

#include <cstring>
#include <new>

#include "storage/collection/packed_formats.h"

namespace idemd::storage {
namespace {

uint32_t WidthFor(int64_t number) {
  if (number >= INT16_MIN && number <= INT16_MAX) return sizeof(int16_t);
  return number >= INT32_MIN && number <= INT32_MAX ? sizeof(int32_t) : sizeof(int64_t);
}

template <class Int>
int64_t Load(const char* at) {
  Int value;
  std::memcpy(&value, at, sizeof(Int));  // the machines that idemd runs on are little-endian
  return value;
}

}  // namespace

Intset::Intset() { Resize(sizeof(int16_t), 0); }

Intset::Intset(const Intset& other) {
  Resize(other.width(), other.size());
  std::memcpy(data_.get(), other.data_.get(), other.view().size());
}

std::optional<Intset> Intset::FromBytes(absl::string_view bytes) {
  if (!ReadIntset(bytes, [](int64_t) {})) return std::nullopt;
  Intset set;
  uint32_t head[2];
  std::memcpy(head, bytes.data(), sizeof(head));
  set.Resize(head[0], head[1]);
  std::memcpy(set.data_.get(), bytes.data(), bytes.size());
  return set;
}

uint32_t Intset::width() const { return static_cast<uint32_t>(Load<uint32_t>(data_.get())); }
size_t Intset::size() const { return static_cast<size_t>(Load<uint32_t>(data_.get() + sizeof(uint32_t))); }
absl::string_view Intset::view() const { return {data_.get(), kHeaderBytes + width() * size()}; }
size_t Intset::memory_bytes() const { return malloc_usable_size(data_.get()); }

int64_t Intset::operator[](size_t place) const {
  const char* const numbers = data_.get() + kHeaderBytes;
  switch (width()) {
    case sizeof(int16_t):
      return Load<int16_t>(numbers + place * sizeof(int16_t));
    case sizeof(int32_t):
      return Load<int32_t>(numbers + place * sizeof(int32_t));
    default:
      return Load<int64_t>(numbers + place * sizeof(int64_t));
  }
}

void Intset::Put(size_t place, int64_t number) {
  // The lowest bytes of a number are the number in a smaller width.
  std::memcpy(data_.get() + kHeaderBytes + place * width(), &number, width());
}

void Intset::SetHead(uint32_t width, size_t count) {
  const uint32_t head[2] = {width, static_cast<uint32_t>(count)};
  std::memcpy(data_.get(), head, sizeof(head));
}

// Room for so many; the numbers' bytes stay.
void Intset::Resize(uint32_t width, size_t count) {
  char* const data = static_cast<char*>(std::realloc(data_.get(), kHeaderBytes + width * count));
  if (data == nullptr) throw std::bad_alloc();
  static_cast<void>(data_.release());
  data_.reset(data);
  SetHead(width, count);
}

size_t Intset::Search(int64_t number) const {
  size_t low = 0, high = size();
  if (high != 0 && (*this)[high - 1] < number) return high;  // mostly they come in order
  while (low < high) {
    const size_t middle = (low + high) / 2;
    (*this)[middle] < number ? low = middle + 1 : high = middle;
  }
  return low;
}

bool Intset::Contains(int64_t number) const {
  const size_t place = Search(number);
  return place != size() && (*this)[place] == number;
}

void Intset::Widen(uint32_t wide) {
  const uint32_t narrow = width();
  const size_t count = size();
  Resize(wide, count);
  for (size_t i = count; i-- > 0;) {  // from the end: each goes to a place behind its own
    SetHead(narrow, count);
    const int64_t number = (*this)[i];
    SetHead(wide, count);
    Put(i, number);
  }
}

bool Intset::Add(int64_t number) {
  if (WidthFor(number) > width()) Widen(WidthFor(number));
  const size_t place = Search(number), count = size();
  if (place != count && (*this)[place] == number) return false;
  const uint32_t bytes = width();
  Resize(bytes, count + 1);
  char* const at = data_.get() + kHeaderBytes + place * bytes;
  std::memmove(at + bytes, at, (count - place) * bytes);
  Put(place, number);
  return true;
}

bool Intset::Remove(int64_t number) {
  const size_t place = Search(number), count = size();
  if (place == count || (*this)[place] != number) return false;
  const uint32_t bytes = width();
  char* const at = data_.get() + kHeaderBytes + place * bytes;
  std::memmove(at, at + bytes, (count - place - 1) * bytes);
  Resize(bytes, count - 1);
  return true;
}

}  // namespace idemd::storage

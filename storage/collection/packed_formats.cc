// Each reader looks at every length before it believes it.
#include "storage/collection/packed_formats.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "storage/collection/listpack.h"

namespace idemd::storage {
namespace {

constexpr uint8_t kEnd = 0xff;
constexpr uint8_t kLong = 0xfe;  // a longer length follows

class Bytes {
 public:
  explicit Bytes(absl::string_view bytes) : left_(bytes) {}
  size_t left() const { return left_.size(); }
  bool Byte(uint8_t* value) {
    if (left_.empty()) return false;
    *value = static_cast<uint8_t>(left_[0]);
    left_.remove_prefix(1);
    return true;
  }
  template <class Int>
  bool Little(Int* value) {
    if (left_.size() < sizeof(Int)) return false;
    std::memcpy(value, left_.data(), sizeof(Int));
    left_.remove_prefix(sizeof(Int));
    return true;
  }
  bool Text(size_t size, absl::string_view* text) {
    if (left_.size() < size) return false;
    *text = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

 private:
  absl::string_view left_;
};

void Tell(int64_t number, EachText each) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  each({digits, static_cast<size_t>(end - digits)});
}

template <class Int>
bool TellLittle(Bytes& in, EachText each) {
  Int value = 0;
  if (!in.Little(&value)) return false;
  Tell(value, each);
  return true;
}

bool TellText(Bytes& in, size_t size, EachText each) {
  absl::string_view text;
  if (!in.Text(size, &text)) return false;
  each(text);
  return true;
}

// What stands behind an element's first byte.
bool ZiplistElement(Bytes& in, uint8_t first, EachText each) {
  uint8_t a = 0, b = 0, c = 0;
  switch (first >> 6) {
    case 0:
      return TellText(in, first & 0x3f, each);
    case 1:
      return in.Byte(&a) && TellText(in, (size_t{first} & 0x3f) << 8 | a, each);
    case 2: {
      uint32_t size = 0;
      return first == 0x80 && in.Little(&size) && TellText(in, __builtin_bswap32(size), each);
    }
    default:
      break;
  }
  switch (first) {
    case 0xc0:
      return TellLittle<int16_t>(in, each);
    case 0xd0:
      return TellLittle<int32_t>(in, each);
    case 0xe0:
      return TellLittle<int64_t>(in, each);
    case 0xf0: {
      if (!in.Byte(&a) || !in.Byte(&b) || !in.Byte(&c)) return false;
      const uint32_t bits = uint32_t{a} << 8 | uint32_t{b} << 16 | uint32_t{c} << 24;
      Tell(static_cast<int32_t>(bits) >> 8, each);
      return true;
    }
    case 0xfe:
      return TellLittle<int8_t>(in, each);
    default:
      if (first < 0xf1 || first > 0xfd) return false;
      Tell((first & 0x0f) - 1, each);
      return true;
  }
}

bool ZipmapLength(Bytes& in, uint8_t first, size_t* size) {
  if (first < kLong) {
    *size = first;
    return true;
  }
  uint32_t bits = 0;
  if (first != kLong || !in.Little(&bits)) return false;
  *size = bits;
  return true;
}

template <class Int>
bool IntsetOf(Bytes& in, uint32_t count, absl::FunctionRef<void(int64_t)> each) {
  if (in.left() != count * sizeof(Int)) return false;
  std::optional<int64_t> before;
  for (; count != 0; --count) {
    Int value = 0;
    if (!in.Little(&value) || (before && value <= *before)) return false;
    before = value;
    each(value);
  }
  return true;
}

}  // namespace

bool ReadListpack(absl::string_view bytes, EachText each) {
  const std::optional<Listpack> pack = Listpack::FromBytes(bytes);
  if (!pack) return false;
  Listpack::Digits digits;
  for (Listpack::At at = pack->First(); at != Listpack::kNone; at = pack->Next(at)) each(pack->Text(at, digits));
  return true;
}

bool ReadZiplist(absl::string_view bytes, EachText each) {
  constexpr uint16_t kManyElements = 0xffff;
  Bytes in(bytes);
  uint32_t total = 0, tail = 0;
  uint16_t told = 0;
  if (!in.Little(&total) || !in.Little(&tail) || !in.Little(&told) || total != bytes.size()) return false;
  size_t previous = 0, count = 0, last_at = bytes.size() - in.left();
  while (true) {
    const size_t at = bytes.size() - in.left();
    uint8_t first = 0;
    if (!in.Byte(&first)) return false;
    if (first == kEnd) break;
    uint32_t told_previous = first;
    if (first == kLong && !in.Little(&told_previous)) return false;
    if (told_previous != previous || !in.Byte(&first) || !ZiplistElement(in, first, each)) return false;
    previous = bytes.size() - in.left() - at;
    last_at = at;
    ++count;
  }
  return in.left() == 0 && tail == last_at && (told == kManyElements || told == count);
}

bool ReadZipmap(absl::string_view bytes, EachText each) {
  constexpr uint8_t kManyFields = 254;
  Bytes in(bytes);
  uint8_t told = 0;
  if (!in.Byte(&told)) return false;
  size_t fields = 0;
  while (true) {
    uint8_t first = 0, unused = 0;
    size_t size = 0;
    absl::string_view skipped;
    if (!in.Byte(&first)) return false;
    if (first == kEnd) break;
    if (!ZipmapLength(in, first, &size) || !TellText(in, size, each)) return false;
    if (!in.Byte(&first) || first == kEnd || !ZipmapLength(in, first, &size) || !in.Byte(&unused)) return false;
    if (!TellText(in, size, each) || !in.Text(unused, &skipped)) return false;
    ++fields;
  }
  return in.left() == 0 && (told >= kManyFields || told == fields);
}

bool ReadIntset(absl::string_view bytes, absl::FunctionRef<void(int64_t number)> each) {
  Bytes in(bytes);
  uint32_t width = 0, count = 0;
  if (!in.Little(&width) || !in.Little(&count)) return false;
  switch (width) {
    case 2:
      return IntsetOf<int16_t>(in, count, each);
    case 4:
      return IntsetOf<int32_t>(in, count, each);
    case 8:
      return IntsetOf<int64_t>(in, count, each);
    default:
      return false;
  }
}

}  // namespace idemd::storage

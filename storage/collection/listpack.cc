// Encoding, walking and splicing.
#include "storage/collection/listpack.h"

#include <malloc.h>

#include <charconv>
#include <cstring>
#include <new>

#include "storage/collection/number_text.h"

namespace idemd::storage {
namespace {

constexpr uint8_t kEnd = 0xff;
constexpr uint16_t kManyElements = 0xffff;  // more than the header can say
constexpr size_t kHeadMax = 9;              // the largest number; of texts it is 5
constexpr size_t kBacklenMax = 5;

uint8_t ByteAt(const char* at) { return static_cast<uint8_t>(*at); }

template <class Int>
Int Little(const char* at) {
  Int value;
  std::memcpy(&value, at, sizeof(Int));  // the machines that idemd runs on are little-endian
  return value;
}

template <class Int>
void PutLittle(Int value, char* at) {
  std::memcpy(at, &value, sizeof(Int));
}

// What stands at the front of an element, and what follows it.
struct Head {
  size_t head = 0;      // bytes of encoding, length and number
  size_t text = 0;      // bytes of text behind
  int64_t number = 0;
  bool is_number = false;
};

// False: no such encoding, or it does not fit into `room` bytes.
bool ReadHead(const char* at, size_t room, Head* head) {
  if (room == 0) return false;
  const uint8_t first = ByteAt(at);
  *head = {};
  const auto number = [&](size_t bytes) {
    head->head = bytes;
    head->is_number = true;
    return room >= bytes;
  };
  if (first < 0x80) {
    head->number = first;
    return number(1);
  }
  if (first < 0xc0) {
    head->head = 1;
    head->text = first & 0x3f;
    return true;
  }
  if (first < 0xe0) {
    if (!number(2)) return false;
    const int64_t bits = (int64_t{first} & 0x1f) << 8 | ByteAt(at + 1);
    head->number = bits >= 1 << 12 ? bits - (1 << 13) : bits;
    return true;
  }
  if (first < 0xf0) {
    head->head = 2;
    if (room < 2) return false;
    head->text = (size_t{first} & 0x0f) << 8 | ByteAt(at + 1);
    return true;
  }
  switch (first) {
    case 0xf0:
      head->head = 5;
      if (room < 5) return false;
      head->text = Little<uint32_t>(at + 1);
      return true;
    case 0xf1:
      if (!number(3)) return false;
      head->number = Little<int16_t>(at + 1);
      return true;
    case 0xf2: {
      if (!number(4)) return false;
      const uint32_t bits = uint32_t{ByteAt(at + 1)} | uint32_t{ByteAt(at + 2)} << 8 | uint32_t{ByteAt(at + 3)} << 16;
      head->number = static_cast<int32_t>(bits << 8) >> 8;
      return true;
    }
    case 0xf3:
      if (!number(5)) return false;
      head->number = Little<int32_t>(at + 1);
      return true;
    case 0xf4:
      if (!number(9)) return false;
      head->number = Little<int64_t>(at + 1);
      return true;
    default:
      return false;
  }
}

// Seven bits a byte, to be read backwards: the last byte is the lowest and all others have the top bit set.
// (The limits are the format's; each is one less than it could be.)
size_t BacklenBytes(uint64_t size) {
  if (size < 128) return 1;
  if (size < 16383) return 2;
  if (size < 2097151) return 3;
  return size < 268435455 ? 4 : 5;
}

bool IsShortText(uint8_t first) { return first >= 0x80 && first < 0xc0; }

// How many bytes there are to the next element. Of small ones the back-length is one byte.
size_t Step(const char* at, const char* end) {
  const uint8_t first = ByteAt(at);
  if (first < 0x80) return 2;
  if (IsShortText(first)) return 2 + (first & 0x3f);
  Head head;
  ReadHead(at, static_cast<size_t>(end - at), &head);
  const size_t body = head.head + head.text;
  return body + BacklenBytes(body);
}

// Writes the front of an element to `out`.
Head MakeNumberHead(int64_t n, char* out) {
  Head head;
  head.is_number = true;
  head.number = n;
  if (n >= 0 && n < 128) {
    out[0] = static_cast<char>(n);
    head.head = 1;
  } else if (n >= -4096 && n < 4096) {
    const auto bits = static_cast<uint32_t>(n) & 0x1fff;
    out[0] = static_cast<char>(0xc0 | bits >> 8);
    out[1] = static_cast<char>(bits & 0xff);
    head.head = 2;
  } else if (n >= INT16_MIN && n <= INT16_MAX) {
    out[0] = static_cast<char>(0xf1);
    PutLittle(static_cast<int16_t>(n), out + 1);
    head.head = 3;
  } else if (n >= -(1 << 23) && n < 1 << 23) {
    const auto bits = static_cast<uint32_t>(n);
    out[0] = static_cast<char>(0xf2);
    for (int i = 0; i < 3; ++i) out[1 + i] = static_cast<char>(bits >> (8 * i) & 0xff);
    head.head = 4;
  } else if (n >= INT32_MIN && n <= INT32_MAX) {
    out[0] = static_cast<char>(0xf3);
    PutLittle(static_cast<int32_t>(n), out + 1);
    head.head = 5;
  } else {
    out[0] = static_cast<char>(0xf4);
    PutLittle(n, out + 1);
    head.head = 9;
  }
  return head;
}

Head MakeHead(absl::string_view text, char* out) {
  int64_t number = 0;
  if (ReadCanonicalInt64(text, &number)) return MakeNumberHead(number, out);
  Head head;
  head.text = text.size();
  if (text.size() < 64) {
    out[0] = static_cast<char>(0x80 | text.size());
    head.head = 1;
  } else if (text.size() < 4096) {
    out[0] = static_cast<char>(0xe0 | text.size() >> 8);
    out[1] = static_cast<char>(text.size() & 0xff);
    head.head = 2;
  } else {
    out[0] = static_cast<char>(0xf0);
    PutLittle(static_cast<uint32_t>(text.size()), out + 1);
    head.head = 5;
  }
  return head;
}

Head MakeHead(const Listpack::Value& value, char* out) {
  return value.is_number ? MakeNumberHead(value.number, out) : MakeHead(value.text, out);
}

void PutBacklen(uint64_t size, char* at, size_t bytes) {
  for (size_t i = bytes; i-- > 0; size >>= 7)
    at[i] = static_cast<char>((size & 0x7f) | (i == 0 ? 0 : 0x80));
}

// Reads what ends before `end`; false: it does not begin behind `begin`.
bool ReadBacklen(const char* begin, const char* end, uint64_t* size, size_t* bytes) {
  *size = 0;
  for (*bytes = 0; *bytes < kBacklenMax;) {
    if (end - static_cast<ptrdiff_t>(*bytes) <= begin) return false;
    const uint8_t byte = ByteAt(end - 1 - *bytes);
    *size |= uint64_t{byte & 0x7fu} << (7 * *bytes);
    ++*bytes;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

}  // namespace

Listpack::Listpack() : data_(static_cast<char*>(std::malloc(kHeaderBytes + 1))) {
  if (data_ == nullptr) throw std::bad_alloc();
  PutLittle(static_cast<uint32_t>(kHeaderBytes + 1), data_.get());
  PutLittle(uint16_t{0}, data_.get() + 4);
  data_.get()[kHeaderBytes] = static_cast<char>(kEnd);
}

Listpack::Listpack(const Listpack& other) : data_(static_cast<char*>(std::malloc(other.size()))) {
  if (data_ == nullptr) throw std::bad_alloc();
  std::memcpy(data_.get(), other.data_.get(), other.size());
}

std::optional<Listpack> Listpack::FromBytes(absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes + 1 || bytes.size() > kBytesMax || Little<uint32_t>(bytes.data()) != bytes.size() ||
      ByteAt(bytes.data() + bytes.size() - 1) != kEnd)
    return std::nullopt;
  size_t count = 0;
  const char* const end = bytes.data() + bytes.size() - 1;
  for (const char* at = bytes.data() + kHeaderBytes; at != end; ++count) {
    Head head;
    const auto room = static_cast<size_t>(end - at);
    if (!ReadHead(at, room, &head) || head.text > room - head.head) return std::nullopt;
    const size_t body = head.head + head.text, backlen_bytes = BacklenBytes(body);
    if (backlen_bytes > room - body) return std::nullopt;
    uint64_t told = 0;
    size_t told_bytes = 0;
    if (!ReadBacklen(at + body - 1, at + body + backlen_bytes, &told, &told_bytes) || told != body ||
        told_bytes != backlen_bytes)
      return std::nullopt;
    at += body + backlen_bytes;
  }
  const auto told = Little<uint16_t>(bytes.data() + 4);
  if (told != kManyElements && told != count) return std::nullopt;
  Listpack pack;
  pack.data_.reset(static_cast<char*>(std::malloc(bytes.size())));
  if (pack.data_ == nullptr) throw std::bad_alloc();
  std::memcpy(pack.data_.get(), bytes.data(), bytes.size());
  pack.CountIs(count);
  return pack;
}

size_t Listpack::size() const { return Little<uint32_t>(data_.get()); }
size_t Listpack::memory_bytes() const { return malloc_usable_size(data_.get()); }

void Listpack::CountIs(size_t count) {
  PutLittle(count < kManyElements ? static_cast<uint16_t>(count) : kManyElements, data_.get() + 4);
}

void Listpack::CountChanges(int64_t by) {
  const auto told = Little<uint16_t>(data_.get() + 4);
  // Once there were too many to be told, they are counted when somebody asks.
  if (told != kManyElements) CountIs(static_cast<size_t>(told + by));
}

size_t Listpack::count() const {
  const auto told = Little<uint16_t>(data_.get() + 4);
  if (told != kManyElements) return told;
  size_t n = 0;
  for (At at = First(); at != kNone; at = Next(at)) ++n;
  return n;
}

size_t Listpack::ElementBytes(absl::string_view text) {
  char room[kHeadMax];
  const Head head = MakeHead(text, room);
  const size_t body = head.head + head.text;
  return body + BacklenBytes(body);
}

uint32_t Listpack::ElementSize(At at) const {
  return static_cast<uint32_t>(Step(data_.get() + at, data_.get() + size()));
}

Listpack::At Listpack::First() const { return End() == kHeaderBytes ? kNone : static_cast<At>(kHeaderBytes); }
Listpack::At Listpack::Last() const { return Previous(End()); }

Listpack::At Listpack::Next(At at) const {
  at += ElementSize(at);
  return at == End() ? kNone : at;
}

Listpack::At Listpack::Previous(At at) const {
  if (at == kHeaderBytes) return kNone;
  uint64_t body = 0;
  size_t bytes = 0;
  ReadBacklen(data_.get(), data_.get() + at, &body, &bytes);
  return static_cast<At>(at - bytes - body);
}

Listpack::At Listpack::Seek(int64_t number) const {
  if (number < 0) {
    At at = Last();
    while (at != kNone && ++number != 0) at = Previous(at);
    return at;
  }
  const auto told = Little<uint16_t>(data_.get() + 4);
  if (told != kManyElements) {
    if (number >= told) return kNone;
    if (number > told / 2) return Seek(number - told);
  }
  At at = First();
  while (at != kNone && number-- != 0) at = Next(at);
  return at;
}

Listpack::Value Listpack::Get(At at) const {
  Head head;
  ReadHead(data_.get() + at, size() - at, &head);
  Value value;
  value.is_number = head.is_number;
  value.number = head.number;
  if (!head.is_number) value.text = absl::string_view(data_.get() + at + head.head, head.text);
  return value;
}

absl::string_view Listpack::Text(At at, Digits& room) const {
  const Value value = Get(at);
  if (!value.is_number) return value.text;
  const auto end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), value.number).ptr;
  return {room.bytes, static_cast<size_t>(end - room.bytes)};
}

bool Listpack::Equals(At at, absl::string_view text) const {
  const Value value = Get(at);
  if (!value.is_number) return value.text == text;
  int64_t number = 0;
  return ReadCanonicalInt64(text, &number) && number == value.number;
}

Listpack::At Listpack::Find(At from, absl::string_view text, size_t skip) const {
  if (from == kNone) return kNone;
  const char* at = data_.get() + from;
  const char* const end = data_.get() + End();
  int64_t number = 0;
  // Most texts are ruled out by their length or their last byte.
  const size_t size = text.size();
  const char last = text.empty() ? '\0' : text.back();
  const bool is_number = ReadCanonicalInt64(text, &number);
  while (true) {
    const uint8_t first = ByteAt(at);
    bool found = false;
    if (IsShortText(first)) [[likely]] {
      found = (first & 0x3f) == size && (size == 0 || (at[size] == last && std::memcmp(at + 1, text.data(), size) == 0));
    } else {
      const Value value = Get(static_cast<At>(at - data_.get()));
      found = value.is_number ? is_number && value.number == number : value.text == text;
    }
    if (found) return static_cast<At>(at - data_.get());
    for (size_t i = 0; i <= skip; ++i) {
      at += Step(at, end);
      if (at == end) return kNone;
    }
  }
}

// Moves what stands from `from` to the end to `to`. The allocator is asked only where what it gave is too small, or a good deal too large.
void Listpack::Move(At from, At to) {
  if (from == to) return;
  const size_t before = size(), after = before + to - from, room = memory_bytes();
  if (after > room) {
    char* const grown = static_cast<char*>(std::realloc(data_.get(), after));
    if (grown == nullptr) throw std::bad_alloc();
    static_cast<void>(data_.release());
    data_.reset(grown);
  }
  std::memmove(data_.get() + to, data_.get() + from, before - from);
  if (after < room - room / 4) {
    char* const shrunk = static_cast<char*>(std::realloc(data_.get(), after));
    if (shrunk != nullptr) {
      static_cast<void>(data_.release());
      data_.reset(shrunk);
    }
  }
  PutLittle(static_cast<uint32_t>(after), data_.get());
}

Listpack::At Listpack::Splice(At at, uint32_t drop, absl::string_view text) {
  char front[kHeadMax];
  const Head head = MakeHead(text, front);
  const size_t body = head.head + head.text, backlen_bytes = BacklenBytes(body);
  // The text may lie in this very listpack only when nothing moves; callers pass their own.
  Move(at + drop, static_cast<At>(at + body + backlen_bytes));
  char* const to = data_.get() + at;
  std::memcpy(to, front, head.head);
  if (head.text != 0) std::memcpy(to + head.head, text.data(), head.text);
  PutBacklen(body, to + body, backlen_bytes);
  if (drop == 0) CountChanges(1);
  return at;
}

void Listpack::AppendAll(absl::Span<const Value> values) {
  char front[kHeadMax];
  size_t bytes = 0;
  for (const Value& value : values) {
    const Head head = MakeHead(value, front);
    bytes += head.head + head.text + BacklenBytes(head.head + head.text);
  }
  const At end = End();
  Move(end, static_cast<At>(end + bytes));
  char* to = data_.get() + end;
  for (const Value& value : values) {
    const Head head = MakeHead(value, front);
    const size_t body = head.head + head.text, backlen_bytes = BacklenBytes(body);
    std::memcpy(to, front, head.head);
    if (head.text != 0) std::memcpy(to + head.head, value.text.data(), head.text);
    PutBacklen(body, to + body, backlen_bytes);
    to += body + backlen_bytes;
  }
  CountChanges(static_cast<int64_t>(values.size()));
}

Listpack::At Listpack::Erase(At at, size_t elements) {
  At end = at;
  int64_t n = 0;
  for (; n < static_cast<int64_t>(elements) && end != End(); ++n) end += ElementSize(end);
  Move(end, at);
  CountChanges(-n);
  return at == End() ? kNone : at;
}

}  // namespace idemd::storage

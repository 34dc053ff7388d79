// A listpack: short strings and numbers one after another in a single allocation, walked from either end.
//
//   0        4       6
//   +--------+-------+---------+---------+- ... -+---------+------+
//   | bytes  | count | element | element |       | element | 0xff |
//   +--------+-------+---------+---------+- ... -+---------+------+
//
//   element: encoding and length, the bytes (or the number, for what is canonical decimal), and how long all of that is,
//   to be read from behind
//
// Small collections are kept so, and snapshots hold it as it stands.
//
// Source    the listpack specification (github.com/antirez/listpack), as Redis 7.0 writes it into RDB files.
// Threads   one, or several that only read.
// Lifetime  a position is good until the listpack is changed; Get()'s text lies in the listpack.
// Limits    at most kBytesMax in all; who inserts looks at bytes() first.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::storage {

class Listpack {
 public:
  using At = uint32_t;                // the offset of an element
  static constexpr At kNone = 0;      // no element
  static constexpr size_t kBytesMax = size_t{1} << 30;

  struct Value {
    absl::string_view text;  // when it is no number
    int64_t number = 0;
    bool is_number = false;
  };
  // Room for a number's digits.
  struct Digits {
    char bytes[24];
  };

  Listpack();
  Listpack(const Listpack& other);
  Listpack(Listpack&&) noexcept = default;
  Listpack& operator=(Listpack&&) noexcept = default;
  Listpack& operator=(const Listpack&) = delete;
  // Takes over bytes from a file. None: they are no listpack through and through.
  static std::optional<Listpack> FromBytes(absl::string_view bytes);

  absl::string_view view() const { return {data_.get(), size()}; }
  size_t size() const;          // bytes
  size_t memory_bytes() const;  // as allocated
  size_t count() const;         // elements
  // What an element with this text adds to size().
  static size_t ElementBytes(absl::string_view text);

  At First() const;
  At Last() const;
  At Next(At at) const;  // kNone behind the last
  At Previous(At at) const;
  // The element with this number, counted from 0, from the end where negative (-1 is the last).
  At Seek(int64_t number) const;

  Value Get(At at) const;
  absl::string_view Text(At at, Digits& room) const;
  bool Equals(At at, absl::string_view text) const;
  // The first of every (skip+1)th element, from `from` on, that equals `text`.
  At Find(At from, absl::string_view text, size_t skip) const;

  void Append(absl::string_view text) { Splice(End(), 0, text); }
  // One behind the other; what lies in between moves once.
  void AppendAll(absl::Span<const Value> values);
  void Prepend(absl::string_view text) { Splice(kHeaderBytes, 0, text); }
  // In front of `at`; returns where it stands. Elements behind it move.
  At InsertBefore(At at, absl::string_view text) { return Splice(at, 0, text); }
  At InsertAfter(At at, absl::string_view text) { return Splice(at + ElementSize(at), 0, text); }
  At Replace(At at, absl::string_view text) { return Splice(at, ElementSize(at), text); }
  // Returns the element that follows, or kNone.
  At Erase(At at, size_t elements = 1);

 private:
  static constexpr size_t kHeaderBytes = 6;
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  At End() const { return static_cast<At>(size() - 1); }  // where 0xff stands
  uint32_t ElementSize(At at) const;                      // all of it
  At Splice(At at, uint32_t drop, absl::string_view text);
  void Move(At from, At to);
  void CountIs(size_t count);
  void CountChanges(int64_t by);

  std::unique_ptr<char, Free> data_;
};

}  // namespace idemd::storage

// Integers in ascending order, all as wide as the widest of them has to be: sets of few numbers, and what RDB has for them.
//
//   0       4       8
//   +-------+-------+--------+--------+-...-+
//   | width | count | number | number |     |   little-endian
//   +-------+-------+--------+--------+-...-+
//
// Source    the intset of Redis (redis/src/intset.c), as RDB files hold it.
// Threads   one, or several that only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"

namespace idemd::storage {

class Intset {
 public:
  Intset();
  Intset(const Intset& other);
  Intset(Intset&&) noexcept = default;
  Intset& operator=(Intset&&) noexcept = default;
  Intset& operator=(const Intset&) = delete;
  // Takes over bytes from a file. None: they are no intset through and through.
  static std::optional<Intset> FromBytes(absl::string_view bytes);

  size_t size() const;
  int64_t operator[](size_t place) const;
  bool Contains(int64_t number) const;
  bool Add(int64_t number);     // false: it is there
  bool Remove(int64_t number);  // false: it is not

  absl::string_view view() const;
  size_t memory_bytes() const;  // as allocated

 private:
  static constexpr size_t kHeaderBytes = 8;
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  uint32_t width() const;
  void Put(size_t place, int64_t number);
  void SetHead(uint32_t width, size_t count);
  void Resize(uint32_t width, size_t count);
  size_t Search(int64_t number) const;  // the first place whose number is not smaller
  void Widen(uint32_t width);

  std::unique_ptr<char, Free> data_;
};

}  // namespace idemd::storage

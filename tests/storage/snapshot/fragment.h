// Reads what Snapshot::Walk() appends, for tests: RDB entries of strings that are not compressed, and SELECTDB.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/clock.h"
#include "storage/effect.h"

namespace idemd::storage {

struct FragmentEntry {
  DbIndex db = 0;
  std::string key;
  std::string value;
  int64_t deadline_ms = kNoDeadline;
};

class FragmentReader {
 public:
  explicit FragmentReader(absl::string_view bytes) : rest_(bytes) {}

  // All entries; nothing if a byte is not as it should be. An entry before the first SELECTDB is not.
  std::optional<std::vector<FragmentEntry>> ReadAll() {
    std::vector<FragmentEntry> entries;
    std::optional<DbIndex> db;
    while (good_ && !rest_.empty()) {
      unsigned op = Byte();
      if (op == 254) {
        db = static_cast<DbIndex>(Length());
        continue;
      }
      FragmentEntry entry;
      if (op == 252) {
        entry.deadline_ms = Little<int64_t>();
        op = Byte();
      }
      if (op != 0 || !db) good_ = false;
      entry.db = db.value_or(0);
      entry.key = String();
      entry.value = String();
      if (good_) entries.push_back(std::move(entry));
    }
    if (!good_) return std::nullopt;
    return entries;
  }

 private:
  absl::string_view Take(uint64_t n) {
    if (n > rest_.size()) {
      good_ = false;
      return {};
    }
    const absl::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  unsigned Byte() {
    const absl::string_view one = Take(1);
    return one.empty() ? 255 : static_cast<unsigned char>(one[0]);
  }
  template <class Int>
  Int Little() {
    const absl::string_view bytes = Take(sizeof(Int));
    Int value = 0;
    if (good_) std::memcpy(&value, bytes.data(), sizeof(Int));
    return value;
  }
  uint64_t Big(unsigned bytes) {
    uint64_t value = 0;
    for (; bytes > 0; --bytes) value = value << 8 | Byte();
    return value;
  }
  uint64_t LengthAfter(unsigned first) {
    switch (first >> 6) {
      case 0:
        return first;
      case 1:
        return uint64_t{first & 0x3f} << 8 | Byte();
      default:
        if (first != 0x80 && first != 0x81) good_ = false;
        return Big(first == 0x81 ? 8 : 4);
    }
  }
  uint64_t Length() { return LengthAfter(Byte()); }
  std::string String() {
    const unsigned first = Byte();
    if (first == 0xc0) return std::to_string(Little<int8_t>());
    if (first == 0xc1) return std::to_string(Little<int16_t>());
    if (first == 0xc2) return std::to_string(Little<int32_t>());
    return std::string(Take(LengthAfter(first)));
  }

  absl::string_view rest_;
  bool good_ = true;
};

}  // namespace idemd::storage

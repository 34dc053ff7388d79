// Reads what Snapshot::Walk() appends, for tests: an RDB file with only that in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/clock.h"
#include "storage/effect.h"
#include "storage/snapshot/rdb_reader.h"

namespace idemd::storage {

struct FragmentEntry {
  DbIndex db = 0;
  std::string key;
  std::string value;
  int64_t deadline_ms = kNoDeadline;
};

class FragmentReader {
 public:
  explicit FragmentReader(absl::string_view bytes) : fragment_(bytes) {}

  // All entries; nothing if a byte is not as it should be. An entry before the first SELECTDB is not.
  std::optional<std::vector<FragmentEntry>> ReadAll() {
    constexpr char kSelect = static_cast<char>(254), kEnd = static_cast<char>(255);
    std::vector<FragmentEntry> entries;
    if (fragment_.empty()) return entries;
    if (fragment_[0] != kSelect) return std::nullopt;
    const std::string file = absl::StrCat("REDIS0010", fragment_, absl::string_view(&kEnd, 1), std::string(8, '\0'));
    size_t at = 0;
    RdbReader reader([&](size_t size) -> absl::StatusOr<absl::string_view> {
      const absl::string_view next = absl::string_view(file).substr(at, size);
      at += next.size();
      return next;
    });
    while (true) {
      const absl::StatusOr<RdbItem> item = reader.Next();
      if (!item.ok()) return std::nullopt;
      if (item->kind == RdbItem::Kind::kEnd) return entries;
      if (item->kind != RdbItem::Kind::kEntry) continue;
      entries.push_back({item->db, std::string(item->name), std::string(item->value), item->deadline_ms});
    }
  }

 private:
  const absl::string_view fragment_;
};

}  // namespace idemd::storage

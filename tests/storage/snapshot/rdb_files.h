// Whole RDB files for tests: put together by hand, and read in pieces of any size.
//
// Each piece is in memory of its own and is overwritten before the next one is given out, so that a
// view that was held too long shows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::storage {

struct RdbEntry {
  DbIndex db = 0;
  std::string key, value;
  int64_t deadline_ms = kNoDeadline;
  bool operator==(const RdbEntry& other) const {
    return std::tie(db, key, value, deadline_ms) ==
           std::tie(other.db, other.key, other.value, other.deadline_ms);
  }
  bool operator<(const RdbEntry& other) const {
    return std::tie(db, key, value, deadline_ms) <
           std::tie(other.db, other.key, other.value, other.deadline_ms);
  }
};
inline std::ostream& operator<<(std::ostream& out, const RdbEntry& entry) {
  return out << entry.db << ":" << entry.key << "=" << entry.value.substr(0, 100) << " at "
             << entry.deadline_ms;
}

// What a reader made of a file; what came before an error is kept.
struct RdbContents {
  absl::Status status;
  uint32_t version = 0;
  bool has_sum = false;
  uint64_t offset = 0;
  std::map<std::string, std::string> aux;
  std::vector<std::string> libraries;
  std::vector<std::tuple<DbIndex, uint64_t, uint64_t>> sizes;
  std::vector<RdbEntry> entries;
  bool operator==(const RdbContents& other) const {
    return std::tie(status, version, has_sum, offset, aux, sizes, entries) ==
           std::tie(other.status, other.version, other.has_sum, other.offset, other.aux,
                    other.sizes, other.entries);
  }
};

// The bytes of a file, in pieces whose sizes `next` tells (at least 1 and at most what is asked for
// is given out).
class RdbPieces {
 public:
  RdbPieces(absl::string_view bytes, std::function<size_t()> next)
      : rest_(bytes), next_(std::move(next)) {}
  absl::StatusOr<absl::string_view> operator()(size_t size) {
    std::fill(piece_.begin(), piece_.end(), '\xee');
    size = std::min({size, std::max<size_t>(next_(), 1), rest_.size()});
    piece_ = std::vector<char>(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size));
    rest_.remove_prefix(size);
    return absl::string_view(piece_.data(), piece_.size());
  }

 private:
  absl::string_view rest_;
  std::function<size_t()> next_;
  std::vector<char> piece_;
};

inline RdbContents ReadRdb(RdbReader::Source source) {
  RdbContents contents;
  RdbReader reader(std::move(source));
  while (true) {
    const absl::StatusOr<RdbItem> item = reader.Next();
    contents.status = item.status();
    if (!item.ok() || item->kind == RdbItem::Kind::kEnd) break;
    switch (item->kind) {
      case RdbItem::Kind::kAux:
        contents.aux[std::string(item->name)] = std::string(item->value);
        break;
      case RdbItem::Kind::kFunctions:
        contents.libraries.emplace_back(item->value);
        break;
      case RdbItem::Kind::kSizes:
        contents.sizes.emplace_back(item->db, item->keys, item->with_deadline);
        break;
      case RdbItem::Kind::kEntry:
        contents.entries.push_back(
            {item->db, std::string(item->name), std::string(item->value), item->deadline_ms});
        break;
      case RdbItem::Kind::kDatabase:
      case RdbItem::Kind::kEnd:
        break;
    }
  }
  contents.version = reader.version();
  contents.has_sum = reader.has_sum();
  contents.offset = reader.offset();
  return contents;
}

inline RdbContents ReadRdb(absl::string_view bytes, size_t piece = SIZE_MAX) {
  const auto pieces = std::make_shared<RdbPieces>(bytes, [piece] { return piece; });
  return ReadRdb([pieces](size_t size) { return (*pieces)(size); });
}

inline std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

inline std::string RdbHeader(int version) {
  const std::string digits = std::to_string(version);
  return "REDIS" + std::string(4 - std::min<size_t>(digits.size(), 4), '0') + digits;
}

// EOF and the sum over everything.
inline std::string RdbFinished(std::string file) {
  AppendRdbEnd(file);
  const uint64_t sum = Crc64(0, file);
  file.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return file;
}

// A file of version 10 with `body` in it.
inline std::string RdbFile(absl::string_view body, int version = 10) {
  return RdbFinished(RdbHeader(version) + std::string(body));
}

// A payload as DUMP makes it, around any body.
inline std::string Payload(std::string body, uint16_t version = 10) {
  body.append(reinterpret_cast<const char*>(&version), sizeof(version));
  const uint64_t sum = Crc64(0, body);
  body.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return body;
}

}  // namespace idemd::storage

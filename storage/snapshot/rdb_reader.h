// Reads an RDB file, versions 1 to 12, piece by piece.
//
// Strings in every encoding are understood, and the collections of storage/collection/rdb_collection.h.
// Every other type of value and modules are refused by name, never skipped. The sum is checked; a sum of 0 says that its writer had switched
// it off, and versions below 5 have none: has_sum() tells. Entries come before the sum does, so
// none of them may be served before kEnd came.
//
//   RdbReader reader(source);
//   while (true) {
//     absl::StatusOr<RdbItem> item = reader.Next();
//     if (!item.ok()) return item.status();  // the text says where and why
//     if (item->kind == RdbItem::Kind::kEnd) break;
//     ...
//   }
//
// Threads   one.
// Lifetime  views in an item are good until the next call of Next().
// Source    as rdb_format.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/clock.h"
#include "storage/collection/collection.h"
#include "storage/effect.h"

namespace idemd::storage {

struct RdbItem {
  enum class Kind : uint8_t { kAux, kFunctions, kDatabase, kSizes, kEntry, kEnd };
  Kind kind = Kind::kEnd;
  absl::string_view name;                // kAux; kEntry: the key
  absl::string_view value;               // kAux, kEntry: a string; kFunctions: the text of a library
  std::unique_ptr<Collection> collection;  // kEntry: any other type
  DbIndex db = 0;                        // kDatabase, kEntry
  int64_t deadline_ms = kNoDeadline;     // kEntry; may have passed
  uint64_t keys = 0, with_deadline = 0;  // kSizes: what the writer said that comes in this database
};

class RdbReader {
 public:
  // Up to `size` bytes that come next, none only at the end; the view is good until the next call.
  using Source = std::function<absl::StatusOr<absl::string_view>(size_t size)>;
  explicit RdbReader(Source source);
  ~RdbReader();

  // DataLoss: damaged or cut short. Unimplemented: something that idemd does not have. Anything
  // else: the source's. An error, and kEnd, come again with every further call.
  [[nodiscard]] absl::StatusOr<RdbItem> Next();
  uint32_t version() const;  // after the first item
  // Bytes consumed. After kEnd the file's own end. What follows it, commands of an AOF or nothing,
  // is the caller's to judge where there was a sum; where there was none, nothing does.
  uint64_t offset() const;
  bool has_sum() const;  // after kEnd

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The value in a DUMP payload: the string, or "" and the collection. InvalidArgument: version or sum are wrong. DataLoss: no value, or
// more than one. Unimplemented: a type that idemd does not have; the text is its name.
[[nodiscard]] absl::StatusOr<std::string> ReadDumpPayload(absl::string_view payload,
                                                          std::unique_ptr<Collection>* collection = nullptr);

}  // namespace idemd::storage

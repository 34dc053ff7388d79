// The bytes of an RDB file, chunk after chunk, with their sum kept running.
//
// What lies in one chunk is read where it is. What crosses a border is copied piece by piece, so
// that a length which lies costs no more memory than there are bytes behind it.
//
// Threads   one.
// Lifetime  a view is good until the next read that needs another chunk, unless Keep() was told of
//           it; copies live in the Hold that the caller gave.
// Errors    false, for good: status() is the source's error, or OK when the bytes are over.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/snapshot/rdb_reader.h"

namespace idemd::storage {

class RdbInput {
 public:
  // What a source is asked for at once: so little that its bytes are still in the processor's
  // second cache when they are summed, so much that borders and calls cost nothing.
  static constexpr size_t kChunkBytes = size_t{256} << 10;
  // What a Hold may keep for the next string.
  static constexpr size_t kHoldBytes = size_t{1} << 20;

  explicit RdbInput(RdbReader::Source source) : source_(std::move(source)) {}
  RdbInput(const RdbInput&) = delete;
  RdbInput& operator=(const RdbInput&) = delete;

  [[nodiscard]] bool Byte(uint8_t* byte) {
    if (at_ == end_ && !Refill()) return false;
    *byte = static_cast<uint8_t>(*at_++);
    return true;
  }

  [[nodiscard]] bool Bytes(uint64_t size, absl::string_view* view, std::string& hold) {
    if (size > Left()) return Gather(size, view, hold);
    *view = absl::string_view(at_, static_cast<size_t>(size));
    at_ += size;
    return true;
  }

  // A number as the machine keeps it: little-endian, like all that idemd runs on.
  template <class Int>
  [[nodiscard]] bool Little(Int* value) {
    return Small(value, sizeof(Int));
  }
  template <class Int>
  [[nodiscard]] bool Big(Int* value) {
    if (!Small(value, sizeof(Int))) return false;
    if constexpr (sizeof(Int) == 4) *value = __builtin_bswap32(*value);
    if constexpr (sizeof(Int) == 8) *value = __builtin_bswap64(*value);
    return true;
  }

  // From now on `*view`, the last one that was read, outlives the chunk: it is moved to `hold`
  // before the next chunk is asked for. Null ends it.
  void Keep(absl::string_view* view, std::string* hold) {
    kept_ = view;
    kept_hold_ = hold;
  }

  // Whether nothing comes any more; also when the source failed.
  [[nodiscard]] bool AtEnd() { return at_ == end_ && !Refill(); }

  uint64_t offset() const { return chunk_offset_ + static_cast<uint64_t>(at_ - chunk_); }
  // Of all bytes up to here.
  uint64_t Sum();
  const absl::Status& status() const { return status_; }

 private:
  size_t Left() const { return static_cast<size_t>(end_ - at_); }
  bool Small(void* value, size_t size) {
    if (size > Left()) return GatherSmall(value, size);
    std::memcpy(value, at_, size);
    at_ += size;
    return true;
  }
  bool Refill();
  bool Gather(uint64_t size, absl::string_view* view, std::string& hold);
  bool GatherSmall(void* value, size_t size);

  RdbReader::Source source_;
  const char* chunk_ = nullptr;   // what the source gave last: chunk_ <= summed_ <= at_ <= end_
  const char* summed_ = nullptr;  // up to here the bytes are in sum_
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t chunk_offset_ = 0;
  uint64_t sum_ = 0;
  bool over_ = false;
  absl::string_view* kept_ = nullptr;
  std::string* kept_hold_ = nullptr;
  absl::Status status_;
};

}  // namespace idemd::storage

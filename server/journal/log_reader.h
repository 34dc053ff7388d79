// Reads a log file batch by batch, and says where it stops being one.
//
// Threads   one.
// Lifetime  views in a step are good until the next call.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/journal/batch.h"
#include "storage/fs.h"

namespace idemd::server {

// Bytes of a file from a place on, with as many of them in memory as somebody asks for.
class FileWindow {
 public:
  FileWindow(storage::File& file, uint64_t size) : file_(file), size_(size) {}
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }
  uint64_t left() const { return size_ - offset_; }
  // At least `bytes` from here on, fewer only at the end of the file.
  absl::StatusOr<absl::string_view> Peek(size_t bytes);
  void Skip(uint64_t bytes);

 private:
  storage::File& file_;
  const uint64_t size_;
  uint64_t offset_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // of what is at offset_, in the buffer
};

class LogReader {
 public:
  struct Step {
    enum class Kind : uint8_t {
      kBatch,  // header and commands are set, the sum is right
      kEnd,    // the file ends here
      kBad,    // from here on it is no batch; `why`
    };
    Kind kind = Kind::kEnd;
    BatchHeader header;
    absl::string_view commands;
    std::string why;
  };
  LogReader(storage::File& file, uint64_t size) : window_(file, size) {}
  // An error is one of reading, not of what was read.
  [[nodiscard]] absl::StatusOr<Step> Next();
  uint64_t offset() const { return window_.offset(); }  // of what Next() reads next; of what is bad
  uint64_t next_offset() const { return window_.offset() + skip_; }        // behind the batch that Next() has given
  FileWindow& window() { return window_; }

 private:
  FileWindow window_;
  uint64_t skip_ = 0;
};

// The size of a log without zeros behind its end: they were written ahead (File::Prefill), and no batch ends with one.
[[nodiscard]] absl::StatusOr<uint64_t> BytesBeforeZeros(storage::File& file, uint64_t size);

// Whether anywhere from `offset` on there is a sound batch that says that an LSN above `lsn` was on disk when it was written.
[[nodiscard]] absl::StatusOr<bool> TellsOfSynced(storage::File& file, uint64_t size, uint64_t offset, storage::Lsn lsn);

}  // namespace idemd::server

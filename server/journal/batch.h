// A batch of the log: an ECHO command that tells what follows and proves it, then the commands themselves.
//
//   *2 $4 ECHO $n  i2;<first lsn>;<last lsn>;<bytes>;<t-ms>;<boot-ms>;<synced lsn>;<previous>;<sum>
//   <bytes> bytes of commands
//
// `previous` and `sum` are 16 hexadecimal digits. The sum is XXH3-64 over the header up to itself and the commands; since the
// header holds the sum before it, sums are a chain. `synced` is what was on disk for sure when the batch was written: if a
// batch is damaged and one behind it says that it had been on disk, the disk has lost it; else the power was cut before it got
// there. A stock Redis runs the ECHO and ignores it.
//
// The commands of a file's first batch begin with an ECHO that names the file and what came before it; a seal is a batch of
// one ECHO that ends it. Fence marks are ECHOs too. A sealed file never grows.
//
// Threads   functions on the caller's data.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/effect.h"

namespace idemd::server {

struct BatchHeader {
  storage::Lsn first = 0, last = 0;  // last < first: no effects
  uint64_t bytes = 0;                // of the commands
  int64_t effective_ms = 0;
  int64_t boot_ms = 0;
  storage::Lsn synced = 0;
  uint64_t previous = 0;
  uint64_t sum = 0;
};

// Sums in text: 16 hexadecimal digits.
// XXH3-64 over both, one after the other.
uint64_t SumOf(absl::string_view first, absl::string_view second);
std::string SumText(uint64_t sum);
bool ReadSum(absl::string_view text, uint64_t* sum);

// Sets header.bytes and header.sum for these commands and appends the ECHO.
void AppendBatchHeader(BatchHeader& header, absl::string_view commands, std::string& out);

enum class HeaderVerdict : uint8_t {
  kHeader,  // *header is set, *size is the length of the ECHO
  kCut,     // the bytes end before the ECHO does
  kOther,   // something else stands here
};
HeaderVerdict ReadBatchHeader(absl::string_view bytes, BatchHeader* header, size_t* size);
// Whether these commands are the header's; `echo` is the ECHO as it was read.
bool SumFits(const BatchHeader& header, absl::string_view echo, absl::string_view commands);
// How each batch begins.
extern const absl::string_view kBatchMark;

// What the first batch of a file says.
struct FileHeader {
  std::string name;
  std::string uuid;       // of the directory
  std::string boot_id;
  std::string token_key;  // hexadecimal
  std::string before;     // the file before it, "-" for none
  uint64_t before_bytes = 0;
  storage::Lsn before_last = 0;
  uint64_t before_sum = 0;
};
void AppendFileHeader(const FileHeader& header, std::string& out);
bool ReadFileHeader(absl::string_view echoed, FileHeader* header);

void AppendSeal(uint64_t file_bytes, std::string& out);  // as long as the file was before the seal's batch
bool ReadSeal(absl::string_view echoed, uint64_t* file_bytes);

void AppendFenceMark(uint64_t fence, std::string& out);
bool ReadFenceMark(absl::string_view echoed, uint64_t* fence);

}  // namespace idemd::server

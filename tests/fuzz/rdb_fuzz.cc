// Any bytes are the same RDB file or the same error, whole and cut into pieces; and any payload is
// read or refused.
#include <cstdlib>
#include <string>

#include "storage/snapshot/rdb_reader.h"
#include "tests/storage/snapshot/rdb_files.h"

using idemd::storage::Payload;
using idemd::storage::RdbContents;
using idemd::storage::ReadDumpPayload;
using idemd::storage::ReadRdb;

// The first byte says how to cut and what the others are: a file, a file without its header, a
// payload, or one without its version and sum, which the fuzzer would never find.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = data[0] % 17 + 1;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] >= 192) {
    (void)ReadDumpPayload(bytes);
    const auto value = ReadDumpPayload(Payload(bytes));
    // What was read is written so that it is read again.
    if (value.ok() && *ReadDumpPayload(idemd::storage::DumpPayload(*value)) != *value) std::abort();
    return 0;
  }
  if (data[0] >= 64) bytes = idemd::storage::RdbHeader(data[0] >= 128 ? 3 : 10) + bytes;
  const RdbContents whole = ReadRdb(bytes);
  if (!(ReadRdb(bytes, step) == whole) || whole.offset > bytes.size()) std::abort();
  return 0;
}

// RDB with what idemd has to know beside keys in its AUX fields.
#include "server/journal/snapshot_file.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/version.h"
#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_functions.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::server {
namespace {

using storage::File;

constexpr size_t kWriteBytes = 1 << 20;
// The disk is kept busy from the beginning, instead of getting all of it at the end.
constexpr uint64_t kSyncBytes = 32 << 20;

void AppendHead(const storage::Snapshot& snapshot, const SnapshotFacts& facts, std::string& out) {
  storage::AppendRdbHeader(out);
  // Ours first: a few bytes tell whose file it is.
  storage::AppendRdbAux("idem-uuid", facts.uuid, out);
  if (facts.import) storage::AppendRdbAux("idem-import", "1", out);
  storage::AppendRdbAux("redis-ver", kRedisVersion, out);
  storage::AppendRdbAux("redis-bits", "64", out);
  storage::AppendRdbAux("ctime", absl::StrCat(facts.effective_ms / 1000), out);
  storage::AppendRdbAux("aof-base", facts.log_base ? "1" : "0", out);
  storage::AppendRdbAux("idem-lsn", absl::StrCat(facts.lsn), out);
  storage::AppendRdbAux("idem-fence", absl::StrCat(facts.fence), out);
  storage::AppendRdbAux("idem-clock", absl::StrCat(facts.effective_ms), out);
  storage::AppendRdbAux("idem-boot", absl::StrCat(facts.boot_ms), out);
  storage::AppendRdbAux("idem-boot-id", facts.boot_id, out);
  storage::AppendRdbAux("idem-token-key", facts.token_key, out);
  const std::vector<absl::string_view> libraries(facts.libraries.begin(), facts.libraries.end());
  storage::AppendRdbFunctions(libraries, out);
  // All sizes at once: a reader makes room, and knows in the end whether it has seen everything.
  for (storage::DbIndex db = 0; db < storage::kDatabases; ++db)
    if (snapshot.keys(db) != 0) storage::AppendRdbDatabase(db, snapshot.keys(db), snapshot.with_deadline(db), out);
}

}  // namespace

absl::Status WriteSnapshotFile(Directory& directory, const std::string& path, storage::Snapshot& snapshot,
                               const SnapshotFacts& facts, uint64_t* bytes) {
  uint64_t sum = 0, size = 0;
  const auto write = [&](File& file) -> absl::Status {
    std::string out;
    uint64_t unsynced = 0;
    const auto flush = [&]() -> absl::Status {
      sum = storage::Crc64(sum, out);
      size += out.size();
      unsynced += out.size();
      if (absl::Status written = file.Append(out); !written.ok()) return written;
      out.clear();
      if (unsynced < kSyncBytes) return absl::OkStatus();
      unsynced = 0;
      return file.Sync();
    };
    AppendHead(snapshot, facts, out);
    while (snapshot.Walk(out)) {
      if (out.size() < kWriteBytes) continue;
      if (absl::Status flushed = flush(); !flushed.ok()) return flushed;
    }
    if (snapshot.keys_walked() != snapshot.keys())  // S5
      return absl::DataLossError(absl::StrCat(path, ": ", snapshot.keys_walked(), " keys were written out of ", snapshot.keys()));
    storage::AppendRdbEnd(out);
    if (absl::Status flushed = flush(); !flushed.ok()) return flushed;
    char bytes_of_sum[8];
    std::memcpy(bytes_of_sum, &sum, sizeof(sum));
    size += sizeof(sum);
    return file.Append(absl::string_view(bytes_of_sum, sizeof(bytes_of_sum)));
  };
  const auto verify = [&](File& file) -> absl::Status {  // S8
    uint64_t read_sum = 0, at = 0;
    while (true) {
      absl::StatusOr<std::string> part = file.ReadAt(at, kWriteBytes);
      if (!part.ok()) return part.status();
      if (part->empty()) break;
      read_sum = storage::Crc64(read_sum, *part);
      at += part->size();
    }
    char bytes_of_sum[8];
    std::memcpy(bytes_of_sum, &sum, sizeof(sum));
    if (at != size || read_sum != storage::Crc64(sum, absl::string_view(bytes_of_sum, sizeof(bytes_of_sum))))
      return absl::DataLossError(absl::StrCat(path, ": what was written cannot be read back"));
    return absl::OkStatus();
  };
  *bytes = 0;
  if (absl::Status written = directory.WriteDurably(path, write, verify); !written.ok()) return written;
  *bytes = size;
  return absl::OkStatus();
}

}  // namespace idemd::server

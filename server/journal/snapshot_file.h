// A snapshot in a file: the base of a log, or a dump.
//
// Threads   one.
// Errors    the file system's; DataLoss when what was read back is not what was written, or keys are missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/journal/directory.h"
#include "storage/effect.h"
#include "storage/snapshot/snapshot.h"

namespace idemd::server {

struct SnapshotFacts {
  storage::Lsn lsn = storage::kNoLsn;  // everything up to here is in it
  uint64_t fence = 0;                  // no fence up to here may be given out again
  int64_t effective_ms = 0, boot_ms = 0;
  std::string uuid, boot_id, token_key;
  std::vector<std::string> libraries;  // texts of functions
  bool log_base = false;
  bool import = false;  // made from files of somebody else, which are still there
};

// Walks the snapshot into `path`, durably: written under another name, synced, read back, renamed. *bytes is its size.
[[nodiscard]] absl::Status WriteSnapshotFile(Directory& directory, const std::string& path, storage::Snapshot& snapshot,
                                             const SnapshotFacts& facts, uint64_t* bytes);

}  // namespace idemd::server

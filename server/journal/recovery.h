// What a data directory holds, and how sound it is: one pass that both judges and loads.
//
// The same pass serves a start (into a store) and `idemd --check` (into nothing).
//
// Threads   one.
// Errors    DataLoss: damaged, files missing or mixed; the text says what and gives advice. Unimplemented: something that idemd
//           does not have. Others: the file system's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/journal/directory.h"
#include "server/journal/journal.h"
#include "storage/effect.h"

namespace idemd::server {

// Where what is read goes.
class LoadSink {
 public:
  virtual ~LoadSink() = default;
  // A hint: about so many keys come for that database.
  virtual void Expect(storage::DbIndex db, uint64_t keys) = 0;
  virtual void Set(storage::DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms) = 0;
  virtual void SetCollection(storage::DbIndex db, absl::string_view key, std::unique_ptr<storage::Collection> value,
                             int64_t deadline_ms) = 0;
  virtual void Delete(storage::DbIndex db, absl::string_view key) = 0;
  virtual void SetDeadline(storage::DbIndex db, absl::string_view key, int64_t deadline_ms) = 0;
  virtual void FlushDb(storage::DbIndex db) = 0;
  virtual void FlushAll() = 0;
  virtual void SwapDb(storage::DbIndex a, storage::DbIndex b) = 0;
  // Another command of a log: a part of a collection, or anything that a Redis wrote; may change *db.
  virtual absl::Status Other(const std::vector<absl::string_view>& words, storage::DbIndex* db) = 0;
};

struct LoadCounters {
  std::atomic<uint64_t> bytes_total{0}, bytes_done{0}, keys{0};
};

struct Recovered {
  enum class Kind : uint8_t {
    kFresh,    // nothing is there
    kOwn,      // idemd wrote it
    kForeign,  // a log that a Redis wrote (to)
    kDump,     // no log, but a dump
  };
  Kind kind = Kind::kFresh;
  Manifest manifest;            // kOwn: what stays; a last file without content is left out
  uint64_t last_number = 0;     // of all files there are
  std::vector<std::string> leftovers;  // names that no manifest needs; may go
  std::string unbegun;          // kOwn: the last file, when its first batch did not get to the disk; not in `manifest` any more
  LogEnd end;                   // kOwn
  bool sealed = true;           // the last file ended with a seal: a clean stop
  uint64_t torn_bytes = 0;      // behind end.bytes in the last file (kOwn), or of the last command (kForeign)
  std::string torn_why;
  std::string uuid, token_key, boot_id;
  uint64_t fence = 0;
  int64_t effective_ms = 0, boot_ms = 0;  // of the last batch or base
  uint64_t base_keys = 0;
  uint64_t base_bytes = 0, log_bytes = 0;
};

// `with_log`: the log counts (appendonly yes); else only the dump is looked at.
[[nodiscard]] absl::StatusOr<Recovered> Recover(Directory& directory, bool with_log, LoadSink& sink, LoadCounters& counters);

// After an unclean stop: makes the last file end with its last sound batch and a seal, in a new file of the same name; a torn
// rest is kept beside. Changes `recovered` accordingly. What stands in a file that was not begun is cut away, so that it is harmless
// while the manifest does not name it any more.
[[nodiscard]] absl::Status SealLast(Directory& directory, Recovered& recovered);

}  // namespace idemd::server

// The pass of recovery.h from the inside: what its steps share.
//
// Included by recovery.cc, recovery_own.cc and recovery_foreign.cc only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/journal/log_reader.h"
#include "server/journal/recovery.h"
#include "storage/fs.h"

namespace idemd::server {

inline constexpr absl::string_view kAdvice =
    "Restore the directory from a backup; nothing of it was changed. `idemd --check DIR` tells more.";
// Keys of fewer bytes are left out of account when a file says how many it has: it may say what it likes.
inline constexpr size_t kEntryBytesMin = 16;

absl::Status Damaged(absl::string_view path, absl::string_view what);
absl::Status DamagedAt(absl::string_view path, uint64_t offset, absl::string_view what);

// Commands that both kinds of logs are made of. kOther: another one.
enum class Applied : uint8_t { kYes, kOther, kWrong };
Applied ApplyCommand(const std::vector<absl::string_view>& words, storage::DbIndex* db, LoadSink& sink);

class Recovery {
 public:
  Recovery(Directory& directory, LoadSink& sink, LoadCounters& counters)
      : directory_(directory), sink_(sink), counters_(counters) {}

  absl::StatusOr<Recovered> WithLog();
  absl::StatusOr<Recovered> DumpOnly();

 private:
  struct Opened {
    std::unique_ptr<storage::File> file;
    uint64_t size = 0;
  };
  absl::StatusOr<Opened> Open(const std::string& path);
  absl::StatusOr<Opened> OpenLog(const std::string& path);  // its size is that without zeros behind its end
  absl::StatusOr<bool> Fresh();
  absl::Status LookAtUnlisted(const std::vector<ManifestFile>& there);
  absl::StatusOr<bool> IsOwn();
  absl::Status LoadOwn();
  absl::Status LoadOwnLog(const ManifestFile& listed, bool first, bool last);
  absl::Status ApplyBatch(const std::string& path, absl::string_view commands, bool first, FileHeader* header, bool* sealed,
                          uint64_t* seal_bytes);
  absl::Status LoadForeign(const std::string& path, bool last);
  absl::Status ForeignCommands(const std::string& path, storage::File& file, uint64_t size, uint64_t from, bool last);
  // Into the sink; *bytes is where the snapshot ends. `aux`, where set, is told of each AUX field.
  absl::Status LoadRdb(const std::string& path, storage::File& file, uint64_t size, bool must_have_sum, uint64_t* bytes);
  absl::Status TakeAux(absl::string_view name, absl::string_view value);

  Directory& directory_;
  LoadSink& sink_;
  LoadCounters& counters_;
  Recovered found_;
  // Of a base of ours.
  storage::Lsn base_lsn_ = 0;
};

}  // namespace idemd::server

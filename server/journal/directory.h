// The files of a data directory: their names, the manifest, and how one is made durable.
//
//   DIR/idemd.lock                              held while a process serves from here
//   DIR/dump.rdb                                SAVE, BGSAVE
//   DIR/appendonlydir/appendonly.aof.manifest   which of the others count, in order
//   DIR/appendonlydir/appendonly.aof.3.base.rdb
//   DIR/appendonlydir/appendonly.aof.3.incr.aof
//
// Source    the multi-part log of Redis 7.0 (redis/src/aof.c): names, line format of the manifest.
// Threads   a Directory: one at a time.
// Errors    absl::Status with the path and, where somebody can do something about it, advice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/journal/persistence.h"
#include "storage/fs.h"

namespace idemd::server {

struct ManifestFile {
  std::string name;
  uint64_t number = 0;
  bool base = false;
};

// After a clean stop: how the last log ended, so that one that is cut short, even to nothing, is found out about. A comment to a
// Redis.
struct CleanStop {
  std::string name;
  uint64_t bytes = 0;
  uint64_t sum = 0;  // of the seal
  // How many keys there were, by database, where there were any: a hint, so that tables can be made that large at once.
  std::vector<std::pair<storage::DbIndex, uint64_t>> keys = {};
};

struct Manifest {
  std::vector<ManifestFile> files;  // the base first, if there is one, then logs in order
  std::optional<CleanStop> clean;

  const ManifestFile* base() const { return !files.empty() && files[0].base ? &files[0] : nullptr; }
  uint64_t last_number() const;
  std::string Text() const;
};
// InvalidArgument with the line that is wrong.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

class Directory {
 public:
  Directory(storage::FileSystem& files, const PersistenceOptions& options);

  storage::FileSystem& files() { return files_; }
  std::string LockPath() const;
  std::string DumpPath() const;
  // Where the snapshot for a replica stands until it has been opened to be sent.
  std::string ReplicaPath() const;
  std::string LogDirectory() const { return log_directory_; }
  std::string ManifestPath() const;
  std::string PathOf(absl::string_view name) const;  // in the log's directory
  std::string BaseName(uint64_t number) const;
  std::string LogName(uint64_t number) const;
  void set_dump_name(std::string name) { dump_name_ = std::move(name); }

  // Nothing when there is none.
  absl::StatusOr<std::unique_ptr<Manifest>> ReadManifest();
  // Data files that are there whether or not a manifest names them: "appendonly.aof.N.…".
  absl::StatusOr<std::vector<ManifestFile>> DataFiles();
  // Makes the log's directory, durably.
  absl::Status MakeLogDirectory();
  // A new empty file, durable by name; one that is there is replaced.
  absl::StatusOr<std::unique_ptr<storage::File>> CreateLog(absl::string_view name);
  // Two steps, so that only the first can fail for want of space: the manifest in a file of its own, synced; then its name.
  absl::Status PrepareManifest(const Manifest& manifest);
  absl::Status PublishManifest();

  // Writes a file under another name with `write`, syncs it, reads it back with `verify`, and renames it to `path` durably.
  absl::Status WriteDurably(const std::string& path, absl::FunctionRef<absl::Status(storage::File&)> write,
                            absl::FunctionRef<absl::Status(storage::File&)> verify);

 private:
  // Empty, in place of what is there.
  absl::StatusOr<std::unique_ptr<storage::File>> CreateAnew(const std::string& path);

  storage::FileSystem& files_;
  const std::string directory_;
  const std::string log_directory_;
  const std::string log_name_;
  std::string dump_name_;
};

absl::StatusOr<std::string> ReadWhole(storage::FileSystem& files, const std::string& path);

}  // namespace idemd::server

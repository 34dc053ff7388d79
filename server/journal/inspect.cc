// `idemd --check DIR` and `idemd --repair DIR`: the pass of a start without a store.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/journal/directory.h"
#include "server/journal/persistence.h"
#include "server/journal/recovery.h"

namespace idemd::server {
namespace {

constexpr int kSound = 0, kTorn = 1, kDamaged = 2, kNotOurs = 3;

// Takes everything and keeps nothing.
class NoSink final : public LoadSink {
 public:
  void Set(storage::DbIndex, absl::string_view, absl::string_view, int64_t) override {}
  void Delete(storage::DbIndex, absl::string_view) override {}
  void SetDeadline(storage::DbIndex, absl::string_view, int64_t) override {}
  void FlushDb(storage::DbIndex) override {}
  void FlushAll() override {}
  void SwapDb(storage::DbIndex, storage::DbIndex) override {}
  void Expect(storage::DbIndex, uint64_t) override {}
  void SetCollection(storage::DbIndex, absl::string_view, std::unique_ptr<storage::Collection>, int64_t) override {}
  absl::Status Other(const std::vector<absl::string_view>&, storage::DbIndex*) override { return absl::OkStatus(); }
};

PersistenceOptions At(const std::string& directory) {
  PersistenceOptions options;
  options.directory = directory;
  return options;
}

int Judge(const Recovered& recovered, std::string* verdict) {
  const std::string chain = absl::StrCat(recovered.base_keys, " keys in the base, ", recovered.log_bytes,
                                         " bytes of log behind it, up to LSN ", recovered.end.last);
  switch (recovered.kind) {
    case Recovered::Kind::kFresh:
      *verdict = "There are no data here.";
      return kSound;
    case Recovered::Kind::kDump:
      *verdict = absl::StrCat("Sound: a dump of ", recovered.base_keys, " keys, and no log.");
      return kSound;
    case Recovered::Kind::kForeign:
      *verdict = "A log that a Redis wrote. idemd takes it over when it is started here; redis-check-aof judges it.";
      return kNotOurs;
    case Recovered::Kind::kOwn:
      break;
  }
  if (recovered.torn_bytes != 0) {
    *verdict = absl::StrCat("Sound up to a torn end (", recovered.torn_why, "): ", recovered.torn_bytes, " bytes of ",
                            recovered.end.name, " from byte ", recovered.end.bytes,
                            " on, of which nobody was told. A start of idemd, or --repair, cuts them. ", chain, ".");
    return kTorn;
  }
  if (!recovered.sealed) {
    *verdict = absl::StrCat("Sound, but not stopped cleanly: a stock Redis should start here only after --repair. ", chain, ".");
    return kTorn;
  }
  *verdict = absl::StrCat("Sound, and stopped cleanly. ", chain, ".");
  return kSound;
}

int Refuse(const absl::Status& status, std::string* verdict) {
  *verdict = std::string(status.message());
  return absl::IsUnimplemented(status) ? kNotOurs : kDamaged;
}

}  // namespace

int CheckDirectory(storage::FileSystem& files, const std::string& directory, std::string* verdict) {
  const PersistenceOptions options = At(directory);
  Directory there(files, options);
  NoSink sink;
  LoadCounters counters;
  const absl::StatusOr<Recovered> recovered = Recover(there, true, sink, counters);
  if (!recovered.ok()) return Refuse(recovered.status(), verdict);
  const int code = Judge(*recovered, verdict);
  if (recovered->kind == Recovered::Kind::kDump || code == kDamaged) return code;
  // A dump beside the log does not count at a start, and is worth knowing about.
  const absl::StatusOr<Recovered> dump = Recover(there, false, sink, counters);
  if (dump.ok()) return code;
  absl::StrAppend(verdict, " The dump beside it is not: ", dump.status().message());
  return std::max(code, kDamaged);
}

int RepairDirectory(storage::FileSystem& files, const std::string& directory, std::string* verdict) {
  const PersistenceOptions options = At(directory);
  Directory there(files, options);
  const absl::StatusOr<std::unique_ptr<storage::FileLock>> lock = files.Lock(there.LockPath());
  if (!lock.ok()) {
    *verdict = std::string(lock.status().message());
    return kDamaged;
  }
  NoSink sink;
  LoadCounters counters;
  absl::StatusOr<Recovered> recovered = Recover(there, true, sink, counters);
  if (!recovered.ok()) return Refuse(recovered.status(), verdict);
  if (recovered->kind != Recovered::Kind::kOwn) return Judge(*recovered, verdict);
  const uint64_t cut = recovered->torn_bytes;
  absl::Status repaired = SealLast(there, *recovered);
  // A last file that was never written to may hold half a batch.
  if (repaired.ok() && !recovered->manifest.files.empty()) {
    if (!recovered->manifest.files.back().base)
      recovered->manifest.clean = CleanStop{recovered->end.name, recovered->end.bytes, recovered->end.sum};
    repaired = there.PrepareManifest(recovered->manifest);
    if (repaired.ok()) repaired = there.PublishManifest();
  }
  if (!repaired.ok()) return Refuse(repaired, verdict);
  recovered->torn_bytes = 0;
  const int code = Judge(*recovered, verdict);
  if (cut != 0) absl::StrAppend(verdict, " ", cut, " torn bytes were cut and are kept beside the log.");
  return code;
}

}  // namespace idemd::server

// The rules R2 and R3: what a directory is, what is refused, what is taken; and snapshots, which all kinds have.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/journal/commands_text.h"
#include "server/journal/log_reader.h"
#include "server/journal/recovery_pass.h"
#include "storage/snapshot/rdb_reader.h"

namespace idemd::server {

using storage::DbIndex;
using storage::File;
using storage::FileSystem;

absl::Status Damaged(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what, ". ", kAdvice));
}

absl::Status DamagedAt(absl::string_view path, uint64_t offset, absl::string_view what) {
  return Damaged(path, absl::StrCat(what, " at byte ", offset));
}

namespace {

// A mark that is ours but for a byte or two is ours, and damaged; a Redis writes no ECHO into its log, and what it writes differs
// from one in more places.
bool AlmostOurs(absl::string_view head) {
  constexpr size_t kWordsEnd = 14;  // "*2 $4 ECHO"
  if (head.size() < kWordsEnd) return false;
  int other = 0;
  for (size_t i = 0; i < kWordsEnd; ++i) other += absl::ascii_toupper(head[i]) != absl::ascii_toupper(kBatchMark[i]) ? 1 : 0;
  return other <= 2;
}

bool ParseDb(absl::string_view text, DbIndex* db) {
  return absl::SimpleAtoi(text, db) && *db < storage::kDatabases;
}

}  // namespace

Applied ApplyCommand(const std::vector<absl::string_view>& words, DbIndex* db, LoadSink& sink) {
  const absl::string_view name = words[0];
  const size_t n = words.size();
  int64_t ms = 0;
  if (name == "SET" && n == 3) {
    sink.Set(*db, words[1], words[2], storage::kNoDeadline);
  } else if (name == "SET" && n == 5 && words[3] == "PXAT") {
    if (!absl::SimpleAtoi(words[4], &ms) || ms < 1) return Applied::kWrong;
    sink.Set(*db, words[1], words[2], ms);
  } else if (name == "RESTORE" && n == 6 && words[4] == "REPLACE" && words[5] == "ABSTTL") {
    std::unique_ptr<storage::Collection> collection;
    const absl::StatusOr<std::string> text = storage::ReadDumpPayload(words[3], &collection);
    if (!absl::SimpleAtoi(words[2], &ms) || ms < 0 || !text.ok()) return Applied::kWrong;
    const int64_t deadline_ms = ms == 0 ? storage::kNoDeadline : ms;
    if (collection == nullptr)
      sink.Set(*db, words[1], *text, deadline_ms);
    else
      sink.SetCollection(*db, words[1], std::move(collection), deadline_ms);
  } else if (name == "DEL" && n >= 2) {
    for (size_t i = 1; i < n; ++i) sink.Delete(*db, words[i]);
  } else if (name == "PEXPIREAT" && n == 3) {
    if (!absl::SimpleAtoi(words[2], &ms)) return Applied::kWrong;
    sink.SetDeadline(*db, words[1], ms);
  } else if (name == "PERSIST" && n == 2) {
    sink.SetDeadline(*db, words[1], storage::kNoDeadline);
  } else if (name == "SELECT" && n == 2) {
    if (!ParseDb(words[1], db)) return Applied::kWrong;
  } else if (name == "FLUSHDB" && n == 1) {
    sink.FlushDb(*db);
  } else if (name == "FLUSHALL" && n == 1) {
    sink.FlushAll();
  } else if (name == "SWAPDB" && n == 3) {
    DbIndex a = 0, b = 0;
    if (!ParseDb(words[1], &a) || !ParseDb(words[2], &b)) return Applied::kWrong;
    sink.SwapDb(a, b);
  } else {
    return Applied::kOther;
  }
  return Applied::kYes;
}

absl::StatusOr<Recovery::Opened> Recovery::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<File>> file = directory_.files().Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  const absl::StatusOr<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  return Opened{*std::move(file), *size};
}

absl::StatusOr<Recovery::Opened> Recovery::OpenLog(const std::string& path) {
  absl::StatusOr<Opened> opened = Open(path);
  if (!opened.ok()) return opened;
  const absl::StatusOr<uint64_t> size = BytesBeforeZeros(*opened->file, opened->size);
  if (!size.ok()) return size.status();
  opened->size = *size;
  return opened;
}

// --- snapshots

absl::Status Recovery::TakeAux(absl::string_view name, absl::string_view value) {
  bool good = true;
  if (name == "idem-uuid") {
    found_.uuid = std::string(value);
  } else if (name == "idem-token-key") {
    found_.token_key = std::string(value);
  } else if (name == "idem-boot-id") {
    found_.boot_id = std::string(value);
  } else if (name == "idem-lsn") {
    good = absl::SimpleAtoi(value, &base_lsn_);
  } else if (name == "idem-fence") {
    good = absl::SimpleAtoi(value, &found_.fence);
  } else if (name == "idem-clock") {
    good = absl::SimpleAtoi(value, &found_.effective_ms);
  } else if (name == "idem-boot") {
    good = absl::SimpleAtoi(value, &found_.boot_ms);
  }
  return good ? absl::OkStatus() : absl::DataLossError(absl::StrCat("the field ", name, " is no number"));
}

absl::Status Recovery::LoadRdb(const std::string& path, File& file, uint64_t size, bool must_have_sum, uint64_t* bytes) {
  constexpr size_t kReadBytes = 2 << 20;
  FileWindow window(file, size);
  size_t given = 0;
  storage::RdbReader reader([&](size_t wanted) -> absl::StatusOr<absl::string_view> {
    window.Skip(given);
    const uint64_t done = std::min<uint64_t>(window.offset(), size);
    counters_.bytes_done.fetch_add(given, std::memory_order_relaxed);
    given = 0;
    if (done == size) return absl::string_view();
    absl::StatusOr<absl::string_view> view = window.Peek(std::min(wanted, kReadBytes));
    if (!view.ok()) return view.status();
    given = std::min(view->size(), wanted);
    return view->substr(0, given);
  });
  uint64_t promised = 0, keys = 0;
  while (true) {
    absl::StatusOr<storage::RdbItem> item = reader.Next();
    if (!item.ok()) {
      // What idemd wrote has nothing that idemd does not know.
      if (absl::IsDataLoss(item.status()) || (must_have_sum && absl::IsUnimplemented(item.status())))
        return Damaged(path, item.status().message());
      return absl::Status(item.status().code(), absl::StrCat(path, ": ", item.status().message()));
    }
    switch (item->kind) {
      case storage::RdbItem::Kind::kAux:
        if (absl::Status taken = TakeAux(item->name, item->value); !taken.ok()) return Damaged(path, taken.message());
        break;
      case storage::RdbItem::Kind::kFunctions: {
        storage::DbIndex ignored = 0;
        const std::vector<absl::string_view> words = {"FUNCTION", "LOAD", item->value};
        if (absl::Status loaded = sink_.Other(words, &ignored); !loaded.ok())
          return absl::Status(loaded.code(), absl::StrCat(path, ": a library of functions: ", loaded.message()));
        break;
      }
      case storage::RdbItem::Kind::kDatabase:
        if (item->db >= storage::kDatabases)
          return absl::UnimplementedError(absl::StrCat(path, ": it has a database ", item->db, "; idemd has ", storage::kDatabases));
        break;
      case storage::RdbItem::Kind::kSizes:
        promised += item->keys;
        // A file may say what it likes; in so many bytes there are hardly more.
        sink_.Expect(item->db, std::min(item->keys, size / kEntryBytesMin));
        break;
      case storage::RdbItem::Kind::kEntry:
        ++keys;
        if ((keys & 1023) == 0) counters_.keys.fetch_add(1024, std::memory_order_relaxed);
        if (item->collection == nullptr)
          sink_.Set(item->db, item->name, item->value, item->deadline_ms);
        else if (!item->collection->gone())
          sink_.SetCollection(item->db, item->name, std::move(item->collection), item->deadline_ms);
        break;
      case storage::RdbItem::Kind::kEnd: {
        counters_.keys.fetch_add(keys & 1023, std::memory_order_relaxed);
        if (must_have_sum && !reader.has_sum()) return Damaged(path, "it has no sum");
        if (must_have_sum && promised != keys)
          return Damaged(path, absl::StrCat("it has ", keys, " keys, and says itself that it has ", promised));
        found_.base_keys = keys;
        *bytes = reader.offset();
        return absl::OkStatus();
      }
    }
  }
}

// --- which of these it is

// Data files that the manifest does not name. Files of before the base, empty ones, and bases that a rewrite had not got into the
// manifest yet are nobody's loss.
absl::Status Recovery::LookAtUnlisted(const std::vector<ManifestFile>& there) {
  const Manifest& manifest = found_.manifest;
  const ManifestFile* base = manifest.base();
  uint64_t first_log = UINT64_MAX;
  for (const ManifestFile& file : manifest.files)
    if (!file.base) first_log = std::min(first_log, file.number);
  const uint64_t oldest = base != nullptr ? base->number : first_log;
  for (const ManifestFile& file : there) {
    const bool listed = std::any_of(manifest.files.begin(), manifest.files.end(),
                                    [&](const ManifestFile& m) { return m.name == file.name; });
    if (listed) continue;
    found_.last_number = std::max(found_.last_number, file.number);
    const std::string path = directory_.PathOf(file.name);
    absl::StatusOr<Opened> opened = Open(path);
    if (!opened.ok()) return opened.status();
    const bool before = file.number < oldest;
    if (!before && !file.base && opened->size != 0) {
      return absl::DataLossError(absl::StrCat(path, ": the manifest does not name this file, and it is not older than those that it names. "
                                              "Has the manifest been restored from an older state? ", kAdvice));
    }
    found_.leftovers.push_back(file.name);
  }
  return absl::OkStatus();
}

// Whether what the manifest names was written by idemd and by nobody since.
absl::StatusOr<bool> Recovery::IsOwn() {
  bool own = true, any = false;
  for (const ManifestFile& file : found_.manifest.files) {
    const std::string path = directory_.PathOf(file.name);
    absl::StatusOr<Opened> opened = file.base ? Open(path) : OpenLog(path);
    if (!opened.ok()) return opened.status();
    counters_.bytes_total.fetch_add(opened->size, std::memory_order_relaxed);
    absl::StatusOr<std::string> magic = opened->file->ReadAt(0, 5);
    if (!magic.ok()) return magic.status();
    if (file.base && absl::EndsWith(file.name, ".rdb") && *magic != "REDIS") return Damaged(path, "it is no snapshot");
    if (!file.base && *magic == "REDIS") return Damaged(path, "it is a snapshot, where a log should be");
    if (opened->size == 0) continue;
    if (file.base) {
      absl::StatusOr<std::string> head = opened->file->ReadAt(0, 256);
      if (!head.ok()) return head.status();
      any = true;
      own &= absl::StrContains(*head, "idem-uuid");
      continue;
    }
    LogReader reader(*opened->file, opened->size);
    absl::StatusOr<std::string> head = opened->file->ReadAt(0, kBatchMark.size());
    if (!head.ok()) return head.status();
    const bool ours = AlmostOurs(*head);
    const bool last = &file == &found_.manifest.files.back();
    if (!ours && last) {
      // Where not even a first command can be read, the first batch did not get to the disk: that of no matter whom.
      absl::StatusOr<absl::string_view> begin = reader.window().Peek(64 * 1024);
      if (!begin.ok()) return begin.status();
      std::vector<absl::string_view> words;
      size_t size = 0;
      if (ReadCommand(*begin, &words, &size) != CommandVerdict::kCommand) continue;
    }
    any = true;
    own &= ours;
    if (!ours || !last) continue;
    // A Redis that was started from a sealed directory goes on behind the seal.
    bool sealed = false;
    while (true) {
      absl::StatusOr<LogReader::Step> step = reader.Next();
      if (!step.ok()) return step.status();
      if (step->kind == LogReader::Step::Kind::kBatch) {
        std::vector<absl::string_view> words;
        size_t size = 0;
        uint64_t at = 0;
        sealed = ReadCommand(step->commands, &words, &size) == CommandVerdict::kCommand && words.size() == 2 && ReadSeal(words[1], &at);
        continue;
      }
      if (step->kind == LogReader::Step::Kind::kBad && sealed) {
        absl::StatusOr<absl::string_view> rest = reader.window().Peek(64 * 1024);
        if (!rest.ok()) return rest.status();
        std::vector<absl::string_view> words;
        size_t size = 0;
        const CommandVerdict verdict = ReadCommand(*rest, &words, &size);
        if (verdict == CommandVerdict::kCommand && !absl::EqualsIgnoreCase(words[0], "ECHO")) return false;
      }
      break;
    }
  }
  return own || !any;
}

absl::StatusOr<Recovered> Recovery::DumpOnly() {
  const std::string path = directory_.DumpPath();
  const absl::StatusOr<bool> exists = directory_.files().Exists(path);
  if (!exists.ok()) return exists.status();
  if (!*exists) return found_;
  absl::StatusOr<Opened> opened = Open(path);
  if (!opened.ok()) return opened.status();
  counters_.bytes_total.fetch_add(opened->size, std::memory_order_relaxed);
  uint64_t bytes = 0;
  if (absl::Status loaded = LoadRdb(path, *opened->file, opened->size, false, &bytes); !loaded.ok()) return loaded;
  if (bytes != opened->size && !found_.uuid.empty()) return DamagedAt(path, bytes, "something stands behind the end of the snapshot");
  found_.kind = Recovered::Kind::kDump;
  found_.base_bytes = bytes;
  return found_;
}

absl::StatusOr<Recovered> Recovery::WithLog() {
  absl::StatusOr<std::unique_ptr<Manifest>> manifest = directory_.ReadManifest();
  if (!manifest.ok()) {
    if (absl::IsDataLoss(manifest.status())) return absl::DataLossError(absl::StrCat(manifest.status().message(), ". ", kAdvice));
    return manifest.status();
  }
  absl::StatusOr<std::vector<ManifestFile>> there = directory_.DataFiles();
  if (!there.ok()) return there.status();
  if (*manifest == nullptr) {
    // A first start that got no further has left empty logs, or the base of an import.
    for (const ManifestFile& file : *there) {
      const std::string path = directory_.PathOf(file.name);
      absl::StatusOr<Opened> opened = Open(path);
      if (!opened.ok()) return opened.status();
      bool harmless = opened->size == 0;
      if (!harmless && file.base) {
        absl::StatusOr<std::string> head = opened->file->ReadAt(0, 256);
        if (!head.ok()) return head.status();
        harmless = absl::StrContains(*head, "idem-import");
      }
      if (!harmless) {
        return absl::DataLossError(absl::StrCat(path, ": there are data files but no manifest (", directory_.ManifestPath(),
                                                "). Restore the manifest, or move the directory away to begin with nothing."));
      }
      found_.leftovers.push_back(file.name);
      found_.last_number = std::max(found_.last_number, file.number);
    }
    return DumpOnly();
  }
  found_.manifest = **manifest;
  found_.last_number = found_.manifest.last_number();
  for (const ManifestFile& file : found_.manifest.files) {
    const absl::StatusOr<bool> exists = directory_.files().Exists(directory_.PathOf(file.name));
    if (!exists.ok()) return exists.status();
    if (!*exists) return Damaged(directory_.PathOf(file.name), "the manifest names this file, and it is missing");
  }
  if (absl::Status looked = LookAtUnlisted(*there); !looked.ok()) return looked;
  const absl::StatusOr<bool> own = IsOwn();
  if (!own.ok()) return own.status();
  if (*own) {
    for (const ManifestFile& file : found_.manifest.files) {
      const std::string name = file.base ? directory_.BaseName(file.number) : directory_.LogName(file.number);
      if (file.name != name) return Damaged(directory_.ManifestPath(), absl::StrCat("it says ", file.name, " where it should say ", name));
    }
    if (absl::Status loaded = LoadOwn(); !loaded.ok()) return loaded;
    return found_;
  }
  found_.kind = Recovered::Kind::kForeign;
  for (const ManifestFile& file : found_.manifest.files) {
    const bool last = &file == &found_.manifest.files.back();
    if (absl::Status loaded = LoadForeign(directory_.PathOf(file.name), last); !loaded.ok()) return loaded;
  }
  return found_;
}

absl::StatusOr<Recovered> Recover(Directory& directory, bool with_log, LoadSink& sink, LoadCounters& counters) {
  Recovery recovery(directory, sink, counters);
  return with_log ? recovery.WithLog() : recovery.DumpOnly();
}

}  // namespace idemd::server

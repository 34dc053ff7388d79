// The rules R2 to R4 and R7: what is refused, what is cut, what is taken.
#include "server/journal/recovery.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/journal/commands_text.h"
#include "server/journal/log_reader.h"
#include "storage/snapshot/rdb_reader.h"

namespace idemd::server {
namespace {

using storage::DbIndex;
using storage::File;
using storage::FileSystem;

constexpr absl::string_view kAdvice =
    "Restore the directory from a backup; nothing of it was changed. `idemd --check DIR` tells more.";

absl::Status Damaged(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what, ". ", kAdvice));
}

absl::Status DamagedAt(absl::string_view path, uint64_t offset, absl::string_view what) {
  return Damaged(path, absl::StrCat(what, " at byte ", offset));
}

bool ParseDb(absl::string_view text, DbIndex* db) {
  return absl::SimpleAtoi(text, db) && *db < storage::kDatabases;
}

// Commands that both kinds of logs are made of. kOther: another one.
enum class Applied : uint8_t { kYes, kOther, kWrong };

Applied Apply(const std::vector<absl::string_view>& words, DbIndex* db, LoadSink& sink) {
  const absl::string_view name = words[0];
  const size_t n = words.size();
  int64_t ms = 0;
  if (name == "SET" && n == 3) {
    sink.Set(*db, words[1], words[2], storage::kNoDeadline);
  } else if (name == "SET" && n == 5 && words[3] == "PXAT") {
    if (!absl::SimpleAtoi(words[4], &ms) || ms < 1) return Applied::kWrong;
    sink.Set(*db, words[1], words[2], ms);
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

class Recovery {
 public:
  Recovery(Directory& directory, LoadSink& sink, LoadCounters& counters)
      : directory_(directory), sink_(sink), counters_(counters) {}

  absl::StatusOr<Recovered> WithLog();
  absl::StatusOr<Recovered> DumpOnly();

 private:
  struct Opened {
    std::unique_ptr<File> file;
    uint64_t size = 0;
  };
  absl::StatusOr<Opened> Open(const std::string& path);
  absl::StatusOr<bool> Fresh();
  absl::Status LookAtUnlisted(const std::vector<ManifestFile>& there);
  absl::StatusOr<bool> IsOwn();
  absl::Status LoadOwn();
  absl::Status LoadOwnLog(const ManifestFile& listed, bool first, bool last);
  absl::Status ApplyBatch(const std::string& path, absl::string_view commands, bool first, FileHeader* header, bool* sealed,
                          uint64_t* seal_bytes);
  absl::Status LoadForeign(const std::string& path, bool last);
  absl::Status ForeignCommands(const std::string& path, File& file, uint64_t size, uint64_t from, bool last);
  // Into the sink; *bytes is where the snapshot ends. `aux`, where set, is told of each AUX field.
  absl::Status LoadRdb(const std::string& path, File& file, uint64_t size, bool must_have_sum, uint64_t* bytes);
  absl::Status TakeAux(absl::string_view name, absl::string_view value);

  Directory& directory_;
  LoadSink& sink_;
  LoadCounters& counters_;
  Recovered found_;
  // Of a base of ours.
  storage::Lsn base_lsn_ = 0;
  bool base_is_import_ = false;
};

absl::StatusOr<Recovery::Opened> Recovery::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<File>> file = directory_.files().Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  const absl::StatusOr<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  return Opened{*std::move(file), *size};
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
  } else if (name == "idem-import") {
    base_is_import_ = true;
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
      if (absl::IsDataLoss(item.status())) return Damaged(path, item.status().message());
      return absl::Status(item.status().code(), absl::StrCat(path, ": ", item.status().message()));
    }
    switch (item->kind) {
      case storage::RdbItem::Kind::kAux:
        if (absl::Status taken = TakeAux(item->name, item->value); !taken.ok()) return Damaged(path, taken.message());
        break;
      case storage::RdbItem::Kind::kDatabase:
        if (item->db >= storage::kDatabases)
          return absl::UnimplementedError(absl::StrCat(path, ": it has a database ", item->db, "; idemd has ", storage::kDatabases));
        break;
      case storage::RdbItem::Kind::kSizes:
        promised += item->keys;
        break;
      case storage::RdbItem::Kind::kEntry:
        ++keys;
        if ((keys & 1023) == 0) counters_.keys.fetch_add(1024, std::memory_order_relaxed);
        sink_.Set(item->db, item->name, item->value, item->deadline_ms);
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

// --- logs of ours

absl::Status Recovery::ApplyBatch(const std::string& path, absl::string_view commands, bool first, FileHeader* header,
                                  bool* sealed, uint64_t* seal_bytes) {
  std::vector<absl::string_view> words;
  DbIndex db = kNoDb;
  bool named = !first;
  while (!commands.empty()) {
    size_t size = 0;
    if (ReadCommand(commands, &words, &size) != CommandVerdict::kCommand)
      return Damaged(path, "a batch with a good sum holds something that is no command");
    commands.remove_prefix(size);
    uint64_t fence = 0;
    if (words[0] == "ECHO" && words.size() == 2) {
      if (ReadFenceMark(words[1], &fence)) {
        found_.fence = std::max(found_.fence, fence);
      } else if (!named && ReadFileHeader(words[1], header)) {
        named = true;
      } else if (ReadSeal(words[1], seal_bytes)) {
        *sealed = true;
      } else {
        return Damaged(path, "a batch holds a mark that is not known");
      }
      continue;
    }
    if (!named) return Damaged(path, "it does not begin with its name");
    if (words.size() == 1 && (words[0] == "MULTI" || words[0] == "EXEC")) continue;  // batches are whole, so units are
    const bool needs_db = words[0] != "SELECT" && words[0] != "FLUSHALL" && words[0] != "SWAPDB";
    if ((needs_db && db == kNoDb) || Apply(words, &db, sink_) != Applied::kYes)
      return Damaged(path, absl::StrCat("a batch holds a command that idemd does not write: ", words[0].substr(0, 32)));
  }
  return named ? absl::OkStatus() : Damaged(path, "it does not begin with its name");
}

absl::Status Recovery::LoadOwnLog(const ManifestFile& listed, bool first, bool last) {
  const std::string path = directory_.PathOf(listed.name);
  absl::StatusOr<Opened> opened = Open(path);
  if (!opened.ok()) return opened.status();
  LogReader reader(*opened->file, opened->size);
  LogEnd end{listed.name, 0, found_.end.last, found_.end.sum};
  bool sealed = false, begun = false;
  while (true) {
    absl::StatusOr<LogReader::Step> step = reader.Next();
    if (!step.ok()) return step.status();
    if (step->kind == LogReader::Step::Kind::kEnd) break;
    const uint64_t at = reader.offset();
    if (step->kind == LogReader::Step::Kind::kBad) {
      if (sealed) return DamagedAt(path, at, "something stands behind the seal");
      if (!last) return DamagedAt(path, at, step->why);
      // R4: lost in synced data, or never there?
      const absl::StatusOr<bool> synced = TellsOfSynced(*opened->file, opened->size, at, end.last);
      if (!synced.ok()) return synced.status();
      if (*synced) return DamagedAt(path, at, absl::StrCat(step->why, ", though what stands behind it shows that it was on disk,"));
      found_.torn_bytes = opened->size - at;
      found_.torn_why = step->why;
      break;
    }
    const BatchHeader& header = step->header;
    if (sealed) return DamagedAt(path, at, "a batch stands behind the seal");
    if (header.first != end.last + 1 || header.last + 1 < header.first)
      return DamagedAt(path, at, absl::StrCat("a batch begins with LSN ", header.first, " instead of ", end.last + 1));
    FileHeader named;
    uint64_t seal_bytes = 0;
    if (absl::Status applied = ApplyBatch(path, step->commands, !begun, &named, &sealed, &seal_bytes); !applied.ok()) return applied;
    if (!begun) {
      begun = true;
      if (named.name != listed.name) return Damaged(path, absl::StrCat("it says that it is ", named.name));
      if (!found_.uuid.empty() && named.uuid != found_.uuid) return Damaged(path, "it belongs to another directory");
      const bool fits = first ? named.before_last == found_.end.last
                              : named.before == found_.end.name && named.before_bytes == found_.end.bytes &&
                                    named.before_last == found_.end.last && named.before_sum == found_.end.sum;
      if (!fits) return Damaged(path, absl::StrCat("it was written behind ", named.before, " as that was at another time"));
      if (!first && header.previous != found_.end.sum) return Damaged(path, "its chain does not begin where the file before ends");
      if (header.previous != named.before_sum) return Damaged(path, "its chain does not begin where it says");
      found_.uuid = named.uuid;
      found_.token_key = named.token_key;
      found_.boot_id = named.boot_id;
    } else if (header.previous != end.sum) {
      return DamagedAt(path, at, "a batch does not follow the one before it");
    }
    if (sealed && seal_bytes != at) return DamagedAt(path, at, "the seal was made for a file of another size");
    end.bytes = reader.next_offset();
    end.last = header.last;
    end.sum = header.sum;
    found_.effective_ms = std::max(found_.effective_ms, header.effective_ms);
    found_.boot_ms = header.boot_ms;
    counters_.bytes_done.fetch_add(end.bytes - at, std::memory_order_relaxed);
    counters_.keys.fetch_add(header.last + 1 - header.first, std::memory_order_relaxed);
  }
  if (!last && !sealed) return Damaged(path, "it is not the last one, and has no seal");
  found_.sealed = sealed;
  found_.log_bytes += end.bytes;
  if (!begun) {
    // Named by the manifest, and the process was gone before it was written to.
    found_.sealed = found_.torn_bytes == 0;
    found_.manifest.files.pop_back();
    found_.leftovers.push_back(listed.name);
    found_.torn_bytes = 0;
    if (found_.manifest.files.empty()) found_.end.name = "-";
    return absl::OkStatus();
  }
  found_.end = std::move(end);
  return absl::OkStatus();
}

absl::Status Recovery::LoadOwn() {
  found_.kind = Recovered::Kind::kOwn;
  found_.end = LogEnd{"-", 0, 0, 0};
  const Manifest manifest = found_.manifest;
  if (const ManifestFile* base = manifest.base()) {
    const std::string path = directory_.PathOf(base->name);
    absl::StatusOr<Opened> opened = Open(path);
    if (!opened.ok()) return opened.status();
    uint64_t bytes = 0;
    if (absl::Status loaded = LoadRdb(path, *opened->file, opened->size, true, &bytes); !loaded.ok()) return loaded;
    if (bytes != opened->size) return DamagedAt(path, bytes, "something stands behind the end of the snapshot");
    if (found_.uuid.empty()) return Damaged(path, "it does not say to which directory it belongs");
    found_.end.last = base_lsn_;
    found_.base_bytes = bytes;
  }
  bool first = true;
  for (const ManifestFile& file : manifest.files) {
    if (file.base) continue;
    const bool last = &file == &manifest.files.back();
    if (absl::Status loaded = LoadOwnLog(file, first, last); !loaded.ok()) return loaded;
    first = false;
  }
  return absl::OkStatus();
}

// --- logs of a Redis

absl::Status Recovery::ForeignCommands(const std::string& path, File& file, uint64_t size, uint64_t from, bool last) {
  FileWindow window(file, size);
  window.Skip(from);
  std::vector<absl::string_view> words;
  // What stands between MULTI and EXEC is run when EXEC has been read.
  std::vector<std::vector<std::string>> unit;
  bool in_unit = false;
  uint64_t unit_at = 0;
  DbIndex db = 0;
  size_t ask = 64 * 1024;
  const auto run = [&](const std::vector<absl::string_view>& command) -> absl::Status {
    switch (Apply(command, &db, sink_)) {
      case Applied::kYes:
        return absl::OkStatus();
      case Applied::kWrong:
        return absl::DataLossError("a command has a number that is none");
      case Applied::kOther:
        return sink_.Other(command, &db);
    }
    return absl::OkStatus();
  };
  while (window.left() != 0) {
    absl::StatusOr<absl::string_view> bytes = window.Peek(ask);
    if (!bytes.ok()) return bytes.status();
    const uint64_t at = window.offset();
    if ((*bytes)[0] == '#') {  // a time stamp
      const size_t end = bytes->find("\r\n");
      if (end == absl::string_view::npos) {
        if (bytes->size() < window.left()) return DamagedAt(path, at, "a comment has no end");
        break;
      }
      window.Skip(end + 2);
      continue;
    }
    size_t command_bytes = 0;
    const CommandVerdict verdict = ReadCommand(*bytes, &words, &command_bytes);
    if (verdict == CommandVerdict::kOther) return DamagedAt(path, at, "no command stands here");
    if (verdict == CommandVerdict::kCut) {
      if (bytes->size() == window.left()) break;
      ask = std::max(ask * 2, bytes->size() + 1);
      continue;
    }
    const std::string name = absl::AsciiStrToUpper(words[0].substr(0, 32));
    if (name == "ECHO") {
      return DamagedAt(path, at, "a mark of idemd's stands in a log that is not idemd's");
    }
    if (name == "MULTI") {
      in_unit = true;
      unit_at = at;
      unit.clear();
    } else if (name == "EXEC" && in_unit) {
      in_unit = false;
      for (const std::vector<std::string>& command : unit) {
        const std::vector<absl::string_view> views(command.begin(), command.end());
        if (absl::Status ran = run(views); !ran.ok())
          return absl::Status(ran.code(), absl::StrCat(path, ": in the unit at byte ", unit_at, ": ", ran.message()));
      }
    } else if (in_unit) {
      unit.emplace_back(words.begin(), words.end());
    } else if (absl::Status ran = run(words); !ran.ok()) {
      return absl::Status(ran.code(), absl::StrCat(path, ": at byte ", at, ": ", ran.message()));
    }
    window.Skip(command_bytes);
    counters_.bytes_done.fetch_add(command_bytes, std::memory_order_relaxed);
    counters_.keys.fetch_add(1, std::memory_order_relaxed);
  }
  const uint64_t end = in_unit ? unit_at : window.offset();
  if (end == size) return absl::OkStatus();
  if (!last) return DamagedAt(path, end, "a command is cut short, and this is not the last file,");
  found_.torn_bytes += size - end;
  found_.torn_why = "the last command is cut short";
  return absl::OkStatus();
}

absl::Status Recovery::LoadForeign(const std::string& path, bool last) {
  absl::StatusOr<Opened> opened = Open(path);
  if (!opened.ok()) return opened.status();
  if (opened->size == 0) return absl::OkStatus();
  absl::StatusOr<std::string> magic = opened->file->ReadAt(0, 5);
  if (!magic.ok()) return magic.status();
  uint64_t from = 0;
  if (*magic == "REDIS") {
    if (absl::Status loaded = LoadRdb(path, *opened->file, opened->size, false, &from); !loaded.ok()) return loaded;
  }
  // Files of ours that a Redis went on with: batches up to the seal, then its commands.
  LogReader reader(*opened->file, opened->size);
  bool own = false, sealed = false;
  if (from == 0) {
    const absl::StatusOr<absl::string_view> head = reader.window().Peek(kBatchMark.size());
    if (!head.ok()) return head.status();
    own = absl::StartsWith(*head, kBatchMark);
  }
  while (own && !sealed) {
    absl::StatusOr<LogReader::Step> step = reader.Next();
    if (!step.ok()) return step.status();
    if (step->kind == LogReader::Step::Kind::kEnd) return absl::OkStatus();
    if (step->kind == LogReader::Step::Kind::kBad) return DamagedAt(path, reader.offset(), step->why);
    FileHeader named;
    uint64_t seal_bytes = 0;
    if (absl::Status applied = ApplyBatch(path, step->commands, from == 0, &named, &sealed, &seal_bytes); !applied.ok()) return applied;
    if (!named.token_key.empty()) {
      found_.token_key = named.token_key;
      found_.uuid = named.uuid;
      found_.boot_id = named.boot_id;
    }
    found_.effective_ms = std::max(found_.effective_ms, step->header.effective_ms);
    found_.boot_ms = step->header.boot_ms;
    from = reader.next_offset();
  }
  return ForeignCommands(path, *opened->file, opened->size, from, last);
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
    absl::StatusOr<Opened> opened = Open(directory_.PathOf(file.name));
    if (!opened.ok()) return opened.status();
    counters_.bytes_total.fetch_add(opened->size, std::memory_order_relaxed);
    if (opened->size == 0) continue;
    if (file.base) {
      absl::StatusOr<std::string> head = opened->file->ReadAt(0, 256);
      if (!head.ok()) return head.status();
      any = true;
      own &= absl::StrContains(*head, "idem-uuid");
      continue;
    }
    any = true;
    LogReader reader(*opened->file, opened->size);
    absl::StatusOr<std::string> head = opened->file->ReadAt(0, kBatchMark.size());
    if (!head.ok()) return head.status();
    // A mark that is almost ours is ours, and damaged; a Redis writes no ECHO into its log.
    const bool ours = absl::StartsWith(absl::AsciiStrToUpper(*head), absl::AsciiStrToUpper(kBatchMark.substr(0, 14)));
    own &= ours;
    if (!ours || &file != &found_.manifest.files.back()) continue;
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

}  // namespace

absl::StatusOr<Recovered> Recover(Directory& directory, bool with_log, LoadSink& sink, LoadCounters& counters) {
  Recovery recovery(directory, sink, counters);
  return with_log ? recovery.WithLog() : recovery.DumpOnly();
}

absl::Status SealLast(Directory& directory, Recovered& recovered) {
  if (recovered.sealed || recovered.manifest.files.empty() || recovered.manifest.files.back().base) return absl::OkStatus();
  const std::string path = directory.PathOf(recovered.end.name);
  absl::StatusOr<std::unique_ptr<File>> old = directory.files().Open(path, FileSystem::Mode::kRead);
  if (!old.ok()) return old.status();
  constexpr size_t kCopyBytes = 1 << 20;
  const auto copy = [&](File& to, uint64_t from, uint64_t until) -> absl::Status {
    while (from < until) {
      absl::StatusOr<std::string> bytes = (*old)->ReadAt(from, static_cast<size_t>(std::min<uint64_t>(kCopyBytes, until - from)));
      if (!bytes.ok()) return bytes.status();
      if (bytes->empty()) return absl::DataLossError(absl::StrCat(path, " is shorter than it was"));
      if (absl::Status written = to.Append(*bytes); !written.ok()) return written;
      from += bytes->size();
    }
    return absl::OkStatus();
  };
  const auto no_check = [](File&) { return absl::OkStatus(); };
  if (recovered.torn_bytes != 0) {
    const absl::Status kept = directory.WriteDurably(
        absl::StrCat(path, ".torn"),
        [&](File& to) { return copy(to, recovered.end.bytes, recovered.end.bytes + recovered.torn_bytes); }, no_check);
    if (!kept.ok()) return kept;
  }
  LogEnd end = recovered.end;
  const absl::Status sealed = directory.WriteDurably(
      path,
      [&](File& to) -> absl::Status {
        if (absl::Status copied = copy(to, 0, end.bytes); !copied.ok()) return copied;
        BatchHeader header;
        header.first = end.last + 1;
        header.last = end.last;
        header.effective_ms = recovered.effective_ms;
        header.boot_ms = recovered.boot_ms;
        header.synced = end.last;
        header.previous = end.sum;
        std::string commands, batch;
        AppendSeal(end.bytes, commands);
        AppendBatchHeader(header, commands, batch);
        batch += commands;
        if (absl::Status written = to.Append(batch); !written.ok()) return written;
        end.bytes += batch.size();
        end.sum = header.sum;
        return absl::OkStatus();
      },
      no_check);
  if (!sealed.ok()) return sealed;
  recovered.end = end;
  recovered.sealed = true;
  return absl::OkStatus();
}

}  // namespace idemd::server

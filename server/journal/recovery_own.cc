// Logs of ours, rule R4: what is a torn end, what is damage; and R5, what becomes of an end without a seal.
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
    Applied applied = needs_db && db == kNoDb ? Applied::kWrong : ApplyCommand(words, &db, sink_);
    if (applied == Applied::kOther && sink_.Other(words, &db).ok()) applied = Applied::kYes;
    if (applied != Applied::kYes)
      return Damaged(path, absl::StrCat("a batch holds a command that idemd does not write: ", words[0].substr(0, 32)));
  }
  return named ? absl::OkStatus() : Damaged(path, "it does not begin with its name");
}

absl::Status Recovery::LoadOwnLog(const ManifestFile& listed, bool first, bool last) {
  const std::string path = directory_.PathOf(listed.name);
  absl::StatusOr<Opened> opened = OpenLog(path);
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
    found_.sealed = true;  // as the one before it is, or there is none
    found_.manifest.files.pop_back();
    found_.leftovers.push_back(listed.name);
    found_.unbegun = listed.name;
    found_.torn_bytes = 0;
    if (found_.manifest.files.empty()) {
      // The first start ever ended here: nobody was told anything.
      found_.end.name = std::string(1, '-');
      found_.kind = Recovered::Kind::kFresh;
    }
    return absl::OkStatus();
  }
  found_.end = std::move(end);
  return absl::OkStatus();
}

absl::Status Recovery::LoadOwn() {
  found_.kind = Recovered::Kind::kOwn;
  found_.end = LogEnd{"-", 0, 0, 0};
  const Manifest manifest = found_.manifest;
  if (manifest.clean.has_value()) {
    const uint64_t most = counters_.bytes_total.load(std::memory_order_relaxed) / kEntryBytesMin;
    for (const auto& [db, keys] : manifest.clean->keys) sink_.Expect(db, std::min(keys, most));
  }
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
  if (const std::optional<CleanStop>& clean = manifest.clean) {
    const LogEnd& end = found_.end;
    if (!found_.sealed || end.name != clean->name || end.bytes != clean->bytes || end.sum != clean->sum) {
      return Damaged(directory_.PathOf(clean->name), absl::StrCat("it was stopped cleanly with ", clean->bytes, " bytes, and ends at byte ",
                                                                  end.name == clean->name ? end.bytes : 0, " now"));
    }
  }
  return absl::OkStatus();
}

absl::Status SealLast(Directory& directory, Recovered& recovered) {
  if (!recovered.unbegun.empty()) {
    absl::StatusOr<std::unique_ptr<File>> file = directory.files().Open(directory.PathOf(recovered.unbegun), FileSystem::Mode::kAppend);
    if (!file.ok()) return file.status();
    if (absl::Status cut = (*file)->Truncate(0); !cut.ok()) return cut;
    if (absl::Status synced = (*file)->Sync(); !synced.ok()) return synced;
  }
  if (recovered.manifest.files.empty() || recovered.manifest.files.back().base) return absl::OkStatus();
  const std::string path = directory.PathOf(recovered.end.name);
  if (recovered.sealed) {
    // A process that was killed between writing its seal and syncing it has left both to the system, and the zeros behind it.
    absl::StatusOr<std::unique_ptr<File>> last = directory.files().Open(path, FileSystem::Mode::kAppend);
    if (!last.ok()) return last.status();
    if (absl::Status cut = (*last)->Truncate(recovered.end.bytes); !cut.ok()) return cut;
    return (*last)->Sync();
  }
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

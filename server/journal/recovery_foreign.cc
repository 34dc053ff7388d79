// Logs that a Redis wrote, or went on writing.
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
    switch (ApplyCommand(command, &db, sink_)) {
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

}  // namespace idemd::server

// Names, manifest text, durable replacement.
#include "server/journal/directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "protocol/number.h"
#include "server/journal/batch.h"

namespace idemd::server {
namespace {

using storage::File;
using storage::FileSystem;

constexpr uint64_t kReadBytes = 4 << 20;
constexpr absl::string_view kTemporary = "temp-";
constexpr absl::string_view kCleanStop = "# idemd: clean stop of ";

std::string Join(absl::string_view directory, absl::string_view name) { return absl::StrCat(directory, "/", name); }

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

uint64_t Manifest::last_number() const {
  uint64_t last = 0;
  for (const ManifestFile& file : files) last = std::max(last, file.number);
  return last;
}

std::string Manifest::Text() const {
  std::string text;
  // In front: who cuts it off cuts off files, too, and that is found out about.
  if (clean.has_value()) {
    absl::StrAppend(&text, kCleanStop, clean->name, " ", clean->bytes, " ", SumText(clean->sum));
    const char* before = " ";
    for (const auto& [db, keys] : clean->keys) absl::StrAppend(&text, std::exchange(before, ","), db, ":", keys);
    // Nothing else would show that a digit of these is another.
    if (!clean->keys.empty()) absl::StrAppend(&text, " ", SumText(SumOf(text, "")));
    text.push_back('\n');
  }
  for (const ManifestFile& file : files)
    absl::StrAppend(&text, "file ", file.name, " seq ", file.number, " type ", file.base ? "b" : "i", "\n");
  return text;
}

namespace {

// A Redis writes no comments, so one that is not ours is one that was.
bool ReadCleanStop(absl::string_view line, CleanStop* clean) {
  if (!absl::ConsumePrefix(&line, kCleanStop)) return false;
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 && words.size() != 5) return false;
  clean->name = std::string(words[0]);
  if (!protocol::ParseUint64(words[1], &clean->bytes) || !ReadSum(words[2], &clean->sum)) return false;
  if (words.size() == 3) return true;
  for (absl::string_view count : absl::StrSplit(words[3], ',')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(count, absl::MaxSplits(':', 1));
    uint64_t db = 0, keys = 0;
    if (!protocol::ParseUint64(parts.first, &db) || db >= storage::kDatabases || !protocol::ParseUint64(parts.second, &keys)) return false;
    clean->keys.emplace_back(static_cast<storage::DbIndex>(db), keys);
  }
  return true;  // the sum behind it is compared with the rest of the text
}

}  // namespace

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  Manifest manifest;
  if (!text.empty() && text.back() != '\n') return absl::InvalidArgumentError("the last line of the manifest is cut short");
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') {
      manifest.clean.emplace();
      if (ReadCleanStop(line, &*manifest.clean)) continue;
      return absl::InvalidArgumentError(absl::StrCat("the manifest has a comment that is not idemd's: '", line, "'"));
    }
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    ManifestFile file;
    const bool good = words.size() >= 6 && words.size() % 2 == 0 && words[0] == "file" && words[2] == "seq" &&
                      words[4] == "type" && protocol::ParseUint64(words[3], &file.number) && file.number != 0 &&
                      words[1].find('/') == absl::string_view::npos;
    if (!good) return absl::InvalidArgumentError(absl::StrCat("the manifest has a line that is none: '", line, "'"));
    file.name = std::string(words[1]);
    if (words[5] == "h") continue;  // history: about to be removed
    if (words[5] == "b") {
      if (!manifest.files.empty()) return absl::InvalidArgumentError("the manifest names a base after other files");
      file.base = true;
    } else if (words[5] != "i") {
      return absl::InvalidArgumentError(absl::StrCat("the manifest has a type of file that is not known: '", line, "'"));
    } else if (!manifest.files.empty() && !manifest.files.back().base && manifest.files.back().number >= file.number) {
      return absl::InvalidArgumentError("the manifest's files are not in order");
    }
    manifest.files.push_back(std::move(file));
  }
  if (manifest.files.empty()) return absl::InvalidArgumentError("the manifest names no file");
  // Ours to the last byte.
  if (manifest.clean.has_value() && manifest.Text() != text) return absl::InvalidArgumentError("the manifest is not as it was written");
  return manifest;
}

Directory::Directory(FileSystem& files, const PersistenceOptions& options)
    : files_(files),
      directory_(options.directory),
      log_directory_(Join(options.directory, options.log_directory)),
      log_name_(options.log_name),
      dump_name_(options.dump_name) {}

std::string Directory::LockPath() const { return Join(directory_, "idemd.lock"); }
std::string Directory::DumpPath() const { return Join(directory_, dump_name_); }
std::string Directory::ReplicaPath() const { return absl::StrCat(DumpPath(), ".replica"); }
std::string Directory::ManifestPath() const { return Join(log_directory_, absl::StrCat(log_name_, ".manifest")); }
std::string Directory::PathOf(absl::string_view name) const { return Join(log_directory_, name); }
std::string Directory::BaseName(uint64_t number) const { return absl::StrCat(log_name_, ".", number, ".base.rdb"); }
std::string Directory::LogName(uint64_t number) const { return absl::StrCat(log_name_, ".", number, ".incr.aof"); }

absl::StatusOr<std::unique_ptr<Manifest>> Directory::ReadManifest() {
  const absl::StatusOr<bool> exists = files_.Exists(ManifestPath());
  if (!exists.ok()) return exists.status();
  if (!*exists) return std::unique_ptr<Manifest>();
  absl::StatusOr<std::string> text = ReadWhole(files_, ManifestPath());
  if (!text.ok()) return text.status();
  absl::StatusOr<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return absl::DataLossError(absl::StrCat(ManifestPath(), ": ", manifest.status().message()));
  return std::make_unique<Manifest>(*std::move(manifest));
}

absl::StatusOr<std::vector<ManifestFile>> Directory::DataFiles() {
  const absl::StatusOr<bool> exists = files_.Exists(log_directory_);
  if (!exists.ok()) return exists.status();
  std::vector<ManifestFile> found;
  if (!*exists) return found;
  absl::StatusOr<std::vector<std::string>> names = files_.List(log_directory_);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, absl::StrCat(log_name_, "."))) continue;
    ManifestFile file;
    file.name = name;
    const std::vector<absl::string_view> parts = absl::StrSplit(rest, '.');
    if (parts.size() != 3 || !protocol::ParseUint64(parts[0], &file.number)) continue;
    if (parts[1] == "base" && (parts[2] == "rdb" || parts[2] == "aof"))
      file.base = true;
    else if (parts[1] != "incr" || parts[2] != "aof")
      continue;
    found.push_back(std::move(file));
  }
  return found;
}

absl::Status Directory::MakeLogDirectory() {
  if (absl::Status made = files_.MakeDirectory(log_directory_); !made.ok()) return made;
  return files_.SyncDirectory(directory_);
}

absl::StatusOr<std::unique_ptr<File>> Directory::CreateAnew(const std::string& path) {
  const absl::StatusOr<bool> exists = files_.Exists(path);
  if (!exists.ok()) return exists.status();
  if (*exists) {
    if (absl::Status gone = files_.Unlink(path); !gone.ok()) return gone;
  }
  absl::StatusOr<std::unique_ptr<File>> file = files_.Open(path, FileSystem::Mode::kCreate);
  return file;
}

absl::StatusOr<std::unique_ptr<File>> Directory::CreateLog(absl::string_view name) {
  absl::StatusOr<std::unique_ptr<File>> file = CreateAnew(PathOf(name));
  if (!file.ok()) return file;
  if (absl::Status synced = (*file)->Sync(); !synced.ok()) return synced;
  if (absl::Status synced = files_.SyncDirectory(log_directory_); !synced.ok()) return synced;
  return file;
}

absl::Status Directory::PrepareManifest(const Manifest& manifest) {
  absl::StatusOr<std::unique_ptr<File>> file = CreateAnew(PathOf(absl::StrCat(kTemporary, log_name_, ".manifest")));
  if (!file.ok()) return file.status();
  if (absl::Status written = (*file)->Append(manifest.Text()); !written.ok()) return written;
  return (*file)->Sync();
}

absl::Status Directory::PublishManifest() {
  const std::string path = PathOf(absl::StrCat(kTemporary, log_name_, ".manifest"));
  if (absl::Status renamed = files_.Rename(path, ManifestPath()); !renamed.ok()) return renamed;
  return files_.SyncDirectory(log_directory_);
}

absl::Status Directory::WriteDurably(const std::string& path, absl::FunctionRef<absl::Status(File&)> write,
                                     absl::FunctionRef<absl::Status(File&)> verify) {
  const size_t slash = path.rfind('/');
  const std::string temporary = absl::StrCat(path.substr(0, slash + 1), kTemporary, path.substr(slash + 1));
  absl::StatusOr<std::unique_ptr<File>> file = CreateAnew(temporary);
  if (!file.ok()) return file.status();
  absl::Status status = write(**file);
  if (status.ok()) status = (*file)->Sync();
  if (status.ok()) status = verify(**file);
  file->reset();
  if (!status.ok()) {
    files_.Unlink(temporary).IgnoreError();  // best effort: the next try removes it too
    return status;
  }
  if (absl::Status renamed = files_.Rename(temporary, path); !renamed.ok()) return renamed;
  return files_.SyncDirectory(DirectoryOf(path));
}

absl::StatusOr<std::string> ReadWhole(FileSystem& files, const std::string& path) {
  absl::StatusOr<std::unique_ptr<File>> file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  std::string all;
  while (true) {
    absl::StatusOr<std::string> bytes = (*file)->ReadAt(all.size(), kReadBytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return all;
    all += *bytes;
  }
}

}  // namespace idemd::server

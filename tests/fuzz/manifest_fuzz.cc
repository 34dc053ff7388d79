// A manifest of any text is refused or read, and one that was read is written so that it is read as
// the same; behind a clean stop it is the same to the last byte. One that was written is read as it
// was, and changed within what its sum covers it is refused. A data directory whose manifest was
// changed does not start, or has the same keys.
#include <memory>
#include <string>
#include <vector>

#include "server/journal/directory.h"
#include "tests/crash/sim_server.h"
#include "tests/fuzz/input.h"
#include "tests/support/sim_fs.h"

using namespace idemd::testing;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;
using idemd::server::CleanStop;
using idemd::server::Manifest;
using idemd::server::ManifestFile;
using idemd::server::ParseManifest;

namespace {

constexpr int64_t kNowMs = 1'700'000'000'000;
constexpr size_t kChangedBytesMax = 8;  // too few to write another sum
const char* const kManifest = "/data/appendonlydir/appendonly.aof.manifest";

bool Same(const Manifest& a, const Manifest& b) {
  if (a.files.size() != b.files.size() || a.clean.has_value() != b.clean.has_value()) return false;
  for (size_t i = 0; i < a.files.size(); ++i) {
    if (a.files[i].name != b.files[i].name || a.files[i].number != b.files[i].number ||
        a.files[i].base != b.files[i].base)
      return false;
  }
  return !a.clean.has_value() ||
         (a.clean->name == b.clean->name && a.clean->bytes == b.clean->bytes &&
          a.clean->sum == b.clean->sum && a.clean->keys == b.clean->keys);
}

void RequireFixed(absl::string_view text) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return Require(!manifest.status().message().empty());
  Require(!manifest->files.empty());
  if (manifest->clean.has_value()) Require(manifest->Text() == text);
  const absl::StatusOr<Manifest> again = ParseManifest(manifest->Text());
  Require(again.ok() && Same(*again, *manifest));
}

std::string Changed(const std::string& text, size_t within, Input& input) {
  std::string changed = text;
  const size_t at = input.Below(65536) % within;
  switch (input.Below(4)) {
    case 0:
      changed[at] = static_cast<char>(changed[at] ^ (1 << input.Below(8)));
      break;
    case 1: {
      const absl::string_view bytes = input.Text(std::min(kChangedBytesMax, within - at));
      changed.replace(at, bytes.size(), bytes.data(), bytes.size());
      break;
    }
    case 2: {
      const absl::string_view bytes = input.Text(kChangedBytesMax);
      changed.insert(at, bytes.data(), bytes.size());
      break;
    }
    default:
      changed.erase(at, 1 + input.Below(std::min<size_t>(within - at, 64)));
  }
  return changed;
}

std::string Name(Input& input) {
  std::string name = "f" + std::string(input.Text(20));
  for (char& c : name) {
    if (c == ' ' || c == '\n' || c == '/') c = '_';
  }
  return name;
}

void RequireWrittenIsRead(Input& input) {
  Manifest manifest;
  uint64_t number = 0;
  for (size_t n = 1 + input.Below(4); n != 0; --n) {
    const bool base = manifest.files.empty() && input.Flag();
    manifest.files.push_back({Name(input), number += 1 + input.Below(100), base});
    if (base) --number;
  }
  if (input.Flag()) {
    manifest.clean = CleanStop{.name = Name(input), .bytes = input.Number(), .sum = input.Number()};
    for (size_t n = input.Below(4); n != 0; --n)
      manifest.clean->keys.emplace_back(static_cast<idemd::storage::DbIndex>(input.Below(16)),
                                        input.Number());
  }
  const std::string text = manifest.Text();
  const absl::StatusOr<Manifest> read = ParseManifest(text);
  Require(read.ok() && Same(*read, manifest));
  RequireFixed(Changed(text, text.size(), input));
  if (!manifest.clean.has_value() || manifest.clean->keys.empty()) return;
  // Up to the line's end, behind which an empty line may be. The counts may go with their sum,
  // whole.
  const std::string changed = Changed(text, text.find('\n'), input);
  if (changed == text) return;
  const absl::StatusOr<Manifest> other = ParseManifest(changed);
  Require(!other.ok() || !other->clean.has_value() || other->clean->keys.empty());
}

// A directory with a snapshot and a log behind it, after a clean stop.
struct Stopped {
  Stopped() {
    Require(fs->MakeDirectory("/data").ok() && fs->SyncDirectory("/").ok());
    History none;
    auto data = SimData::Recover(*fs, time, clock, none, {});
    Require(data.ok());
    {
      SimServer server(**data, kNowMs);
      for (const char* key : {"a", "b", "c"})
        Require(server.Do({"SET", key, "value"}) == "+OK\r\n");
      Require((*data)->persistence().RewriteInBackground().ok());
      Require(server.Do({"DEL", "a"}) == ":1\r\n" && server.Do({"SET", "d", "value"}) == "+OK\r\n");
      (*data)->log().Release(server.need());
      keys = KeysOf((*data)->store());
    }
    Require((*data)->persistence().Close(false).ok());
    manifest = fs->Contents(kManifest);
    const absl::StatusOr<Manifest> read = ParseManifest(manifest);
    Require(read.ok() && read->clean.has_value() && read->base() != nullptr && keys.size() == 3);
  }
  std::unique_ptr<SimFs> fs = std::make_unique<SimFs>();
  SimTime time{kNowMs};
  idemd::storage::FakeClock clock{kNowMs};
  Keys keys;
  std::string manifest;
};

void RequireSameKeysOrNone(Input& input) {
  static Stopped* const stopped = new Stopped;
  const std::string changed = Changed(stopped->manifest, stopped->manifest.size(), input);
  if (!ParseManifest(changed).ok()) return;
  const auto disk = stopped->fs->AfterKill();
  disk->Overwrite(kManifest, changed);
  History none;
  const auto data = SimData::Recover(*disk, stopped->time, stopped->clock, none, {});
  if (data.ok()) Require(KeysOf((*data)->store()) == stopped->keys);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  switch (input.Below(3)) {
    case 0:
      RequireFixed(input.Rest());
      break;
    case 1:
      RequireWrittenIsRead(input);
      break;
    default:
      RequireSameKeysOrNone(input);
  }
  return 0;
}

// A log of batches is read back exactly; changed anywhere, of it is read what stands in front of
// the change, and nothing of the changed batch or behind it, though sums may be right there. Damage
// is never taken for a sign of what was synced. What is no log at all is read to its end without a
// batch. Commands, and the texts in headers, are those that were written.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "server/journal/batch.h"
#include "server/journal/commands_text.h"
#include "server/journal/log_reader.h"
#include "tests/fuzz/input.h"

using namespace idemd::server;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;
using idemd::storage::Effect;
using idemd::storage::EffectKind;

namespace {

constexpr size_t kBatchesMax = 6;
constexpr size_t kChangedBytesMax = 8;  // too few to write another sum

class MemoryFile final : public idemd::storage::File {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Append(absl::string_view) override { return absl::UnimplementedError("read only"); }
  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t size) override {
    return offset >= bytes_.size() ? std::string() : bytes_.substr(offset, size);
  }
  absl::StatusOr<uint64_t> Size() override { return bytes_.size(); }
  absl::Status Truncate(uint64_t) override { return absl::UnimplementedError("read only"); }
  absl::Status Reserve(uint64_t) override { return absl::OkStatus(); }
  absl::Status Prefill(uint64_t) override { return absl::OkStatus(); }
  absl::Status Sync() override { return absl::OkStatus(); }
  bool IsAt(absl::string_view) override { return true; }

 private:
  const std::string bytes_;
};

struct Batch {
  BatchHeader header;
  std::string commands;
  size_t begin = 0, end = 0;
};

// Strictly: one spelling for each command.
void RequireCommands(absl::string_view text) {
  std::vector<absl::string_view> words;
  std::string again;
  for (absl::string_view rest = text; !rest.empty();) {
    size_t size = 0;
    Require(ReadCommand(rest, &words, &size) == CommandVerdict::kCommand && size <= rest.size());
    Require(ReadCommand(rest.substr(0, size - 1), &words, &size) == CommandVerdict::kCut);
    Require(ReadCommand(rest, &words, &size) == CommandVerdict::kCommand);
    again += "*" + std::to_string(words.size()) + "\r\n";
    for (absl::string_view word : words)
      again += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
    rest.remove_prefix(size);
  }
  Require(again == text);
}

std::string Effects(Input& input, idemd::storage::DbIndex* db) {
  std::vector<Effect> effects(input.Below(4));
  for (Effect& effect : effects) {
    constexpr EffectKind kKinds[] = {
        EffectKind::kSet,     EffectKind::kDelete, EffectKind::kExpireAt, EffectKind::kPersist,
        EffectKind::kFlushDb, EffectKind::kSwapDb, EffectKind::kFlushAll, EffectKind::kRestore};
    effect.kind = kKinds[input.Below(std::size(kKinds))];
    effect.db = static_cast<idemd::storage::DbIndex>(input.Below(16));
    effect.other_db = static_cast<idemd::storage::DbIndex>(input.Below(16));
    effect.key = input.Text(31);
    effect.value = input.Text();
    if (input.Flag()) effect.deadline_ms = static_cast<int64_t>(input.Number());
  }
  std::string commands;
  AppendEffects(effects, db, commands);
  RequireCommands(commands);
  return commands;
}

// What headers say beside numbers.
void RequireTexts(Input& input) {
  FileHeader header;
  header.name = std::string(input.Text(15));
  header.uuid = std::string(input.Text(15));
  header.before = "-";
  header.before_bytes = input.Number();
  header.before_last = input.Number();
  header.before_sum = input.Number();
  std::string text;
  AppendFileHeader(header, text);
  const uint64_t bytes = input.Number(), fence = input.Number();
  AppendSeal(bytes, text);
  AppendFenceMark(fence, text);
  std::vector<absl::string_view> words;
  size_t size = 0;
  Require(ReadCommand(text, &words, &size) == CommandVerdict::kCommand && words.size() == 2);
  FileHeader read;
  Require(ReadFileHeader(words[1], &read));
  Require(read.before_bytes == header.before_bytes && read.before_last == header.before_last &&
          read.before_sum == header.before_sum && read.before == "-");
  Require(read.name.size() == std::max<size_t>(header.name.size(), 1));
  text.erase(0, size);
  uint64_t number = 0;
  Require(ReadCommand(text, &words, &size) == CommandVerdict::kCommand &&
          ReadSeal(words[1], &number) && number == bytes);
  text.erase(0, size);
  Require(ReadCommand(text, &words, &size) == CommandVerdict::kCommand &&
          ReadFenceMark(words[1], &number) && number == fence);
}

std::string Log(Input& input, std::vector<Batch>* batches) {
  std::string text;
  uint64_t previous = input.Number();
  idemd::storage::DbIndex db = kNoDb;
  batches->resize(1 + input.Below(kBatchesMax));
  for (Batch& batch : *batches) {
    batch.header.first = input.Number();
    batch.header.last = input.Number();
    batch.header.effective_ms = static_cast<int64_t>(input.Number());
    batch.header.boot_ms = static_cast<int64_t>(input.Number());
    batch.header.synced = input.Number();
    batch.header.previous = previous;
    batch.commands = input.Flag() ? Effects(input, &db) : std::string(input.Text());
    batch.begin = text.size();
    AppendBatchHeader(batch.header, batch.commands, text);
    text += batch.commands;
    batch.end = text.size();
    previous = batch.header.sum;
  }
  return text;
}

bool Same(const BatchHeader& a, const BatchHeader& b) {
  return a.first == b.first && a.last == b.last && a.bytes == b.bytes &&
         a.effective_ms == b.effective_ms && a.boot_ms == b.boot_ms && a.synced == b.synced &&
         a.previous == b.previous && a.sum == b.sum;
}

// How many batches are read, each of which must be the one that was written, in the order of their
// chain.
size_t ReadInto(const std::string& bytes, const std::vector<Batch>& batches, bool* end) {
  MemoryFile file(bytes);
  LogReader reader(file, bytes.size());
  size_t n = 0;
  while (true) {
    const absl::StatusOr<LogReader::Step> step = reader.Next();
    Require(step.ok() && reader.offset() <= bytes.size());
    *end = step->kind == LogReader::Step::Kind::kEnd;
    if (step->kind == LogReader::Step::Kind::kBad) Require(!step->why.empty());
    if (step->kind != LogReader::Step::Kind::kBatch) return n;
    // A whole batch at another place is sound by itself; the chain tells.
    if (step->header.previous != (n == 0 ? batches[0].header.previous : batches[n - 1].header.sum))
      return n;
    Require(n < batches.size() && Same(step->header, batches[n].header) &&
            step->commands == batches[n].commands);
    Require(reader.offset() == batches[n].begin && reader.next_offset() == batches[n].end);
    ++n;
  }
}

std::string Changed(const std::string& text, const std::vector<Batch>& batches, Input& input) {
  std::string changed = text;
  const size_t at = input.Below(65536) % (text.size() + 1);
  const Batch& batch = batches[input.Below(batches.size())];
  switch (input.Below(7)) {
    case 0:
      if (at < text.size()) changed[at] = static_cast<char>(changed[at] ^ (1 << input.Below(8)));
      break;
    case 1: {
      const absl::string_view bytes = input.Text(kChangedBytesMax);
      changed.replace(at, bytes.size(), bytes.data(), bytes.size());
      break;
    }
    case 2: {
      const absl::string_view bytes = input.Text(kChangedBytesMax);
      changed.insert(at, bytes.data(), bytes.size());
      break;
    }
    case 3:
      changed.erase(at, 1 + input.Below(64));
      break;
    case 4:
      changed.resize(at);
      break;
    case 5:
      changed.insert(at, text, batch.begin, batch.end - batch.begin);
      break;
    default:
      changed.erase(batch.begin, batch.end - batch.begin);
  }
  return changed;
}

bool TellsOf(const std::string& bytes, size_t offset, idemd::storage::Lsn lsn) {
  MemoryFile file(bytes);
  const absl::StatusOr<bool> tells = TellsOfSynced(file, bytes.size(), offset, lsn);
  Require(tells.ok());
  return *tells;
}

bool WasTold(const std::vector<Batch>& batches, size_t offset, idemd::storage::Lsn lsn) {
  return std::any_of(batches.begin(), batches.end(), [&](const Batch& batch) {
    return batch.begin >= offset && batch.header.synced > lsn;
  });
}

void RequireNoLog(absl::string_view bytes) {
  bool end = false;
  Require(ReadInto(std::string(bytes), {Batch()}, &end) == 0 && end == bytes.empty());
  Require(!TellsOf(std::string(bytes), 0, 0));
  std::vector<absl::string_view> words;
  size_t size = 0;
  if (ReadCommand(bytes, &words, &size) == CommandVerdict::kCommand) {
    Require(size <= bytes.size());
    FileHeader header;
    uint64_t number = 0;
    (void)ReadFileHeader(words.back(), &header);
    (void)ReadSeal(words.back(), &number);
    (void)ReadFenceMark(words.back(), &number);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  if (input.Below(8) == 0) {
    RequireNoLog(input.Rest());
    return 0;
  }
  RequireTexts(input);
  std::vector<Batch> batches;
  const std::string text = Log(input, &batches);
  bool end = false;
  Require(ReadInto(text, batches, &end) == batches.size() && end);
  const size_t offset = input.Below(65536) % (text.size() + 1);
  const idemd::storage::Lsn lsn = input.Number();
  Require(TellsOf(text, offset, lsn) == WasTold(batches, offset, lsn));

  const std::string changed = Changed(text, batches, input);
  if (changed == text) return 0;
  const size_t same = static_cast<size_t>(
      std::mismatch(text.begin(), text.end(), changed.begin(), changed.end()).first - text.begin());
  const auto in_front = static_cast<size_t>(std::count_if(
      batches.begin(), batches.end(), [&](const Batch& batch) { return batch.end <= same; }));
  Require(ReadInto(changed, batches, &end) == in_front);
  if (TellsOf(changed, 0, lsn)) Require(WasTold(batches, 0, lsn));
  return 0;
}

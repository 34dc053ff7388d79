// What one entry costs when a snapshot writes it and a start reads it.
//
// Tokens: 1 000 000 UUIDs of 36 characters with the value `1` and a lifetime. Values: records'
// lines, and text of a given size with and without compression. Reading takes the whole file from
// memory, 256 KiB at a time, sum included.
#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/storage/keys.h"
#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::bench {
namespace {

using storage::RdbStrings;

constexpr size_t kEntries = 1'000'000;
constexpr int64_t kBaseMs = 1'700'000'000'000;

const Keys& Tokens() {
  static const Keys keys = UuidKeys(kEntries, 1);
  return keys;
}

std::string RecordLine(size_t i) {
  return absl::StrCat(
      "idem/1 state=consumed fence=0 attempt=0 since=", kBaseMs + static_cast<int64_t>(i),
      " lease=0 lease-ms=0 keep-ms=0 payload=none\n");
}

// An answer as services give it: JSON with random numbers and names.
std::string Answer(size_t size, std::mt19937_64& random) {
  std::string text = "{\"items\":[";
  while (text.size() < size)
    absl::StrAppend(&text, "{\"id\":", random() % 1'000'000, ",\"price\":\"", random() % 10000,
                    ".00\",\"currency\":\"EUR\"},");
  text.resize(size);
  return text;
}

void AppendEnd(std::string& file) {
  storage::AppendRdbEnd(file);
  const uint64_t sum = storage::Crc64(0, file);
  file.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
}

template <class ValueOf>
void Write(benchmark::State& state, size_t entries, RdbStrings strings, ValueOf value_of) {
  std::string out;
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (size_t i = 0; i < entries; ++i) {
      if (out.size() >= size_t{64} << 10) {  // as a snapshot's walker hands it over
        bytes += out.size();
        out.clear();
      }
      storage::AppendRdbEntry(Tokens()[i], value_of(i), kBaseMs + static_cast<int64_t>(i), out,
                              strings);
    }
    bytes += out.size();
    out.clear();
  }
  state.SetItemsProcessed(static_cast<int64_t>(entries) * state.iterations());
  state.counters["bytes_each"] = static_cast<double>(bytes) / static_cast<double>(entries);
}

void BM_WriteTokens(benchmark::State& state) {
  Write(state, kEntries, RdbStrings::kCompressed, [](size_t) { return absl::string_view("1"); });
}
BENCHMARK(BM_WriteTokens)->Unit(benchmark::kMillisecond);

void BM_WriteRecords(benchmark::State& state) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < 1000; ++i) lines.push_back(RecordLine(i));
  Write(state, 100'000, RdbStrings::kCompressed,
        [&](size_t i) { return absl::string_view(lines[i % lines.size()]); });
}
BENCHMARK(BM_WriteRecords)->Unit(benchmark::kMillisecond);

void BM_WriteAnswers(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::vector<std::string> answers;
  for (size_t i = 0; i < 100; ++i)
    answers.push_back(Answer(static_cast<size_t>(state.range(1)), random));
  Write(state, 1000, state.range(0) != 0 ? RdbStrings::kCompressed : RdbStrings::kPlain,
        [&](size_t i) { return absl::string_view(answers[i % answers.size()]); });
}
BENCHMARK(BM_WriteAnswers)
    ->ArgNames({"compressed", "size"})
    ->ArgsProduct({{0, 1}, {32, 64, 128, 512, 4096, 32768}})
    ->Unit(benchmark::kMillisecond);

void Read(benchmark::State& state, const std::string& file, size_t entries) {
  for (auto _ : state) {
    size_t at = 0, seen = 0;
    storage::RdbReader reader([&](size_t size) -> absl::StatusOr<absl::string_view> {
      const absl::string_view chunk = absl::string_view(file).substr(at, size);
      at += chunk.size();
      return chunk;
    });
    while (true) {
      const absl::StatusOr<storage::RdbItem> item = reader.Next();
      if (!item.ok()) return state.SkipWithError(item.status().ToString().c_str());
      if (item->kind == storage::RdbItem::Kind::kEnd) break;
      seen += item->name.size() + item->value.size() > 0;
    }
    if (seen != entries) return state.SkipWithError("not every entry came");
  }
  state.SetItemsProcessed(static_cast<int64_t>(entries) * state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(file.size()) * state.iterations());
}

void BM_ReadTokens(benchmark::State& state) {
  std::string file;
  storage::AppendRdbHeader(file);
  for (size_t i = 0; i < kEntries; ++i)
    storage::AppendRdbEntry(Tokens()[i], "1", kBaseMs + static_cast<int64_t>(i), file);
  AppendEnd(file);
  Read(state, file, kEntries);
}
BENCHMARK(BM_ReadTokens)->Unit(benchmark::kMillisecond);

void BM_ReadAnswers(benchmark::State& state) {
  constexpr size_t kAnswers = 10'000;
  std::mt19937_64 random(1);
  std::string file;
  storage::AppendRdbHeader(file);
  for (size_t i = 0; i < kAnswers; ++i)
    storage::AppendRdbEntry(Tokens()[i], Answer(512, random), kBaseMs + static_cast<int64_t>(i),
                            file,
                            state.range(0) != 0 ? RdbStrings::kCompressed : RdbStrings::kPlain);
  AppendEnd(file);
  Read(state, file, kAnswers);
}
BENCHMARK(BM_ReadAnswers)->ArgName("compressed")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace idemd::bench

// The texts of batch headers, file headers, seals and fence marks.
#include "server/journal/batch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "protocol/number.h"
#include "server/journal/commands_text.h"

namespace idemd::server {

const absl::string_view kBatchMark = "*2\r\n$4\r\nECHO\r\n$";

namespace {

// Longer than any batch header: seven numbers of 20 digits, two sums.
constexpr size_t kHeaderBytesMax = 256;

void AppendEcho(absl::string_view text, std::string& out) {
  absl::StrAppend(&out, kBatchMark, text.size(), "\r\n", text, "\r\n");
}

// Names in headers are ours: letters, digits, dots; a file name that the user chose is kept from breaking the fields.
std::string Field(absl::string_view text) {
  std::string field(text.empty() ? "-" : text);
  for (char& c : field)
    if (c == ';' || c == '\r' || c == '\n') c = '_';
  return field;
}

}  // namespace

uint64_t SumOf(absl::string_view first, absl::string_view second) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

std::string SumText(uint64_t sum) { return absl::StrCat(absl::Hex(sum, absl::kZeroPad16)); }

bool ReadSum(absl::string_view text, uint64_t* sum) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *sum, 16);
  return text.size() == 16 && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

void AppendBatchHeader(BatchHeader& header, absl::string_view commands, std::string& out) {
  header.bytes = commands.size();
  const std::string before_sum =
      absl::StrCat("i2;", header.first, ";", header.last, ";", header.bytes, ";", header.effective_ms, ";",
                   header.boot_ms, ";", header.synced, ";", SumText(header.previous), ";");
  header.sum = SumOf(before_sum, commands);
  AppendEcho(absl::StrCat(before_sum, SumText(header.sum)), out);
}

HeaderVerdict ReadBatchHeader(absl::string_view bytes, BatchHeader* header, size_t* size) {
  const size_t known = std::min(bytes.size(), kBatchMark.size());
  if (bytes.substr(0, known) != kBatchMark.substr(0, known)) return HeaderVerdict::kOther;
  std::vector<absl::string_view> words;
  switch (ReadCommand(bytes.substr(0, kHeaderBytesMax), &words, size)) {
    case CommandVerdict::kCut:
      return bytes.size() < kHeaderBytesMax ? HeaderVerdict::kCut : HeaderVerdict::kOther;
    case CommandVerdict::kOther:
      return HeaderVerdict::kOther;
    case CommandVerdict::kCommand:
      break;
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(words[1], ';');
  if (fields.size() != 9 || fields[0] != "i2") return HeaderVerdict::kOther;
  if (!protocol::ParseUint64(fields[1], &header->first) || !protocol::ParseUint64(fields[2], &header->last) ||
      !protocol::ParseUint64(fields[3], &header->bytes) || !protocol::ParseInt64(fields[4], &header->effective_ms) ||
      !protocol::ParseInt64(fields[5], &header->boot_ms) || !protocol::ParseUint64(fields[6], &header->synced) ||
      !ReadSum(fields[7], &header->previous) || !ReadSum(fields[8], &header->sum)) {
    return HeaderVerdict::kOther;
  }
  return HeaderVerdict::kHeader;
}

bool SumFits(const BatchHeader& header, absl::string_view echo, absl::string_view commands) {
  // Written anew, the ECHO must be the same byte for byte: so every byte of it is covered, too.
  BatchHeader again = header;
  std::string expected;
  AppendBatchHeader(again, commands, expected);
  return again.sum == header.sum && expected == echo;
}

void AppendFileHeader(const FileHeader& header, std::string& out) {
  AppendEcho(absl::StrCat("f1;", Field(header.name), ";", Field(header.uuid), ";", Field(header.boot_id), ";",
                          Field(header.token_key), ";", Field(header.before), ";", header.before_bytes, ";",
                          header.before_last, ";", SumText(header.before_sum)),
             out);
}

bool ReadFileHeader(absl::string_view echoed, FileHeader* header) {
  const std::vector<absl::string_view> fields = absl::StrSplit(echoed, ';');
  if (fields.size() != 9 || fields[0] != "f1") return false;
  header->name = std::string(fields[1]);
  header->uuid = std::string(fields[2]);
  header->boot_id = std::string(fields[3]);
  header->token_key = std::string(fields[4]);
  header->before = std::string(fields[5]);
  return protocol::ParseUint64(fields[6], &header->before_bytes) && protocol::ParseUint64(fields[7], &header->before_last) &&
         ReadSum(fields[8], &header->before_sum);
}

void AppendSeal(uint64_t file_bytes, std::string& out) { AppendEcho(absl::StrCat("s1;", file_bytes), out); }

bool ReadSeal(absl::string_view echoed, uint64_t* file_bytes) {
  return echoed.substr(0, 3) == "s1;" && protocol::ParseUint64(echoed.substr(3), file_bytes);
}

void AppendFenceMark(uint64_t fence, std::string& out) { AppendEcho(absl::StrCat("fence;", fence), out); }

bool ReadFenceMark(absl::string_view echoed, uint64_t* fence) {
  return echoed.substr(0, 6) == "fence;" && protocol::ParseUint64(echoed.substr(6), fence);
}

}  // namespace idemd::server

// Bytes are put together by hand: this runs for every write, under the shard's lock.
#include "server/journal/commands_text.h"

#include <algorithm>
#include <charconv>

namespace idemd::server {
namespace {

using storage::DbIndex;
using storage::Effect;
using storage::EffectKind;

void AppendNumber(int64_t n, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), n).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

void AppendWord(absl::string_view word, std::string& out) {
  out.push_back('$');
  AppendNumber(static_cast<int64_t>(word.size()), out);
  out.append("\r\n", 2);
  out.append(word.data(), word.size());
  out.append("\r\n", 2);
}

void AppendWord(int64_t n, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), n).ptr;
  AppendWord(absl::string_view(digits, static_cast<size_t>(end - digits)), out);
}

void Append(absl::string_view literal, std::string& out) { out.append(literal.data(), literal.size()); }

// A deadline that a command may carry: PXAT and PEXPIREAT want at least 1.
int64_t Deadline(const Effect& effect) { return std::max<int64_t>(effect.deadline_ms, 1); }

bool NeedsDb(const Effect& effect) {
  return effect.kind != EffectKind::kFlushAll && effect.kind != EffectKind::kSwapDb;
}

void Select(const Effect& effect, DbIndex* db, std::string& out) {
  if (!NeedsDb(effect) || *db == effect.db) return;
  AppendSelect(effect.db, out);
  *db = effect.db;
}

// The effects from `i` on that one command covers.
size_t RunOf(absl::Span<const Effect> effects, size_t i) {
  if (effects[i].kind != EffectKind::kDelete) return 1;
  size_t n = 1;
  while (i + n < effects.size() && effects[i + n].kind == EffectKind::kDelete && effects[i + n].db == effects[i].db) ++n;
  return n;
}

void AppendOne(absl::Span<const Effect> run, std::string& out) {
  const Effect& effect = run[0];
  switch (effect.kind) {
    case EffectKind::kSet:
      Append(effect.deadline_ms == storage::kNoDeadline ? "*3\r\n$3\r\nSET\r\n" : "*5\r\n$3\r\nSET\r\n", out);
      AppendWord(effect.key, out);
      AppendWord(effect.value, out);
      if (effect.deadline_ms == storage::kNoDeadline) return;
      Append("$4\r\nPXAT\r\n", out);
      return AppendWord(Deadline(effect), out);
    case EffectKind::kRestore:
      Append("*6\r\n$7\r\nRESTORE\r\n", out);
      AppendWord(effect.key, out);
      AppendWord(effect.deadline_ms == storage::kNoDeadline ? int64_t{0} : Deadline(effect), out);
      AppendWord(effect.value, out);
      return Append("$7\r\nREPLACE\r\n$6\r\nABSTTL\r\n", out);
    case EffectKind::kCommand:
      return Append(effect.value, out);
    case EffectKind::kDelete:
      out.push_back('*');
      AppendNumber(static_cast<int64_t>(run.size()) + 1, out);
      Append("\r\n$3\r\nDEL\r\n", out);
      for (const Effect& e : run) AppendWord(e.key, out);
      return;
    case EffectKind::kExpireAt:
      Append("*3\r\n$9\r\nPEXPIREAT\r\n", out);
      AppendWord(effect.key, out);
      return AppendWord(Deadline(effect), out);
    case EffectKind::kPersist:
      Append("*2\r\n$7\r\nPERSIST\r\n", out);
      return AppendWord(effect.key, out);
    case EffectKind::kFlushDb:
      return Append("*1\r\n$7\r\nFLUSHDB\r\n", out);
    case EffectKind::kFlushAll:
      return Append("*1\r\n$8\r\nFLUSHALL\r\n", out);
    case EffectKind::kSwapDb:
      Append("*3\r\n$6\r\nSWAPDB\r\n", out);
      AppendWord(int64_t{effect.db}, out);
      return AppendWord(int64_t{effect.other_db}, out);
  }
}

// "$12\r\n" or "*3\r\n" at the front; 0 on success, else what is wrong.
CommandVerdict ReadSize(absl::string_view bytes, char mark, uint64_t max, size_t* at, uint64_t* n) {
  if (*at >= bytes.size()) return CommandVerdict::kCut;
  if (bytes[*at] != mark) return CommandVerdict::kOther;
  uint64_t value = 0;
  size_t i = *at + 1;
  for (; i < bytes.size() && bytes[i] >= '0' && bytes[i] <= '9'; ++i) {
    value = value * 10 + static_cast<uint64_t>(bytes[i] - '0');
    if (value > max) return CommandVerdict::kOther;
  }
  if (i < bytes.size() && (bytes[i] != '\r' || i == *at + 1)) return CommandVerdict::kOther;
  if (i + 2 > bytes.size()) return CommandVerdict::kCut;
  if (bytes[i + 1] != '\n') return CommandVerdict::kOther;
  *at = i + 2;
  *n = value;
  return CommandVerdict::kCommand;
}

}  // namespace

void AppendSelect(DbIndex db, std::string& out) {
  Append("*2\r\n$6\r\nSELECT\r\n", out);
  AppendWord(int64_t{db}, out);
}

void AppendEffects(absl::Span<const Effect> effects, DbIndex* db, std::string& out) {
  if (effects.empty()) return;
  const bool one = RunOf(effects, 0) == effects.size();
  Select(effects[0], db, out);
  if (!one) Append("*1\r\n$5\r\nMULTI\r\n", out);
  for (size_t i = 0; i < effects.size();) {
    const size_t run = RunOf(effects, i);
    Select(effects[i], db, out);
    AppendOne(effects.subspan(i, run), out);
    i += run;
  }
  if (!one) Append("*1\r\n$4\r\nEXEC\r\n", out);
}

CommandVerdict ReadCommand(absl::string_view bytes, std::vector<absl::string_view>* words, size_t* size) {
  constexpr uint64_t kWordsMax = 1024 * 1024 * 1024, kBytesMax = uint64_t{1} << 40;
  words->clear();
  size_t at = 0;
  uint64_t count = 0;
  CommandVerdict verdict = ReadSize(bytes, '*', kWordsMax, &at, &count);
  if (verdict != CommandVerdict::kCommand) return verdict;
  if (count == 0) return CommandVerdict::kOther;
  for (; count != 0; --count) {
    uint64_t length = 0;
    verdict = ReadSize(bytes, '$', kBytesMax, &at, &length);
    if (verdict != CommandVerdict::kCommand) return verdict;
    if (bytes.size() - at < length + 2) return CommandVerdict::kCut;
    words->push_back(bytes.substr(at, length));
    at += length;
    if (bytes[at] != '\r' || bytes[at + 1] != '\n') return CommandVerdict::kOther;
    at += 2;
  }
  *size = at;
  return CommandVerdict::kCommand;
}

}  // namespace idemd::server

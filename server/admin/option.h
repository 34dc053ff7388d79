// One option as it is declared, once, and how its text is read.
//
// Reading checks the words behind an option's name and gives its canonical text: what CONFIG GET
// shows, and what reads back as the same value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/admin/settings.h"

namespace idemd::server {

enum class OptionType : uint8_t {
  kBool,
  kInteger,
  kOctal,
  kMemory,           // bytes; read with units: 1k, 1kb, 2mb
  kMemoryOrPercent,  // "10%" or bytes
  kEnum,             // one of `words`
  kWords,            // any of `words`, the first one alone meaning none
  kText,
  kFileName,   // text without a slash
  kDirectory,  // the process goes there
  kBind,
  kSave,
  kOutputLimits,
  kPercentiles,
  kNotifyClasses,
  kOomScores,
  kReplicaOf,
};

// What this version does with an option.
enum class Effect : uint8_t {
  kFull,
  kNone,         // taken and shown, nothing follows from it
  kDefaultOnly,  // only the default is taken; a file that asks for more gets a warning, CONFIG SET
                 // an error
  kPartial,      // any value is taken and shown, but only the default does anything
};

enum OptionFlag : uint8_t {
  kImmutable = 1 << 0,  // cannot be changed while running
  kProtected = 1 << 1,  // only where enable-protected-configs allows it
  kHidden = 1 << 2,     // CONFIG GET shows it only when asked by its full name
  kSecret = 1 << 3,
  kManyWords = 1 << 4,  // checks how many words it gets by itself
  kReload = 1 << 5,     // names something outside: setting it again, to the same text, counts as a change
};

struct OptionSpec {
  const char* name = "";
  OptionType type = OptionType::kText;
  const char* initial = "";  // canonical text of the default; nullptr: depends on the machine
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  const char* words = "";       // kEnum, kWords: separated by blanks
  const char* alias = nullptr;  // an older name
  uint8_t flags = 0;
  Effect effect = Effect::kFull;
  const char* limit = "";  // kDefaultOnly, kPartial: why
  const char* unit = "";
  const char* group = "";
  const char* doc = "";
  // Where the value is kept besides its text; a number is `scale` times what was set.
  std::atomic<int64_t> Settings::*number = nullptr;
  std::atomic<bool> Settings::*flag = nullptr;  // of a text: whether it is not empty
  int64_t scale = 1;

  bool has(OptionFlag f) const { return (flags & f) != 0; }
};

// The table: what idemd does (options_of_idemd.cc, options_of_tls.cc), then what it only knows of
// (options_of_redis.cc).
absl::Span<const OptionSpec> OptionsOfIdemd();
absl::Span<const OptionSpec> OptionsOfDurability();
absl::Span<const OptionSpec> OptionsOfTls();
absl::Span<const OptionSpec> OptionsOfRedis();
const std::vector<const OptionSpec*>& Options();
inline constexpr size_t kNoOption = static_cast<size_t>(-1);
// By name or alias, any case.
size_t FindOption(absl::string_view name);

std::string DefaultText(const OptionSpec& option);
// Reads the words behind the option's name. `current` is the text it has:
// client-output-buffer-limit changes a part of it. The error's message is what Redis says.
absl::Status ReadOption(const OptionSpec& option, absl::Span<const std::string> words,
                        absl::string_view current, std::string* text);
// The words of CONFIG SET's one value.
std::vector<std::string> ValueWords(const OptionSpec& option, absl::string_view value);
// The number behind a canonical text, before scaling: bytes, a place in `words`, class bits.
int64_t NumberOf(const OptionSpec& option, absl::string_view text);
// As it is written in a file: a line for most, several for client-output-buffer-limit.
std::vector<std::string> FileLines(const OptionSpec& option, absl::string_view text);
// In double quotes, with escapes, so that it reads back.
std::string Quoted(absl::string_view text);

}  // namespace idemd::server

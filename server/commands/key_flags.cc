// Looks up what a command does to a key.
#include "server/commands/key_flags.h"

namespace idemd::server {
namespace {

// Those whose place nobody knows come last.
const char* Declared(const CommandSpec& spec, absl::Span<const absl::string_view> words, int position) {
  if (spec.key_flags_of != nullptr) return spec.key_flags_of(words);
  for (const KeySpec& keys : spec.key_specs) {
    const int last = keys.last < 0 ? static_cast<int>(words.size()) + keys.last : keys.index + keys.last;
    if (keys.counted || (keys.index != 0 && position >= keys.index && position <= last)) return keys.flags;
  }
  return spec.key_specs.empty() ? spec.key_flags : spec.key_specs.back().flags;
}

}  // namespace

absl::string_view KeyFlagsText(const CommandSpec& spec, const char* text) {
  if (text != nullptr) return text;
  return (spec.flags & kWrite) != 0 ? "RW ACCESS UPDATE" : "RO ACCESS";
}

absl::string_view KeyFlagsAt(const CommandSpec& spec, absl::Span<const absl::string_view> words, int position) {
  return KeyFlagsText(spec, Declared(spec, words, position));
}

}  // namespace idemd::server

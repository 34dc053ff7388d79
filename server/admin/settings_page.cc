// What people read about the settings, from the table: `idemd --help` and docs/settings.md.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/admin/option.h"
#include "server/admin/settings.h"

namespace idemd::server {
namespace {

// The longest line of --help.
constexpr size_t kHelpColumns = 100;
constexpr size_t kHelpIndent = 36;

std::string ShownDefault(const OptionSpec& option) {
  if (option.initial != nullptr) return option.initial;
  return option.type == OptionType::kDirectory ? "where it was started"
                                               : "the number of processors";
}

std::string DefaultCell(const OptionSpec& option) {
  if (option.initial == nullptr) return ShownDefault(option);
  return option.initial[0] == '\0' ? "empty" : absl::StrCat("`", option.initial, "`");
}

// "1 to 128", "at least 1", or the words.
std::string Range(const OptionSpec& option) {
  switch (option.type) {
    case OptionType::kBool:
      return "`yes`, `no`";
    case OptionType::kEnum: {
      const std::vector<absl::string_view> words = absl::StrSplit(option.words, ' ');
      return absl::StrCat("`", absl::StrJoin(words, "`, `"), "`");
    }
    case OptionType::kOctal:
      return absl::StrFormat("%o to %o", option.min, option.max);
    case OptionType::kInteger:
    case OptionType::kMemory:
      if (option.max == std::numeric_limits<int64_t>::max())
        return absl::StrCat("at least ", option.min);
      return absl::StrCat(option.min, " to ", option.max);
    default:
      return "text";
  }
}

std::string Sentence(const OptionSpec& option) {
  std::string text = option.doc;
  if (option.effect == Effect::kNone)
    absl::StrAppend(&text, " No effect yet: this version keeps its data in memory only.");
  if (option.effect == Effect::kDefaultOnly)
    absl::StrAppend(&text, " Other values are not supported: ", option.limit, ".");
  if (option.effect == Effect::kPartial)
    absl::StrAppend(&text, " Other values are taken without effect: ", option.limit, ".");
  return text;
}

// "[511]", "[300 seconds]", or nothing for an empty default.
std::string HelpDefault(const OptionSpec& option) {
  const std::string value = ShownDefault(option);
  if (value.empty()) return "";
  return absl::StrCat(" [", value, option.unit[0] == '\0' ? "" : " ", option.unit, "]");
}

void AppendHelp(const OptionSpec& option, std::string* out) {
  std::string line = absl::StrFormat("  --%-*s", static_cast<int>(kHelpIndent - 5), option.name);
  const std::string text = absl::StrCat(Sentence(option), HelpDefault(option));
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(out, line, "\n");
      line.assign(kHelpIndent - 1, ' ');
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(out, line, "\n");
}

// Those that do something, group by group, in the order of the tables.
std::vector<std::pair<absl::string_view, std::vector<const OptionSpec*>>> Groups() {
  std::vector<std::pair<absl::string_view, std::vector<const OptionSpec*>>> groups;
  for (const absl::Span<const OptionSpec> table : {OptionsOfIdemd(), OptionsOfDurability(), OptionsOfTls()}) {
    for (const OptionSpec& option : table) {
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const auto& g) { return g.first == option.group; });
      if (group == groups.end()) group = groups.insert(group, {option.group, {}});
      group->second.push_back(&option);
    }
  }
  return groups;
}

constexpr absl::string_view kHelpHead =
    "idemd: an in-memory idempotency-key store that speaks the Redis protocol.\n\n"
    "Usage: idemd [file.conf] [--name value ...]\n"
    "       idemd - [--name value ...]      reads the file from standard input\n"
    "       idemd --check DIR     says whether the data in DIR are sound: exit code 0, 1 when they "
    "were not\n"
    "                             stopped cleanly (a start mends that), 2 when damaged, 3 when not "
    "ours to judge\n"
    "       idemd --repair DIR    makes DIR one that a stock Redis starts from, too\n"
    "       idemd --help | --version | --settings-page\n\n"
    "Settings of the command line come after those of the file. The file has the syntax of "
    "redis.conf,\n"
    "and the settings of Redis 7.0 that are not listed here are taken, shown and named in the "
    "log.\n";

constexpr absl::string_view kPageHead =
    "# Settings\n\n"
    "Made from the table in `server/admin/` by `idemd --settings-page`; a test keeps the two "
    "alike.\n\n"
    "Settings are given in a file with the syntax of `redis.conf` (`idemd file.conf`), on the "
    "command line\n"
    "(`idemd file.conf --name value ...`, which comes last and wins), and while running with "
    "`CONFIG SET`.\n"
    "`CONFIG REWRITE` writes them back into the file. Sizes may have units: `1k` is 1000 bytes, "
    "`1kb` is 1024;\n"
    "`m`, `mb`, `g` and `gb` likewise. A line that is neither a setting nor a comment stops the "
    "start, with its number.\n";

constexpr absl::string_view kPageIdle =
    "\n## Known, without effect\n\n"
    "Settings of Redis 7.0 that this version takes and shows, so that a file made for Redis starts "
    "idemd. Each one that\n"
    "is set is named in the log. Those that promise something (marked with a reason) stay at their "
    "default.\n\n"
    "| setting | default | |\n| --- | --- | --- |\n";

}  // namespace

std::string Settings::HelpText() {
  std::string out(kHelpHead);
  for (const auto& [group, options] : Groups()) {
    absl::StrAppend(&out, "\n", group, ":\n");
    for (const OptionSpec* option : options) AppendHelp(*option, &out);
  }
  return out;
}

std::string Settings::SettingsPage() {
  std::string out(kPageHead);
  for (const auto& [group, options] : Groups()) {
    absl::StrAppend(&out, "\n## ", group,
                    "\n\n| setting | default | values | unit | while running | |\n",
                    "| --- | --- | --- | --- | --- | --- |\n");
    for (const OptionSpec* each : options) {
      const OptionSpec& option = *each;
      const char* const change = option.has(kImmutable)   ? "no"
                                 : option.has(kProtected) ? "if allowed"
                                                          : "yes";
      absl::StrAppend(&out, "| `", option.name, "` | ", DefaultCell(option), " | ", Range(option),
                      " | ", option.unit, " | ", change, " | ", Sentence(option), " |\n");
    }
  }
  absl::StrAppend(&out, kPageIdle);
  for (const OptionSpec& option : OptionsOfRedis()) {
    if (option.has(kHidden)) continue;
    absl::StrAppend(&out, "| `", option.name, "`",
                    option.alias == nullptr ? "" : absl::StrCat(", `", option.alias, "`"), " | ",
                    DefaultCell(option), " | ", option.limit, " |\n");
  }
  return out;
}

}  // namespace idemd::server

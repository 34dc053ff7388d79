// The table as a whole: looking options up, and how their defaults and lines are written.
#include "server/admin/option.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "protocol/number.h"

namespace idemd::server {
namespace {

constexpr int64_t kIoThreadsMax = 128;
constexpr size_t kOutputClassWords = 4;

const absl::flat_hash_map<std::string, size_t>& Index() {
  static const auto* const index = [] {
    auto* map = new absl::flat_hash_map<std::string, size_t>;
    for (size_t i = 0; i < Options().size(); ++i) {
      (*map)[Options()[i]->name] = i;
      if (Options()[i]->alias != nullptr) (*map)[Options()[i]->alias] = i;
    }
    return map;
  }();
  return *index;
}

std::string WithUnit(absl::string_view bytes_text) {
  int64_t bytes = 0;
  if (!protocol::ParseInt64(bytes_text, &bytes) || bytes == 0) return std::string(bytes_text);
  for (const auto& [unit, size] :
       {std::pair{"gb", int64_t{1} << 30}, {"mb", int64_t{1} << 20}, {"kb", int64_t{1} << 10}}) {
    if (bytes % size == 0) return absl::StrCat(bytes / size, unit);
  }
  return std::string(bytes_text);
}

std::vector<std::string> OutputLimitLines(const OptionSpec& option, absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  std::vector<std::string> lines;
  for (size_t i = 0; i + kOutputClassWords <= words.size(); i += kOutputClassWords) {
    lines.push_back(absl::StrCat(option.name, " ", words[i] == "slave" ? "replica" : words[i], " ",
                                 WithUnit(words[i + 1]), " ", WithUnit(words[i + 2]), " ",
                                 words[i + 3]));
  }
  return lines;
}

// A line for each save point, as Redis writes them; several add up when they are read.
std::vector<std::string> SaveLines(const OptionSpec& option, absl::string_view text) {
  if (text.empty()) return {absl::StrCat(option.name, " \"\"")};
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  std::vector<std::string> lines;
  for (size_t i = 0; i + 1 < words.size(); i += 2)
    lines.push_back(absl::StrCat(option.name, " ", words[i], " ", words[i + 1]));
  return lines;
}

}  // namespace

const std::vector<const OptionSpec*>& Options() {
  static const auto* const all = [] {
    auto* list = new std::vector<const OptionSpec*>;
    for (const OptionSpec& option : OptionsOfIdemd()) list->push_back(&option);
    for (const OptionSpec& option : OptionsOfDurability()) list->push_back(&option);
    for (const OptionSpec& option : OptionsOfTls()) list->push_back(&option);
    for (const OptionSpec& option : OptionsOfRedis()) list->push_back(&option);
    return list;
  }();
  return *all;
}

size_t FindOption(absl::string_view name) {
  const auto it = Index().find(absl::AsciiStrToLower(name));
  return it == Index().end() ? kNoOption : it->second;
}

std::string DefaultText(const OptionSpec& option) {
  if (option.initial != nullptr) return option.initial;
  if (option.type == OptionType::kDirectory) {
    char path[PATH_MAX];
    return getcwd(path, sizeof(path)) == nullptr ? "" : path;
  }
  const int64_t processors = std::thread::hardware_concurrency();
  return absl::StrCat(std::clamp<int64_t>(processors, 1, kIoThreadsMax));  // io-threads
}

std::string Quoted(absl::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '\\':
      case '"':
        out.push_back('\\');
        out.push_back(c);
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      case '\a':
        out.append("\\a");
        break;
      case '\b':
        out.append("\\b");
        break;
      default:
        if (byte >= 0x20 && byte < 0x7f) {
          out.push_back(c);
        } else {
          out.append("\\x");
          out.push_back(kHex[byte >> 4]);
          out.push_back(kHex[byte & 15]);
        }
    }
  }
  out.push_back('"');
  return out;
}

std::vector<std::string> FileLines(const OptionSpec& option, absl::string_view text) {
  switch (option.type) {
    case OptionType::kOutputLimits:
      return OutputLimitLines(option, text);
    case OptionType::kSave:
      return SaveLines(option, text);
    case OptionType::kText:
    case OptionType::kFileName:
    case OptionType::kDirectory:
    case OptionType::kNotifyClasses:
      return {absl::StrCat(option.name, " ", Quoted(text))};
    case OptionType::kMemory:
    case OptionType::kMemoryOrPercent:
      return {absl::StrCat(option.name, " ", WithUnit(text))};
    case OptionType::kBool:
    case OptionType::kInteger:
    case OptionType::kOctal:
    case OptionType::kEnum:
    case OptionType::kWords:
    case OptionType::kBind:
    case OptionType::kPercentiles:
    case OptionType::kOomScores:
    case OptionType::kReplicaOf:
      break;
  }
  return {absl::StrCat(option.name, " ", text.empty() ? "\"\"" : text)};
}

}  // namespace idemd::server

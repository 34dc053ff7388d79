// From the words behind an option's name to its canonical text and its number, with Redis' words
// for what is wrong.
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "protocol/number.h"
#include "server/admin/option.h"

namespace idemd::server {
namespace {

using Words = absl::Span<const std::string>;

constexpr size_t kBindAddressesMax = 16;
constexpr size_t kOomScores = 3;
constexpr int64_t kOomScoreMax = 2000;
constexpr int64_t kSecondsMax = int64_t{1} << 40;
constexpr int64_t kPercentMax = 100;
// The letters of notify-keyspace-events in the order of NotifyClass; 'A' stands for all from g to
// x, t, d and e.
constexpr absl::string_view kNotifyLetters = "KEg$lshzxetmdn";
// Redis prints them in this order.
constexpr absl::string_view kNotifyPrintOrder = "g$lshzxetdnKEm";
constexpr int64_t kNotifyAll = kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet |
                               kNotifyHash | kNotifyZset | kNotifyExpired | kNotifyEvicted |
                               kNotifyStream | kNotifyModule;

absl::Status Wrong(absl::string_view text) { return absl::InvalidArgumentError(text); }

std::vector<absl::string_view> WordList(const OptionSpec& option) {
  return absl::StrSplit(option.words, ' ');
}

absl::Status WrongWord(const OptionSpec& option) {
  return Wrong(absl::StrCat("argument(s) must be one of the following: ",
                            absl::StrJoin(WordList(option), ", ")));
}

// An optional sign and digits, nothing else; leading zeros are fine, as strtoll takes them.
bool ParseDigits(absl::string_view text, int base, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size();
}

std::string InOctal(int64_t value) {
  char digits[24];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value, 8).ptr);
}

absl::Status ReadBool(Words words, std::string* text) {
  *text = absl::AsciiStrToLower(words[0]);
  return *text == "yes" || *text == "no" ? absl::OkStatus()
                                         : Wrong("argument must be 'yes' or 'no'");
}

absl::Status CheckBounds(const OptionSpec& option, int64_t value) {
  if (value >= option.min && value <= option.max) return absl::OkStatus();
  if (option.type == OptionType::kOctal) {
    return Wrong(absl::StrCat("argument must be between ", InOctal(option.min), " and ",
                              InOctal(option.max), " inclusive"));
  }
  return Wrong(
      absl::StrCat("argument must be between ", option.min, " and ", option.max, " inclusive"));
}

absl::Status ReadNumber(const OptionSpec& option, Words words, std::string* text) {
  int64_t value = 0;
  const std::string& word = words[0];
  switch (option.type) {
    case OptionType::kOctal:
      if (!ParseDigits(word, 8, &value))
        return Wrong("argument couldn't be parsed as an octal number");
      *text = InOctal(value);
      break;
    case OptionType::kMemory:
      if (!protocol::ParseMemory(word, &value)) return Wrong("argument must be a memory value");
      *text = absl::StrCat(value);
      break;
    case OptionType::kMemoryOrPercent:
      if (protocol::ParseMemory(word, &value)) {
        *text = absl::StrCat(value);
        break;
      }
      if (!absl::EndsWith(word, "%") ||
          !protocol::ParseInt64(word.substr(0, word.size() - 1), &value) || value < 0)
        return Wrong("argument must be a memory or percent value");
      if (value > kPercentMax)
        return Wrong(absl::StrCat("percentage argument must be less or equal to ", kPercentMax));
      *text = absl::StrCat(value, value == 0 ? "" : "%");
      return absl::OkStatus();
    default:
      if (!protocol::ParseInt64(word, &value))
        return Wrong("argument couldn't be parsed into an integer");
      *text = absl::StrCat(value);
  }
  return CheckBounds(option, value);
}

absl::Status ReadEnum(const OptionSpec& option, Words words, std::string* text) {
  for (absl::string_view word : WordList(option)) {
    if (!absl::EqualsIgnoreCase(word, words[0])) continue;
    *text = std::string(word);
    return absl::OkStatus();
  }
  return WrongWord(option);
}

// Several words; the first of the list stands for none of the others.
absl::Status ReadWords(const OptionSpec& option, Words words, std::string* text) {
  const std::vector<absl::string_view> list = WordList(option);
  std::vector<bool> given(list.size());
  if (words.empty()) return WrongWord(option);
  for (const std::string& word : words) {
    const auto it = std::find_if(list.begin(), list.end(), [&](absl::string_view known) {
      return absl::EqualsIgnoreCase(known, word);
    });
    if (it == list.end()) return WrongWord(option);
    given[static_cast<size_t>(it - list.begin())] = true;
  }
  std::vector<absl::string_view> kept;
  for (size_t i = 1; i < list.size(); ++i) {
    if (given[i]) kept.push_back(list[i]);
  }
  if (std::count(kept.begin(), kept.end(), "save") +
          std::count(kept.begin(), kept.end(), "nosave") >
      1)
    return Wrong("shutdown options SAVE and NOSAVE can't be used simultaneously");
  *text = kept.empty() ? std::string(list[0]) : absl::StrJoin(kept, " ");
  return absl::OkStatus();
}

absl::Status ReadFileName(const OptionSpec& option, Words words, std::string* text) {
  const absl::string_view what = absl::StrContains(option.name, "dirname") ? "dirname" : "filename";
  if (words[0].empty() && !absl::StartsWith(option.name, "db"))
    return Wrong(absl::StrCat(option.name, " can't be empty"));
  if (absl::StrContains(words[0], '/'))
    return Wrong(absl::StrCat(option.name, " can't be a path, just a ", what));
  *text = words[0];
  return absl::OkStatus();
}

absl::Status ReadDirectory(Words words, std::string* text) {
  char* const path = realpath(words[0].c_str(), nullptr);
  if (path == nullptr) return Wrong(std::generic_category().message(errno));
  *text = path;
  free(path);
  struct stat info {};
  if (stat(text->c_str(), &info) != 0) return Wrong(std::generic_category().message(errno));
  return S_ISDIR(info.st_mode) ? absl::OkStatus() : Wrong("Not a directory");
}

absl::Status ReadBind(Words words, std::string* text) {
  if (words.size() > kBindAddressesMax) return Wrong("Too many bind addresses specified.");
  text->clear();
  for (const std::string& word : words) {
    // The text is written into files as it stands.
    const auto special = [](char c) { return c == '"' || c == '\'' || !absl::ascii_isgraph(static_cast<unsigned char>(c)); };
    if (std::any_of(word.begin(), word.end(), special)) return Wrong("Bind addresses have no blanks and no quotes.");
    if (!word.empty()) absl::StrAppend(text, text->empty() ? "" : " ", word);
  }
  return absl::OkStatus();
}

absl::Status ReadSave(Words words, std::string* text) {
  text->clear();
  if (words.size() == 1 && words[0].empty()) return absl::OkStatus();
  if (words.size() % 2 != 0) return Wrong("Invalid save parameters");
  for (size_t i = 0; i < words.size(); ++i) {
    int64_t value = 0;
    if (!ParseDigits(words[i], 10, &value) || value < (i % 2 == 0 ? 1 : 0))
      return Wrong("Invalid save parameters");
    absl::StrAppend(text, i == 0 ? "" : " ", value);
  }
  return absl::OkStatus();
}

absl::Status ReadOutputLimits(Words words, absl::string_view current, std::string* text) {
  std::vector<std::string> parts = absl::StrSplit(current, ' ');
  if (words.size() % 4 != 0)
    return Wrong("Wrong number of arguments in buffer limit configuration.");
  for (size_t i = 0; i < words.size(); i += 4) {
    std::string name = absl::AsciiStrToLower(words[i]);
    if (name == "replica") name = "slave";
    const auto at = std::find(parts.begin(), parts.end(), name);
    if (at == parts.end() || (name != "normal" && name != "slave" && name != "pubsub"))
      return Wrong("Invalid client class specified in buffer limit configuration.");
    int64_t hard = 0;
    int64_t soft = 0;
    int64_t seconds = 0;
    if (!protocol::ParseMemory(words[i + 1], &hard) ||
        !protocol::ParseMemory(words[i + 2], &soft) || !ParseDigits(words[i + 3], 10, &seconds) ||
        seconds < 0 || seconds > kSecondsMax) {
      return Wrong("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    at[1] = absl::StrCat(hard);
    at[2] = absl::StrCat(soft);
    at[3] = absl::StrCat(seconds);
  }
  *text = absl::StrJoin(parts, " ");
  return absl::OkStatus();
}

absl::Status ReadPercentiles(Words words, std::string* text) {
  text->clear();
  if (words.size() == 1 && words[0].empty()) return absl::OkStatus();
  for (size_t i = 0; i < words.size(); ++i) {
    double value = 0;
    if (!protocol::ParseDouble(words[i], &value))
      return Wrong("Invalid latency-tracking-info-percentiles parameters");
    if (value < 0 || value > 100)
      return Wrong("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    absl::StrAppend(text, i == 0 ? "" : " ", protocol::FormatDouble(value));
  }
  return absl::OkStatus();
}

int64_t NotifyMask(absl::string_view letters) {
  int64_t mask = 0;
  for (const char letter : letters) {
    const size_t at = kNotifyLetters.find(letter);
    if (letter != 'A' && at == absl::string_view::npos) return -1;
    mask |= letter == 'A' ? kNotifyAll : int64_t{1} << at;
  }
  return mask;
}

absl::Status ReadNotifyClasses(Words words, std::string* text) {
  const int64_t mask = NotifyMask(words[0]);
  if (mask < 0) return Wrong("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  text->clear();
  const bool all = (mask & kNotifyAll) == kNotifyAll;
  if (all) text->push_back('A');
  for (const char letter : kNotifyPrintOrder) {
    const int64_t bit = int64_t{1} << kNotifyLetters.find(letter);
    if ((mask & bit) != 0 && !(all && (bit & kNotifyAll) != 0)) text->push_back(letter);
  }
  return absl::OkStatus();
}

absl::Status ReadOomScores(Words words, std::string* text) {
  text->clear();
  if (words.size() != kOomScores) return Wrong("wrong number of arguments");
  for (size_t i = 0; i < words.size(); ++i) {
    int64_t value = 0;
    if (!ParseDigits(words[i], 10, &value) || std::abs(value) > kOomScoreMax)
      return Wrong("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    absl::StrAppend(text, i == 0 ? "" : " ", value);
  }
  return absl::OkStatus();
}

absl::Status ReadReplicaOf(Words words, std::string* text) {
  if (words.size() != 2) return Wrong("wrong number of arguments");
  text->clear();
  if (absl::EqualsIgnoreCase(words[0], "no") && absl::EqualsIgnoreCase(words[1], "one"))
    return absl::OkStatus();
  int64_t port = 0;
  if (!ParseDigits(words[1], 10, &port) || port < 0 || port > 65535)
    return Wrong("Invalid master port");
  *text = absl::StrCat(words[0], " ", port);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadOption(const OptionSpec& option, Words words, absl::string_view current,
                        std::string* text) {
  if (!option.has(kManyWords) && words.size() != 1) return Wrong("wrong number of arguments");
  switch (option.type) {
    case OptionType::kBool:
      return ReadBool(words, text);
    case OptionType::kInteger:
    case OptionType::kOctal:
    case OptionType::kMemory:
    case OptionType::kMemoryOrPercent:
      return ReadNumber(option, words, text);
    case OptionType::kEnum:
      return ReadEnum(option, words, text);
    case OptionType::kWords:
      return ReadWords(option, words, text);
    case OptionType::kText:
      *text = words[0];
      return absl::OkStatus();
    case OptionType::kFileName:
      return ReadFileName(option, words, text);
    case OptionType::kDirectory:
      return ReadDirectory(words, text);
    case OptionType::kBind:
      return ReadBind(words, text);
    case OptionType::kSave:
      return ReadSave(words, text);
    case OptionType::kOutputLimits:
      return ReadOutputLimits(words, current, text);
    case OptionType::kPercentiles:
      return ReadPercentiles(words, text);
    case OptionType::kNotifyClasses:
      return ReadNotifyClasses(words, text);
    case OptionType::kOomScores:
      return ReadOomScores(words, text);
    case OptionType::kReplicaOf:
      return ReadReplicaOf(words, text);
  }
  return absl::InternalError("unknown type of option");
}

std::vector<std::string> ValueWords(const OptionSpec& option, absl::string_view value) {
  if (!option.has(kManyWords)) return {std::string(value)};
  if (value.empty())
    return option.type == OptionType::kWords ? std::vector<std::string>{}
                                             : std::vector<std::string>{""};
  return absl::StrSplit(value, ' ');
}

int64_t NumberOf(const OptionSpec& option, absl::string_view text) {
  int64_t value = 0;
  switch (option.type) {
    case OptionType::kBool:
      return text == "yes";
    case OptionType::kEnum: {
      const std::vector<absl::string_view> list = WordList(option);
      return std::find(list.begin(), list.end(), text) - list.begin();
    }
    case OptionType::kNotifyClasses:
      return NotifyMask(text);
    case OptionType::kOctal:
      return ParseDigits(text, 8, &value) ? value : 0;
    case OptionType::kInteger:
    case OptionType::kMemory:
      return ParseDigits(text, 10, &value) ? value : 0;
    default:
      return !text.empty();
  }
}

}  // namespace idemd::server

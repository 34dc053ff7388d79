// Loading: a redis.conf file with its includes, then the options of the command line, in Redis'
// order and syntax.
#include <glob.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "protocol/resp/split.h"
#include "server/admin/option.h"
#include "server/admin/settings.h"

namespace idemd::server {
namespace {

// A file that includes itself ends here.
constexpr int kIncludeDepthMax = 16;
constexpr absl::string_view kHead = "*** FATAL CONFIG FILE ERROR ***";

absl::Status Fatal(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(kHead, "\n", text));
}

bool Split(absl::string_view line, std::vector<std::string>* words) {
  std::deque<std::string> scratch;
  words->clear();
  return protocol::SplitLine(line, scratch,
                             [&](absl::string_view word) { words->emplace_back(word); });
}

// What Redis knows in a file besides options, and this version does not have. They change who may
// do what, so that going on without them would be worse than not starting.
bool IsRefusedDirective(absl::string_view name) {
  return name == "rename-command" || name == "loadmodule" || name == "sentinel";
}

// Taken without a word, as Redis does.
bool IsForgotten(absl::string_view name) {
  return name == "list-max-ziplist-entries" || name == "list-max-ziplist-value" ||
         name == "lua-replicate-commands";
}

// `--name value ...` as lines of a file; the words behind a name are quoted.
std::string CommandLineText(absl::Span<const std::string> arguments) {
  std::string text;
  bool may_begin = true;  // the last option has its value, so that "--" begins another
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool last = i + 1 == arguments.size();
    if (!may_begin || !absl::StartsWith(word, "--")) {
      absl::StrAppend(&text, Quoted(word), " ");
      may_begin = true;
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : "\n", word.substr(2), " ");
    std::vector<std::string> parts;
    may_begin = Split(word, &parts) && parts.size() != 1;
    // "--save" alone means "save nothing".
    if (absl::EqualsIgnoreCase(word, "--save") &&
        (last || absl::StartsWith(arguments[i + 1], "--"))) {
      text.append("\"\"");
      may_begin = true;
    }
  }
  return text;
}

}  // namespace

class SettingsLoader {
 public:
  explicit SettingsLoader(Settings& settings)
      : settings_(settings), asked_(Options().size()), seen_(Options().size()) {}

  // `place` says where the lines come from; empty for the main text.
  absl::Status Lines(absl::string_view text, absl::string_view place, int depth);
  absl::Status File(const std::string& path, int depth);
  std::vector<std::string> Warnings() const;

 private:
  absl::Status Line(absl::string_view line, int depth, bool* told);
  absl::Status Include(const std::string& pattern, int depth);
  absl::Status Option(size_t option, std::vector<std::string> words);

  Settings& settings_;
  std::vector<std::string> asked_;  // the canonical text that was asked for, by place in the table
  std::vector<bool> seen_;
};

absl::Status SettingsLoader::Lines(absl::string_view text, absl::string_view place, int depth) {
  int number = 0;
  for (absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    bool told = false;
    const absl::Status status = Line(line, depth, &told);
    if (status.ok()) continue;
    if (told) return status;  // an included file has said where
    return Fatal(absl::StrCat("Reading ", place, ", at line ", number, "\n>>> '", line, "'\n",
                              status.message()));
  }
  return absl::OkStatus();
}

absl::Status SettingsLoader::Line(absl::string_view line, int depth, bool* told) {
  std::vector<std::string> words;
  if (!Split(line, &words))
    return absl::InvalidArgumentError("Unbalanced quotes in configuration line");
  if (words.empty()) return absl::OkStatus();
  const std::string name = absl::AsciiStrToLower(words[0]);
  const size_t option = FindOption(name);
  if (option != kNoOption) return Option(option, {words.begin() + 1, words.end()});
  if (name == "include" && words.size() == 2) {
    *told = true;
    return Include(words[1], depth + 1);
  }
  if (name == "user" && words.size() >= 2) {
    for (const std::vector<std::string>& known : settings_.users_) {
      if (known.front() != words[1]) continue;
      return absl::InvalidArgumentError(absl::StrCat("Error in user declaration '", words[1],
          "': Duplicate user found. A user can only be defined once in config files"));
    }
    settings_.users_.emplace_back(words.begin() + 1, words.end());
    return absl::OkStatus();
  }
  if (IsForgotten(name) && words.size() == 2) return absl::OkStatus();
  if (IsRefusedDirective(name))
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not supported by this version"));
  return absl::InvalidArgumentError("Bad directive or wrong number of arguments");
}

absl::Status SettingsLoader::Option(size_t option, std::vector<std::string> words) {
  const OptionSpec& spec = *Options()[option];
  if (!spec.has(kManyWords) && words.size() != 1)
    return absl::InvalidArgumentError("wrong number of arguments");
  if (spec.has(kManyWords) && words.size() == 1 && !words[0].empty()) {
    const std::string joined = words[0];
    if (!Split(joined, &words))
      return absl::InvalidArgumentError("Unbalanced quotes in configuration line");
  }
  std::string text;
  if (absl::Status read = ReadOption(spec, words, settings_.TextOf(option), &text); !read.ok())
    return read;
  // Lines with save points add up; an empty one clears what came before.
  if (spec.type == OptionType::kSave && !text.empty() && !asked_[option].empty())
    text = absl::StrCat(asked_[option], " ", text);
  seen_[option] = true;
  asked_[option] = text;
  if (spec.effect != Effect::kDefaultOnly) settings_.Keep(option, std::move(text));
  return absl::OkStatus();
}

absl::Status SettingsLoader::Include(const std::string& pattern, int depth) {
  if (depth > kIncludeDepthMax)
    return Fatal(absl::StrCat("'", pattern, "' is included too deeply"));
  if (pattern.find_first_of("*?[") == std::string::npos) return File(pattern, depth);
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
  for (const std::string& path : paths) {
    if (absl::Status status = File(path, depth); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SettingsLoader::File(const std::string& path, int depth) {
  std::ifstream in(path);
  std::ostringstream text;
  errno = 0;
  if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf())))
    return Fatal(absl::StrCat("Can't open config file '", path,
                              "': ", std::generic_category().message(errno)));
  return Lines(
      text.str(),
      depth == 0 ? "the configuration file" : absl::StrCat("the included file '", path, "'"),
      depth);
}

std::vector<std::string> SettingsLoader::Warnings() const {
  std::vector<std::string> warnings;
  std::vector<absl::string_view> idle;
  for (size_t i = 0; i < Options().size(); ++i) {
    const OptionSpec& spec = *Options()[i];
    if (!seen_[i]) continue;
    if (spec.effect == Effect::kNone) idle.push_back(spec.name);
    if (spec.effect != Effect::kDefaultOnly && spec.effect != Effect::kPartial) continue;
    const std::string standard = DefaultText(spec);
    if (asked_[i] == standard) continue;
    warnings.push_back(absl::StrCat(
        "WARNING '", spec.name, " ", asked_[i], "' has no effect: ", spec.limit, ".",
        spec.effect == Effect::kPartial ? "" : absl::StrCat(" It stays '", standard, "'.")));
  }
  if (!idle.empty()) {
    warnings.push_back(
        absl::StrCat("WARNING these settings are known but have no effect in this version: ",
                     absl::StrJoin(idle, ", "), "."));
  }
  return warnings;
}

absl::Status Settings::Load(absl::Span<const std::string> arguments) {
  SettingsLoader loader(*this);
  if (!arguments.empty() && !absl::StartsWith(arguments[0], "-")) {
    char* const path = realpath(arguments[0].c_str(), nullptr);
    if (path == nullptr) {
      return Fatal(absl::StrCat("Can't open config file '", arguments[0],
                                "': ", std::generic_category().message(errno)));
    }
    {
      storage::MutexLock lock(mutex_);
      file_ = path;
    }
    free(path);
    if (absl::Status status = loader.File(file(), 0); !status.ok()) return status;
    arguments.remove_prefix(1);
  }
  const bool first_is_stdin = !arguments.empty() && arguments.front() == "-";
  if (first_is_stdin || (!arguments.empty() && arguments.back() == "-")) {
    const std::string text{std::istreambuf_iterator<char>(std::cin),
                           std::istreambuf_iterator<char>()};
    if (absl::Status status = loader.Lines(text, "standard input", 0); !status.ok()) return status;
    if (first_is_stdin)
      arguments.remove_prefix(1);
    else
      arguments.remove_suffix(1);
  }
  const std::string options = CommandLineText(arguments);
  if (absl::Status status = loader.Lines(options, "the command line", 0); !status.ok())
    return status;
  storage::MutexLock lock(mutex_);
  warnings_ = loader.Warnings();
  return absl::OkStatus();
}

absl::Status Settings::LoadText(absl::string_view text) {
  SettingsLoader loader(*this);
  if (absl::Status status = loader.Lines(text, "the configuration file", 0); !status.ok())
    return status;
  storage::MutexLock lock(mutex_);
  warnings_ = loader.Warnings();
  return absl::OkStatus();
}

}  // namespace idemd::server

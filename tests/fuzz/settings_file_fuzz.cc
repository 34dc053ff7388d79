// Settings of any text are taken or refused. What was taken, written by CONFIG REWRITE into a file
// of any other lines, is loaded again as the same settings and the same users, and a second rewrite
// changes nothing; every value that CONFIG GET shows is taken by CONFIG SET and stays as it is.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "protocol/resp/parser.h"
#include "server/admin/option.h"
#include "server/admin/settings.h"
#include "tests/fuzz/input.h"

using namespace idemd::server;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;

namespace {

constexpr size_t kLinesMax = 24;

// In memory where the system has such a place; one for each process.
const std::string& Path() {
  static const std::string path = [] {
    std::string folder = absl::StrCat(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir, "/idemd-fuzz-XXXXXX");
    Require(mkdtemp(folder.data()) != nullptr);
    static std::string made = folder;
    std::atexit([] {
      unlink(absl::StrCat(made, "/idemd.conf").c_str());
      rmdir(made.c_str());
    });
    return folder + "/idemd.conf";
  }();
  return path;
}

std::string ReadFile() {
  std::ifstream in(Path());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Lines that reach for other files are not for a fuzzer, nor what is no user to the server.
bool IsElsewhere(absl::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!idemd::protocol::SplitWords(line, words) || words.empty()) continue;
    const size_t option = FindOption(words[0]);
    if (absl::EqualsIgnoreCase(words[0], "include")) return true;
    // Those of whom the server would not hear, or not write so.
    const auto no_word = [](const std::string& word) {
      return word.empty() || word.find(' ') != std::string::npos;
    };
    if (absl::EqualsIgnoreCase(words[0], "user") &&
        std::any_of(words.begin() + 1, words.end(), no_word))
      return true;
    if (option != kNoOption && Options()[option]->type == OptionType::kDirectory) return true;
  }
  return false;
}

// Options by their place in the table, so that most lines are none that is refused at once.
std::string DrawnLines(Input& input) {
  std::string text;
  for (size_t line = 0; line < kLinesMax && !input.empty(); ++line) {
    const OptionSpec& option = *Options()[input.Below(Options().size())];
    const std::vector<std::string> words = absl::StrSplit(input.Text(24), '\t');
    std::string ignored;
    if (!ReadOption(option, words, DefaultText(option), &ignored).ok()) continue;
    absl::StrAppend(&text, option.name, " ",
                    absl::StrJoin(words, " ",
                                  [](std::string* out, const std::string& word) {
                                    absl::StrAppend(out, Quoted(word));
                                  }),
                    "\n");
  }
  return text;
}

std::vector<std::string> TextsOf(const Settings& settings) {
  std::vector<std::string> texts;
  for (const OptionSpec* option : Options()) texts.push_back(settings.Text(option->name));
  return texts;
}

void RequireSettable(Settings& settings) {
  for (const OptionSpec* option : Options()) {
    if (option->has(kImmutable) || option->type == OptionType::kDirectory) continue;
    const std::string text = settings.Text(option->name);
    if (text == DefaultText(*option)) continue;
    const std::pair<absl::string_view, absl::string_view> pair[] = {{option->name, text}};
    Require(settings.Set(pair, {.allow_protected = true}).ok() &&
            settings.Text(option->name) == text);
  }
}

}  // namespace

// The first byte says what the others are: text, or options and their values; the last lines are
// what the file had.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, std::min<size_t>(size, 2048));
  const bool drawn = input.Flag();
  const std::string text = drawn ? DrawnLines(input) : std::string(input.Rest());
  if (IsElsewhere(text)) return 0;
  {
    Settings settings;
    const absl::Status status = settings.LoadText(text);
    if (!status.ok()) {
      Require(absl::StrContains(status.message(), "FATAL CONFIG FILE ERROR"));
      return 0;
    }
  }
  std::ofstream(Path(), std::ios::trunc) << text;
  Settings settings;
  Require(settings.Load({Path()}).ok());
  const std::vector<std::string> texts = TextsOf(settings);
  settings.RewriteUsersFrom([&settings] {
    std::vector<std::string> lines;
    for (const std::vector<std::string>& user : settings.users())
      lines.push_back("user " + absl::StrJoin(user, " "));
    return lines;
  });
  Require(settings.Rewrite().ok());
  const std::string once = ReadFile();
  Settings again;
  Require(again.Load({Path()}).ok());
  Require(TextsOf(again) == texts && again.save_points() == settings.save_points() &&
          again.bind() == settings.bind());
  Require(again.users().size() == settings.users().size());
  Require(settings.Rewrite().ok() && ReadFile() == once);
  RequireSettable(settings);
  Require(TextsOf(settings) == texts);
  return 0;
}

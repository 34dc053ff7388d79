// The splitter of inline commands and settings lines: words without quotes are not copied.
#include "protocol/resp/split.h"

#include <utility>
#include <vector>

#include "protocol/resp/parser.h"

namespace idemd::protocol {
namespace {

// Between words, and behind a closing quote, any white space is a blank; inside a word only these
// four end it. Redis draws the same line, so that a vertical tab may stand in a word but not begin
// one.
bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool EndsWord(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads from behind an opening quote to behind the closing one. False: there is none, or no blank
// follows it.
bool ReadQuoted(absl::string_view line, size_t& at, char quote, std::string& word) {
  while (at < line.size()) {
    const char c = line[at++];
    if (c == quote) return at == line.size() || IsBlank(line[at]);
    if (c != '\\' || at == line.size()) {
      word.push_back(c);
    } else if (quote == '\'') {
      word.push_back(line[at] == '\'' ? line[at++] : c);
    } else if (line[at] == 'x' && at + 2 < line.size() && HexDigit(line[at + 1]) >= 0 &&
               HexDigit(line[at + 2]) >= 0) {
      word.push_back(static_cast<char>(HexDigit(line[at + 1]) * 16 + HexDigit(line[at + 2])));
      at += 3;
    } else {
      word.push_back(Unescape(line[at++]));
    }
  }
  return false;
}

}  // namespace

bool SplitLine(absl::string_view line, std::deque<std::string>& scratch,
               absl::FunctionRef<void(absl::string_view word)> take) {
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsBlank(line[at])) ++at;
    if (at == line.size()) return true;
    const size_t start = at;
    while (at < line.size() && !EndsWord(line[at]) && line[at] != '"' && line[at] != '\'') ++at;
    const absl::string_view plain = line.substr(start, at - start);
    if (at == line.size() || EndsWord(line[at])) {
      take(plain);
      continue;
    }
    const char quote = line[at++];
    std::string& word = scratch.emplace_back(plain);
    if (!ReadQuoted(line, at, quote, word)) return false;
    take(word);
  }
}

bool SplitWords(absl::string_view line, std::vector<std::string>& words) {
  words.clear();
  std::deque<std::string> scratch;
  if (SplitLine(line, scratch, [&](absl::string_view word) { words.emplace_back(word); }))
    return true;
  words.clear();
  return false;
}

}  // namespace idemd::protocol

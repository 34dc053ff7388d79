// A line gives the same words from the splitter and, as an inline request, from the parser, whole
// and cut; and words that are quoted anew, in each kind of quotes, are the same words again.
#include <deque>
#include <string>
#include <vector>

#include "protocol/resp/split.h"
#include "server/admin/option.h"
#include "tests/fuzz/input.h"
#include "tests/protocol/resp/feed.h"

using namespace idemd::protocol;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;

namespace {

using Words = std::vector<std::string>;

void RequireLine(const std::string& line, const Words& expected) {
  Words words;
  Require(SplitWords(line, words) && words == expected);
}

// In single quotes a backslash stands for itself, but before a quote.
std::string InSingleQuotes(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "'";
}

std::string InHex(const std::string& word) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    quoted.append({'\\', 'x', kHex[byte >> 4], kHex[byte & 15]});
  }
  return quoted + "\"";
}

void RequireSameWhenQuoted(const Words& words) {
  std::string doubles, singles, hex;
  for (const std::string& word : words) {
    doubles += " " + idemd::server::Quoted(word);
    hex += InHex(word) + "\t";
    singles += (word.find('\\') == std::string::npos ? InSingleQuotes(word) : InHex(word)) + "  ";
  }
  RequireLine(doubles, words);
  RequireLine(hex, words);
  RequireLine(singles, words);
}

// The parser says of some lines that their sender speaks another protocol; then there is nothing to
// compare.
void RequireParsed(absl::string_view line, bool balanced, const Words& words, size_t step) {
  if (line.empty() || line[0] == '*' || line.find('\n') != absl::string_view::npos) return;
  const std::string bytes = std::string(line) + "\r\nPING\n";
  const Outcome whole = ParseWhole(bytes);
  Feeder pieces;
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!pieces.Add(absl::string_view(bytes).substr(at, step))) break;
  }
  Require(pieces.outcome() == whole && pieces.spans_fit());
  if (!whole.error.empty()) {
    Require(whole.requests.empty());
    if (balanced) Require(whole.error.find("unbalanced") == std::string::npos);
    return;
  }
  Require(balanced && whole.left == 0);
  std::vector<Request> expected = {{"PING"}};
  if (!words.empty()) expected.insert(expected.begin(), words);
  Require(whole.requests == expected);
}

}  // namespace

// The first byte says how to cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t step = input.Below(17) + 1;
  const absl::string_view line = input.Rest();
  Words words;
  const bool balanced = SplitWords(line, words);
  size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size();
  Require(bytes <= line.size() && words.size() <= line.size());
  if (balanced) RequireSameWhenQuoted(words);
  RequireParsed(line, balanced, words, step);
  return 0;
}

// What is written is read again as the same values, by a reader that takes nothing but RESP: in
// RESP2 and RESP3, heads in front or put there afterwards. With a limit the buffer stays within it,
// and either it says that something was left out or the bytes are the same.
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "protocol/number.h"
#include "protocol/resp/writer.h"
#include "tests/fuzz/input.h"

using idemd::fuzz::Input;
using idemd::fuzz::Require;
using idemd::protocol::Writer;

namespace {

constexpr int kDepthMax = 4;
constexpr size_t kNone = static_cast<size_t>(-1);

// Kinds are RESP's own; 'd' in a text that is expected: it reads as this double.
struct Value {
  char kind = 0;
  std::string text;
  double number = 0;
  bool is_number = false;
  std::vector<Value> parts;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  Value Next() {
    Require(!rest_.empty());
    Value value;
    value.kind = rest_[0];
    rest_.remove_prefix(1);
    value.text = Line();
    switch (value.kind) {
      case '+':
      case '-':
      case '(':
      case ',':
        break;
      case ':': {
        int64_t n = 0;
        Require(idemd::protocol::ParseInt64(value.text, &n));
        break;
      }
      case '_':
        Require(value.text.empty());
        break;
      case '#':
        Require(value.text == "t" || value.text == "f");
        break;
      case '$':
        if (value.text == "-1") {
          value.kind = '_';
        } else {
          value.text = Bulk(Count(value.text));
        }
        break;
      case '=':
        value.text = Bulk(Count(value.text));
        Require(value.text.size() >= 4 && value.text[3] == ':');
        break;
      case '*':
        if (value.text == "-1") {
          value.kind = '_';
          break;
        }
        [[fallthrough]];
      case '~':
      case '>':
        Parts(Count(value.text), value);
        break;
      case '%':
      case '|':
        Parts(Count(value.text) * 2, value);
        break;
      default:
        Require(false);
    }
    if (value.kind == '_') value.text.clear();
    return value;
  }

 private:
  static size_t Count(absl::string_view text) {
    uint64_t n = 0;
    Require(idemd::protocol::ParseUint64(text, &n));
    return n;
  }
  std::string Line() {
    const size_t end = rest_.find_first_of("\r\n");
    Require(end != absl::string_view::npos && rest_.substr(end, 2) == "\r\n");
    const std::string line(rest_.substr(0, end));
    rest_.remove_prefix(end + 2);
    return line;
  }
  std::string Bulk(size_t bytes) {
    Require(rest_.size() >= 2 && rest_.size() - 2 >= bytes && rest_.substr(bytes, 2) == "\r\n");
    const std::string bulk(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes + 2);
    return bulk;
  }
  void Parts(size_t n, Value& value) {
    Require(n <= rest_.size());
    value.text.clear();
    for (size_t i = 0; i < n; ++i) value.parts.push_back(Next());
  }

  absl::string_view rest_;
};

bool Same(const Value& expected, const Value& read) {
  if (expected.kind != read.kind || expected.parts.size() != read.parts.size()) return false;
  if (expected.is_number) {
    double number = 0;
    if (!idemd::protocol::ParseDouble(read.text, &number) || number != expected.number)
      return false;
  } else if (expected.text != read.text) {
    return false;
  }
  for (size_t i = 0; i < expected.parts.size(); ++i) {
    if (!Same(expected.parts[i], read.parts[i])) return false;
  }
  return true;
}

std::string OneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  return line;
}

// Writes what the input says to a writer, and tells what ought to be read.
class Script {
 public:
  Script(Input input, Writer& writer)
      : input_(input), writer_(writer), resp2_(writer.resp() == 2) {}
  size_t string_bytes() const { return string_bytes_; }

  std::vector<Value> Run() {
    std::vector<Value> values;
    while (!input_.empty()) values.push_back(One(0));
    return values;
  }

 private:
  Value String(char kind, std::string text) {
    string_bytes_ += text.size();
    return {.kind = kind, .text = std::move(text)};
  }
  Value Null() { return {.kind = '_'}; }
  // Long ones are a short text again and again.
  std::string Text() {
    const absl::string_view part = input_.Text(63);
    const size_t times = input_.Below(16);
    std::string text(part);
    for (size_t i = 12; i < times; ++i) text += text;
    return text;
  }

  Value One(int depth) {
    switch (input_.Below(depth < kDepthMax ? 19 : 12)) {
      case 0: {
        const std::string text = Text();
        writer_.Simple(text);
        return {.kind = '+', .text = OneLine(text)};
      }
      case 1:
        writer_.Ok();
        return {.kind = '+', .text = "OK"};
      case 2: {
        const std::string text = Text();
        writer_.Error(text);
        return {.kind = '-', .text = OneLine(text)};
      }
      case 3: {
        const auto n = static_cast<int64_t>(input_.Number());
        writer_.Integer(n);
        return {.kind = ':', .text = std::to_string(n)};
      }
      case 4: {
        const std::string text = Text();
        writer_.Bulk(text);
        return String('$', text);
      }
      case 5:
        writer_.Null();
        return Null();
      case 6:
        writer_.NullArray();
        return Null();
      case 7:
        return Double();
      case 8: {
        const bool yes = input_.Flag();
        writer_.Boolean(yes);
        return resp2_ ? Value{.kind = ':', .text = yes ? "1" : "0"}
                      : Value{.kind = '#', .text = yes ? "t" : "f"};
      }
      case 9: {
        const std::string digits =
            std::to_string(input_.Number()) + std::to_string(input_.Number());
        writer_.BigNumber(digits);
        return resp2_ ? String('$', digits) : Value{.kind = '(', .text = digits};
      }
      case 10: {
        const std::string text = Text();
        writer_.Verbatim(text, "mkd");
        if (resp2_) return String('$', text);
        string_bytes_ += text.size();
        return {.kind = '=', .text = "mkd:" + text};
      }
      case 11: {
        const auto n = static_cast<int64_t>(input_.Number());
        writer_.BulkInteger(n);
        return String('$', std::to_string(n));
      }
      default:
        return Several(depth);
    }
  }

  Value Double() {
    const auto bits = input_.Number();
    double number = 0;
    static_assert(sizeof number == sizeof bits);
    std::memcpy(&number, &bits, sizeof number);
    if (std::isnan(number)) number = static_cast<double>(bits);
    idemd::protocol::DoubleRoom room;
    writer_.Double(number);
    if (resp2_) string_bytes_ += idemd::protocol::PrintDouble(number, room).size();
    return {.kind = resp2_ ? '$' : ',', .number = number, .is_number = true};
  }

  Value Several(int depth) {
    const size_t kind = input_.Below(8);
    const size_t n = input_.Below(5);
    const bool map = kind == 1 || kind == 5 || kind == 7;
    const size_t mark = writer_.Mark();
    Value value;
    switch (kind) {
      case 0:
        writer_.Array(n);
        break;
      case 1:
        writer_.Map(n);
        break;
      case 2:
        writer_.Set(n);
        break;
      case 3:
        writer_.Push(n);
        break;
      case 7:
        if (!resp2_) writer_.Attribute(n);
        break;
      default:
        break;
    }
    if (kind == 7 && resp2_) return One(depth + 1);  // there are none in RESP2
    for (size_t i = 0; i < (map ? n * 2 : n); ++i) value.parts.push_back(One(depth + 1));
    if (kind == 4) writer_.InsertArray(mark, n);
    if (kind == 5) writer_.InsertMap(mark, n);
    if (kind == 6) writer_.InsertSet(mark, n);
    constexpr char kKinds[] = "*%~>*%~|";
    value.kind = resp2_ ? '*' : kKinds[kind];
    return value;
  }

  Input input_;
  Writer& writer_;
  const bool resp2_;
  size_t string_bytes_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, std::min<size_t>(size, 512));
  const int resp = input.Flag() ? 3 : 2;
  const size_t limit = input.Below(4096);

  std::string whole;
  Writer writer(whole, resp);
  Script script(input, writer);
  const std::vector<Value> expected = script.Run();
  Require(!writer.cut());
  Reader reader(whole);
  for (const Value& value : expected) Require(Same(value, reader.Next()));
  Require(reader.done());

  std::string limited;
  Writer within(limited, resp);
  within.set_limit(limit);
  Script again(input, within);
  (void)again.Run();
  // What frames the strings comes on top.
  Require(limited.size() <= whole.size() &&
          limited.size() <= limit + (whole.size() - script.string_bytes()));
  Require(within.cut() ? limited.size() < whole.size() : limited == whole);
  within.set_limit(kNone);
  Require(!within.cut());
  return 0;
}

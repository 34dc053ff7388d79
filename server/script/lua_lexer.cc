// Splits Lua 5.1 into words, by its manual's rules.
#include "server/script/lua_lexer.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

using Kind = LuaToken::Kind;

constexpr std::array<absl::string_view, 21> kKeywords = {
    "and", "break", "do",  "else", "elseif", "end",    "false", "for",  "function", "if",   "in",
    "local", "nil", "not", "or",   "repeat", "return", "then",  "true", "until",    "while"};

bool IsKeyword(absl::string_view word) {
  for (absl::string_view keyword : kKeywords)
    if (word == keyword) return true;
  return false;
}

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  Lexer(absl::string_view text, LuaTokens* out) : text_(text), out_(out) {}

  bool Run() {
    if (!text_.empty() && text_[0] == '#') {  // as the compiler does: a first line for the shell
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    }
    for (;;) {
      if (!SkipBlanks()) return false;
      if (at_ == text_.size()) break;
      if (!Token()) return false;
    }
    Add(Kind::kEnd, at_, {});
    return true;
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Add(Kind kind, size_t begin, absl::string_view text) {
    out_->tokens.push_back({kind, text, line_of_token_, begin, at_});
  }

  bool SkipBlanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '-' && Peek(1) == '-') {
        at_ += 2;
        const size_t level = LongLevel();
        if (level != kNoLevel) {
          std::string ignored;
          if (!LongText(level, &ignored)) return false;
        } else {
          while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        }
      } else {
        break;
      }
    }
    line_of_token_ = line_;
    return true;
  }

  bool Token() {
    const size_t begin = at_;
    const char c = text_[at_];
    if (IsNameStart(c)) {
      while (IsNamePart(Peek())) ++at_;
      const absl::string_view word = text_.substr(begin, at_ - begin);
      Add(IsKeyword(word) ? Kind::kKeyword : Kind::kName, begin, word);
      return true;
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number(begin);
    if (c == '"' || c == '\'') return Quoted(begin, c);
    if (c == '[') {
      const size_t level = LongLevel();
      if (level != kNoLevel) {
        std::string& said = out_->decoded.emplace_back();
        if (!LongText(level, &said)) return false;
        Add(Kind::kString, begin, said);
        return true;
      }
    }
    for (absl::string_view op : {"...", "..", "==", "~=", "<=", ">="}) {
      if (text_.substr(at_, op.size()) != op) continue;
      at_ += op.size();
      Add(Kind::kOperator, begin, text_.substr(begin, op.size()));
      return true;
    }
    if (absl::string_view("+-*/%^#<>=(){}[];:,.").find(c) == absl::string_view::npos) return false;
    ++at_;
    Add(Kind::kOperator, begin, text_.substr(begin, 1));
    return true;
  }

  // As the compiler takes them: all that could belong to a number does, whether or not it then is one.
  bool Number(size_t begin) {
    while (IsDigit(Peek()) || Peek() == '.') ++at_;
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
    }
    while (IsNamePart(Peek())) ++at_;
    Add(Kind::kNumber, begin, text_.substr(begin, at_ - begin));
    return true;
  }

  bool Quoted(size_t begin, char quote) {
    ++at_;
    const size_t from = at_;
    bool escapes = false;
    while (Peek() != quote) {
      if (at_ >= text_.size() || text_[at_] == '\n') return false;
      if (text_[at_] == '\\') {
        escapes = true;
        ++at_;
        if (Peek() == '\n') ++line_;
      }
      ++at_;
    }
    const absl::string_view inside = text_.substr(from, at_ - from);
    ++at_;
    if (!escapes) {
      Add(Kind::kString, begin, inside);
      return true;
    }
    std::string& said = out_->decoded.emplace_back();
    if (!Unescape(inside, &said)) return false;
    Add(Kind::kString, begin, said);
    return true;
  }

  static bool Unescape(absl::string_view inside, std::string* said) {
    for (size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] != '\\') {
        *said += inside[i];
        continue;
      }
      if (++i == inside.size()) return false;
      constexpr absl::string_view kLetters = "abfnrtv";
      constexpr absl::string_view kMeanings = "\a\b\f\n\r\t\v";
      if (const size_t letter = kLetters.find(inside[i]); letter != absl::string_view::npos) {
        *said += kMeanings[letter];
      } else if (IsDigit(inside[i])) {
        int value = 0;
        size_t digits = 0;
        for (; digits < 3 && i < inside.size() && IsDigit(inside[i]); ++digits, ++i) value = value * 10 + inside[i] - '0';
        --i;
        if (value > 255) return false;
        *said += static_cast<char>(value);
      } else {
        *said += inside[i];
      }
    }
    return true;
  }

  static constexpr size_t kNoLevel = static_cast<size_t>(-1);
  // Of "[[", "[=[", ... at this place; the place stays.
  size_t LongLevel() const {
    if (Peek() != '[') return kNoLevel;
    size_t level = 0;
    while (Peek(1 + level) == '=') ++level;
    return Peek(1 + level) == '[' ? level : kNoLevel;
  }
  bool LongText(size_t level, std::string* said) {
    at_ += level + 2;
    if (Peek() == '\r' && Peek(1) == '\n') ++at_;
    if (Peek() == '\n') {
      ++line_;
      ++at_;
    }
    const std::string close = absl::StrCat("]", std::string(level, '='), "]");
    const size_t end = text_.find(close, at_);
    if (end == absl::string_view::npos) return false;
    for (char c : text_.substr(at_, end - at_)) line_ += c == '\n' ? 1 : 0;
    said->assign(text_.data() + at_, end - at_);
    at_ = end + close.size();
    return true;
  }

  const absl::string_view text_;
  LuaTokens* const out_;
  size_t at_ = 0;
  int line_ = 1;
  int line_of_token_ = 1;
};

bool IsNumberOfLuaJitOnly(absl::string_view text) {
  const char last = absl::ascii_tolower(static_cast<unsigned char>(text.back()));
  if (last == 'l' || last == 'i') return true;
  return text.size() > 1 && text[0] == '0' && absl::ascii_tolower(static_cast<unsigned char>(text[1])) == 'b';
}

// What is written into a text for LuaJIT: where statements return, where functions begin.
class Changes {
 public:
  Changes(const std::vector<LuaToken>& tokens, bool one_value) : tokens_(tokens), one_value_(one_value) {}

  struct Change {
    size_t at;
    absl::string_view text;
  };
  std::vector<Change> Find() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].Is("return")) Note(i);
      if (tokens_[i].Is("function")) NoteFunction(i);
      Count(tokens_[i]);
    }
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    return std::move(changes_);
  }

 private:
  // Keeps track of the function that a token is in: `blocks_` has one letter for each block around it.
  void Count(const LuaToken& token) {
    if (token.Is("function")) blocks_ += 'f';
    else if (token.Is("do") || token.Is("if") || token.Is("repeat")) blocks_ += 'b';
    else if ((token.Is("end") || token.Is("until")) && !blocks_.empty()) blocks_.pop_back();
  }

  // The first token behind what is returned.
  size_t End(size_t i) const {
    int depth = 0;
    for (; tokens_[i].kind != Kind::kEnd; ++i) {
      const LuaToken& token = tokens_[i];
      if (token.Is("(") || token.Is("[") || token.Is("{") || token.Is("function") || token.Is("do") || token.Is("if") ||
          token.Is("repeat")) {
        ++depth;
      } else if (token.Is(")") || token.Is("]") || token.Is("}")) {
        --depth;
      } else if (token.Is("end") || token.Is("until")) {
        if (depth-- == 0) break;
      } else if (depth == 0 && (token.Is(";") || token.Is("else") || token.Is("elseif"))) {
        break;
      }
    }
    return i;
  }

  // Lua 5.1 gives a function with "..." a local `arg`, if it asks for that.
  void NoteFunction(size_t i) {
    while (!tokens_[i].Is(")") && tokens_[i].kind != Kind::kEnd) ++i;
    if (!tokens_[i - 1].Is("...")) return;
    const size_t end = End(i + 1);
    for (size_t inside = i + 1; inside < end; ++inside)
      if (tokens_[inside].IsName("arg") && !tokens_[inside - 1].Is("."))
        return changes_.push_back({tokens_[i].end, " local arg={n=select('#',...),...} "});
  }

  void Note(size_t i) {
    const size_t end = End(i + 1);
    if (end == i + 1) return;
    const LuaToken& last = tokens_[end - 1];
    const bool may_be_call = last.Is(")") || last.Is("}") || (last.kind == Kind::kString && end > i + 2);
    if (!may_be_call) return;
    if (one_value_ && blocks_.find('f') == std::string::npos) {
      // A second value, which nobody takes.
      changes_.push_back({tokens_[end - 1].end, ",nil"});
    } else if (tokens_[i + 1].IsName("redis") && tokens_[i + 2].Is(".") && tokens_[i + 4].Is("(") &&
               End(i + 5) >= end && IsOneCall(i + 4, end)) {
      // Functions of `redis` return one value.
      changes_.push_back({tokens_[i + 1].begin, "("});
      changes_.push_back({tokens_[end - 1].end, ")"});
    }
  }

  // Whether the bracket at `open` is closed by the last token before `end`.
  bool IsOneCall(size_t open, size_t end) const {
    int depth = 0;
    for (size_t i = open; i < end; ++i) {
      if (tokens_[i].Is("(")) ++depth;
      if (tokens_[i].Is(")") && --depth == 0) return i + 1 == end;
    }
    return false;
  }

  const std::vector<LuaToken>& tokens_;
  const bool one_value_;
  std::string blocks_;
  std::vector<Change> changes_;
};

}  // namespace

bool Tokenize(absl::string_view text, LuaTokens* out) {
  out->tokens.clear();
  out->decoded.clear();
  return Lexer(text, out).Run();
}

bool AsLua51(absl::string_view text, const LuaTokens& tokens, bool one_value, std::string* out, std::string* error) {
  out->clear();
  std::vector<Changes::Change> changes = Changes(tokens.tokens, one_value).Find();
  size_t next_change = 0;
  size_t copied = 0;
  const auto copy_until = [&](size_t at) {
    for (; next_change < changes.size() && changes[next_change].at <= at; ++next_change) {
      const Changes::Change& change = changes[next_change];
      out->append(text.data() + copied, change.at - copied);
      out->append(change.text.data(), change.text.size());
      copied = change.at;
    }
    out->append(text.data() + copied, at - copied);
    copied = at;
  };
  for (const LuaToken& token : tokens.tokens) {
    if (token.kind == Kind::kNumber && IsNumberOfLuaJitOnly(token.text)) {
      *error = absl::StrCat(token.line, ": malformed number near '", token.text, "'");
      return false;
    }
    if (token.kind != Kind::kString || text[token.begin] == '[') continue;
    for (size_t i = token.begin; i + 1 < token.end; ++i) {
      if (text[i] != '\\') continue;
      const char next = text[i + 1];
      if (next == 'x' || next == 'z' || next == 'u') {
        copy_until(i);
        copied = i + 1;
      }
      ++i;
    }
  }
  copy_until(text.size());
  return true;
}

}  // namespace idemd::server

// The request parser: one pass over the bytes, with the place kept when they end early.
//
// A request that is there in whole, and has nothing unusual about it, takes one straight run (ReadWhole). All others, from their
// first byte on: words go straight into the batch; when bytes run out, what
// was read of the request moves into partial_ as offsets, further words are added there, and all
// become views once the last one has arrived: a request of many words is never walked again from
// its start.
#include "protocol/resp/parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "protocol/number.h"
#include "protocol/resp/split.h"

namespace idemd::protocol {
namespace {

constexpr int64_t kUnauthenticatedWords = 10;
constexpr int64_t kUnauthenticatedBulkBytes = 16384;
// The longest number that the fast path reads.
constexpr ptrdiff_t kFastDigits = 9;
// A long request may leave this much room for offsets behind; more is given back.
constexpr size_t kPartialKeep = 1024;

// The number whose digits begin at *at, and steps behind its line; -1, with *at anywhere, when it is not one that everybody
// writes, or the line is not there in whole. `end` lies behind the last byte.
int64_t OtherNumber(const char** at, const char* end) {
  const char* p = *at;
  const ptrdiff_t room = end - p;
  if (room < 3 || *p < '0' || *p > '9') return -1;
  int64_t number = *p++ - '0';
  if (number != 0) {
    const char* const stop = p + std::min(room - 3, kFastDigits - 1);
    while (p < stop && *p >= '0' && *p <= '9') number = number * 10 + (*p++ - '0');
  }
  if (*p != '\r') return -1;
  *at = p + 2;
  return number;
}

// Most have a digit or two.
inline int64_t FastNumber(const char** at, const char* end) {
  const char* const p = *at;
  if (end - p < 4) return OtherNumber(at, end);
  const auto digit = [p](int i) { return static_cast<unsigned>(static_cast<unsigned char>(p[i])) - '0'; };
  const unsigned first = digit(0), second = digit(1);
  if (first > 9) return -1;
  if (p[1] == '\r') {
    *at = p + 3;
    return first;
  }
  if (second > 9 || first == 0) return -1;
  if (p[2] != '\r') return OtherNumber(at, end);
  *at = p + 4;
  return first * 10 + second;
}

// Neither printable ASCII nor white space.
bool IsForeign(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' ? byte < '\t' || byte > '\r' : byte >= 0x7f;
}

}  // namespace

enum class Parser::Step : uint8_t { kDone, kMore, kError };
enum class Parser::Line : uint8_t { kNumber, kNotANumber, kMore, kTooLong };

Parser::Step Parser::Fail(absl::string_view text) {
  error_ = absl::StrCat("ERR Protocol error: ", text);
  return Step::kError;
}

Parser::Step Parser::FailForeign(char byte) {
  foreign_ = true;
  return Fail(absl::StrFormat("expected '*' or a command, got the byte 0x%02x", static_cast<unsigned char>(byte)));
}

void Parser::Restart() {
  position_ = 0;
  scanned_ = 0;
  words_left_ = -1;
  bulk_bytes_ = -1;
  partial_.clear();
  if (partial_.capacity() > kPartialKeep) partial_.shrink_to_fit();
}

ParseStatus Parser::Parse(absl::string_view buffer, const ParserLimits& limits, size_t max_requests,
                          Batch& batch) {
  consumed_ = 0;
  bytes_wanted_ = 0;
  scratch_.clear();
  if (limits.unauthenticated) max_requests = std::min(max_requests, batch.requests.size() + 1);
  while (consumed_ < buffer.size()) {
    if (batch.requests.size() >= max_requests) return ParseStatus::kFull;
    const absl::string_view rest = buffer.substr(consumed_);
    const size_t first = batch.words.size();
    if (position_ == 0 && scanned_ == 0 && rest[0] == '*' && ReadWhole(rest, limits, batch)) {
      const RequestSpan span{.first = static_cast<uint32_t>(first),
                             .count = static_cast<uint32_t>(batch.words.size() - first),
                             .bytes = position_,
                             .end = consumed_ + position_};
      batch.requests.push_back(span);
      consumed_ += std::exchange(position_, 0);
      continue;
    }
    const Step step =
        rest[0] == '*' ? ReadRequest(rest, limits, batch) : ReadInline(rest, limits, batch);
    if (step == Step::kMore) return ParseStatus::kNeedMore;
    if (step == Step::kError) return ParseStatus::kError;
    const size_t count = batch.words.size() - first;
    if (count > 0) {
      batch.requests.push_back({.first = static_cast<uint32_t>(first),
                                .count = static_cast<uint32_t>(count),
                                .bytes = position_,
                                .end = consumed_ + position_});
    }
    consumed_ += position_;
    Restart();
  }
  return ParseStatus::kNeedMore;
}

// False: nothing is changed, and whatever is unusual about the request is for the others to find out.
[[gnu::always_inline]] inline bool Parser::ReadWhole(absl::string_view rest, const ParserLimits& limits, Batch& batch) {
  constexpr int64_t kWordsFast = 32;
  const char* at = rest.data() + 1;
  const char* const end = rest.data() + rest.size();
  const int64_t count = FastNumber(&at, end);
  if (count <= 0 || count > kWordsFast || limits.unauthenticated) return false;
  const size_t first = batch.words.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t size = -1;
    if (at < end && *at == '$') size = FastNumber(&++at, end);
    if (size < 0 || size > limits.bulk_bytes_max || end - at < size + 2) {
      batch.words.resize(first);
      return false;
    }
    const absl::string_view word(at, static_cast<size_t>(size));
    batch.words.push_back(word);
    at += size + 2;
  }
  position_ = static_cast<size_t>(at - rest.data());
  return true;
}

// Reads the digits up to "\r\n" behind the kind byte at position_, and steps over the line. As in
// Redis the byte after
// '\r' is not looked at, it must only be there.
Parser::Line Parser::ReadNumberLine(absl::string_view rest, const ParserLimits& limits,
                                    int64_t* value) {
  const char* const begin = rest.data() + position_;
  const char* const end = rest.data() + rest.size();
  const char* const from = rest.data() + std::max(position_, scanned_);
  const auto* line_end =
      static_cast<const char*>(std::memchr(from, '\r', static_cast<size_t>(end - from)));
  const ptrdiff_t length = (line_end == nullptr ? end : line_end) - begin;
  if (length > limits.inline_bytes_max) return Line::kTooLong;
  if (line_end == nullptr || end - line_end < 2) {
    scanned_ = static_cast<size_t>((line_end == nullptr ? end : line_end) - rest.data());
    return Line::kMore;
  }
  const absl::string_view digits(begin + 1,
                                 static_cast<size_t>(std::max<ptrdiff_t>(length - 1, 0)));
  position_ = static_cast<size_t>(line_end + 2 - rest.data());
  return ParseInt64(digits, value) ? Line::kNumber : Line::kNotANumber;
}

// "*n": sets words_left_, 0 for a request without words.
Parser::Step Parser::ReadCount(absl::string_view rest, const ParserLimits& limits) {
  int64_t count = 0;
  switch (ReadNumberLine(rest, limits, &count)) {
    case Line::kMore:
      return Step::kMore;
    case Line::kTooLong:
      return Fail("too big mbulk count string");
    case Line::kNotANumber:
      return Fail("invalid multibulk length");
    case Line::kNumber:
      break;
  }
  if (count > limits.words_max) return Fail("invalid multibulk length");
  if (count > kUnauthenticatedWords && limits.unauthenticated)
    return Fail("unauthenticated multibulk length");
  words_left_ = std::max<int64_t>(count, 0);
  return Step::kDone;
}

// "$n": sets bulk_bytes_.
Parser::Step Parser::ReadBulkHeader(absl::string_view rest, const ParserLimits& limits) {
  if (position_ >= rest.size()) return Step::kMore;
  const char kind = rest[position_];
  int64_t bytes = 0;
  const Line line = ReadNumberLine(rest, limits, &bytes);
  if (line == Line::kMore) return Step::kMore;
  if (line == Line::kTooLong) return Fail("too big bulk count string");
  if (kind != '$') {
    // The text is one line whoever sends it.
    const char shown = kind == '\r' || kind == '\n' ? ' ' : kind;
    return Fail(absl::StrCat("expected '$', got '", absl::string_view(&shown, 1), "'"));
  }
  if (line == Line::kNotANumber || bytes < 0 || bytes > limits.bulk_bytes_max)
    return Fail("invalid bulk length");
  if (bytes > kUnauthenticatedBulkBytes && limits.unauthenticated)
    return Fail("unauthenticated bulk length");
  bulk_bytes_ = bytes;
  return Step::kDone;
}

template <class Take>
Parser::Step Parser::ReadWords(absl::string_view rest, const ParserLimits& limits, Take take) {
  while (words_left_ > 0) {
    if (bulk_bytes_ < 0) {
      const Step step = ReadBulkHeader(rest, limits);
      if (step != Step::kDone) return step;
    }
    const auto size = static_cast<size_t>(bulk_bytes_);
    if (rest.size() - std::min(position_, rest.size()) < size + 2) {
      bytes_wanted_ = position_ + size + 2;
      return Step::kMore;
    }
    take(Place{position_, size});
    position_ += size + 2;
    bulk_bytes_ = -1;
    --words_left_;
  }
  return Step::kDone;
}

Parser::Step Parser::ReadRequest(absl::string_view rest, const ParserLimits& limits, Batch& batch) {
  if (words_left_ < 0) {
    const Step step = ReadCount(rest, limits);
    if (step != Step::kDone) return step;
  }
  const size_t first = batch.words.size();
  if (partial_.empty()) {
    const Step step = ReadWords(rest, limits, [&](Place word) {
      batch.words.push_back(rest.substr(word.offset, word.size));
    });
    if (step == Step::kDone) return step;
    for (size_t i = first; i < batch.words.size(); ++i) {
      const absl::string_view word = batch.words[i];
      partial_.push_back({static_cast<size_t>(word.data() - rest.data()), word.size()});
    }
    batch.words.resize(first);
    return step;
  }
  const Step step = ReadWords(rest, limits, [&](Place word) { partial_.push_back(word); });
  if (step != Step::kDone) return step;
  batch.words.reserve(first + partial_.size());
  for (const Place& word : partial_) batch.words.push_back(rest.substr(word.offset, word.size));
  return Step::kDone;
}

Parser::Step Parser::ReadInline(absl::string_view rest, const ParserLimits& limits, Batch& batch) {
  if (IsForeign(rest[0])) return FailForeign(rest[0]);
  const auto* line_end =
      static_cast<const char*>(std::memchr(rest.data() + scanned_, '\n', rest.size() - scanned_));
  const size_t length =
      line_end == nullptr ? rest.size() : static_cast<size_t>(line_end - rest.data());
  if (length > static_cast<size_t>(limits.inline_bytes_max)) return Fail("too big inline request");
  if (line_end == nullptr) {
    scanned_ = rest.size();
    return Step::kMore;
  }
  absl::string_view line = rest.substr(0, length);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const size_t at = line.find_first_not_of(" \t\n\v\f\r"); at != absl::string_view::npos && IsForeign(line[at]))
    return FailForeign(line[at]);
  const size_t first = batch.words.size();
  if (!SplitLine(line, scratch_, [&](absl::string_view word) { batch.words.push_back(word); })) {
    batch.words.resize(first);
    return Fail("unbalanced quotes in request");
  }
  position_ = length + 1;
  return Step::kDone;
}

}  // namespace idemd::protocol

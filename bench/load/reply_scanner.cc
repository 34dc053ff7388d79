// The lines of both protocols: what each says about what follows it.
#include "bench/load/reply_scanner.h"

#include "absl/strings/match.h"
#include "protocol/number.h"

namespace idemd::bench {
namespace {

constexpr int64_t kLongest = int64_t{1} << 40;  // more than any server sends is no length

}  // namespace

bool ReplyScanner::TakeLine(absl::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) {
    broken_ = true;
    return false;
  }
  return dialect_ == Dialect::kResp ? TakeRespLine(line) : TakeMemcachedLine(line);
}

bool ReplyScanner::TakeRespLine(absl::string_view line) {
  const char type = line[0];
  line.remove_prefix(1);
  switch (type) {
    case '-':
      error_ = true;
      return EndScalar(line);
    case '+':
    case ':':
    case ',':
    case '#':
    case '(':
      return EndScalar(line);
    case '_':
      return EndScalar("nil");
    case '!':
      error_ = true;
      [[fallthrough]];
    case '$':
    case '=': {
      int64_t size = 0;
      if (!protocol::ParseInt64(line, &size) || size < -1 || size > kLongest) break;
      if (size == -1) return EndScalar("nil");
      bulk_left_ = static_cast<size_t>(size) + 2;
      return false;
    }
    case '*':
    case '~':
      return BeginAggregate(line, 1);
    case '%':
      return BeginAggregate(line, 2);
    default:
      break;
  }
  broken_ = true;
  return false;
}

bool ReplyScanner::TakeMemcachedLine(absl::string_view line) {
  constexpr struct {
    absl::string_view said, as;
  } kWords[] = {
      {"STORED", "OK"}, {"NOT_STORED", "nil"}, {"DELETED", "1"}, {"NOT_FOUND", "0"}, {"OK", "OK"}};
  for (const auto& word : kWords) {
    if (line == word.said) return EndScalar(word.as);
  }
  if (line == "END") return scalars_ == 0 ? EndScalar("nil") : EndElement();
  if (absl::StartsWith(line, "VALUE ")) {  // VALUE key flags bytes
    int64_t size = 0;
    if (protocol::ParseInt64(line.substr(line.rfind(' ') + 1), &size) && size >= 0 &&
        size <= kLongest) {
      ++elements_left_;  // its END
      bulk_left_ = static_cast<size_t>(size) + 2;
      return false;
    }
  }
  if (absl::StartsWith(line, "VERSION ")) return EndScalar(line);
  if (line == "ERROR" || absl::StartsWith(line, "CLIENT_ERROR ") ||
      absl::StartsWith(line, "SERVER_ERROR ")) {
    error_ = true;
    return EndScalar(line);
  }
  broken_ = true;
  return false;
}

bool ReplyScanner::BeginAggregate(absl::string_view count, uint64_t elements_each) {
  int64_t n = 0;
  if (!protocol::ParseInt64(count, &n) || n < -1 || n > kLongest) {
    broken_ = true;
    return false;
  }
  if (n == -1) return EndScalar("nil");
  elements_left_ += static_cast<uint64_t>(n) * elements_each;
  return --elements_left_ == 0;
}

void ReplyScanner::KeepLine(const char* data, size_t size) {
  const size_t n = std::min(size, sizeof(line_) - line_size_);
  std::memcpy(line_ + line_size_, data, n);
  line_size_ += n;
}

}  // namespace idemd::bench

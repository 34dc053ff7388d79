// The lines of RESP: what each type says about what follows it.
#include "bench/load/reply_scanner.h"

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

// The reply writer: each value is put together on the stack where it is short, so that it costs one
// append.
#include "protocol/resp/writer.h"

#include <array>
#include <bit>
#include <cstring>

#include "protocol/number.h"

namespace idemd::protocol {
namespace {

constexpr size_t kDigitsMax = 20;                    // of a uint64
constexpr size_t kHeadMax = 1 + 1 + kDigitsMax + 2;  // kind, sign, digits, line end
// A bulk up to this size is copied twice (stack, then output) rather than appended in three pieces.
constexpr size_t kShortBulk = 232;

static_assert(std::endian::native == std::endian::little, "a number's first digit is the lowest byte of a word");

constexpr uint64_t kTenToThe8 = 100'000'000;

// The eight decimal digits of `n` below 10^8, a byte each, the first one lowest: halves, quarters and single digits are divided
// side by side in one word (Hacker's Delight, 2nd ed., 10-16: division by constants; the multipliers are exact in these ranges).
uint64_t EightDigits(uint64_t n) {
  const uint64_t fours = n / 10'000 | n % 10'000 << 32;
  const uint64_t hundreds = (fours * 5243 >> 19) & 0x7f'0000'007f;  // below 10^4: / 100
  const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (twos * 103 >> 10) & 0x000f'000f'000f'000f;  // below 100: / 10
  return tens | (twos - 10 * tens) << 8;
}
constexpr uint64_t kZeros = 0x3030'3030'3030'3030;

char* PutEightDigits(char* to, uint64_t n) {
  const uint64_t digits = EightDigits(n) | kZeros;
  std::memcpy(to, &digits, sizeof digits);
  return to + sizeof digits;
}

// Puts the decimal digits of `n` at `to`, where there is room for kDigitsMax, returns the end.
char* PutDigits(char* to, uint64_t n) {
  if (n < 10) {
    *to = static_cast<char>('0' + n);
    return to + 1;
  }
  if (n >= kTenToThe8) {
    char* const rest = PutDigits(to, n / kTenToThe8);
    return PutEightDigits(rest, n % kTenToThe8);
  }
  uint64_t digits = EightDigits(n);
  const int zeros = std::countr_zero(digits) / 8;  // in front, which nobody writes
  digits = (digits | kZeros) >> (8 * zeros);
  std::memcpy(to, &digits, sizeof digits);
  return to + sizeof digits - zeros;
}

char* PutSigned(char* to, int64_t n) {
  if (n >= 0) return PutDigits(to, static_cast<uint64_t>(n));
  *to = '-';
  return PutDigits(to + 1, ~static_cast<uint64_t>(n) + 1);
}

char* PutLineEnd(char* to) {
  to[0] = '\r';
  to[1] = '\n';
  return to + 2;
}

size_t PutHead(char* to, char kind, uint64_t n) {
  *to = kind;
  return static_cast<size_t>(PutLineEnd(PutDigits(to + 1, n)) - to);
}

// A line must stay one line, whatever a client's word brought into it.
void AppendLine(std::string& out, char kind, absl::string_view text) {
  out.push_back(kind);
  const size_t start = out.size();
  out.append(text.data(), text.size());
  for (size_t i = start; i < out.size(); ++i) {
    if (out[i] == '\r' || out[i] == '\n') out[i] = ' ';
  }
  out.append("\r\n", 2);
}

}  // namespace

void Writer::Head(char kind, uint64_t n) {
  char head[kHeadMax];
  out_->append(head, PutHead(head, kind, n));
}

void Writer::Simple(absl::string_view text) { AppendLine(*out_, '+', text); }

void Writer::Error(absl::string_view text) { AppendLine(*out_, '-', text); }

void Writer::Integer(int64_t value) {
  char line[kHeadMax];
  line[0] = ':';
  out_->append(line, static_cast<size_t>(PutLineEnd(PutSigned(line + 1, value)) - line));
}

void Writer::ReadyAndIntegers(absl::string_view ready, std::initializer_list<int64_t> integers) {
  char piece[kReadyBytesMax + kIntegersMax * kHeadMax];
  std::memcpy(piece, ready.data(), ready.size());
  char* at = piece + ready.size();
  for (const int64_t value : integers) {
    *at = ':';
    at = PutLineEnd(PutSigned(at + 1, value));
  }
  out_->append(piece, static_cast<size_t>(at - piece));
}

void Writer::Bulk(absl::string_view bytes) {
  // Where the buffer already ends beyond it, other values have put it there.
  if (out_->size() + bytes.size() > limit_) [[unlikely]] {
    cut_ = true;
    return;
  }
  char whole[kHeadMax + kShortBulk + 2];
  const size_t head = PutHead(whole, '$', bytes.size());
  if (bytes.size() <= kShortBulk) {
    if (!bytes.empty()) std::memcpy(whole + head, bytes.data(), bytes.size());
    PutLineEnd(whole + head + bytes.size());
    out_->append(whole, head + bytes.size() + 2);
    return;
  }
  out_->append(whole, head);
  out_->append(bytes.data(), bytes.size());
  out_->append("\r\n", 2);
}

void Writer::BulkInteger(int64_t value) {
  char digits[kDigitsMax + 1];
  Bulk(absl::string_view(digits, static_cast<size_t>(PutSigned(digits, value) - digits)));
}

void Writer::Null() {
  if (resp_ == 2) {
    out_->append("$-1\r\n", 5);
  } else {
    out_->append("_\r\n", 3);
  }
}

void Writer::NullArray() {
  if (resp_ == 2) {
    out_->append("*-1\r\n", 5);
  } else {
    out_->append("_\r\n", 3);
  }
}

void Writer::Array(size_t elements) { Head('*', elements); }

void Writer::Map(size_t pairs) {
  if (resp_ == 2) {
    Head('*', pairs * 2);
  } else {
    Head('%', pairs);
  }
}

void Writer::Set(size_t elements) { Head(resp_ == 2 ? '*' : '~', elements); }

void Writer::Push(size_t elements) { Head(resp_ == 2 ? '*' : '>', elements); }

void Writer::Attribute(size_t pairs) { Head('|', pairs); }

void Writer::Double(double value) {
  DoubleRoom room;
  Double(PrintDouble(value, room));
}

void Writer::Double(absl::string_view digits) {
  if (resp_ == 2) return Bulk(digits);
  out_->push_back(',');
  out_->append(digits.data(), digits.size());
  out_->append("\r\n", 2);
}

void Writer::Boolean(bool value) {
  if (resp_ == 2) return Integer(value ? 1 : 0);
  out_->append(value ? "#t\r\n" : "#f\r\n", 4);
}

void Writer::BigNumber(absl::string_view digits) {
  if (resp_ == 2) return Bulk(digits);
  AppendLine(*out_, '(', digits);
}

void Writer::Verbatim(absl::string_view text, absl::string_view format) {
  if (resp_ == 2 || out_->size() + text.size() > limit_) return Bulk(text);
  Head('=', text.size() + 4);
  // The format is always three characters; a shorter name is padded as Redis does.
  for (size_t i = 0; i < 3; ++i) out_->push_back(i < format.size() ? format[i] : ' ');
  out_->push_back(':');
  out_->append(text.data(), text.size());
  out_->append("\r\n", 2);
}

void Writer::InsertHead(size_t mark, char kind, uint64_t n) {
  char head[kHeadMax];
  const size_t size = PutHead(head, kind, n);
  out_->insert(mark, head, size);
}

void Writer::InsertArray(size_t mark, size_t elements) { InsertHead(mark, '*', elements); }

void Writer::InsertMap(size_t mark, size_t pairs) {
  if (resp_ == 2) {
    InsertHead(mark, '*', pairs * 2);
  } else {
    InsertHead(mark, '%', pairs);
  }
}

void Writer::InsertSet(size_t mark, size_t elements) {
  InsertHead(mark, resp_ == 2 ? '*' : '~', elements);
}

}  // namespace idemd::protocol

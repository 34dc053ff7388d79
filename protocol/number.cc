// Reading and printing numbers, as strict as Redis and without locale or exceptions.
#include "protocol/number.h"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"

namespace idemd::protocol {
namespace {

// Redis' MAX_LONG_DOUBLE_CHARS: what the longest long double needs in fixed notation.
constexpr size_t kLongDoubleChars = 5 * 1024;
// A double longer than this goes through the heap to get its terminating zero.
constexpr size_t kDoubleChars = 128;
// %g changes to an exponent from here on, with the 17 digits that Redis prints.
constexpr int kFixedExponentMax = 16;
constexpr int kFixedExponentMin = -4;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits that do not begin with 0, unless 0 is all.
bool ParseDigits(absl::string_view text, uint64_t* value) {
  if (text.empty() || !IsDigit(text[0]) || (text[0] == '0' && text.size() > 1)) return false;
  uint64_t number = 0;
  constexpr size_t kNeverTooLarge = 19;  // digits
  if (text.size() <= kNeverTooLarge) {
    for (const char c : text) {
      const auto digit = static_cast<unsigned>(c) - '0';
      if (digit > 9) return false;
      number = number * 10 + digit;
    }
    *value = number;
    return true;
  }
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (number > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
    number = number * 10 + digit;
  }
  *value = number;
  return true;
}

// strtod and strtold say what they think in the same three ways.
template <class Float>
bool Accept(const char* text, size_t size, const char* end, Float value) {
  if (static_cast<size_t>(end - text) != size || std::isnan(value)) return false;
  return errno != ERANGE || !(std::isinf(value) || std::fpclassify(value) == FP_ZERO);
}

bool BeginsBlank(absl::string_view text) {
  return std::isspace(static_cast<unsigned char>(text[0])) != 0;
}

}  // namespace

bool ParseInt64(absl::string_view text, int64_t* value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t magnitude = 0;
  if (!text.empty() && text[0] == '-') {
    if (!ParseDigits(text.substr(1), &magnitude) || magnitude == 0 || magnitude > kMax + 1)
      return false;
    *value = static_cast<int64_t>(~magnitude + 1);
    return true;
  }
  if (!ParseDigits(text, &magnitude) || magnitude > kMax) return false;
  *value = static_cast<int64_t>(magnitude);
  return true;
}

bool ParseUint64(absl::string_view text, uint64_t* value) { return ParseDigits(text, value); }

bool ParseDouble(absl::string_view text, double* value) {
  if (text.empty() || BeginsBlank(text)) return false;
  // What the faster reader takes whole, strtod() takes with the same result; it also takes signs, hexadecimal and more.
  double read = 0;
  const std::from_chars_result fast = std::from_chars(text.data(), text.data() + text.size(), read);
  if (fast.ec == std::errc() && fast.ptr == text.data() + text.size()) {
    if (std::isnan(read)) return false;
    *value = read;
    return true;
  }
  char local[kDoubleChars];
  std::string heap;
  const char* zero_ended = local;
  if (text.size() < sizeof(local)) {
    std::memcpy(local, text.data(), text.size());
    local[text.size()] = '\0';
  } else {
    heap.assign(text.data(), text.size());
    zero_ended = heap.c_str();
  }
  errno = 0;
  char* end = nullptr;
  const double number = std::strtod(zero_ended, &end);
  if (!Accept(zero_ended, text.size(), end, number)) return false;
  *value = number;
  return true;
}

bool ParseLongDouble(absl::string_view text, long double* value) {
  char local[kLongDoubleChars];
  if (text.empty() || text.size() >= sizeof(local) || BeginsBlank(text)) return false;
  std::memcpy(local, text.data(), text.size());
  local[text.size()] = '\0';
  errno = 0;
  char* end = nullptr;
  const long double number = std::strtold(local, &end);
  if (!Accept(local, text.size(), end, number)) return false;
  *value = number;
  return true;
}

std::string FormatLongDouble(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[kLongDoubleChars];
  int length = std::snprintf(text, sizeof(text), "%.17Lf", value);
  while (length > 0 && text[length - 1] == '0') --length;
  if (length > 0 && text[length - 1] == '.') --length;
  if (length == 2 && text[0] == '-' && text[1] == '0') return "0";
  return std::string(text, static_cast<size_t>(length));
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // The shortest digits in scientific notation tell the exponent; %g would use fixed notation
  // between these two.
  char text[64];
  char* const end =
      std::to_chars(text, text + sizeof(text) - 1, value, std::chars_format::scientific).ptr;
  *end = '\0';
  const int exponent = std::atoi(std::strchr(text, 'e') + 1);
  if (exponent < kFixedExponentMin || exponent > kFixedExponentMax) return std::string(text, end);
  const auto fixed = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed);
  return std::string(text, fixed.ptr);
}

absl::string_view PrintDouble(double value, DoubleRoom& room) {
  constexpr double kWholeMax = 1e17;  // %.17g shows whole numbers below it without exponent
  constexpr int kDigits = 17;
  if (std::isnan(value)) return "nan";
  char* const begin = room.bytes;
  char* const end = begin + sizeof(room.bytes);
  const bool whole = std::abs(value) < kWholeMax && std::trunc(value) == value && !(value == 0 && std::signbit(value));
  char* const stop = whole ? std::to_chars(begin, end, static_cast<int64_t>(value)).ptr
                           : std::to_chars(begin, end, value, std::chars_format::general, kDigits).ptr;
  return {begin, static_cast<size_t>(stop - begin)};
}

bool ParseMemory(absl::string_view text, int64_t* bytes) {
  struct Unit {
    absl::string_view name;
    int64_t factor;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},          {"b", 1},        {"k", 1000},          {"kb", 1 << 10},
      {"m", 1'000'000}, {"mb", 1 << 20}, {"g", 1'000'000'000}, {"gb", 1 << 30}};
  size_t digits = 0;
  int64_t number = 0;
  for (; digits < text.size() && IsDigit(text[digits]); ++digits) {
    if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
        __builtin_add_overflow(number, int64_t{text[digits] - '0'}, &number)) {
      return false;
    }
  }
  if (digits == 0) return false;
  for (const Unit& unit : kUnits) {
    if (!absl::EqualsIgnoreCase(text.substr(digits), unit.name)) continue;
    return !__builtin_mul_overflow(number, unit.factor, bytes);
  }
  return false;
}

}  // namespace idemd::protocol

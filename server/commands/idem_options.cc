// Reads options word by word, from one table of what there is.
#include "server/commands/idem_options.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/number.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::Lifetime;

constexpr size_t kNameBytesMax = 64;     // claim, fingerprint, BY
constexpr size_t kShownWordBytes = 128;  // of a word that is repeated in an error
constexpr int64_t kMsPerSecond = 1000;

enum class Takes : uint8_t {
  kNothing,
  kBytes,
  kName,      // 1 to 64 bytes
  kSpan,      // milliseconds above 0
  kSpanOrNo,  // milliseconds, 0 allowed
  kNatural,   // an integer, 0 allowed
  kInteger,
  kLifetime,  // EX, PX, EXAT, PXAT
  kWord,      // ONLAPSE
  kStates,    // FROM
};

struct OptionWord {
  absl::string_view word;
  IdemOption option;
  Takes takes;
  absl::string_view IdemOptions::*bytes = nullptr;
  int64_t IdemOptions::*number = nullptr;
};

constexpr OptionWord kWords[] = {
    {.word = "CLAIM", .option = kOptClaim, .takes = Takes::kName, .bytes = &IdemOptions::claim},
    {.word = "FINGERPRINT",
     .option = kOptFingerprint,
     .takes = Takes::kName,
     .bytes = &IdemOptions::fingerprint},
    {.word = "LEASE", .option = kOptLease, .takes = Takes::kSpan, .number = &IdemOptions::lease_ms},
    {.word = "EX", .option = kOptEx, .takes = Takes::kLifetime},
    {.word = "PX", .option = kOptPx, .takes = Takes::kLifetime},
    {.word = "EXAT", .option = kOptExAt, .takes = Takes::kLifetime},
    {.word = "PXAT", .option = kOptPxAt, .takes = Takes::kLifetime},
    {.word = "FOREVER", .option = kOptForever, .takes = Takes::kNothing},
    {.word = "WAIT",
     .option = kOptWait,
     .takes = Takes::kSpanOrNo,
     .number = &IdemOptions::wait_ms},
    {.word = "ONLAPSE", .option = kOptOnLapse, .takes = Takes::kWord},
    {.word = "ISSUED", .option = kOptIssued, .takes = Takes::kNothing},
    {.word = "IFEQ", .option = kOptIfeq, .takes = Takes::kBytes, .bytes = &IdemOptions::ifeq},
    {.word = "BY", .option = kOptBy, .takes = Takes::kName, .bytes = &IdemOptions::by},
    {.word = "REASON", .option = kOptReason, .takes = Takes::kNothing},
    {.word = "VALUE", .option = kOptValue, .takes = Takes::kBytes, .bytes = &IdemOptions::value},
    {.word = "COUNT", .option = kOptCount, .takes = Takes::kInteger, .number = &IdemOptions::count},
    {.word = "CODE", .option = kOptCode, .takes = Takes::kInteger, .number = &IdemOptions::code},
    {.word = "AFTER", .option = kOptAfter, .takes = Takes::kSpan, .number = &IdemOptions::after_ms},
    {.word = "FROM", .option = kOptFrom, .takes = Takes::kStates},
    {.word = "INIT", .option = kOptInit, .takes = Takes::kNothing},
    {.word = "COST", .option = kOptCost, .takes = Takes::kNatural, .number = &IdemOptions::cost},
    {.word = "PEEK", .option = kOptPeek, .takes = Takes::kNothing},
};

class Reader {
 public:
  Reader(Context& c, size_t first, uint32_t allowed, IdemOptions* out)
      : c_(c), at_(first), allowed_(allowed), out_(*out) {}

  bool Read() {
    while (at_ < c_.words.size()) {
      const absl::string_view word = c_.words[at_++];
      const OptionWord* option = Find(word);
      if (option == nullptr)
        return Error(absl::StrCat("ERR unknown option '", word.substr(0, kShownWordBytes), "'"));
      if (out_.has(option->option))
        return Error(absl::StrCat("ERR option ", option->word, " is given twice"));
      out_.seen |= option->option;
      if ((option->option & kOptLifetime) != 0 && __builtin_popcount(out_.seen & kOptLifetime) > 1)
        return Error(errors::kTwoLifetimes);
      if (!ReadValue(*option)) return false;
    }
    return true;
  }

 private:
  bool Error(absl::string_view text) {
    c_.reply.Error(text);
    return false;
  }

  const OptionWord* Find(absl::string_view word) const {
    // Nearly everybody writes them as they stand here, which is compared fast.
    for (const OptionWord& option : kWords)
      if ((allowed_ & option.option) != 0 && word == option.word) return &option;
    for (const OptionWord& option : kWords)
      if ((allowed_ & option.option) != 0 && absl::EqualsIgnoreCase(word, option.word))
        return &option;
    return nullptr;
  }

  bool ReadValue(const OptionWord& option) {
    if (option.takes == Takes::kNothing) {
      if (option.option == kOptForever) out_.lifetime.kind = Lifetime::Kind::kForever;
      return true;
    }
    if (at_ == c_.words.size())
      return Error(absl::StrCat("ERR option ", option.word, " needs a value"));
    const absl::string_view value = c_.words[at_++];
    switch (option.takes) {
      case Takes::kBytes:
        out_.*option.bytes = value;
        return true;
      case Takes::kName:
        if (value.empty() || value.size() > kNameBytesMax)
          return Error(
              absl::StrCat("ERR ", option.word, " must have 1 to ", kNameBytesMax, " bytes"));
        out_.*option.bytes = value;
        return true;
      case Takes::kWord:
        out_.stop = absl::EqualsIgnoreCase(value, "STOP");
        if (!out_.stop && !absl::EqualsIgnoreCase(value, "TAKE")) return Error(errors::kOnLapse);
        return true;
      case Takes::kStates:
        return ReadStates(value);
      case Takes::kLifetime:
        return ReadLifetime(option.option, value);
      case Takes::kSpan:
      case Takes::kSpanOrNo:
      case Takes::kNatural:
      case Takes::kInteger:
        return ReadNumber(option, value);
      case Takes::kNothing:
        break;
    }
    return true;
  }

  bool ReadNumber(const OptionWord& option, absl::string_view value) {
    int64_t& number = out_.*option.number;
    if (!protocol::ParseInt64(value, &number)) return Error(errors::kNotInteger);
    if (option.takes == Takes::kSpan && number < 1)
      return Error(absl::StrCat("ERR ", option.word, " must be 1 ms or more"));
    if (option.takes != Takes::kInteger && number < 0)
      return Error(absl::StrCat("ERR ", option.word, " must not be negative"));
    return true;
  }

  bool ReadLifetime(IdemOption unit, absl::string_view value) {
    int64_t number = 0;
    if (!protocol::ParseInt64(value, &number)) return Error(errors::kNotInteger);
    const bool seconds = unit == kOptEx || unit == kOptExAt;
    const bool absolute = unit == kOptExAt || unit == kOptPxAt;
    int64_t ms = number;
    const bool overflow = seconds && __builtin_mul_overflow(number, kMsPerSecond, &ms);
    // The largest number stands for "never", which FOREVER says.
    if (number < 1 || overflow || ms == storage::kNoDeadline ||
        (absolute && ms <= c_.unit.now_ms())) {
      ReplyInvalidTime(c_);
      return false;
    }
    out_.lifetime = {absolute ? Lifetime::Kind::kAbsolute : Lifetime::Kind::kDuration, ms};
    return true;
  }

  bool ReadStates(absl::string_view value) {
    int64_t count = 0;
    if (!protocol::ParseInt64(value, &count)) return Error(errors::kNotInteger);
    if (count < 0 || static_cast<uint64_t>(count) > c_.words.size() - at_)
      return Error(errors::kFromCount);
    out_.from = c_.words.subspan(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return true;
  }

  Context& c_;
  size_t at_;
  uint32_t allowed_;
  IdemOptions& out_;
};

}  // namespace

bool ReadIdemOptions(Context& c, size_t first, uint32_t allowed, IdemOptions* out) {
  return Reader(c, first, allowed, out).Read();
}

void ReplyInvalidTime(Context& c) {
  c.reply.Error(absl::StrCat("ERR invalid expire time in '", absl::AsciiStrToLower(c.spec->name),
                             "' command"));
}

}  // namespace idemd::server

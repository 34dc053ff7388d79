// Reads a record's line, or says that it is damaged.
//
// The line has exactly one spelling: what AppendText() writes, and nothing else. A spelling that
// would come back differently (a leading zero, "%41" for "A", a field out of order) is damaged, and
// so is a line whose fields do not belong together, so that two servers can never disagree about
// what a string is and no command ever meets a record in a state that it does not know.
#include <cstring>
#include <iterator>

#include "storage/fence.h"
#include "storage/record/record.h"
#include "storage/record/text_words.h"

namespace idemd::storage {
namespace {

constexpr size_t kNameBytesMax = 64;  // claim and fingerprint

// The value of a digit of `alphabet`, or -1.
int HexValue(const char* alphabet, char c) {
  const void* at = std::memchr(alphabet, c, 16);
  return at == nullptr ? -1 : static_cast<int>(static_cast<const char*>(at) - alphabet);
}

// What is left of the line. Each method takes one thing from its front, or returns false.
class LineReader {
 public:
  LineReader(absl::string_view line, std::string& scratch) : rest_(line), scratch_(scratch) {
    scratch_.clear();
  }

  bool done() const { return rest_.empty(); }

  bool Literal(absl::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // Without sign or leading zeros.
  bool Number(int64_t* value) {
    const absl::string_view word = Word();
    if (word.empty() || (word[0] == '0' && word.size() > 1)) return false;
    int64_t n = 0;
    for (char c : word) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(n, int64_t{10}, &n) ||
          __builtin_add_overflow(n, int64_t{c - '0'}, &n)) {
        return false;
      }
    }
    *value = n;
    return true;
  }

  // Any number but 0, with a sign where it is negative. Built up below zero, where the range is the
  // larger one.
  bool NonZero(int64_t* value) {
    const bool negative = Literal("-");
    const absl::string_view word = Word();
    if (word.empty() || word[0] == '0') return false;
    int64_t n = 0;
    for (char c : word) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(n, int64_t{10}, &n) ||
          __builtin_sub_overflow(n, int64_t{c - '0'}, &n)) {
        return false;
      }
    }
    if (!negative && n == INT64_MIN) return false;
    *value = negative ? n : -n;
    return true;
  }

  // Percent-decoded: a view into the line, or into the scratch where decoding was needed.
  bool Encoded(absl::string_view* bytes) {
    const absl::string_view word = Word();
    size_t plain = 0;
    while (plain < word.size() && Unreserved(static_cast<unsigned char>(word[plain]))) ++plain;
    if (plain == word.size()) {
      *bytes = word;
      return true;
    }
    // Room for all that the line may still hold: views into the scratch must not move.
    if (scratch_.empty()) scratch_.reserve(word.size() + rest_.size());
    const size_t begin = scratch_.size();
    for (size_t i = 0; i < word.size(); ++i) {
      const char c = word[i];
      if (Unreserved(static_cast<unsigned char>(c))) {
        scratch_.push_back(c);
        continue;
      }
      if (c != '%' || word.size() - i < 3) return false;
      const int high = HexValue(kUpperHex, word[i + 1]);
      const int low = HexValue(kUpperHex, word[i + 2]);
      if (high < 0 || low < 0) return false;
      const auto byte = static_cast<unsigned char>(high * 16 + low);
      if (Unreserved(byte)) return false;
      scratch_.push_back(static_cast<char>(byte));
      i += 2;
    }
    *bytes = absl::string_view(scratch_).substr(begin);
    return true;
  }

  bool Digest(std::array<uint8_t, 16>* digest) {
    const absl::string_view word = Word();
    if (word.size() != 32) return false;
    for (size_t i = 0; i < 16; ++i) {
      const int high = HexValue(kLowerHex, word[2 * i]);
      const int low = HexValue(kLowerHex, word[2 * i + 1]);
      if (high < 0 || low < 0) return false;
      (*digest)[i] = static_cast<uint8_t>(high * 16 + low);
    }
    return true;
  }

 private:
  absl::string_view Word() {
    const absl::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }

  absl::string_view rest_;
  std::string& scratch_;
};

bool ParseState(LineReader& line, RecordState* state) {
  for (size_t i = 0; i < std::size(kStateWords); ++i) {
    if (line.Literal(kStateWords[i])) {
      *state = static_cast<RecordState>(i);
      return true;
    }
  }
  return false;
}

bool ParseName(LineReader& line, absl::string_view* bytes) {
  return line.Encoded(bytes) && !bytes->empty() && bytes->size() <= kNameBytesMax;
}

// The seven fields that every record has.
bool ParseHead(LineReader& line, Record& r) {
  int64_t fence = 0;
  int64_t attempt = 0;
  const bool ok = line.Literal("idem/1 state=") && ParseState(line, &r.state) &&  //
                  line.Literal(" fence=") && line.Number(&fence) &&               //
                  line.Literal(" attempt=") && line.Number(&attempt) &&           //
                  line.Literal(" since=") && line.Number(&r.since_ms) &&          //
                  line.Literal(" lease=") && line.Number(&r.lease_end_ms) &&      //
                  line.Literal(" lease-ms=") && line.Number(&r.lease_ms) &&       //
                  line.Literal(" keep-ms=") && line.Number(&r.keep_ms);
  r.fence = static_cast<uint64_t>(fence);
  r.attempt = static_cast<uint64_t>(attempt);
  return ok;
}

bool ParseOptional(LineReader& line, Record& r) {
  r.has_claim = line.Literal(" claim=");
  if (r.has_claim && !ParseName(line, &r.claim)) return false;
  r.has_fingerprint = line.Literal(" fp=");
  if (r.has_fingerprint && !ParseName(line, &r.fingerprint)) return false;
  r.stop = line.Literal(" onlapse=stop");
  r.has_after = line.Literal(" after=");
  if (r.has_after && !line.Number(&r.after_ms)) return false;
  r.has_code = line.Literal(" code=");
  if (r.has_code && !line.NonZero(&r.code)) return false;
  r.has_token = line.Literal(" token=");
  if (r.has_token && !line.Encoded(&r.token)) return false;
  // A token without a lifetime has no such field; "never" has no second spelling.
  if (r.has_token && line.Literal(" token-expiry=") &&
      (!line.Number(&r.token_expiry_ms) || r.token_expiry_ms == kNoDeadline)) {
    return false;
  }
  r.has_digest = line.Literal(" digest=");
  return !r.has_digest || line.Digest(&r.digest);
}

// Whether the fields are ones that some command leaves behind together.
bool FieldsBelongTogether(const Record& r) {
  if (r.state == RecordState::kConsumed) {
    return r.fence == 0 && r.attempt == 0 && r.has_claim && r.has_token && !r.has_fingerprint &&
           !r.stop && !r.has_after && !r.has_code && !r.has_digest && !r.has_payload;
  }
  if (r.fence == 0 || r.fence >= kFenceLimit || r.attempt == 0 || r.lease_ms == 0) return false;
  switch (r.state) {
    case RecordState::kPending:
      // after= says that the claim was released, and then it is 0 and nobody holds it.
      if (r.has_after && (r.after_ms != 0 || r.has_claim)) return false;
      return !r.has_code && !r.has_digest;
    case RecordState::kFailed:
      return r.has_after && !r.has_code && !r.has_digest;
    case RecordState::kDone:
      return r.has_digest != r.has_payload;  // the answer itself, or what it would have been
    case RecordState::kConsumed:
      break;
  }
  return false;
}

}  // namespace

ParseVerdict ParseText(absl::string_view text, std::string& scratch, Record& record) {
  if (!LooksLikeRecord(text)) return ParseVerdict::kNoRecord;
  const size_t line_end = text.find('\n');
  if (line_end == absl::string_view::npos) return ParseVerdict::kDamaged;
  const absl::string_view raw = text.substr(line_end + 1);
  LineReader line(text.substr(0, line_end), scratch);
  Record r;
  if (!ParseHead(line, r) || !ParseOptional(line, r)) return ParseVerdict::kDamaged;
  if (line.Literal(" payload=raw")) {
    r.has_payload = true;
    r.payload = raw;
  } else if (!line.Literal(" payload=none") || !raw.empty()) {
    return ParseVerdict::kDamaged;
  }
  if (!line.done() || !FieldsBelongTogether(r)) return ParseVerdict::kDamaged;
  record = r;
  return ParseVerdict::kRecord;
}

}  // namespace idemd::storage

// Bytes to words: RESP arrays of bulk strings, and inline commands.
//
// Parse() takes whatever has arrived and yields complete requests, as views into the buffer:
// nothing is copied, but for inline words with quotes or escapes. It keeps its place inside a long
// incomplete request, so that bytes are not scanned again and again; the place is kept as offsets,
// so that the buffer may move between calls. Lifetime  words are views into the buffer given to
// Parse(), or into the parser's scratch; valid until Parse() is
//           called again.
// Errors    whole texts as Redis 7.0.15 gives them ("ERR Protocol error: invalid bulk length"), for
// Writer::Error(); the
//           connection closes after one.
// Splits    what is parsed depends on the bytes alone, never on how they were cut into reads.
// Strangers  an inline request that begins with a byte which no command begins with is an error at once, without waiting for
//           its line end: another protocol is being spoken (TLS, for one), or bytes of a request got lost. Redis waits, and says
//           that it does not know such a command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::protocol {

struct ParserLimits {
  int64_t bulk_bytes_max = 512 * 1024 * 1024;  // proto-max-bulk-len
  int64_t words_max = 1024 * 1024;             // per request; as Redis: INT_MAX once authenticated
  int64_t inline_bytes_max = 64 * 1024;        // PROTO_INLINE_MAX_SIZE; header lines too
  // Before authentication Redis allows 10 words of 16384 bytes. Then each Parse() yields one
  // request at most, since that request may be the AUTH after which the next one is judged by other
  // limits.
  bool unauthenticated = false;
};

// One complete request inside a Batch: words [first, first + count).
struct RequestSpan {
  uint32_t first = 0;
  uint32_t count = 0;
  size_t bytes = 0;  // how many bytes of the buffer it took
  size_t end = 0;    // where it ends, counted from the buffer's first byte
};

struct Batch {
  std::vector<absl::string_view> words;
  std::vector<RequestSpan> requests;

  absl::Span<const absl::string_view> words_of(const RequestSpan& r) const {
    return absl::MakeConstSpan(words.data() + r.first, r.count);
  }
  void clear() {
    words.clear();
    requests.clear();
  }
};

enum class ParseStatus : uint8_t {
  kNeedMore,  // every complete request is in the batch; the rest waits for bytes
  kFull,      // the batch holds `max_requests` (one, if unauthenticated); call again for more
  kError,     // what came before is in the batch; error() says what is wrong
};

class Parser {
 public:
  // Appends complete requests from `buffer` to `batch`. `buffer` must begin where the last
  // consumed() ended, with all bytes that were not consumed. Empty requests ("*0", a bare line end)
  // are consumed and yield nothing.
  ParseStatus Parse(absl::string_view buffer, const ParserLimits& limits, size_t max_requests,
                    Batch& batch);
  // Bytes of the last `buffer` that complete requests (and skipped empty ones) took.
  size_t consumed() const { return consumed_; }
  absl::string_view error() const { return error_; }
  // Whether the error was that the peer does not seem to speak this protocol at all.
  bool foreign() const { return foreign_; }
  // How many bytes in all, counted from the start of the incomplete request, are known to be needed
  // (0: not known). Lets the reader make room for a large bulk at once.
  size_t bytes_wanted() const { return bytes_wanted_; }

 private:
  enum class Step : uint8_t;
  enum class Line : uint8_t;
  struct Place {
    size_t offset = 0;
    size_t size = 0;
  };

  bool ReadWhole(absl::string_view rest, const ParserLimits& limits, Batch& batch);
  Step ReadRequest(absl::string_view rest, const ParserLimits& limits, Batch& batch);
  Step ReadInline(absl::string_view rest, const ParserLimits& limits, Batch& batch);
  Step ReadCount(absl::string_view rest, const ParserLimits& limits);
  template <class Take>
  Step ReadWords(absl::string_view rest, const ParserLimits& limits, Take take);
  Step ReadBulkHeader(absl::string_view rest, const ParserLimits& limits);
  Line ReadNumberLine(absl::string_view rest, const ParserLimits& limits, int64_t* value);
  Step Fail(absl::string_view text);
  Step FailForeign(char byte);
  void Restart();

  size_t consumed_ = 0;
  size_t bytes_wanted_ = 0;
  std::string error_;
  bool foreign_ = false;
  // Progress inside the incomplete request at the buffer's front, as offsets from its first byte.
  size_t position_ = 0;      // of the next header line, or of the bulk whose header has been read
  size_t scanned_ = 0;       // no line end before this
  int64_t words_left_ = -1;  // -1: the request's header has not been read
  int64_t bulk_bytes_ = -1;  // -1: the next word's header has not been read
  std::vector<Place> partial_;  // its words so far
  // Unquoted inline words. A deque, because a short string moves with its object.
  std::deque<std::string> scratch_;
};

// Splits an inline command or a settings line into words, with Redis' rules for quotes and escapes.
// False: unbalanced quotes.
bool SplitWords(absl::string_view line, std::vector<std::string>& words);

}  // namespace idemd::protocol

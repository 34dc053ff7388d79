// Feeds bytes to a request parser in pieces, each time from a buffer at another address, and tells
// what came out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "protocol/resp/parser.h"

namespace idemd::protocol {

using Request = std::vector<std::string>;

struct Outcome {
  std::vector<Request> requests;
  std::string error;
  size_t left = 0;    // bytes that wait for more
  size_t wanted = 0;  // bytes_wanted() at the end

  bool operator==(const Outcome& other) const {
    return requests == other.requests && error == other.error && left == other.left;
  }
};

class Feeder {
 public:
  explicit Feeder(const ParserLimits& limits = {}, size_t max_requests = 1000)
      : limits_(limits), max_requests_(max_requests) {}

  // False once the parser has refused something.
  bool Add(absl::string_view piece) {
    pending_.append(piece.data(), piece.size());
    ParseStatus status = ParseStatus::kFull;
    while (status == ParseStatus::kFull && outcome_.error.empty()) {
      // Exactly as long as what is pending, so that a sanitizer sees a read behind it.
      const auto buffer = std::make_unique<char[]>(pending_.size());
      pending_.copy(buffer.get(), pending_.size());
      Batch batch;
      status = parser_.Parse(absl::string_view(buffer.get(), pending_.size()), limits_,
                             max_requests_, batch);
      size_t bytes = 0;
      for (const RequestSpan& span : batch.requests) {
        Request request;
        for (absl::string_view word : batch.words_of(span)) request.emplace_back(word);
        outcome_.requests.push_back(std::move(request));
        bytes += span.bytes;
      }
      spans_fit_ =
          spans_fit_ && bytes <= parser_.consumed() && parser_.consumed() <= pending_.size();
      pending_.erase(0, parser_.consumed());
      if (status == ParseStatus::kError) outcome_.error = std::string(parser_.error());
    }
    outcome_.left = outcome_.error.empty() ? pending_.size() : 0;
    outcome_.wanted = parser_.bytes_wanted();
    return outcome_.error.empty();
  }

  const Outcome& outcome() const { return outcome_; }
  bool spans_fit() const { return spans_fit_; }
  void set_limits(const ParserLimits& limits) { limits_ = limits; }

 private:
  ParserLimits limits_;
  size_t max_requests_;
  Parser parser_;
  std::string pending_;
  Outcome outcome_;
  bool spans_fit_ = true;
};

inline Outcome ParseWhole(absl::string_view bytes, const ParserLimits& limits = {}) {
  Feeder feeder(limits);
  feeder.Add(bytes);
  return feeder.outcome();
}

}  // namespace idemd::protocol

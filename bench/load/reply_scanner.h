// Counts the replies in a stream of RESP2, RESP3 or memcached's text protocol, however it is cut,
// without building any.
//
// Of each reply it keeps the first scalar (the status, the integer, the begin of a string), the
// second one (where IDEM.RESERVE has its fence), and whether an error was in it: what a load
// generator checks.
//
// Threads    one.
// Lifetime   a Reply's views are good until the callback returns.
// Errors     bytes that are none of the protocol make it broken(); it then takes nothing any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace idemd::bench {

enum class Dialect : uint8_t {
  kResp,
  kMemcached,  // its words read as what Redis says to the same: STORED as OK, DELETED as 1, a miss
               // as nil
};

struct Reply {
  bool error = false;        // an error, or an array with one in it
  absl::string_view head;    // first scalar; "nil" for nothing; of a long one the first kKept bytes
  absl::string_view second;  // second scalar of an array; "" when there is none
};

class ReplyScanner {
 public:
  static constexpr size_t kKept = 96;

  explicit ReplyScanner(Dialect dialect = Dialect::kResp) : dialect_(dialect) {}

  // Calls on_reply(const Reply&) for every reply that is complete with these bytes.
  template <class OnReply>
  void Feed(const char* data, size_t size, OnReply&& on_reply) {
    const char* const end = data + size;
    while (data != end && !broken_) {
      if (bulk_left_ != 0) {
        data += TakeBulk(data, static_cast<size_t>(end - data));
        if (bulk_left_ != 0 || !EndElement()) continue;
      } else {
        const auto* line_end =
            static_cast<const char*>(std::memchr(data, '\n', static_cast<size_t>(end - data)));
        if (line_end == nullptr) {
          KeepLine(data, static_cast<size_t>(end - data));
          return;
        }
        absl::string_view line(data, static_cast<size_t>(line_end - data));
        if (line_size_ != 0) {
          KeepLine(line.data(), line.size());
          line = {line_, line_size_};
          line_size_ = 0;
        }
        data = line_end + 1;
        if (!TakeLine(line)) continue;
      }
      on_reply(Reply{error_, {head_, head_size_}, {second_, second_size_}});
      BeginReply();
    }
  }
  bool broken() const { return broken_; }

 private:
  // A line without its \n. True when a reply is complete with it.
  bool TakeLine(absl::string_view line);
  bool TakeRespLine(absl::string_view line);
  bool TakeMemcachedLine(absl::string_view line);
  // Returns how many of these bytes belong to the string under way.
  size_t TakeBulk(const char* data, size_t size) {
    const size_t n = std::min(size, bulk_left_);
    // The last two bytes are the line end.
    if (bulk_left_ > 2) Keep(data, std::min(n, bulk_left_ - 2));
    bulk_left_ -= n;
    return n;
  }
  void Keep(const char* data, size_t size) {
    if (scalars_ == 0) {
      const size_t n = std::min(size, kKept - head_size_);
      std::memcpy(head_ + head_size_, data, n);
      head_size_ += n;
    } else if (scalars_ == 1) {
      const size_t n = std::min(size, kKept - second_size_);
      std::memcpy(second_ + second_size_, data, n);
      second_size_ += n;
    }
  }
  bool EndScalar(absl::string_view text) {
    Keep(text.data(), text.size());
    return EndElement();
  }
  // True when the reply is over.
  bool EndElement() {
    ++scalars_;
    return --elements_left_ == 0;
  }
  bool BeginAggregate(absl::string_view count, uint64_t elements_each);
  void KeepLine(const char* data, size_t size);
  void BeginReply() {
    elements_left_ = 1;
    scalars_ = head_size_ = second_size_ = 0;
    error_ = false;
  }

  uint64_t elements_left_ = 1;  // of the reply, itself included
  size_t bulk_left_ = 0;        // bytes of a string, its line end included
  size_t scalars_ = 0;
  size_t head_size_ = 0, second_size_ = 0, line_size_ = 0;
  bool error_ = false, broken_ = false;
  Dialect dialect_;
  char head_[kKept], second_[kKept];
  char line_[kKept + 2];  // a line that came in pieces; of a longer one the beginning
};

}  // namespace idemd::bench

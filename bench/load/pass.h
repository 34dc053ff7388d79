// One pass of requests over a set of numbers, and what came of it: what all threads of a generator
// share.
//
// Threads   NumberSource is shared; a PassResult belongs to one thread until they are merged.
// Units     nanoseconds of the steady clock.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/load/histogram.h"
#include "bench/load/key_space.h"
#include "bench/load/request_template.h"
#include "bench/load/workloads.h"

namespace idemd::bench {

inline int64_t SteadyNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Hands out the numbers that requests are about, each position once, to several threads.
class NumberSource {
 public:
  // `first` and `count`: the numbers there are (count is not 0); for kNew and kStorm they are made
  // as they go. `limit`: how many are handed out at most. `duplicates`: the share, 0..1, of
  // kStorm's repetitions.
  NumberSource(Order order, uint64_t first, uint64_t count, uint64_t limit, double duplicates);

  // Writes up to `wanted` numbers; returns how many. 0: they are all handed out.
  size_t Take(size_t wanted, Random& random, uint64_t* numbers);
  uint64_t first() const { return first_; }
  // Numbers from first() on that may have been handed out. Call it when no thread takes any more.
  uint64_t used() const;

 private:
  const Order order_;
  const uint64_t first_, count_, limit_;
  const double duplicates_;
  uint64_t stride_ = 1;  // no common divisor with count_: visits all, neighbours far apart
  std::atomic<uint64_t> handed_out_{0}, fresh_{0};
};

// How often replies began how.
class Outcomes {
 public:
  // Beyond this many the rest is counted together.
  static constexpr size_t kDistinct = 8;
  struct Entry {
    std::string head;
    uint64_t times = 0;
    bool expected = true;
  };

  // `expected`: how replies may begin; empty: anything.
  explicit Outcomes(std::vector<absl::string_view> expected = {})
      : expected_(std::move(expected)) {}
  void Add(absl::string_view head) {
    for (Entry& entry : entries_) {
      if (entry.head == head) {
        ++entry.times;
        return;
      }
    }
    AddNew(head);
  }
  void Merge(const Outcomes& other);
  uint64_t unexpected() const;
  const std::vector<Entry>& entries() const { return entries_; }
  uint64_t others() const { return others_ + others_unexpected_; }

 private:
  void AddNew(absl::string_view head);
  bool Expected(absl::string_view head) const;

  std::vector<absl::string_view> expected_;
  std::vector<Entry> entries_;
  uint64_t others_ = 0, others_unexpected_ = 0;
};

struct PassResult {
  Histogram latency;  // from when a request was sent, or was due, to its reply
  Histogram late;     // open loop: from when a request was due to when it was sent
  uint64_t requests = 0, replies = 0, errors = 0;
  uint64_t lost_connections = 0;
  std::vector<Outcomes> outcomes;       // of each step
  std::vector<std::string> complaints;  // the first few, each once
  int64_t last_reply_ns = 0;
  int64_t longest_silence_ns = 0;  // that a connection heard while it waited

  uint64_t unanswered() const { return requests - replies; }
  uint64_t unexpected() const;
  bool clean() const {
    return errors == 0 && unanswered() == 0 && unexpected() == 0 && lost_connections == 0;
  }
  void Complain(absl::string_view text);
  void Merge(const PassResult& other);
};

struct Pass {
  std::vector<RequestTemplate> templates;  // one for each step
  std::vector<Capture> captures;
  std::vector<std::vector<absl::string_view>> expected;
  bool mixed = false;
  double second_share = 0;  // mixed: of the second template
  uint32_t pipeline = 1;
  double rate = 0;             // requests a second of all threads; 0: closed loop
  int64_t begin_ns = 0;        // when the first is due
  int64_t end_ns = INT64_MAX;  // none is begun after this
  uint64_t seed = 0;
  NumberSource* numbers = nullptr;
  // kCaptureChars for each number from numbers->first() on; nullptr: captures stay within a batch.
  char* captured = nullptr;
};

}  // namespace idemd::bench

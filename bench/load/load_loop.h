// The connections of one thread: sends batches of requests, counts replies, measures.
//
// Closed loop  a connection sends its next batch when the last one has been answered; latency
// counts from the sending. Open loop    batch j is due at begin + j * interval whether or not
// earlier ones have been answered, and latency counts from when
//              it was due: a server (or a generator) that stops is charged for all who wait
//              meanwhile.
//
// Raw epoll, a read and a write for a batch, no allocation once it runs.
//
// Threads    one at a time.
// Lifetime   takes the descriptors over, and closes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/load/pass.h"
#include "bench/load/reply_scanner.h"

namespace idemd::bench {

class LoadLoop {
 public:
  // `index` of `threads` loops that share a pass.
  LoadLoop(std::vector<int> fds, size_t index, size_t threads, Dialect dialect);
  ~LoadLoop();
  LoadLoop(const LoadLoop&) = delete;
  LoadLoop& operator=(const LoadLoop&) = delete;

  PassResult Run(const Pass& pass);

 private:
  struct Connection {
    int fd = -1;
    size_t index = 0;
    ReplyScanner scanner;
    std::vector<uint64_t> numbers;  // of the batch under way
    std::vector<char> captured;     // what its replies said, kCaptureChars each
    std::vector<char> out;
    size_t out_size = 0, out_sent = 0;
    bool waits_to_write = false;
    bool busy = false;                         // closed loop: has requests without a reply
    size_t step = 0, batch = 0, awaiting = 0;  // ... of the batch under way
    int64_t sent_ns = 0;
    int64_t waits_since_ns = 0;  // for its next reply
    uint64_t batches_due = 0, batches_built = 0, sent = 0, replied = 0;  // open loop
  };

  void Begin(const Pass& pass);
  void RunClosed();
  void RunOpen();
  // Waits for at most so long (-1: for ever) and serves what came; false when nothing did.
  bool Serve(int64_t wait_ns);
  // Closed loop: sends the next batch, or leaves the connection idle when there is none.
  void NextBatch(Connection& c, int64_t now);
  // Open loop: builds and sends the batches that are due, as far as the socket takes them.
  void SendDue(Connection& c, int64_t now);
  // Writes requests about the first `n` of c.numbers to c.out.
  void Build(Connection& c, size_t n);
  void Flush(Connection& c);
  void Read(Connection& c);
  void OnReply(Connection& c, const Reply& reply, int64_t now);
  void Keep(Connection& c, size_t i, absl::string_view what, size_t chars);
  void Lose(Connection& c, absl::string_view why);
  void Watch(const Connection& c, uint32_t events);
  bool closed_loop() const { return pass_->rate <= 0; }
  // When the batch of this number, counted over all connections of this loop, is due.
  int64_t Due(uint64_t batch) const;

  int epoll_ = -1;
  const size_t index_, threads_;
  std::vector<Connection> connections_;
  std::vector<char> in_;

  const Pass* pass_ = nullptr;
  PassResult result_;
  Random random_{0};
  size_t live_ = 0;         // connections
  size_t busy_ = 0;         // closed loop: connections that wait for replies
  uint64_t waiting_ = 0;    // open loop: requests without a reply
  bool exhausted_ = false;  // open loop: there are no more numbers
  double interval_ns_ = 0;
};

}  // namespace idemd::bench

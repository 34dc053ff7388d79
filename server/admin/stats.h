// Counters of the running server: one set per loop thread, merged when somebody asks.
//
// Threads    A ThreadStats is written by its one thread and read by any: counters are relaxed
//            loads and stores, never read-modify-write, so counting costs what a plain increment
//            does. ServerStats: any thread.
// Lifetime   A ThreadStats stays until the ServerStats goes, also when its thread has ended, so
//            totals never shrink.
// Reset      CONFIG RESETSTAT does not disturb the writers: the totals of that moment become a
//            baseline, which later answers subtract.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// Ordinals of commands (CommandTable) lie below this; the table checks it.
inline constexpr uint32_t kCommandsMax = 1024;

// Durations in classes of at most a quarter of a power of two, so that percentiles are right within
// 25 %. In units of 1.024 microseconds, as Redis' histograms: the classes of one power of two end
// where LATENCY HISTOGRAM has its bounds.
struct LatencyClasses {
  static constexpr uint32_t kPerOctave = 4;
  // Up to about two seconds; what took longer falls into the last class.
  static constexpr uint32_t kOctaves = 22;
  static constexpr uint32_t kClasses = kPerOctave * kOctaves;
  static uint32_t ClassOf(int64_t usec);
  // The longest duration of a class, in nanoseconds.
  static uint64_t UpperNs(uint32_t index);
};

struct CommandTotals {
  uint64_t calls = 0;
  uint64_t usec = 0;
  uint64_t rejected = 0;
  uint64_t failed = 0;
  std::array<uint64_t, LatencyClasses::kClasses> classes{};

  // The duration in microseconds that `percent` of the calls stayed within; 0 without calls.
  double Percentile(double percent) const;
};

// A counter with one writer.
class OwnedCounter {
 public:
  void Add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct ErrorTotals {
  std::string code;  // "ERR", "WRONGTYPE"
  uint64_t count = 0;
};

struct alignas(64) ThreadStats {
 public:
  ThreadStats() = default;
  ~ThreadStats();
  ThreadStats(const ThreadStats&) = delete;
  ThreadStats& operator=(const ThreadStats&) = delete;

  // A command ran for `usec` microseconds; `failed`: its reply was an error.
  void OnCommand(uint32_t ordinal, int64_t usec, bool failed) {
    OnCommands(ordinal, 1, usec);
    if (failed) OnFailed(ordinal);
  }
  // `n` alike commands that were timed together ran for `usec` microseconds in all.
  void OnCommands(uint32_t ordinal, uint64_t n, int64_t usec) {
    PerCommand& c = Command(ordinal);
    c.calls.Add(n);
    c.usec.Add(static_cast<uint64_t>(usec));
    c.classes[LatencyClasses::ClassOf(n == 1 ? usec : usec / static_cast<int64_t>(n))].Add(n);
  }
  // One of them answered with an error, at once or when what it waited for was over.
  void OnFailed(uint32_t ordinal) { Command(ordinal).failed.Add(1); }
  // Refused before it ran (arity, rights, memory).
  void OnRejected(uint32_t ordinal) { Command(ordinal).rejected.Add(1); }
  // An error reply left; `code` is its first word, without the dash.
  void OnError(absl::string_view code);

  // The network.
  void OnConnection() { connections.Add(1); }
  void OnRead(uint64_t bytes) {
    reads.Add(1);
    read_bytes.Add(bytes);
  }
  void OnWrite(uint64_t bytes) {
    writes.Add(1);
    written_bytes.Add(bytes);
  }
  // Of what was said to be written, so much was not.
  void OnUnsent(uint64_t bytes) { written_bytes.Add(0 - bytes); }

  OwnedCounter connections;
  OwnedCounter reads;
  OwnedCounter writes;
  OwnedCounter read_bytes;
  OwnedCounter written_bytes;

 private:
  friend class ServerStats;
  struct PerCommand {
    OwnedCounter calls;
    OwnedCounter usec;
    OwnedCounter rejected;
    OwnedCounter failed;
    std::array<OwnedCounter, LatencyClasses::kClasses> classes;
  };
  // Code words are ours or a script's; past this many different ones the rest count under the last.
  static constexpr uint32_t kErrorCodesMax = 64;
  struct PerError {
    std::array<char, 32> code{};  // written before errors_used_ covers it, then never again
    OwnedCounter count;
  };

  PerCommand& Command(uint32_t ordinal) {
    // Read by its only writer.
    PerCommand* c = commands_[ordinal].load(std::memory_order_relaxed);
    return c != nullptr ? *c : MakeCommand(ordinal);
  }
  PerCommand& MakeCommand(uint32_t ordinal);

  // Made at a command's first call. Stored with release after construction, read with acquire by
  // ServerStats.
  std::array<std::atomic<PerCommand*>, kCommandsMax> commands_{};
  std::array<PerError, kErrorCodesMax> errors_;
  std::atomic<uint32_t> errors_used_{
      0};  // release after the code was written; acquire in ServerStats
};

// Everything, summed over threads, since the last reset.
struct StatsTotals {
  uint64_t connections = 0;
  uint64_t rejected_connections = 0;
  uint64_t commands = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t error_replies = 0;
  uint64_t query_limit_disconnections = 0;
  uint64_t output_limit_disconnections = 0;
  uint64_t evicted_clients = 0;
};

class ServerStats {
 public:
  // For a loop thread, once.
  ThreadStats& Register();

  // Rare events, from any thread.
  void OnRejectedConnection() { rejected_connections_.fetch_add(1, std::memory_order_relaxed); }
  void OnQueryLimit() { query_limit_.fetch_add(1, std::memory_order_relaxed); }
  void OnOutputLimit() { output_limit_.fetch_add(1, std::memory_order_relaxed); }
  void OnEvictedClients(uint64_t n) { evicted_clients_.fetch_add(n, std::memory_order_relaxed); }

  StatsTotals Totals() const;
  CommandTotals Command(uint32_t ordinal) const;
  std::vector<ErrorTotals> Errors() const;  // by code word
  void Reset();                             // CONFIG RESETSTAT

  // About ten times a second, from one thread: what the "instantaneous" fields and the peak are
  // made of.
  void Sample(int64_t steady_ms, uint64_t memory_bytes);
  struct Rates {
    uint64_t commands_per_s = 0;
    double read_kbps = 0;
    double written_kbps = 0;
  };
  Rates Instantaneous() const;
  uint64_t peak_memory_bytes() const { return peak_memory_bytes_.load(std::memory_order_relaxed); }
  int64_t peak_memory_unix_s() const { return peak_memory_unix_s_.load(std::memory_order_relaxed); }
  void ResetPeak(uint64_t memory_bytes);

 private:
  StatsTotals RawTotals() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CommandTotals RawCommand(uint32_t ordinal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<ErrorTotals> RawErrors() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  static constexpr int kRateSamples = 16;
  struct Rate {
    uint64_t last = 0;
    std::array<double, kRateSamples> per_s{};
    void Add(uint64_t total, double seconds, int slot);
    double Average() const;
  };

  mutable storage::Mutex mutex_;
  std::vector<std::unique_ptr<ThreadStats>> threads_ ABSL_GUARDED_BY(mutex_);
  StatsTotals base_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<CommandTotals>> command_base_
      ABSL_GUARDED_BY(mutex_);  // by ordinal; null: zeros
  std::vector<ErrorTotals> error_base_ ABSL_GUARDED_BY(mutex_);
  Rate command_rate_ ABSL_GUARDED_BY(mutex_);
  Rate read_rate_ ABSL_GUARDED_BY(mutex_);
  Rate write_rate_ ABSL_GUARDED_BY(mutex_);
  int64_t sampled_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  int sample_slot_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> rejected_connections_{0};
  std::atomic<uint64_t> query_limit_{0};
  std::atomic<uint64_t> output_limit_{0};
  std::atomic<uint64_t> evicted_clients_{0};
  std::atomic<uint64_t> peak_memory_bytes_{0};
  std::atomic<int64_t> peak_memory_unix_s_{0};
};

}  // namespace idemd::server

// Merging of the per-thread counters, and the rates sampled from them.
#include "server/admin/stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>

namespace idemd::server {
namespace {

// A baseline was read before, so what is subtracted is never larger; a counter read a moment too
// early may be.
uint64_t Since(uint64_t total, uint64_t base) { return total > base ? total - base : 0; }

}  // namespace

uint32_t LatencyClasses::ClassOf(int64_t usec) {
  const uint64_t ns = usec <= 0 ? 0 : static_cast<uint64_t>(usec) * 1000;
  const uint32_t octave = static_cast<uint32_t>(std::bit_width(ns >> 10));
  if (octave >= kOctaves) return kClasses - 1;
  // The octave's first value is 0 or a power of two; the two bits below the leading one tell the
  // quarter.
  const uint32_t quarter = static_cast<uint32_t>(ns >> (octave == 0 ? 8 : octave + 7)) & 3;
  return octave * kPerOctave + quarter;
}

uint64_t LatencyClasses::UpperNs(uint32_t index) {
  const uint32_t octave = index / kPerOctave;
  const uint64_t quarter = index % kPerOctave;
  if (octave == 0) return ((quarter + 1) << 8) - 1;
  const uint64_t first = uint64_t{1} << (octave + 9);
  return first + (quarter + 1) * (first / kPerOctave) - 1;
}

double CommandTotals::Percentile(double percent) const {
  uint64_t all = 0;
  for (uint64_t n : classes) all += n;
  if (all == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(all);
  const uint64_t wanted = std::max<uint64_t>(1, static_cast<uint64_t>(share + 0.5));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < classes.size(); ++i) {
    seen += classes[i];
    if (seen >= wanted) return static_cast<double>(LatencyClasses::UpperNs(i)) / 1000.0;
  }
  return static_cast<double>(LatencyClasses::UpperNs(LatencyClasses::kClasses - 1)) / 1000.0;
}

ThreadStats::~ThreadStats() {
  for (auto& slot : commands_) delete slot.load(std::memory_order_relaxed);
}

ThreadStats::PerCommand& ThreadStats::MakeCommand(uint32_t ordinal) {
  PerCommand* fresh = new PerCommand;
  commands_[ordinal].store(
      fresh, std::memory_order_release);  // zeros before seen; pairs with RawCommand()
  return *fresh;
}

void ThreadStats::OnError(absl::string_view code) {
  if (code.size() >= PerError().code.size()) code = code.substr(0, PerError().code.size() - 1);
  const uint32_t used = errors_used_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (code == errors_[i].code.data()) return errors_[i].count.Add(1);
  }
  if (used == kErrorCodesMax) return errors_[used - 1].count.Add(1);
  std::memcpy(errors_[used].code.data(), code.data(), code.size());
  errors_[used].count.Add(1);
  errors_used_.store(
      used + 1, std::memory_order_release);  // the code before its number; pairs with RawErrors()
}

ThreadStats& ServerStats::Register() {
  storage::MutexLock lock(mutex_);
  threads_.push_back(std::make_unique<ThreadStats>());
  return *threads_.back();
}

StatsTotals ServerStats::RawTotals() const {
  StatsTotals sum;
  for (const auto& thread : threads_) {
    sum.connections += thread->connections.Get();
    sum.reads += thread->reads.Get();
    sum.writes += thread->writes.Get();
    sum.read_bytes += thread->read_bytes.Get();
    sum.written_bytes += thread->written_bytes.Get();
    for (const auto& slot : thread->commands_) {
      const ThreadStats::PerCommand* c = slot.load(std::memory_order_acquire);
      if (c != nullptr) sum.commands += c->calls.Get();
    }
    const uint32_t errors = thread->errors_used_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < errors; ++i) sum.error_replies += thread->errors_[i].count.Get();
  }
  sum.rejected_connections = rejected_connections_.load(std::memory_order_relaxed);
  sum.query_limit_disconnections = query_limit_.load(std::memory_order_relaxed);
  sum.output_limit_disconnections = output_limit_.load(std::memory_order_relaxed);
  sum.evicted_clients = evicted_clients_.load(std::memory_order_relaxed);
  return sum;
}

StatsTotals ServerStats::Totals() const {
  storage::MutexLock lock(mutex_);
  StatsTotals t = RawTotals();
  for (uint64_t StatsTotals::*field :
       {&StatsTotals::connections, &StatsTotals::rejected_connections, &StatsTotals::commands,
        &StatsTotals::reads, &StatsTotals::writes, &StatsTotals::read_bytes,
        &StatsTotals::written_bytes, &StatsTotals::error_replies,
        &StatsTotals::query_limit_disconnections, &StatsTotals::output_limit_disconnections,
        &StatsTotals::evicted_clients}) {
    t.*field = Since(t.*field, base_.*field);
  }
  return t;
}

CommandTotals ServerStats::RawCommand(uint32_t ordinal) const {
  CommandTotals sum;
  for (const auto& thread : threads_) {
    const ThreadStats::PerCommand* c = thread->commands_[ordinal].load(std::memory_order_acquire);
    if (c == nullptr) continue;
    sum.calls += c->calls.Get();
    sum.usec += c->usec.Get();
    sum.rejected += c->rejected.Get();
    sum.failed += c->failed.Get();
    for (size_t i = 0; i < sum.classes.size(); ++i) sum.classes[i] += c->classes[i].Get();
  }
  return sum;
}

CommandTotals ServerStats::Command(uint32_t ordinal) const {
  storage::MutexLock lock(mutex_);
  CommandTotals t = RawCommand(ordinal);
  if (ordinal >= command_base_.size() || command_base_[ordinal] == nullptr) return t;
  const CommandTotals& base = *command_base_[ordinal];
  t.calls = Since(t.calls, base.calls);
  t.usec = Since(t.usec, base.usec);
  t.rejected = Since(t.rejected, base.rejected);
  t.failed = Since(t.failed, base.failed);
  for (size_t i = 0; i < t.classes.size(); ++i) t.classes[i] = Since(t.classes[i], base.classes[i]);
  return t;
}

std::vector<ErrorTotals> ServerStats::RawErrors() const {
  std::vector<ErrorTotals> sum;
  for (const auto& thread : threads_) {
    const uint32_t used = thread->errors_used_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < used; ++i) {
      const std::string code = thread->errors_[i].code.data();
      auto at = std::find_if(sum.begin(), sum.end(),
                             [&](const ErrorTotals& e) { return e.code == code; });
      if (at == sum.end()) at = sum.insert(sum.end(), ErrorTotals{code, 0});
      at->count += thread->errors_[i].count.Get();
    }
  }
  return sum;
}

std::vector<ErrorTotals> ServerStats::Errors() const {
  storage::MutexLock lock(mutex_);
  std::vector<ErrorTotals> all = RawErrors();
  for (const ErrorTotals& base : error_base_) {
    for (ErrorTotals& e : all) {
      if (e.code == base.code) e.count = Since(e.count, base.count);
    }
  }
  all.erase(
      std::remove_if(all.begin(), all.end(), [](const ErrorTotals& e) { return e.count == 0; }),
      all.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
  return all;
}

void ServerStats::Reset() {
  storage::MutexLock lock(mutex_);
  base_ = RawTotals();
  error_base_ = RawErrors();
  command_base_.resize(kCommandsMax);
  for (uint32_t i = 0; i < kCommandsMax; ++i) {
    CommandTotals totals = RawCommand(i);
    const bool used = totals.calls + totals.rejected + totals.failed != 0;
    command_base_[i] = used ? std::make_unique<CommandTotals>(totals) : nullptr;
  }
}

void ServerStats::Rate::Add(uint64_t total, double seconds, int slot) {
  per_s[static_cast<size_t>(slot)] = static_cast<double>(Since(total, last)) / seconds;
  last = total;
}

double ServerStats::Rate::Average() const {
  double sum = 0;
  for (double value : per_s) sum += value;
  return sum / kRateSamples;
}

void ServerStats::Sample(int64_t steady_ms, uint64_t memory_bytes) {
  if (memory_bytes > peak_memory_bytes_.load(std::memory_order_relaxed)) ResetPeak(memory_bytes);
  storage::MutexLock lock(mutex_);
  const StatsTotals now = RawTotals();
  const int64_t passed_ms = steady_ms - sampled_ms_;
  if (sampled_ms_ != 0 && passed_ms <= 0) return;
  if (sampled_ms_ == 0) {  // the first one only says where counting starts
    command_rate_.last = now.commands;
    read_rate_.last = now.read_bytes;
    write_rate_.last = now.written_bytes;
  } else {
    const double seconds = static_cast<double>(passed_ms) / 1000.0;
    command_rate_.Add(now.commands, seconds, sample_slot_);
    read_rate_.Add(now.read_bytes, seconds, sample_slot_);
    write_rate_.Add(now.written_bytes, seconds, sample_slot_);
    sample_slot_ = (sample_slot_ + 1) % kRateSamples;
  }
  sampled_ms_ = steady_ms;
}

ServerStats::Rates ServerStats::Instantaneous() const {
  storage::MutexLock lock(mutex_);
  return {static_cast<uint64_t>(std::llround(command_rate_.Average())),
          read_rate_.Average() / 1024.0, write_rate_.Average() / 1024.0};
}

void ServerStats::ResetPeak(uint64_t memory_bytes) {
  peak_memory_bytes_.store(memory_bytes, std::memory_order_relaxed);
  peak_memory_unix_s_.store(static_cast<int64_t>(std::time(nullptr)), std::memory_order_relaxed);
}

}  // namespace idemd::server

// Numbers handed out, replies counted.
#include "bench/load/pass.h"

#include <numeric>

namespace idemd::bench {
namespace {

// How far back a repetition in a storm of retries reaches, in keys.
constexpr uint64_t kRecent = 10'000;
constexpr size_t kComplaintsMax = 8;
// Errors that begin alike are of one kind: they differ in the words of a request.
constexpr size_t kKindChars = 24;

}  // namespace

NumberSource::NumberSource(Order order, uint64_t first, uint64_t count, uint64_t limit,
                           double duplicates)
    : order_(order), first_(first), count_(count), limit_(limit), duplicates_(duplicates) {
  // The golden section spreads any run of positions evenly.
  stride_ =
      std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(count_) * 0.6180339887));
  while (std::gcd(stride_, count_) != 1) ++stride_;
}

size_t NumberSource::Take(size_t wanted, Random& random, uint64_t* numbers) {
  const uint64_t at = handed_out_.fetch_add(wanted, std::memory_order_relaxed);
  if (at >= limit_) return 0;
  const size_t n = static_cast<size_t>(std::min<uint64_t>(wanted, limit_ - at));
  for (size_t i = 0; i < n; ++i) {
    switch (order_) {
      case Order::kRandom:
      case Order::kRepeated:
        numbers[i] = first_ + random.Below(count_);
        break;
      case Order::kInOrder:
      case Order::kNew:
        numbers[i] = first_ + at + i;
        break;
      case Order::kPrepared:
        numbers[i] = first_ + static_cast<uint64_t>(static_cast<unsigned __int128>(at + i) *
                                                    stride_ % count_);
        break;
      case Order::kStorm: {
        const uint64_t fresh = fresh_.load(std::memory_order_relaxed);
        if (fresh != 0 && random.Chance(duplicates_)) {
          numbers[i] = first_ + fresh - 1 - random.Below(std::min(fresh, kRecent));
        } else {
          numbers[i] = first_ + fresh_.fetch_add(1, std::memory_order_relaxed);
        }
        break;
      }
    }
  }
  return n;
}

uint64_t NumberSource::used() const {
  switch (order_) {
    case Order::kRandom:
    case Order::kRepeated:
    case Order::kPrepared:
      return count_;
    case Order::kInOrder:
    case Order::kNew:
      return std::min(handed_out_.load(), limit_);
    case Order::kStorm:
      return fresh_.load();
  }
  return 0;
}

bool Outcomes::Expected(absl::string_view head) const {
  return expected_.empty() ||
         std::find(expected_.begin(), expected_.end(), head) != expected_.end();
}

void Outcomes::AddNew(absl::string_view head) {
  const bool expected = Expected(head);
  if (entries_.size() < kDistinct) {
    entries_.push_back({std::string(head), 1, expected});
  } else {
    ++(expected ? others_ : others_unexpected_);
  }
}

void Outcomes::Merge(const Outcomes& other) {
  for (const Entry& entry : other.entries_) {
    const auto mine = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.head == entry.head; });
    if (mine != entries_.end()) {
      mine->times += entry.times;
    } else if (entries_.size() < kDistinct) {
      entries_.push_back(entry);
    } else {
      (entry.expected ? others_ : others_unexpected_) += entry.times;
    }
  }
  others_ += other.others_;
  others_unexpected_ += other.others_unexpected_;
}

uint64_t Outcomes::unexpected() const {
  uint64_t sum = others_unexpected_;
  for (const Entry& entry : entries_) {
    if (!entry.expected) sum += entry.times;
  }
  return sum;
}

uint64_t PassResult::unexpected() const {
  uint64_t sum = 0;
  for (const Outcomes& of_step : outcomes) sum += of_step.unexpected();
  return sum;
}

void PassResult::Complain(absl::string_view text) {
  if (complaints.size() == kComplaintsMax) return;
  for (const std::string& said : complaints) {
    if (absl::string_view(said).substr(0, kKindChars) == text.substr(0, kKindChars)) return;
  }
  complaints.emplace_back(text);
}

void PassResult::Merge(const PassResult& other) {
  latency.Merge(other.latency);
  late.Merge(other.late);
  requests += other.requests;
  replies += other.replies;
  errors += other.errors;
  lost_connections += other.lost_connections;
  if (outcomes.size() < other.outcomes.size()) outcomes.resize(other.outcomes.size());
  for (size_t i = 0; i < other.outcomes.size(); ++i) outcomes[i].Merge(other.outcomes[i]);
  for (const std::string& text : other.complaints) Complain(text);
  last_reply_ns = std::max(last_reply_ns, other.last_reply_ns);
  longest_silence_ns = std::max(longest_silence_ns, other.longest_silence_ns);
}

}  // namespace idemd::bench

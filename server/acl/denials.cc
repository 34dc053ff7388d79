// Keeps denials, like ones together.
#include "server/acl/denials.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace idemd::server::acl {
namespace {

// As in Redis: who repeats itself is looked for among the last few, and within this time.
constexpr size_t kLookBack = 10;
constexpr int64_t kTogetherMs = 60'000;

}  // namespace

int64_t Denials::NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void Denials::Add(Entry entry, size_t entries_max) {
  storage::MutexLock lock(mutex_);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(kLookBack, entries_.size()));
  const auto like = std::find_if(entries_.begin(), end, [&](const Entry& known) {
    return absl::string_view(known.reason) == entry.reason &&
           absl::string_view(known.context) == entry.context && known.object == entry.object &&
           known.user == entry.user && entry.at_ms - known.at_ms <= kTogetherMs;
  });
  if (like != end) {
    entry.count += like->count;
    entries_.erase(like);
  }
  entries_.push_front(std::move(entry));
  if (entries_.size() > entries_max) entries_.resize(entries_max);
}

std::vector<Denials::Entry> Denials::Newest(size_t count) const {
  storage::MutexLock lock(mutex_);
  const size_t shown = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(shown)};
}

void Denials::Clear() {
  storage::MutexLock lock(mutex_);
  entries_.clear();
}

}  // namespace idemd::server::acl

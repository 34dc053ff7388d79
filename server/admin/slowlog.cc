// The slow log's ring, and how long commands are shortened to fit it.
#include "server/admin/slowlog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

std::string ShortenedWord(absl::string_view word) {
  if (word.size() <= SlowLog::kWordBytesMax) return std::string(word);
  return absl::StrCat(word.substr(0, SlowLog::kWordBytesMax), "... (",
                      word.size() - SlowLog::kWordBytesMax, " more bytes)");
}

}  // namespace

void SlowLog::Add(int64_t usec, int64_t unix_s, absl::Span<const absl::string_view> words,
                  absl::string_view address, absl::string_view client_name) {
  SlowLogEntry entry;
  entry.unix_s = unix_s;
  entry.usec = usec;
  const bool too_many = words.size() > kWordsMax;
  const size_t whole = too_many ? kWordsMax - 1 : words.size();
  entry.words.reserve(whole + 1);
  for (size_t i = 0; i < whole; ++i) entry.words.push_back(ShortenedWord(words[i]));
  if (too_many)
    entry.words.push_back(absl::StrCat("... (", words.size() - whole, " more arguments)"));
  entry.address = std::string(address);
  entry.client_name = std::string(client_name);

  const size_t keep =
      static_cast<size_t>(std::max<int64_t>(0, max_len.load(std::memory_order_relaxed)));
  storage::MutexLock lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  while (entries_.size() > keep) entries_.pop_back();
}

std::vector<SlowLogEntry> SlowLog::Latest(size_t count) const {
  storage::MutexLock lock(mutex_);
  const size_t n = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(n)};
}

size_t SlowLog::size() const {
  storage::MutexLock lock(mutex_);
  return entries_.size();
}

void SlowLog::Reset() {
  storage::MutexLock lock(mutex_);
  entries_.clear();
}

}  // namespace idemd::server

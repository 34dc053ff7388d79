// Counts per thread and namespace; merges when somebody asks.
#include "server/admin/native_stats.h"

#include <cstring>
#include <iterator>
#include <map>

namespace idemd::server {
namespace {

constexpr absl::string_view kNames[] = {
    "tokens-issued",
    "tokens-consumed",
    "tokens-repeated",
    "tokens-duplicate",
    "tokens-expired",
    "tokens-unissued",
    "tokens-refused",
    "reserved",
    "taken-over",
    "held",
    "pending-hits",
    "replays",
    "mismatches",
    "unknown-hits",
    "completed",
    "completed-late",
    "no-result",
    "failed",
    "released",
    "stale-refused",
    "waits",
    "waits-served",
    "transitions-moved",
    "transitions-already",
    "transitions-refused",
    "throttle-allowed",
    "throttle-limited",
};
static_assert(std::size(kNames) == kNativeCounters);

// A namespace is a name that somebody reads; what is longer counts under "*" and costs no memory.
constexpr size_t kNameBytesMax = 256;

}  // namespace

absl::string_view NativeCounterName(NativeCounter counter) {
  return kNames[static_cast<size_t>(counter)];
}

uint64_t NativeTotals::duplicates_blocked() const {
  return of(NativeCounter::kTokensDuplicate) + of(NativeCounter::kPendingHits) +
         of(NativeCounter::kReplays) + of(NativeCounter::kTransitionsAlready);
}

void NativeTotals::Add(const NativeTotals& other) {
  for (size_t i = 0; i < kNativeCounters; ++i) values[i] += other.values[i];
}

absl::string_view NamespaceOf(absl::string_view key) {
  // Unlike rfind() it looks at many bytes at a time.
  const void* const colon = key.empty() ? nullptr : memrchr(key.data(), ':', key.size());
  return colon == nullptr ? absl::string_view() : key.substr(0, static_cast<size_t>(static_cast<const char*>(colon) - key.data()) + 1);
}

// Written by one thread.
struct NativeStats::Counters {
  std::array<std::atomic<uint64_t>, kNativeCounters> values{};
};

struct NativeStats::ThreadTable {
  storage::Mutex mutex;
  // Changed by the owner under the mutex; read by the owner without it, by others with it.
  absl::flat_hash_map<std::string, std::unique_ptr<Counters>> by_name;
  Counters others;
  // The owner's alone.
  uint64_t copied = 0;  // the complete set that by_name holds all of
  std::string last_name;
  Counters* last = nullptr;
};

NativeStats::NativeStats(size_t max_namespaces)
    : id_([] {
        static std::atomic<uint64_t> next{1};
        return next.fetch_add(1, std::memory_order_relaxed);
      }()),
      max_namespaces_(max_namespaces) {}

NativeStats::~NativeStats() = default;

NativeStats::ThreadTable& NativeStats::MyTable() {
  struct Mine {
    uint64_t id = 0;
    ThreadTable* table = nullptr;
  };
  // One pointer is enough: a server has one NativeStats. A thread that goes to and fro between two
  // (in tests) gets a new table each time, and no count is lost.
  thread_local Mine mine;
  if (mine.id != id_) {
    storage::MutexLock lock(mutex_);
    tables_.push_back(std::make_unique<ThreadTable>());
    mine = {id_, tables_.back().get()};
  }
  return *mine.table;
}

void NativeStats::Count(absl::string_view key, NativeCounter counter, uint64_t n) {
  ThreadTable& table = MyTable();
  std::atomic<uint64_t>& value =
      CountersOf(table, NamespaceOf(key)).values[static_cast<size_t>(counter)];
  value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

NativeStats::Counters& NativeStats::CountersOf(ThreadTable& table, absl::string_view name) {
  // A pipeline stays in its namespace: comparing is cheaper than hashing.
  if (table.last != nullptr && table.last_name == name) return *table.last;
  if (name.size() > kNameBytesMax) return table.others;
  const auto it = table.by_name.find(name);
  Counters* counters = it != table.by_name.end() ? it->second.get() : nullptr;
  if (counters == nullptr) {
    const uint64_t complete = complete_.load(std::memory_order_relaxed);
    if (complete != 0 && complete == table.copied) return table.others;
    counters = &Meet(table, name);
    if (counters == &table.others) return table.others;
  }
  table.last_name.assign(name.data(), name.size());
  table.last = counters;
  return *counters;
}

// A namespace that this thread has not seen yet.
NativeStats::Counters& NativeStats::Meet(ThreadTable& table, absl::string_view name) {
  storage::MutexLock lock(mutex_);
  storage::MutexLock table_lock(table.mutex);
  const auto own = [&](absl::string_view known) -> Counters& {
    std::unique_ptr<Counters>& slot = table.by_name[std::string(known)];
    if (slot == nullptr) slot = std::make_unique<Counters>();
    return *slot;
  };
  if (names_.contains(name)) return own(name);
  if (names_.size() < max_namespaces_) {
    names_.insert(std::string(name));
    return own(name);
  }
  for (const std::string& known : names_) own(known);
  if (complete_.load(std::memory_order_relaxed) == 0)
    complete_.store(++sets_, std::memory_order_relaxed);
  table.copied = complete_.load(std::memory_order_relaxed);
  return table.others;
}

void NativeStats::set_max_namespaces(size_t max) {
  storage::MutexLock lock(mutex_);
  max_namespaces_ = max;
  complete_.store(0, std::memory_order_relaxed);
}

NativeTotals NativeStats::Read(const Counters& counters) {
  NativeTotals totals;
  for (size_t i = 0; i < kNativeCounters; ++i)
    totals.values[i] = counters.values[i].load(std::memory_order_relaxed);
  return totals;
}

NativeTotals NativeStats::Sum(absl::string_view prefix) const {
  NativeTotals sum;
  storage::MutexLock lock(mutex_);
  for (const auto& table : tables_) {
    storage::MutexLock table_lock(table->mutex);
    for (const auto& [name, counters] : table->by_name) {
      if (absl::string_view(name).substr(0, prefix.size()) == prefix) sum.Add(Read(*counters));
    }
    if (prefix.empty()) sum.Add(Read(table->others));
  }
  return sum;
}

std::vector<std::pair<std::string, NativeTotals>> NativeStats::Namespaces() const {
  std::map<std::string, NativeTotals> merged;
  NativeTotals others;
  {
    storage::MutexLock lock(mutex_);
    for (const auto& table : tables_) {
      storage::MutexLock table_lock(table->mutex);
      for (const auto& [name, counters] : table->by_name) merged[name].Add(Read(*counters));
      others.Add(Read(table->others));
    }
  }
  std::vector<std::pair<std::string, NativeTotals>> all(merged.begin(), merged.end());
  if (others.values != NativeTotals().values) all.emplace_back(std::string(kOthers), others);
  return all;
}

}  // namespace idemd::server

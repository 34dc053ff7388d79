// Counters of the native commands, per namespace: the key up to and including its last ':'.
//
// Threads     Count(): any; a thread writes to its own table only, by relaxed stores, so counting
// shares nothing. The
//             mutex of a table is taken by its thread to add a namespace, and by readers. Readers
//             see each counter whole, not all of one moment.
// Limits      At most max_namespaces are kept apart; those that come later are summed under "*".
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

enum class NativeCounter : uint8_t {
  kTokensIssued,
  kTokensConsumed,
  kTokensRepeated,
  kTokensDuplicate,
  kTokensExpired,
  kTokensUnissued,
  kTokensRefused,
  kReserved,  // take-overs included
  kTakenOver,
  kHeld,
  kPendingHits,
  kReplays,
  kMismatches,
  kUnknownHits,
  kCompleted,      // late ones and those without a result included
  kCompletedLate,  // those without a result included
  kNoResult,
  kFailed,
  kReleased,
  kStaleRefused,
  kWaits,
  kWaitsServed,
  kTransitionsMoved,
  kTransitionsAlready,
  kTransitionsRefused,
  kThrottleAllowed,
  kThrottleLimited,
};
inline constexpr size_t kNativeCounters = static_cast<size_t>(NativeCounter::kThrottleLimited) + 1;

// "tokens-issued", as IDEM.STATS shows it.
absl::string_view NativeCounterName(NativeCounter counter);

// The counters at one moment.
struct NativeTotals {
  std::array<uint64_t, kNativeCounters> values{};

  uint64_t of(NativeCounter counter) const { return values[static_cast<size_t>(counter)]; }
  // Calls that would have done a thing twice and were told not to.
  uint64_t duplicates_blocked() const;
  void Add(const NativeTotals& other);
};

absl::string_view NamespaceOf(absl::string_view key);

class NativeStats {
 public:
  static constexpr size_t kMaxNamespaces = 1000;  // idem-max-namespaces, by default
  static constexpr absl::string_view kOthers = "*";

  explicit NativeStats(size_t max_namespaces = kMaxNamespaces);
  ~NativeStats();
  NativeStats(const NativeStats&) = delete;
  NativeStats& operator=(const NativeStats&) = delete;

  void Count(absl::string_view key, NativeCounter counter, uint64_t n = 1);
  // Namespaces that are kept apart already stay so.
  void set_max_namespaces(size_t max);

  NativeTotals Totals() const { return Sum(""); }
  // Of the namespaces that begin with `prefix`; "*" only where the prefix is empty.
  NativeTotals Sum(absl::string_view prefix) const;
  // By name; "*" last, when anything was counted there.
  std::vector<std::pair<std::string, NativeTotals>> Namespaces() const;

 private:
  struct Counters;
  struct ThreadTable;
  ThreadTable& MyTable();
  Counters& CountersOf(ThreadTable& table, absl::string_view name);
  Counters& Meet(ThreadTable& table, absl::string_view name);
  static NativeTotals Read(const Counters& counters);

  const uint64_t id_;  // tells the objects of a process apart, for the threads' own pointers
  // 0 while there is room for another namespace; else the number of the set that is complete, so
  // that a thread that has copied it need not ask again.
  std::atomic<uint64_t> complete_{0};
  // Lock order: mutex_, then a table's.
  mutable storage::Mutex mutex_;
  size_t max_namespaces_ ABSL_GUARDED_BY(mutex_);
  uint64_t sets_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ThreadTable>> tables_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server

// Where effects go when a unit commits, and when what they revealed may leave.
//
// Append() is called under the shard locks of the unit, so the order of the log is the order of execution. It must
// neither block on a disk nor fail: admission (room, memory, health) was decided before the locks.
//
// Threads   any, for every method.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/effect.h"
#include "storage/sync/mutex.h"

namespace idemd::storage {

class EffectLog {
 public:
  virtual ~EffectLog() = default;
  // Whether Append() wants to see effects at all; a unit skips building the value text when not. Changes only while all
  // shard locks are held; see Store::SetLogging().
  virtual bool wants_effects() const = 0;
  // One unit: all of these or none. Returns the LSN that a reply which reveals them must wait for.
  virtual Lsn Append(absl::Span<const Effect> effects) = 0;
  // No fence up to and including `fence` is given out a second time, by whoever reads the log up to the LSN of the next
  // Append().
  virtual void ReserveFences(uint64_t fence) = 0;

  // Everything up to and including this LSN may be revealed: it is on disk, or as good as the setting asks for.
  virtual Lsn released() const = 0;
  // Somebody has replies that wait for `lsn`. Either it is released when this returns, or OnReleased() is told later.
  virtual void Release(Lsn lsn) = 0;
  // Admission: an error whose text is for the client while new writes must be refused (the disk is full, a sync failed).
  virtual absl::Status Refusal() const = 0;
  // Whether Refusal() is an error: one relaxed load, for the path of every write. Who implements Refusal() sets it.
  bool refusing() const { return refusing_.load(std::memory_order_relaxed); }

 protected:
  void SetRefusing(bool refusing) { refusing_.store(refusing, std::memory_order_relaxed); }

 private:
  std::atomic<bool> refusing_{false};
};

// Keeps nothing: the server without persistence. Every LSN is kNoLsn, so no reply waits and nothing is shared
// between threads.
class NullLog final : public EffectLog {
 public:
  bool wants_effects() const override { return false; }
  Lsn Append(absl::Span<const Effect>) override { return kNoLsn; }
  void ReserveFences(uint64_t) override {}
  Lsn released() const override { return kNoLsn; }
  void Release(Lsn) override {}
  absl::Status Refusal() const override { return absl::OkStatus(); }
};

// Keeps effects in memory, as text, for tests: "SET 0 key value PXAT 123", "DEL 0 key".
class MemoryLog final : public EffectLog {
 public:
  bool wants_effects() const override { return true; }
  Lsn Append(absl::Span<const Effect> effects) override;
  void ReserveFences(uint64_t fence) override;
  Lsn released() const override;
  void Release(Lsn) override {}
  absl::Status Refusal() const override;
  void Refuse(absl::Status why);  // from now on; OK: no longer
  // One inner vector per unit.
  std::vector<std::vector<std::string>> Units() const;
  uint64_t fences() const;  // reserved up to here

 private:
  mutable Mutex mutex_;
  std::vector<std::vector<std::string>> units_ ABSL_GUARDED_BY(mutex_);
  uint64_t fences_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
};

std::string DescribeEffect(const Effect& effect);

}  // namespace idemd::storage

// Where effects go when a unit commits.
//
// Append() is called under the shard locks of the unit, so the order of the log is the order of execution. It must
// neither block on a disk nor fail: admission (room, memory, health) was decided before the locks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "storage/effect.h"
#include "storage/sync/mutex.h"

namespace idemd::storage {

class EffectLog {
 public:
  virtual ~EffectLog() = default;
  // Whether Append() wants to see effects at all; a unit skips building the value text when not.
  virtual bool wants_effects() const = 0;
  // One unit: all of these or none. Returns the LSN that a reply which reveals them must wait for.
  virtual Lsn Append(absl::Span<const Effect> effects) = 0;
  // Everything up to and including this LSN survives the configured fault.
  virtual Lsn durable() const = 0;
};

// Keeps nothing: the server without persistence. Every LSN is kNoLsn, so no reply waits and nothing is shared
// between threads.
class NullLog final : public EffectLog {
 public:
  bool wants_effects() const override { return false; }
  Lsn Append(absl::Span<const Effect>) override { return kNoLsn; }
  Lsn durable() const override { return kNoLsn; }
};

// Keeps effects in memory, as text, for tests: "SET 0 key value PXAT 123", "DEL 0 key".
class MemoryLog final : public EffectLog {
 public:
  bool wants_effects() const override { return true; }
  Lsn Append(absl::Span<const Effect> effects) override;
  Lsn durable() const override;
  // One inner vector per unit.
  std::vector<std::vector<std::string>> Units() const;

 private:
  mutable Mutex mutex_;
  std::vector<std::vector<std::string>> units_ ABSL_GUARDED_BY(mutex_);
};

std::string DescribeEffect(const Effect& effect);

}  // namespace idemd::storage

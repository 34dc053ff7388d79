// What a server has done, unit by unit, and which of it was acknowledged: the truth that a recovery
// is held against.
//
// Threads   one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "storage/effect.h"
#include "storage/effect_log.h"
#include "storage/store.h"

namespace idemd::testing {

class Shadow;

struct Held {
  std::string value;  // of a record: its text; of a collection: as Shown()
  int64_t deadline_ms = storage::kNoDeadline;
  bool operator==(const Held&) const = default;
};
// "db key" -> what it holds.
using Keys = std::map<std::string, Held>;

std::string NameOf(storage::DbIndex db, absl::string_view key);
// All databases of a store, as somebody sees them who looks at every key.
Keys KeysOf(storage::Store& store);
// The first few differences, for a report.
std::string Differences(const Keys& expected, const Keys& found);

class History {
 public:
  History();
  ~History();
  // A unit was appended to the log; `lsn` is what the log gave it.
  void Add(storage::Lsn lsn, absl::Span<const storage::Effect> effects);
  // Everything up to `lsn` is safe for good.
  void Settle(storage::Lsn lsn);
  // The LSN of the unit, not before `lsn`, after which the keys were `found`. Nothing: they never
  // were like that.
  std::optional<storage::Lsn> Match(storage::Lsn lsn, const Keys& found);
  // After a recovery that found the state as of `lsn`, which is in `store`: what came later has never
  // happened, and LSNs begin anew.
  void ForgetAfter(storage::Lsn lsn, storage::Store& store);

  const Keys& settled() const { return settled_; }
  Keys now();
  storage::Lsn last() const { return units_.empty() ? settled_lsn_ : units_.back().lsn; }
  // The highest fence in any record of a unit up to `lsn`.
  uint64_t FenceUpTo(storage::Lsn lsn) const;

 private:
  struct Copy {
    storage::Effect effect;  // its views are into these
    std::string key, value;
    std::optional<std::string> shown;  // of a collection: what the key holds after it
  };
  struct Unit {
    storage::Lsn lsn = 0;
    uint64_t fence = 0;
    std::vector<Copy> effects;
  };
  // Finds out what units did to collections. Not when they are added: then they are not over yet, and
  // the handlers that would do it again are perhaps in the middle of doing it.
  void Understand();
  static void Apply(const Unit& unit, Keys* keys);

  Keys settled_;
  storage::Lsn settled_lsn_ = 0;
  uint64_t settled_fence_ = 0;
  std::deque<Unit> units_;  // behind what is settled
  size_t understood_ = 0;   // of them
  std::unique_ptr<Shadow> shadow_;  // null until there is a collection
};

// The log of a server under test: tells the history, and can be given the faults that a campaign
// must notice.
class WatchedLog final : public storage::EffectLog {
 public:
  enum class Fault : uint8_t {
    kNone,
    kForgetsDeletes,  // a deletion is not logged
    kForgetsParts,    // what changes a part of a set is not logged
    kDoublesParts,    // what changes a part of a collection is logged twice
    kAnswersEarly,    // released() does not wait for the disk
  };
  WatchedLog(storage::EffectLog& log, History& history, Fault fault)
      : log_(log), history_(history), fault_(fault) {}

  bool wants_effects() const override { return log_.wants_effects(); }
  storage::Lsn Append(absl::Span<const storage::Effect> effects) override;
  void ReserveFences(uint64_t fence) override { log_.ReserveFences(fence); }
  storage::Lsn released() const override {
    return fault_ == Fault::kAnswersEarly ? last_ : log_.released();
  }
  void Release(storage::Lsn lsn) override;
  absl::Status Refusal() const override { return log_.Refusal(); }

 private:
  storage::EffectLog& log_;
  History& history_;
  const Fault fault_;
  // The effects that the faulty log is told.
  std::vector<storage::Effect> Told(absl::Span<const storage::Effect> effects) const;
  storage::Lsn last_ = 0;
};

}  // namespace idemd::testing

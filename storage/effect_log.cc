// Effects as text, and the log that tests read.
#include "storage/effect_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::storage {

std::string DescribeEffect(const Effect& effect) {
  switch (effect.kind) {
    case EffectKind::kSet: {
      std::string text = absl::StrCat("SET ", effect.db, " ", effect.key, " ", effect.value);
      if (effect.deadline_ms != kNoDeadline) absl::StrAppend(&text, " PXAT ", effect.deadline_ms);
      return text;
    }
    case EffectKind::kRestore:
      return absl::StrCat("RESTORE ", effect.db, " ", effect.key, " ", effect.deadline_ms == kNoDeadline ? 0 : effect.deadline_ms);
    case EffectKind::kCommand:
      return std::string(effect.value);
    case EffectKind::kDelete:
      return absl::StrCat("DEL ", effect.db, " ", effect.key);
    case EffectKind::kExpireAt:
      return absl::StrCat("PEXPIREAT ", effect.db, " ", effect.key, " ", effect.deadline_ms);
    case EffectKind::kPersist:
      return absl::StrCat("PERSIST ", effect.db, " ", effect.key);
    case EffectKind::kFlushDb:
      return absl::StrCat("FLUSHDB ", effect.db);
    case EffectKind::kFlushAll:
      return "FLUSHALL";
    case EffectKind::kSwapDb:
      return absl::StrCat("SWAPDB ", effect.db, " ", effect.other_db);
  }
  return "";
}

Lsn MemoryLog::Append(absl::Span<const Effect> effects) {
  std::vector<std::string> unit;
  for (const Effect& effect : effects) unit.push_back(DescribeEffect(effect));
  MutexLock lock(mutex_);
  units_.push_back(std::move(unit));
  return units_.size();
}

Lsn MemoryLog::released() const {
  MutexLock lock(mutex_);
  return units_.size();
}

void MemoryLog::ReserveFences(uint64_t fence) {
  MutexLock lock(mutex_);
  fences_ = std::max(fences_, fence);
}

uint64_t MemoryLog::fences() const {
  MutexLock lock(mutex_);
  return fences_;
}

absl::Status MemoryLog::Refusal() const {
  MutexLock lock(mutex_);
  return refusal_;
}

void MemoryLog::Refuse(absl::Status why) {
  MutexLock lock(mutex_);
  refusal_ = std::move(why);
  SetRefusing(!refusal_.ok());
}

std::vector<std::vector<std::string>> MemoryLog::Units() const {
  MutexLock lock(mutex_);
  return units_;
}

}  // namespace idemd::storage

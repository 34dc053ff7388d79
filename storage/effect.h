// An effect: the plain Redis write that a command amounted to.
//
// Effects are absolute and unconditional, and full-value but for parts of collections: replaying them in order gives the same
// keys, and a stock Redis can load them. Deciding is over when an effect exists; nothing that reads one asks the clock again.
// Lifetime  the views of an Effect live as long as the unit that made it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/clock.h"

namespace idemd::storage {

using DbIndex = uint32_t;

// Log sequence number: the place of an effect in the order of execution. 0 means "nothing to wait for".
using Lsn = uint64_t;
inline constexpr Lsn kNoLsn = 0;

enum class EffectKind : uint8_t {
  kSet,       // SET key value [PXAT deadline]
  kRestore,   // RESTORE key deadline value REPLACE ABSTTL: a whole collection
  kCommand,   // `value`: what changed a part of a collection, in RESP
  kDelete,    // DEL key
  kExpireAt,  // PEXPIREAT key deadline
  kPersist,   // PERSIST key
  kFlushDb,   // FLUSHDB
  kFlushAll,  // FLUSHALL
  kSwapDb,    // SWAPDB db other_db
};

struct Effect {
  EffectKind kind = EffectKind::kSet;
  DbIndex db = 0;
  DbIndex other_db = 0;
  absl::string_view key;
  absl::string_view value;  // of a record: its text form; of a collection: what DUMP gives
  int64_t deadline_ms = kNoDeadline;
};

}  // namespace idemd::storage

// Commands that wait until a key holds something for them: BLPOP, BLMOVE, BZPOPMIN, XREAD BLOCK and their kin.
//
// PopOrWait() is all that a popping command needs. Others lock their keys and look; if something is there, they answer like
// the command that does not wait:
//
//   c.unit.LockKeys(keys);
//   ... something is at keys[i]:
//     if (OthersFirst(c, keys[i])) { lock and look once more }      // somebody has been waiting for it
//     pop, reply
//   ... nothing is there:
//     if (!MayBlock(c)) return c.reply.NullArray();                 // as though the time were up
//     BlockOn(c, {.keys = keys, .timeout_ms = ms, .wants = ValueType::kList, .serve = ...});
//
// BlockOn() puts the caller in line at its keys in the same unit that saw that they hold nothing, so nothing is missed. Whoever
// commits a unit that changed such a key calls ServeBlocked() next: in order of arrival, each caller in line is served in a unit
// of its own that looks again, and the reply goes to its connection, to leave when the log has that unit.
//
// Threads   BlockOn() and the like: the connection's. ServeBlocked(), and with it `serve`: any, outside of locks. Time is the
//           steady clock's; the connection tells when it is up (Dispatcher::WaitIsOver).
// Lifetime  `serve` outlives the request: it holds copies of what it needs of the words.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "protocol/resp/writer.h"
#include "server/commands/context.h"
#include "server/commands/services.h"
#include "storage/store.h"

namespace idemd::server {

class BlockedCaller;

// One caller's turn, under the locks of all keys that it named.
struct Turn {
  BlockedCaller* caller;  // null: it is served at once
  storage::Unit& unit;
  storage::DbIndex db;
  const storage::HashedKey& key;  // the one that changed
  protocol::Writer& reply;
  bool taken = false;

  // To be called when it is clear that the caller can be served, before anything is changed or written. False: it is gone
  // in this very moment, and nothing may happen. Not called: the caller waits on.
  [[nodiscard]] bool Take();
};

// What a caller waits for.
struct BlockedCall {
  absl::Span<const storage::HashedKey> keys = {};    // that it waits for; their locks are held
  absl::Span<const storage::HashedKey> others = {};  // that are locked too when its turn comes
  int64_t timeout_ms = 0;                            // 0: for ever
  storage::ValueType wants = storage::ValueType::kNone;
  bool minds_absence = false;  // it has its turn, too, when nothing or something else is there (XREADGROUP)
  std::function<void(Turn&)> serve = {};
};

// False inside of EXEC and scripts, where nobody waits.
inline bool MayBlock(const Context& c) { return !c.unit.sealed(); }
// The session waits from now on; nothing is written. At the end of its time, and for CLIENT UNBLOCK, it gets a null array.
void BlockOn(Context& c, const BlockedCall& call);

// For commands that pop from the first of `call.keys` that there is: locks them, looks, and lets `call.serve` pop and reply,
// at once or when its turn has come. That only is called where something of the wanted type is.
void PopOrWait(Context& c, BlockedCall call);

// Before a caller that waits, if it must, takes something at `key` (whose lock is held): whoever has been in line longer is
// served. True: there was somebody, the unit's locks are gone, and the caller has to look again.
[[nodiscard]] bool OthersFirst(Context& c, const storage::HashedKey& key);

// Serves those in line at the keys, and at the keys that serving them makes ready.
void ServeBlocked(Services& services, std::vector<storage::ReadyKey> ready);

// Reads words[i]: seconds, with a fraction; writes the error and returns false when they are none.
[[nodiscard]] bool ReadTimeout(Context& c, size_t i, int64_t* ms);

}  // namespace idemd::server

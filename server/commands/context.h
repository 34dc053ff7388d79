// What a handler gets: the words, the session, one unit of storage work, and the reply to write.
//
// A handler checks its words, locks its keys through the unit, and writes exactly one reply. Dispatch commits the unit.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "protocol/resp/writer.h"
#include "server/commands/command.h"
#include "server/commands/services.h"
#include "server/session.h"
#include "storage/store.h"

namespace idemd::server {

struct ThreadStats;  // server/admin/stats.h

struct Context {
  Services& services;
  Session& session;
  storage::Unit& unit;
  protocol::Writer& reply;
  absl::Span<const absl::string_view> words;  // words[0] is the command's name; subcommands: words[1] too
  const CommandSpec* spec;
  int first_key;                      // its position, 0: none
  const storage::HashedKey& hashed;   // that key, hashed; of what has a fixed first key, always there
  ThreadStats* thread_stats = nullptr;  // of this loop thread
  bool error_counted = false;           // the reply is an error that a command inside has counted

  storage::Unit& Data() { return unit; }
  storage::DbIndex db() const { return session.db; }
  // Tells of what this command did to a key of its database; see Unit::Notify().
  void Notify(storage::EventClass event_class, const char* event, const storage::HashedKey& key) {
    unit.Notify(event_class, event, session.db, key.bytes);
  }
  // The key at words[i].
  storage::HashedKey Key(size_t i) const {
    return static_cast<int>(i) == first_key ? hashed : storage::HashedKey(words[i]);
  }
  // Reads words[i] as an integer; writes the usual error and returns false when it is none.
  [[nodiscard]] bool Int(size_t i, int64_t* value, absl::string_view error = protocol::errors::kNotInteger) {
    if (protocol::ParseInt64(words[i], value)) return true;
    reply.Error(error);
    return false;
  }
  void Syntax() { reply.Error(protocol::errors::kSyntax); }
};

}  // namespace idemd::server

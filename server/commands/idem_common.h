// What the handlers of native commands share: errors of a life in words, and a token's origin.
#pragma once

#include "server/admin/native_stats.h"
#include "server/commands/context.h"
#include "storage/record/life.h"

namespace idemd::server {

// Writes the error, and counts a stale fence.
void ReplyLifeError(Context& c, absl::string_view key, storage::LifeError error);
// As text, for a reply that is not written through a Context. `fence`: the caller's, 0 where there
// is none.
std::string LifeErrorText(storage::LifeError error, absl::string_view fence);

// For a command that takes at most so many words, which an arity cannot say.
void ReplyWrongArity(Context& c);

// What the key's own text says about the token that is or was there.
storage::TokenOrigin OriginOf(const storage::TokenMint& tokens, storage::DbIndex db,
                              absl::string_view key, int64_t now_ms);

}  // namespace idemd::server

// What the rest of the commands needs of IDEM.RESERVE: its reply, its counters, its waiters.
#pragma once

#include <cstdint>
#include <memory>

#include "protocol/resp/writer.h"
#include "server/admin/native_stats.h"
#include "server/commands/context.h"
#include "server/commands/idem_options.h"
#include "storage/record/life.h"

namespace idemd::server {

storage::ReserveRequest RequestOf(const IdemOptions& options);

// The six elements. `status` and the payload are given apart where they are not those of the
// decision.
void WriteReserveReply(protocol::Writer& reply, const storage::ReserveReply& answer);
void WriteReserveReply(protocol::Writer& reply, absl::string_view status,
                       const storage::ReserveReply& answer, absl::string_view payload);

void CountReserve(NativeStats& native, absl::string_view key, storage::ReserveStatus status,
                  bool took_over);

// Puts the session in line at words[1], whose lock is held and whose answer was PENDING. False:
// nobody may wait (too many do), and the caller answers at once.
[[nodiscard]] bool BeginWait(Context& c, const storage::HashedKey& key,
                             const storage::ReserveRequest& request, int64_t wait_ms);

}  // namespace idemd::server

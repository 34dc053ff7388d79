// Errors of a life in words, and a token's origin.
#include "server/commands/idem_common.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "storage/token/token.h"

namespace idemd::server {

namespace errors = protocol::errors;
using storage::LifeError;

std::string LifeErrorText(LifeError error, absl::string_view fence) {
  switch (error) {
    case LifeError::kNone:
      break;
    case LifeError::kWrongType:
      return std::string(errors::kWrongType);
    case LifeError::kDamagedRecord:
      return std::string(errors::kDamagedRecord);
    case LifeError::kOutOfMemory:
      return std::string(errors::kOutOfMemory);
    case LifeError::kNotFound:
      return std::string(errors::kNotFound);
    case LifeError::kStale:
      return absl::StrCat("STALE fence ", fence,
                          " is not the current claim; the claim lapsed and was taken over, or was "
                          "given up: stop and "
                          "do not apply the effect");
    case LifeError::kConflict:
      return std::string(errors::kConflict);
    case LifeError::kTooLarge:
      return std::string(errors::kCheckpointTooLarge);
    case LifeError::kRange:
      return std::string(errors::kTimeRange);
  }
  return {};
}

void ReplyLifeError(Context& c, absl::string_view key, LifeError error) {
  if (error == LifeError::kStale) c.services.native.Count(key, NativeCounter::kStaleRefused);
  // Only fenced commands get STALE, and they have the fence behind the key.
  c.reply.Error(
      LifeErrorText(error, error == LifeError::kStale ? c.words[2] : absl::string_view()));
}

void ReplyWrongArity(Context& c) {
  c.reply.Error(absl::StrCat("ERR wrong number of arguments for '",
                             absl::AsciiStrToLower(c.spec->name), "' command"));
}

storage::TokenOrigin OriginOf(const storage::TokenMint& tokens, storage::DbIndex db,
                              absl::string_view key, int64_t now_ms) {
  const storage::TokenReading reading = tokens.Read(db, key);
  if (!reading.issued) return storage::TokenOrigin::kUnissued;
  return reading.expiry_ms <= now_ms ? storage::TokenOrigin::kExpired : storage::TokenOrigin::kLive;
}

}  // namespace idemd::server

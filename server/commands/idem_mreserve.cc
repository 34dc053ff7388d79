// IDEM.MRESERVE: claims several keys, all or none.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/groups.h"
#include "server/commands/idem_args.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_reserve.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::LifeError;
using storage::ReserveOutcome;
using storage::ReserveStatus;

constexpr int64_t kKeysMax = 1000;  // bounded time under the locks
constexpr size_t kFirstKey = 2;

// words[1]: how many keys follow. False when that is no number of keys, or fewer words follow.
bool ReadCount(absl::Span<const absl::string_view> words, size_t* count) {
  int64_t number = 0;
  if (words.size() <= kFirstKey || !protocol::ParseInt64(words[1], &number) || number < 1 ||
      number > kKeysMax || static_cast<size_t>(number) > words.size() - kFirstKey) {
    return false;
  }
  *count = static_cast<size_t>(number);
  return true;
}

bool FindKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  size_t count = 0;
  positions.clear();
  if (!ReadCount(words, &count)) return false;
  for (size_t i = 0; i < count; ++i) positions.push_back(static_cast<int>(kFirstKey + i));
  return true;
}

// Decides for every key, as the keys are now, and returns the first error. Granted claims get no
// fence yet: the batch may still be refused.
LifeError DecideAll(Context& c, absl::Span<const HashedKey> keys,
                    const storage::ReserveRequest& request, const storage::Limits& limits,
                    std::vector<ReserveOutcome>& outcomes) {
  for (const HashedKey& key : keys) {
    outcomes.push_back(storage::Reserve(
        storage::SubjectOf(c.unit.Find(c.db(), key)), request, c.unit.now_ms(), limits,
        [] { return uint64_t{0}; }, [] { return storage::TokenOrigin::kUnissued; }));
    if (outcomes.back().error != LifeError::kNone) return outcomes.back().error;
  }
  return LifeError::kNone;
}

bool IsMine(const ReserveOutcome& outcome) {
  return outcome.reply.status == ReserveStatus::kReserved ||
         outcome.reply.status == ReserveStatus::kHeld;
}

void AnswerReserved(Context& c, absl::Span<const HashedKey> keys,
                    std::vector<ReserveOutcome>& outcomes) {
  c.reply.Bulk("RESERVED");
  for (size_t i = 0; i < keys.size(); ++i) {
    ReserveOutcome& outcome = outcomes[i];
    if (outcome.reply.status == ReserveStatus::kReserved) {
      outcome.reply.fence = c.services.store.fences().Next();
      outcome.action.record.fence = outcome.reply.fence;
    }
    WriteReserveReply(c.reply, outcome.reply);
    c.unit.Apply(c.db(), keys[i], outcome.action);
    CountReserve(c.services.native, keys[i].bytes, outcome.reply.status, outcome.took_over);
  }
}

void AnswerRefused(Context& c, absl::Span<const HashedKey> keys,
                   const std::vector<ReserveOutcome>& outcomes) {
  c.reply.Bulk("REFUSED");
  for (size_t i = 0; i < keys.size(); ++i) {
    const storage::ReserveReply& reply = outcomes[i].reply;
    if (reply.status == ReserveStatus::kReserved) {
      storage::ReserveReply free;
      free.attempt = reply.attempt;
      WriteReserveReply(c.reply, "FREE", free, {});
      continue;
    }
    if (reply.status == ReserveStatus::kDone)
      storage::Unit::CountReplay(c.unit.Find(c.db(), keys[i], false));
    WriteReserveReply(c.reply, reply);
    CountReserve(c.services.native, keys[i].bytes, reply.status, false);
  }
}

void Mreserve(Context& c) {
  size_t count = 0;
  if (!ReadCount(c.words, &count)) return c.reply.Error(errors::kNumKeys);
  IdemOptions options;
  constexpr uint32_t kAllowed =
      kOptClaim | kOptFingerprint | kOptLease | kOptLifetime | kOptOnLapse;
  if (!ReadIdemOptions(c, kFirstKey + count, kAllowed, &options)) return;
  std::vector<HashedKey> keys;
  keys.reserve(count);
  absl::flat_hash_set<absl::string_view> seen;
  for (size_t i = 0; i < count; ++i) {
    keys.push_back(c.Key(kFirstKey + i));
    if (!seen.insert(keys.back().bytes).second) return c.reply.Error(errors::kKeyTwice);
  }

  c.services.store.PrefetchAll(c.db(), keys, true);
  c.unit.LockKeys(keys);
  for (const HashedKey& key : keys) c.unit.ServeDueWaiters(c.db(), key);
  std::vector<ReserveOutcome> outcomes;
  outcomes.reserve(count);
  const LifeError error =
      DecideAll(c, keys, RequestOf(options), c.services.store.CurrentLimits(), outcomes);
  if (error == LifeError::kRange) return ReplyInvalidTime(c);
  if (error != LifeError::kNone) return ReplyLifeError(c, {}, error);
  c.reply.Array(count + 1);
  if (std::all_of(outcomes.begin(), outcomes.end(), IsMine)) {
    AnswerReserved(c, keys, outcomes);
  } else {
    AnswerRefused(c, keys, outcomes);
  }
}

constexpr ArgSpec kMreserveArgs[] = {
    {.name = "numkeys", .type = ArgType::kInteger},
    {.name = "key", .type = ArgType::kKey, .multiple = true},
    {.name = "id", .type = ArgType::kString, .token = "CLAIM", .optional = true},
    {.name = "fp", .type = ArgType::kString, .token = "FINGERPRINT", .optional = true},
    {.name = "lease-ms", .type = ArgType::kInteger, .token = "LEASE", .optional = true},
    {.name = "lifetime", .type = ArgType::kOneOf, .optional = true, .args = kLifetimeArgs},
    {.name = "onlapse",
     .type = ArgType::kOneOf,
     .token = "ONLAPSE",
     .optional = true,
     .args = kOnLapseArgs}};

constexpr CommandSpec kIdemMreserveCommands[] = {
    {.name = "IDEM.MRESERVE",
     .handler = &Mreserve,
     .arity = -3,
     .flags = kWrite,
     .find_keys = &FindKeys,
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .complexity = "O(N) where N is the number of keys",
     .summary = "Claims several keys, all or none.",
     .args = kMreserveArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemMreserveCommands() { return kIdemMreserveCommands; }

}  // namespace idemd::server

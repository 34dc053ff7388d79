// IDEM.TOKEN makes one-shot tokens, IDEM.CONSUME uses one up.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "protocol/errors.h"
#include "server/admin/settings.h"
#include "server/commands/groups.h"
#include "server/commands/idem_args.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_options.h"
#include "storage/record/lifetime.h"
#include "storage/token/token.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::ConsumeStatus;
using storage::HashedKey;
using storage::LifeError;

// Keys for new tokens. Those of a pipeline are made when the first of them is asked for: what they need of the table is then fetched for
// all of them together. One that does not fit after all (another prefix, or a millisecond later) was shown to nobody, and is forgotten.
//
// Threads   one for each.
class TokenKeys {
 public:
  static constexpr size_t kPrefixBytesMax = 256;  // of those that are made ahead, which stay

  struct Kind {
    storage::DbIndex db = 0;
    absl::string_view prefix;
    int64_t deadline_ms = 0;
  };
  // Makes `count` of them and fetches for them; none where there is no randomness.
  absl::Span<const HashedKey> Make(const Services& services, const Kind& kind, size_t count) {
    const size_t key_bytes = kind.prefix.size() + storage::kTokenChars;
    keys_.clear();
    next_ = 0;
    keys_.reserve(count);
    bytes_.resize(count * key_bytes);
    for (size_t i = 0; i < count; ++i) {
      char* key = bytes_.data() + i * key_bytes;
      kind.prefix.copy(key, kind.prefix.size());
      if (!services.tokens.Issue(kind.db, kind.prefix, kind.deadline_ms, key + kind.prefix.size())) {
        keys_.clear();
        return keys_;
      }
      keys_.emplace_back(absl::string_view(key, key_bytes));
    }
    kind_ = {kind.db, absl::string_view(bytes_.data(), kind.prefix.size()), kind.deadline_ms};
    services.store.PrefetchAll(kind.db, keys_, true);
    return keys_;
  }
  // One of them, good until the next call. `*ahead`: how many more are likely to be asked for; 0 from when that turns out to be wrong on.
  absl::Span<const HashedKey> Next(const Services& services, const Kind& kind, uint32_t* ahead) {
    const bool left = next_ < keys_.size();
    if (!left || kind.db != kind_.db || kind.deadline_ms != kind_.deadline_ms || kind.prefix != kind_.prefix) {
      if (left) *ahead = 0;
      if (Make(services, kind, 1 + *ahead).empty()) return {};
    }
    return absl::MakeConstSpan(keys_).subspan(next_++, 1);
  }

 private:
  std::vector<char> bytes_;
  std::vector<HashedKey> keys_;
  size_t next_ = 0;
  Kind kind_;  // of all; its prefix is in bytes_
};

void Token(Context& c) {
  IdemOptions options;
  options.value = "1";
  if (!ReadIdemOptions(c, 2, kOptTimed | kOptValue | kOptCount, &options)) return;
  // A call has bounded time under the locks.
  const int64_t count_max = c.services.settings.idem_max_tokens.load(std::memory_order_relaxed);
  if (options.count < 1 || options.count > count_max) return c.reply.Error(absl::StrCat(errors::kCountRange, count_max));
  if (storage::LooksLikeRecord(options.value)) return c.reply.Error(errors::kReservedValue);
  storage::ResolvedLifetime lifetime;
  const int64_t ttl_ms = c.services.store.settings().token_ttl_ms.load(std::memory_order_relaxed);
  if (!storage::ResolveLifetime(options.lifetime, ttl_ms, c.unit.now_ms(), &lifetime))
    return ReplyInvalidTime(c);
  if (lifetime.deadline_ms > storage::kTokenExpiryMax)
    return c.reply.Error(errors::kTokenExpiryRange);

  // All keys are made before the first lock, since several locks are taken together.
  const auto count = static_cast<size_t>(options.count);
  const absl::string_view prefix = c.words[1];
  const TokenKeys::Kind kind{c.db(), prefix, lifetime.deadline_ms};
  thread_local TokenKeys made_ahead;
  TokenKeys made;
  uint32_t& ahead = c.session.tokens_ahead;
  if (ahead != 0) --ahead;  // this one
  const absl::Span<const HashedKey> keys = count == 1 && prefix.size() <= TokenKeys::kPrefixBytesMax
                                               ? made_ahead.Next(c.services, kind, &ahead)
                                               : made.Make(c.services, kind, count);
  if (keys.empty()) return c.reply.Error(errors::kNoRandomness);
  c.unit.LockKeys(keys);
  if (options.has(kOptCount)) c.reply.Array(count);
  for (const HashedKey& key : keys) {
    // 64 random bits and the expiry make the key: there is nothing there that could be overwritten.
    c.unit.SetString(c.db(), key, options.value, lifetime.deadline_ms);
    c.Notify(storage::EventClass::kString, "set", key);
    c.reply.Bulk(key.bytes.substr(prefix.size()));
  }
  c.services.native.Count(keys[0].bytes, NativeCounter::kTokensIssued, count);
}

NativeCounter CounterOf(const storage::ConsumeOutcome& outcome) {
  switch (outcome.status) {
    case ConsumeStatus::kConsumed:
      return outcome.repeat ? NativeCounter::kTokensRepeated : NativeCounter::kTokensConsumed;
    case ConsumeStatus::kDuplicate:
      return NativeCounter::kTokensDuplicate;
    case ConsumeStatus::kExpired:
      return NativeCounter::kTokensExpired;
    case ConsumeStatus::kRefused:
      return NativeCounter::kTokensRefused;
    case ConsumeStatus::kUnissued:
      return NativeCounter::kTokensUnissued;
  }
  return NativeCounter::kTokensUnissued;
}

void Consume(Context& c) {
  IdemOptions options;
  if (c.words.size() > 2 && !ReadIdemOptions(c, 2, kOptIfeq | kOptBy | kOptReason, &options))
    return;
  storage::ConsumeRequest request;
  request.has_ifeq = options.has(kOptIfeq);
  request.ifeq = options.ifeq;
  request.by = options.by;

  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const storage::Subject subject = storage::SubjectOf(c.unit.Find(c.db(), key));
  const int64_t now_ms = c.unit.now_ms();
  // The memory limit plays no part: consuming always works.
  storage::Limits limits;
  limits.retention_ms = c.services.store.settings().retention_ms.load(std::memory_order_relaxed);
  const storage::ConsumeOutcome outcome = storage::Consume(subject, request, now_ms, limits, [&] {
    return OriginOf(c.services.tokens, c.db(), key.bytes, now_ms);
  });
  if (outcome.error != LifeError::kNone) return ReplyLifeError(c, key.bytes, outcome.error);
  c.unit.Apply(c.db(), key, outcome.action);
  c.services.native.Count(key.bytes, CounterOf(outcome));
  if (options.has(kOptReason)) return c.reply.Simple(storage::ConsumeStatusName(outcome.status));
  c.reply.Integer(outcome.status == ConsumeStatus::kConsumed ? 1 : 0);
}

constexpr ArgSpec kTokenArgs[] = {
    {.name = "prefix", .type = ArgType::kKey},
    {.name = "expiration", .type = ArgType::kOneOf, .optional = true, .args = kTimedArgs},
    {.name = "value", .type = ArgType::kString, .token = "VALUE", .optional = true},
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr ArgSpec kConsumeArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "value", .type = ArgType::kString, .token = "IFEQ", .optional = true},
    {.name = "id", .type = ArgType::kString, .token = "BY", .optional = true},
    {.name = "reason", .type = ArgType::kToken, .token = "REASON", .optional = true}};

constexpr CommandSpec kIdemTokenCommands[] = {
    {.name = "IDEM.TOKEN",
     .handler = &Token,
     .arity = -2,
     .flags = kWrite | kDenyOom | kFast | kAnyKeys,
     .keys = Keys::At(1),
     .key_flags = "OW INSERT",
     .keys_are_prefixes = true,
     .group = Group::kIdem,
     .since = "0.1.0",
     .complexity = "O(N) where N is the number of tokens",
     .summary = "Makes unguessable one-shot tokens.",
     .args = kTokenArgs},
    {.name = "IDEM.CONSUME",
     .handler = &Consume,
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Uses up a token: one caller gets 1, everybody else 0.",
     .args = kConsumeArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemTokenCommands() { return kIdemTokenCommands; }

}  // namespace idemd::server

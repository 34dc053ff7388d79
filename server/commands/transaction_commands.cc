// Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//
// EXEC is one unit of storage: the locks of all keys that its commands name, and of the watched ones, are taken in one
// go, then the commands run one after the other, and only then the unit commits: one unit in the log, and waiters are
// looked at when all is over.
#include "server/commands/transaction.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/admin/stats.h"
#include "server/commands/acl_check.h"
#include "server/commands/groups.h"
#include "server/commands/scripts.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;

// For CLIENT LIST.
void ShowQueued(Session& session) {
  const bool inside = session.transaction != nullptr;
  session.info().queued.store(inside ? static_cast<int>(session.transaction->commands.size()) : -1, std::memory_order_relaxed);
  session.info().queued_bytes.store(inside ? session.transaction->bytes : 0, std::memory_order_relaxed);
}

void Multi(Context& c) {
  if (c.session.transaction != nullptr) return c.reply.Error("ERR MULTI calls can not be nested");
  c.session.transaction = std::make_unique<Transaction>();
  ShowQueued(c.session);
  c.reply.Ok();
}

void Discard(Context& c) {
  if (c.session.transaction == nullptr) return c.reply.Error("ERR DISCARD without MULTI");
  DropTransaction(c.services, c.session);
  c.reply.Ok();
}

void Unwatch(Services& services, const WatchedSet& watched) {
  storage::Unit unit(services.store);
  std::vector<HashedKey> keys;
  for (const auto& [db, name] : watched.keys) keys.emplace_back(name);
  unit.LockKeys(keys);
  size_t i = 0;
  for (const auto& [db, name] : watched.keys) unit.UnwatchKey(db, keys[i++], *watched.watch);
}

void Unwatch(Services& services, Session& session) {
  if (session.watched == nullptr) return;
  const std::shared_ptr<const WatchedSet> watched = std::move(session.watched);
  // The locks may be those of a script that does not end.
  const bool busy = services.scripts != nullptr && services.scripts->busy();
  if (busy || InMeanwhile()) return Postpone([&services, watched] { Unwatch(services, *watched); });
  Unwatch(services, *watched);
}

void UnwatchAll(Context& c) {
  Unwatch(c.services, c.session);
  c.reply.Ok();
}

void Watch(Context& c) {
  if (c.session.transaction != nullptr) return c.reply.Error("ERR WATCH inside MULTI is not allowed");
  if (c.session.watched == nullptr) c.session.watched = std::make_unique<WatchedSet>();
  WatchedSet& watched = *c.session.watched;
  std::vector<HashedKey> fresh;
  for (size_t i = 1; i < c.words.size(); ++i) {
    if (!watched.keys.emplace(c.db(), std::string(c.words[i])).second) continue;
    fresh.push_back(c.Key(i));
  }
  c.unit.LockKeys(fresh);
  for (const HashedKey& key : fresh) c.unit.WatchKey(c.db(), key, watched.watch);
  c.reply.Ok();
}

std::vector<absl::string_view> ViewsOf(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

// The locks of everything the transaction may touch.
void LockFor(Context& c, const Transaction& transaction) {
  std::vector<HashedKey> keys;
  std::vector<int> positions;
  for (const Transaction::Queued& queued : transaction.commands) {
    const std::vector<absl::string_view> words = ViewsOf(queued.words);
    if ((queued.entry->spec->flags & kAnyKeys) != 0 || !KeyPositions(*queued.entry->spec, words, positions))
      return c.unit.LockAll();
    for (int position : positions) keys.emplace_back(words[static_cast<size_t>(position)]);
  }
  if (c.session.watched != nullptr)
    for (const auto& [db, name] : c.session.watched->keys) keys.emplace_back(name);
  c.unit.LockKeys(keys);
}

// Whether a watched key changed, or has expired since.
bool WatchTripped(Context& c) {
  if (c.session.watched == nullptr) return false;
  WatchedSet& watched = *c.session.watched;
  for (const auto& [db, name] : watched.keys) c.unit.Find(db, HashedKey(name), /*touch=*/false);
  c.unit.TouchWatches();
  const bool tripped = watched.watch->touched.load(std::memory_order_acquire);
  for (const auto& [db, name] : watched.keys) c.unit.UnwatchKey(db, HashedKey(name), *watched.watch);
  c.session.watched.reset();
  return tripped;
}

// Why the caller's rights, which may have changed since, do not allow a queued command; "" when they do.
absl::string_view WhyDenied(Context& c, const CommandEntry& entry, absl::Span<const absl::string_view> words) {
  if (MayDoEverything(c.services, c.session)) return {};
  switch (CheckRights(c.services, c.session, entry, words, "multi")) {
    case acl::Verdict::kAllowed:
      return {};
    case acl::Verdict::kCommand:
      return "no permission to execute the command or subcommand";
    case acl::Verdict::kKey:
      return "no permission to touch the specified keys";
    case acl::Verdict::kChannel:
      return "no permission to access one of the channels used as arguments to the command";
  }
  return {};
}

void Exec(Context& c) {
  if (c.session.transaction == nullptr) return c.reply.Error("ERR EXEC without MULTI");
  const std::unique_ptr<Transaction> transaction = std::move(c.session.transaction);
  ShowQueued(c.session);
  if (transaction->aborted) {
    Unwatch(c.services, c.session);
    return c.reply.Error("EXECABORT Transaction discarded because of previous errors.");
  }
  LockFor(c, *transaction);
  if (WatchTripped(c)) return c.reply.NullArray();
  c.unit.Seal();
  c.reply.Array(transaction->commands.size());
  CommandTimer timer(*c.thread_stats);
  for (const Transaction::Queued& queued : transaction->commands) {
    const std::vector<absl::string_view> words = ViewsOf(queued.words);
    if (const absl::string_view reason = WhyDenied(c, *queued.entry, words); !reason.empty()) [[unlikely]] {
      c.reply.Error(absl::StrCat(
          "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This "
          "command is no longer allowed for the following reason: ",
          reason));
      c.thread_stats->OnError("NOPERM");
      continue;
    }
    const int first_key = queued.entry->spec->keys.first;
    const storage::HashedKey key = first_key == 0 ? storage::HashedKey() : storage::HashedKey(words[static_cast<size_t>(first_key)]);
    Context inner{c.services, c.session, c.unit, c.reply, words, queued.entry->spec, first_key, key, c.thread_stats};
    RunHandler(inner, *queued.entry, timer);
    c.reply.set_resp(c.session.resp);
  }
}

constexpr ArgSpec kWatchArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true}};
constexpr uint32_t kFlags = kNoScript | kLoading | kStale | kFast | kAllowBusy | kNotQueued;
constexpr CommandSpec kTransactionCommands[] = {
    {.name = "MULTI", .handler = &Multi, .arity = 1, .flags = kFlags, .group = Group::kTransactions, .since = "1.2.0",
     .summary = "Begins a transaction: commands are queued until EXEC."},
    {.name = "EXEC", .handler = &Exec, .arity = 1,
     .flags = kNoScript | kLoading | kStale | kSkipSlowlog | kNotQueued | kEndsTransaction, .group = Group::kTransactions,
     .since = "1.2.0", .complexity = "Depends on commands in the transaction",
     .summary = "Runs what is queued, as one step."},
    {.name = "DISCARD", .handler = &Discard, .arity = 1, .flags = kFlags, .group = Group::kTransactions,
     .since = "2.0.0", .complexity = "O(N), when N is the number of queued commands",
     .summary = "Drops what is queued."},
    {.name = "WATCH", .handler = &Watch, .arity = -2, .flags = kFlags, .keys = Keys::From(1), .key_flags = "RO",
     .group = Group::kTransactions, .since = "2.2.0", .complexity = "O(1) for every key.",
     .summary = "Makes the next EXEC depend on the keys not changing.", .args = kWatchArgs},
    {.name = "UNWATCH", .handler = &UnwatchAll, .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast | kAllowBusy, .group = Group::kTransactions, .since = "2.2.0",
     .summary = "Forgets all watched keys."}};

}  // namespace

namespace {

// What the queue takes for a command.
size_t QueuedBytes(absl::Span<const absl::string_view> words) {
  size_t bytes = sizeof(Transaction::Queued) + words.size() * sizeof(std::string);
  for (absl::string_view word : words) bytes += word.size();
  return bytes;
}

}  // namespace

bool MayQueue(const Services& services, Session& session, absl::Span<const absl::string_view> words) {
  Transaction& transaction = *session.transaction;
  const auto limit = static_cast<size_t>(services.settings.client_query_buffer_bytes.load(std::memory_order_relaxed));
  if (transaction.bytes + QueuedBytes(words) <= limit) return true;
  transaction.aborted = true;
  transaction.commands = {};
  transaction.bytes = 0;
  ShowQueued(session);
  return false;
}

void QueueCommand(Session& session, const CommandEntry& entry, absl::Span<const absl::string_view> words) {
  if (session.transaction->aborted) return;  // EXEC will not run
  Transaction::Queued queued{&entry, {}};
  queued.words.reserve(words.size());
  for (absl::string_view word : words) queued.words.emplace_back(word);
  Transaction& transaction = *session.transaction;
  transaction.bytes += QueuedBytes(words);
  transaction.flags_any |= entry.spec->flags;
  transaction.flags_all &= entry.spec->flags;
  transaction.commands.push_back(std::move(queued));
  ShowQueued(session);
}

void DropTransaction(Services& services, Session& session) {
  session.transaction.reset();
  ShowQueued(session);
  Unwatch(services, session);
}

absl::Span<const CommandSpec> TransactionCommands() { return kTransactionCommands; }

}  // namespace idemd::server

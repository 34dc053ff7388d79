// From a batch of requests to replies: look up, prefetch, check, run, count.
//
// A batch is worked off in chunks: all commands of a chunk are looked up, their first keys hashed and the buckets
// prefetched, before the first of them runs, so that the cache misses of a pipeline overlap.
#include "server/commands/dispatch.h"

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "protocol/errors.h"
#include "protocol/resp/writer.h"
#include "server/admin/latency.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/acl_check.h"
#include "server/commands/command_timer.h"
#include "server/commands/client_tracking.h"
#include "server/commands/connection.h"
#include "server/commands/blocking.h"
#include "server/commands/context.h"
#include "server/commands/observe.h"
#include "server/commands/pause.h"
#include "server/commands/replicas.h"
#include "server/commands/persistence_control.h"
#include "server/commands/scripts.h"
#include "server/commands/session_waiter.h"
#include "server/commands/table.h"
#include "server/commands/transaction.h"
#include "server/pubsub/tracking.h"
#include "server/steady_time.h"
#include "storage/store.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using Words = absl::Span<const absl::string_view>;

constexpr size_t kChunk = 32;            // prefetches in flight; more would push each other out of the cache
// Commands with longer words or replies are timed on their own, and so are all where the slow log wants to know of some that took
// no longer than this.
constexpr size_t kTogetherBytesMax = 1024;
constexpr int64_t kTogetherMaxUs = 1000;
constexpr size_t kShownArgsBytes = 128;  // of an unknown command's arguments, as Redis shows them

std::string UnknownCommand(Words words) {
  std::string args;
  for (size_t i = 1; i < words.size() && args.size() < kShownArgsBytes; ++i)
    absl::StrAppend(&args, "'", words[i].substr(0, kShownArgsBytes - args.size()), "' ");
  return absl::StrCat("ERR unknown command '", words[0].substr(0, 128), "', with args beginning with: ", args);
}

std::string UnknownSubcommand(const CommandEntry& container, Words words) {
  return absl::StrCat("ERR unknown subcommand '", words[1].substr(0, 128), "'. Try ",
                      absl::AsciiStrToUpper(container.full_name), " HELP.");
}

using Prepared = Dispatcher::Prepared;

// A command makes room for so long at most (as Redis with maxmemory-eviction-tenacity 10); then it runs all the same, and
// the store's own thread goes on.
constexpr std::chrono::microseconds kEvictFor{500};
// Whether the last command on this thread may have taken memory: then even a command that only reads makes room.
thread_local bool may_have_grown = false;

thread_local bool meanwhile = false;
thread_local std::vector<std::function<void()>> postponed;

void RunPostponed() {
  for (const std::function<void()>& work : std::exchange(postponed, {})) work();
}

// Whether there is anything at all about the disk that a command may be refused for: asked before every command, so it
// is three relaxed loads.
bool DiskObjects(const Services& services) {
  const PersistenceControl* const disk = services.persistence;
  return services.store.log().refusing() || services.settings.min_replicas_to_write.load(std::memory_order_relaxed) != 0 ||
         (disk != nullptr && (disk->loading() || disk->last_save_failed()));
}

// EXEC is what it runs, too.
uint32_t FlagsWithQueue(const Session& session, const CommandSpec& spec) {
  const bool runs_queue = (spec.flags & kEndsTransaction) != 0 && session.transaction != nullptr;
  return spec.flags | (runs_queue ? session.transaction->flags_any : 0);
}

// Why the disk keeps the command from running, or "".
std::string DiskRefusal(const Services& services, const Session& session, const CommandSpec& spec) {
  // EXEC is what it runs.
  const bool runs_queue = (spec.flags & kEndsTransaction) != 0 && session.transaction != nullptr;
  const uint32_t all = runs_queue ? session.transaction->flags_all : spec.flags;
  if ((FlagsWithQueue(session, spec) & kWrite) != 0) {
    if (std::string refusal = WriteRefusal(services); !refusal.empty()) return refusal;
  }
  if (services.persistence != nullptr && services.persistence->loading() && (all & kLoading) == 0)
    return std::string(errors::kLoading);
  return {};
}

// Under an eviction policy, makes room before a command that may need it. What the connection must no longer keep in its cache
// for that leaves at once, before the reply. True: memory is over its limit, and nothing may go.
bool NoRoom(Services& services, Session& session, const CommandSpec& spec, std::string& out) {
  storage::Store& store = services.store;
  const uint32_t flags = FlagsWithQueue(session, spec);
  if (!store.evicts()) return (flags & kDenyOom) != 0 && store.OverMemoryLimit();
  const bool grows = (flags & (kDenyOom | kWrite | kMayReplicate)) != 0;
  if (!std::exchange(may_have_grown, grows) && !grows) return false;
  if (!session.authenticated || meanwhile || (services.scripts != nullptr && services.scripts->busy())) return false;
  if (!store.OverMemoryLimit()) return false;
  Session reader;  // this connection, as one that did not change the keys
  reader.peer = session.peer;
  const int64_t begin_us = SteadyUs();
  storage::RoomMade made = store.MakeRoom(&reader, kEvictFor);
  services.latency.Add("eviction-cycle", (SteadyUs() - begin_us) / 1000);
  session.need = std::max(session.need, made.need);
  out += reader.pushes;
  out += reader.invalidations;
  if (!made.ready.empty()) ServeBlocked(services, std::move(made.ready));
  return !made.room;
}

// Whether nothing but the state of the session or the server could refuse the command.
bool MayRunPlain(const Services& services, const Prepared& p, Words words) {
  return p.entry != nullptr && p.entry->plain && ArityFits(*p.entry->spec, words.size()) &&
         ((p.entry->spec->flags & kDenyOom) == 0 || !services.store.OverMemoryLimit());
}

// Why the command must not run, or "". Tested in Redis' order.
std::string Refusal(Services& services, Session& session, const Prepared& p, Words words, bool no_room) {
  if (p.entry == nullptr) return p.container != nullptr ? UnknownSubcommand(*p.container, words) : UnknownCommand(words);
  const CommandSpec& spec = *p.entry->spec;
  if (!ArityFits(spec, words.size()) || spec.handler == nullptr)
    return absl::StrCat("ERR wrong number of arguments for '", p.entry->full_name, "' command");
  // Whoever has not logged in acts for the default user, once that one needs no password any more.
  if (!session.authenticated && (spec.flags & kNoAuth) == 0 &&
      services.settings.has_password.load(std::memory_order_relaxed))
    return std::string(errors::kNoAuth);
  if (session.transaction != nullptr && (spec.flags & kNoMulti) != 0)
    return "ERR Command not allowed inside a transaction";
  if (!MayDoEverything(services, session)) [[unlikely]] {
    const char* const where = session.transaction != nullptr ? "multi" : "toplevel";
    const acl::Verdict verdict = CheckRights(services, session, *p.entry, words, where);
    if (verdict != acl::Verdict::kAllowed) return DenialText(verdict, *p.entry);
  }
  // What names keys would wait for their locks, which the script may hold.
  if (services.scripts != nullptr && (services.scripts->busy() || meanwhile) &&
      ((spec.flags & kAllowBusy) == 0 || spec.keys.first != 0)) [[unlikely]]
    return std::string(services.scripts->BusyError());
  if (no_room && (FlagsWithQueue(session, spec) & kDenyOom) != 0) return std::string(errors::kOutOfMemory);
  if (session.resp == 2 && session.subscriptions != nullptr && (spec.flags & kWhileSubscribed) == 0 &&
      session.peer->info().subscribed()) {
    return absl::StrCat("ERR Can't execute '", p.entry->full_name,
                        "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context");
  }
  if (DiskObjects(services)) [[unlikely]] return DiskRefusal(services, session, spec);
  return {};
}

// The words of an error behind "ERR "; others keep their code.
absl::string_view WithoutCode(absl::string_view error) {
  absl::ConsumePrefix(&error, "ERR ");
  return error;
}

uint32_t FlagsOfCall(Services& services, const CommandSpec& spec, Words words) {
  const bool writes = spec.may_write == nullptr || spec.may_write(services, words);
  return writes ? spec.flags : spec.flags & ~uint32_t{kWrite | kMayReplicate};
}

// Whether a pause holds the command, or something that it runs if it is EXEC.
bool PauseHolds(Services& services, const Session& session, const CommandSpec& spec, Words words) {
  if (services.pause->Holds(FlagsOfCall(services, spec, words))) return true;
  if ((spec.flags & kEndsTransaction) == 0 || session.transaction == nullptr) return false;
  for (const Transaction::Queued& queued : session.transaction->commands) {
    const std::vector<absl::string_view> queued_words(queued.words.begin(), queued.words.end());
    if (services.pause->Holds(FlagsOfCall(services, *queued.entry->spec, queued_words))) return true;
  }
  return false;
}

// CLIENT REPLY OFF or SKIP: of the reply from `mark` on, only what is no reply to a command stays.
void Silence(Session& session, size_t mark, std::string& out) {
  std::string kept;
  for (const auto& [begin, end] : session.unsilenced) kept.append(out, begin, end - begin);
  session.unsilenced.clear();
  out.resize(mark);
  out += kept;
  if (session.reply_mode == ReplyMode::kSkipThis) session.reply_mode = ReplyMode::kOn;
}

// Messages to the own connection leave before the reply of the command that sent them, those of EXEC behind its reply.
void InsertPushes(Session& session, const CommandSpec& spec, size_t mark, std::string& out) {
  out.insert((spec.flags & kEndsTransaction) != 0 ? out.size() : mark, session.pushes);
  session.pushes.clear();
}

// The reply got too long, and was not put together to its end. Who may have changed something must not take the error for a
// refusal, so that the connection ends as if the reply had been lost.
void RefuseReply(Session& session, const CommandEntry& entry, size_t mark, protocol::Writer& reply) {
  reply.buffer().resize(mark);
  reply.Error(errors::kReplyTooLong);
  session.close_after_reply = (entry.spec->flags & kReadonly) == 0;
}

void CountCommand(ClientInfo& info) {
  info.commands.store(info.commands.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The code word of the error reply at `mark`, or "" when the reply is none.
absl::string_view ErrorCode(const std::string& out, size_t mark) {
  if (out.size() <= mark || out[mark] != '-') return {};
  const size_t end = out.find_first_of(" \r", mark);
  return absl::string_view(out).substr(mark + 1, end - mark - 1);
}

}  // namespace

std::string WriteRefusal(const Services& services) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const storage::EffectLog& log = services.store.log();
  if (log.refusing()) {
    const absl::Status refusal = log.Refusal();
    if (!refusal.ok()) return std::string(refusal.message());
  }
  if (services.persistence != nullptr && services.persistence->last_save_failed() &&
      services.settings.stop_writes_on_bgsave_error.load(kRelaxed) &&
      services.settings.has_save_points.load(kRelaxed)) {
    return std::string(errors::kSaveFailed);
  }
  const int64_t replicas = services.settings.min_replicas_to_write.load(kRelaxed);
  if (replicas > services.replica_waits->good()) return "NOREPLICAS Not enough good replicas to write.";
  return {};
}

Meanwhile::Meanwhile() { meanwhile = true; }
Meanwhile::~Meanwhile() { meanwhile = false; }
bool InMeanwhile() { return meanwhile; }
void Postpone(std::function<void()> work) { postponed.push_back(std::move(work)); }

Dispatcher::Dispatcher(Services& services) : services_(services), thread_stats_(&services.stats.Register()) {}
Dispatcher::~Dispatcher() = default;

const CommandEntry* Dispatcher::Find(absl::string_view name) {
  const size_t size = name.size();
  if (size == 0 || size > 2 * sizeof(uint64_t)) return services_.commands.Find(name);
  // Two words, which may overlap, and the size are the name.
  const auto load = [&](auto word, size_t at) {
    std::memcpy(&word, name.data() + at, sizeof(word));
    return uint64_t{word};
  };
  uint64_t low = 0, high = 0;
  if (size >= 8) {
    low = load(uint64_t{}, 0), high = load(uint64_t{}, size - 8);
  } else if (size >= 4) {
    low = load(uint32_t{}, 0), high = load(uint32_t{}, size - 4);
  } else {
    low = load(uint8_t{}, 0) | load(uint8_t{}, size / 2) << 8 | load(uint8_t{}, size - 1) << 16;
  }
  Known& known = known_[(low >> 8 ^ low >> 16 ^ high ^ size) % known_.size()];
  if (known.low == low && known.high == high && known.size == size) return known.entry;
  const CommandEntry* const entry = services_.commands.Find(name);
  if (entry != nullptr) known = {low, high, size, entry};
  return entry;
}

void Dispatcher::Prepare(Words words, Prepared& p) {
  p.entry = Find(words[0]);
  if (p.entry == nullptr) return;
  if (!p.entry->subcommands.empty() && words.size() > 1) {
    const CommandEntry* sub = services_.commands.FindSubcommand(*p.entry, words[1]);
    if (sub == nullptr) p.container = p.entry;
    p.entry = sub;
    if (sub == nullptr) return;
  }
  const int first = p.entry->spec->keys.first;
  if (first == 0 || words.size() <= static_cast<size_t>(first)) return;
  p.first_key = first;
  std::construct_at(&p.key, words[static_cast<size_t>(first)]);  // where it is, not copied
  p.looks = !p.entry->spec->keys_are_prefixes;
}

// What the commands of a chunk will look at, step by step for all of them together. A command alone only waits for less.
template <class PreparedAt>
void Dispatcher::Prefetch(storage::DbIndex db, size_t chunk, const PreparedAt& prepared) const {
  const storage::Store& store = services_.store;
  const auto each = [&](auto&& step) {
    for (size_t i = 0; i < chunk; ++i)
      if (const Prepared& p = prepared(i); p.looks) step(p);
  };
  if (chunk > 1) each([&](const Prepared& p) { store.PrefetchReference(db, p.key); });
  each([&](const Prepared& p) { store.Prefetch(db, p.key, (p.entry->spec->flags & kWrite) != 0); });
  if (chunk > 1) each([&](const Prepared& p) { store.PrefetchEntry(db, p.key); });
}

bool Dispatcher::Quiet(Session& session) const {
  return session.authenticated && session.transaction == nullptr && session.reply_mode == ReplyMode::kOn &&
         session.subscriptions == nullptr && session.tracker == nullptr && MayDoEverything(services_, session) && !meanwhile &&
         postponed.empty() && services_.clients.monitors() == 0 && services_.tracking->clients() == 0 && !services_.pause->on() && !services_.store.evicts() &&
         (services_.scripts == nullptr || !services_.scripts->busy()) && !DiskObjects(services_);
}

size_t Dispatcher::Run(Session& session, const protocol::Batch& batch, size_t first, size_t out_soft_limit,
                       std::string& out) {
  storage::EpochGuard guard;  // one for all; those of the units nest in it
  protocol::Writer reply(out, session.resp);
  // Made one by one: most batches are short.
  static_assert(std::is_trivially_destructible_v<Prepared>);
  alignas(Prepared) std::array<std::byte, kChunk * sizeof(Prepared)> room;
  const auto prepared = [&room](size_t i) -> Prepared& { return reinterpret_cast<Prepared*>(room.data())[i]; };
  storage::Unit unit(services_.store);  // of plain commands, of one after another
  bool quiet = Quiet(session);
  const auto reply_bytes_max = static_cast<size_t>(services_.settings.proto_max_reply_bytes.load(std::memory_order_relaxed));
  ClientInfo& info = session.info();
  CommandTimer timer(*thread_stats_);
  const bool alike_together = !services_.slowlog.IsSlow(kTogetherMaxUs);
  if (session.turn_end_us == 0) session.turn_end_us = timer.now_us() + session.turn_us;
  info.last_active_ms.store(timer.now_us() / 1000, std::memory_order_relaxed);
  size_t done = first;
  while (done < batch.requests.size()) {
    const size_t chunk = std::min(kChunk, batch.requests.size() - done);
    session.tokens_ahead = 0;
    for (size_t i = 0; i < chunk; ++i) {
      const protocol::RequestSpan& request = batch.requests[done + i];
      Prepared& p = *new (&prepared(i)) Prepared;
      Prepare(batch.words_of(request), p);
      p.quick = p.entry != nullptr && p.entry->quick && request.bytes <= kTogetherBytesMax;
      session.tokens_ahead += !p.looks && p.first_key != 0 ? 1 : 0;
    }
    Prefetch(session.db, chunk, prepared);
    for (size_t i = 0; i < chunk; ++i, ++done) {
      if (session.waiter != nullptr || session.close_after_reply || out.size() > out_soft_limit) return done - first;
      if (timer.now_us() >= session.turn_end_us && done != first) [[unlikely]]
        return done - first;
      reply.set_limit(out.size() + reply_bytes_max);
      const Words words = batch.words_of(batch.requests[done]);
      if (quiet && MayRunPlain(services_, prepared(i), words)) [[likely]] {
        const size_t mark = out.size();
        const Prepared& p = prepared(i);
        timer.SetMore(p.quick && i + 1 < chunk && prepared(i + 1).quick && prepared(i + 1).entry == p.entry && alike_together);
        Execute(session, words, prepared(i), unit, reply, timer);
        CountCommand(info);
        if (reply.cut()) [[unlikely]]
          RefuseReply(session, *prepared(i).entry, mark, reply);
        continue;
      }
      timer.Flush();
      if (!RunOne(session, words, prepared(i), reply, timer)) return done - first;
      quiet = Quiet(session);
    }
  }
  return done - first;
}

// The unit may have served commands before, and serves others after this one.
void Dispatcher::Execute(Session& session, Words words, const Prepared& p, storage::Unit& unit, protocol::Writer& reply, CommandTimer& timer) {
  const CommandEntry& entry = *p.entry;
  session.info().last_command.store(entry.spec, std::memory_order_relaxed);
  if (timer.pending() == 0) unit.BeginAnew();
  unit.KeepAccessTimes(session.no_touch);
  unit.SetOrigin(&session);
  Context context{services_, session, unit, reply, words, entry.spec, p.first_key, p.key, thread_stats_};
  RunHandler(context, entry, timer);
  unit.Commit();
  session.need = std::max(session.need, unit.need());
  if (!session.shown.empty()) [[unlikely]] {
    for (auto& line : session.shown) services_.clients.SendToMonitors(std::move(line), unit.need());
    session.shown.clear();
  }
  if (unit.has_ready()) [[unlikely]]
    ServeBlocked(services_, unit.TakeReady());
}

bool Dispatcher::RunOne(Session& session, Words words, const Prepared& p, protocol::Writer& reply, CommandTimer& timer) {
  const CommandEntry* const entry = p.entry;
  std::string& out = reply.buffer();
  const bool no_room = entry != nullptr && NoRoom(services_, session, *entry->spec, out);
  const size_t mark = out.size();
  const std::string refusal = Refusal(services_, session, p, words, no_room);
  if (services_.pause->on() && refusal.empty() && PauseHolds(services_, session, *entry->spec, words) &&
      services_.pause->Hold(session)) [[unlikely]] {
    return false;
  }
  if (session.reply_mode == ReplyMode::kSkipNext) session.reply_mode = ReplyMode::kSkipThis;
  if (refusal.empty() && session.transaction != nullptr && (entry->spec->flags & kNotQueued) == 0) {
    if (MayQueue(services_, session, words)) {
      QueueCommand(session, *entry, words);
      reply.Simple("QUEUED");
    } else {
      reply.Error(errors::kTransactionTooLong);
    }
  } else if (refusal.empty()) {
    storage::Unit unit(services_.store);
    Execute(session, words, p, unit, reply, timer);
    if (!postponed.empty() && !meanwhile && !services_.scripts->busy()) [[unlikely]] RunPostponed();
  } else {
    if (entry != nullptr && (entry->spec->flags & kEndsTransaction) != 0) {
      DropTransaction(services_, session);
      reply.Error(absl::StrCat("EXECABORT Transaction discarded because of: ", WithoutCode(refusal)));
    } else {
      if (session.transaction != nullptr) session.transaction->aborted = true;
      reply.Error(refusal);
    }
    thread_stats_->OnError(ErrorCode(out, mark));
    if (entry != nullptr) thread_stats_->OnRejected(entry->ordinal);
  }
  if (reply.cut()) [[unlikely]]
    RefuseReply(session, *entry, mark, reply);
  CountCommand(session.info());
  reply.set_resp(session.resp);  // HELLO and RESET change it
  if (session.reply_mode != ReplyMode::kOn) [[unlikely]]
    Silence(session, mark, out);
  if (!session.pushes.empty()) [[unlikely]]
    InsertPushes(session, *entry->spec, mark, out);
  if (!session.invalidations.empty()) [[unlikely]] {
    out += session.invalidations;
    session.invalidations.clear();
  }
  if (session.tracker != nullptr && entry != nullptr) [[unlikely]]
    ForgetCaching(session, *entry);
  return true;
}

// The slow log shows a command that waits when it is answered, as Redis' does; the wait itself does not count.
static void NoteDurationAtEnd(Context& c, const CommandSpec& spec, int64_t usec) {
  if (!c.services.slowlog.IsSlow(usec)) return NoteDuration(c.services, c.session, spec, c.words, usec);
  // Whoever puts a waiter into a session is Block().
  std::static_pointer_cast<SessionWaiter>(c.session.waiter)
      ->NoteAtEnd([&services = c.services, &spec, usec, words = std::vector<std::string>(c.words.begin(), c.words.end())](
                      const Session& session) {
        const std::vector<absl::string_view> views(words.begin(), words.end());
        NoteDuration(services, session, spec, views, usec);
      });
}

// An allocation failed. Whoever has not begun to change anything is told so, and everybody goes on.
static void AnswerNoMemory(Context& c, uint32_t marks, size_t mark) {
  if (c.unit.marks() != marks) return c.unit.GiveUp();
  UndoBlock(c.session);
  c.reply.buffer().resize(mark);
  c.reply.Error(errors::kNoMemory);
}

static inline void CallHandler(Context& c, const CommandSpec& spec, size_t mark) {
  const uint32_t marks = c.unit.marks();
  try {
    spec.handler(c);
  } catch (const std::bad_alloc&) {
    AnswerNoMemory(c, marks, mark);
  }
}

// Some instructions, for every command: what is rare is elsewhere.
[[gnu::always_inline]] static inline void CallAndCount(Context& c, const CommandEntry& entry, CommandTimer& timer) {
  const std::string& out = c.reply.buffer();
  const size_t mark = out.size();
  timer.now_us();  // from now on, if it is the first
  c.unit.ReportMisses((entry.spec->flags & kReadonly) != 0);
  CallHandler(c, *entry.spec, mark);
  const bool failed = out.size() > mark && out[mark] == '-';
  if (timer.more() && !failed && out.size() - mark <= kTogetherBytesMax) return timer.Defer(entry.ordinal);
  const int64_t usec = timer.End(entry.ordinal, failed);
  if (failed && !c.error_counted) [[unlikely]]
    c.thread_stats->OnError(ErrorCode(out, mark));
  if (c.services.slowlog.IsSlow(usec) || c.services.latency.IsSlow(usec / 1000)) [[unlikely]] {
    c.session.waiter != nullptr ? NoteDurationAtEnd(c, *entry.spec, usec) : NoteDuration(c.services, c.session, *entry.spec, c.words, usec);
  }
}

static void CallTracked(Context& c, const CommandEntry& entry, CommandTimer& timer) {
  TrackedRead tracked(c);
  CallAndCount(c, entry, timer);
  tracked.Remember(c);
}

void RunHandler(Context& c, const CommandEntry& entry, CommandTimer& timer) {
  if (TracksReads(c, *entry.spec)) [[unlikely]]
    CallTracked(c, entry, timer);
  else
    CallAndCount(c, entry, timer);
  if (c.services.clients.monitors() != 0) [[unlikely]]
    NoteForMonitors(c.session, *entry.spec, c.words);
}

void Dispatcher::WaitIsOver(Session& session) {
  if (session.waiter != nullptr) std::static_pointer_cast<SessionWaiter>(session.waiter)->WaitIsOver();
}

void Dispatcher::Closed(Session& session) {
  EndSubscriptions(services_, session);
  EndTracking(services_, session);
  DropTransaction(services_, session);
  EndWait(session);
  if (session.monitor) services_.clients.RemoveMonitor(session.info().id);
}

}  // namespace idemd::server

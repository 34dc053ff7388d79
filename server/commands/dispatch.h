// From words to a handler: finds the entry, checks arity, rights and memory, runs the handler in one unit of storage.
//
// Threads   one Dispatcher per loop thread; it owns that thread's statistics.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/resp/parser.h"
#include "protocol/resp/writer.h"
#include "server/commands/services.h"
#include "server/session.h"
#include "storage/store.h"

namespace idemd::server {

struct ThreadStats;   // server/admin/stats.h
class CommandTimer;   // server/commands/command_timer.h
struct CommandEntry;  // server/commands/table.h

// While one lives, this thread is in the middle of a command, which waits or takes long, and serves other sessions for a
// moment: only commands that Redis allows while a script is busy are executed, and none that would take a lock.
class Meanwhile {
 public:
  Meanwhile();
  ~Meanwhile();
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
};

// Why no write may begin now, or "": the log cannot take it, or a dump has failed.
std::string WriteRefusal(const Services& services);

class Dispatcher {
 public:
  explicit Dispatcher(Services& services);
  ~Dispatcher();

  // Executes the requests of `batch` from number `first` on, in order, appending replies to `out`. Returns how many were
  // executed; fewer than there are when the session became blocked (session.waiter is set), is to be closed
  // (close_after_reply), `out` grew past `out_soft_limit` (flush, then call again), or Session::turn_end_us has come; one at
  // least is executed.
  size_t Run(Session& session, const protocol::Batch& batch, size_t first, size_t out_soft_limit, std::string& out);

  // What the session waits for has not come by Session::give_up_at: its reply is on the way, unless another one is.
  void WaitIsOver(Session& session);

  // The connection is gone: gives up what it waits for, leaves MONITOR.
  void Closed(Session& session);

  // A request, looked up and hashed before the first of its batch runs.
  struct Prepared {
    const CommandEntry* entry = nullptr;      // what runs; null: unknown
    const CommandEntry* container = nullptr;  // set when only the subcommand is unknown
    int first_key = 0;                        // its position in the words, 0: none
    bool looks = false;                       // there is one, and it is looked up
    bool quick = false;                       // short, and what runs is: it may be timed with its neighbours
    storage::HashedKey key;
  };

  Services& services() { return services_; }
  // A reply that needs more than this may not leave yet (Session::need). Asks the log to get there; see EffectLog.
  storage::Lsn released() const { return services_.store.log().released(); }
  void Release(storage::Lsn need) { services_.store.log().Release(need); }
  ThreadStats& thread_stats() { return *thread_stats_; }

 private:
  // The entry of a name that has been asked for lately, or else the table's.
  const CommandEntry* Find(absl::string_view name);
  void Prepare(absl::Span<const absl::string_view> words, Prepared& p);
  template <class PreparedAt>
  void Prefetch(storage::DbIndex db, size_t chunk, const PreparedAt& prepared) const;
  // Whether nothing about the server or the session asks for a closer look at commands that only work on data
  // (CommandEntry::plain). Asked once for all of a batch: what other threads change meanwhile came after the batch did.
  bool Quiet(Session& session) const;
  void Execute(Session& session, absl::Span<const absl::string_view> words, const Prepared& p, storage::Unit& unit,
               protocol::Writer& reply, CommandTimer& timer);
  // False: it has to wait (CLIENT PAUSE) and is to be given again.
  bool RunOne(Session& session, absl::Span<const absl::string_view> words, const Prepared& p, protocol::Writer& reply,
              CommandTimer& timer);

  // A name of up to 16 bytes, as it was written.
  struct Known {
    uint64_t low = 0, high = 0;
    size_t size = 0;
    const CommandEntry* entry = nullptr;
  };

  Services& services_;
  ThreadStats* thread_stats_;
  std::array<Known, 16> known_;
};

}  // namespace idemd::server

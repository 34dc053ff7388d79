// A session without a connection, whose commands are not asked for rights, memory or health.
#include "server/commands/replay.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "protocol/resp/writer.h"
#include "server/admin/stats.h"
#include "server/commands/context.h"
#include "server/commands/table.h"
#include "server/commands/transaction.h"
#include "storage/store.h"

namespace idemd::server {
namespace {

class NoPeer final : public Peer {
 public:
  void Send(std::shared_ptr<const std::string>, storage::Lsn, std::shared_ptr<const std::atomic<bool>>) override {}
  void Kill() override {}
  void Resume(std::function<void(Session&, std::string&)>) override {}
};

absl::Status Refused(absl::Span<const absl::string_view> words, absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("the command '", words[0].substr(0, 64), "' cannot be replayed: ", why));
}

}  // namespace

Replayer::Replayer(Services& services)
    : services_(services), thread_stats_(&services.stats.Register()) {
  session_.peer = std::make_shared<NoPeer>();
  session_.trusted = true;
}
Replayer::~Replayer() { DropTransaction(services_, session_); }

absl::Status Replayer::Run(const std::vector<absl::string_view>& words, storage::DbIndex* db) {
  const CommandEntry* entry = words.empty() ? nullptr : services_.commands.Find(words[0]);
  if (entry != nullptr && !entry->subcommands.empty() && words.size() > 1)
    entry = services_.commands.FindSubcommand(*entry, words[1]);  // XGROUP CREATE
  if (words.empty()) return absl::InvalidArgumentError("a command without words");
  if (entry != nullptr && !entry->subcommands.empty() && words.size() > 1)
    entry = services_.commands.FindSubcommand(*entry, words[1]);
  if (entry == nullptr) return Refused(words, "idemd does not have it");
  const CommandSpec& spec = *entry->spec;
  if (spec.handler == nullptr || !ArityFits(spec, words.size()))
    return Refused(words, "wrong number of arguments");
  const bool frames = (spec.flags & kNotQueued) != 0;  // MULTI and EXEC
  const bool harmless = (spec.flags & kWrite) != 0 || frames || entry->full_name == "select" ||
                        entry->full_name == "echo" || entry->full_name == "ping" ||
                        entry->full_name == "pfcount";  // which keeps the count in the value, and so is in the logs of Redis
  if (!harmless) return Refused(words, "it is no write");
  session_.db = *db;
  if (session_.transaction != nullptr && !frames) {
    QueueCommand(session_, *entry, words);
    return absl::OkStatus();
  }
  out_.clear();
  protocol::Writer reply(out_, session_.resp);
  storage::Unit unit(services_.store);
  const storage::HashedKey none;
  Context context{services_, session_, unit, reply, words, &spec, 0, none, thread_stats_};
  spec.handler(context);
  unit.Commit();
  *db = session_.db;
  if (out_.empty() || out_[0] != '-') return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the command '", words[0], "' of the log failed: ", out_.substr(1, out_.find('\r') - 1)));
}

}  // namespace idemd::server

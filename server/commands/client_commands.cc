// CLIENT: who is connected, and what one connection may ask about itself or do to another.
#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/acl/users.h"
#include "server/clients.h"
#include "server/commands/client_tracking.h"
#include "server/commands/connection.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/pause.h"
#include "server/commands/session_waiter.h"
#include "server/commands/table.h"
#include "server/steady_time.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kNameError =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// Kinds of connections. This server follows nobody, so kMaster matches none.
enum class ClientType : uint8_t { kNormal, kMaster, kReplica, kPubSub };

bool ParseType(absl::string_view word, ClientType* type) {
  if (absl::EqualsIgnoreCase(word, "normal"))
    *type = ClientType::kNormal;
  else if (absl::EqualsIgnoreCase(word, "master"))
    *type = ClientType::kMaster;
  else if (absl::EqualsIgnoreCase(word, "slave") || absl::EqualsIgnoreCase(word, "replica"))
    *type = ClientType::kReplica;
  else if (absl::EqualsIgnoreCase(word, "pubsub"))
    *type = ClientType::kPubSub;
  else
    return false;
  return true;
}

template <typename T>
T Get(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

ClientType TypeOf(const ClientInfo& info) {
  if (Get(info.replica)) return ClientType::kReplica;
  return info.subscribed() ? ClientType::kPubSub : ClientType::kNormal;
}

std::string Flags(const ClientInfo& info) {
  std::string flags;
  if (Get(info.replica)) flags += 'S';
  if (Get(info.monitor)) flags += 'O';
  if (info.subscribed()) flags += 'P';
  if (Get(info.queued) >= 0) flags += 'x';
  if (Get(info.blocked)) flags += 'b';
  if (Get(info.tracking)) flags += 't';
  if (Get(info.tracking_broken)) flags += 'R';
  if (Get(info.tracking_broadcast)) flags += 'B';
  if (Get(info.closing)) flags += 'A';
  if (info.unix_socket) flags += 'U';
  if (Get(info.no_evict)) flags += 'e';
  return flags.empty() ? "N" : flags;
}

// One line of CLIENT LIST, with the fields in Redis' order.
void AppendClientLine(const CommandTable& commands, const ClientInfo& info, std::string& out) {
  const int64_t now_ms = SteadyMs();
  const CommandSpec* last = Get(info.last_command);
  storage::MutexLock lock(info.mutex);
  absl::StrAppend(&out, "id=", info.id, " addr=", info.address, " laddr=", info.local_address,
                  " fd=", info.fd, " name=", info.name, " age=", (now_ms - info.created_ms) / 1000,
                  " idle=", std::max<int64_t>(0, now_ms - Get(info.last_active_ms)) / 1000,
                  " flags=", Flags(info));
  absl::StrAppend(&out, " db=", Get(info.db), " sub=", Get(info.channels), " psub=",
                  Get(info.patterns), " ssub=", Get(info.shard_channels), " multi=", Get(info.queued),
                  " qbuf=", Get(info.query_bytes), " qbuf-free=", Get(info.query_free),
                  " argv-mem=0 multi-mem=", Get(info.queued_bytes), " rbs=0 rbp=0 obl=0 oll=", Get(info.output_bytes) != 0 ? 1 : 0,
                  " omem=", Get(info.output_bytes), " tot-mem=", info.buffer_bytes() + sizeof(ClientInfo) + sizeof(Session));
  absl::StrAppend(&out, " events=", Get(info.output_bytes) != 0 ? "rw" : "r", " cmd=",
                  last == nullptr ? std::string("NULL") : commands.EntryOf(*last).full_name,
                  " user=", info.user, " redir=", Get(info.redirect), " resp=", Get(info.resp),
                  " lib-name=", info.lib_name, " lib-ver=", info.lib_version);
}

void AppendLine(Context& c, const ClientInfo& info, std::string& lines) {
  AppendClientLine(c.services.commands, info, lines);
  lines += '\n';
}

void ClientId(Context& c) { c.reply.Integer(static_cast<int64_t>(c.session.info().id)); }

void ClientInfoLine(Context& c) {
  std::string line;
  AppendLine(c, c.session.info(), line);
  c.reply.Verbatim(line);
}

void ClientListIds(Context& c) {
  std::string lines;
  for (size_t i = 3; i < c.words.size(); ++i) {
    int64_t id = 0;
    if (!c.Int(i, &id, "ERR Invalid client ID")) return;
    const std::shared_ptr<Peer> peer = c.services.clients.Find(static_cast<uint64_t>(id));
    if (peer != nullptr && !Get(peer->info().closing))
      AppendLine(c, peer->info(), lines);
  }
  c.reply.Verbatim(lines);
}

void ClientList(Context& c) {
  bool all = true;
  ClientType type = ClientType::kNormal;
  if (c.words.size() == 4 && absl::EqualsIgnoreCase(c.words[2], "TYPE")) {
    if (!ParseType(c.words[3], &type)) {
      return c.reply.Error(absl::StrCat("ERR Unknown client type '", c.words[3], "'"));
    }
    all = false;
  } else if (c.words.size() > 3 && absl::EqualsIgnoreCase(c.words[2], "ID")) {
    return ClientListIds(c);
  } else if (c.words.size() != 2) {
    return c.Syntax();
  }
  std::string lines;
  for (const auto& peer : c.services.clients.All()) {
    const ClientInfo& info = peer->info();
    // One that was killed is as good as gone, though its thread may not have closed it yet.
    if (!Get(info.closing) && (all || TypeOf(info) == type))
      AppendLine(c, info, lines);
  }
  c.reply.Verbatim(lines);
}

void ClientSetName(Context& c) {
  if (!IsClientName(c.words[2])) return c.reply.Error(kNameError);
  SetClientName(c.session, c.words[2]);
  c.reply.Ok();
}

void ClientGetName(Context& c) {
  if (c.session.name.empty()) return c.reply.Null();
  c.reply.Bulk(c.session.name);
}

void ClientSetInfo(Context& c) {
  const bool is_name = absl::EqualsIgnoreCase(c.words[2], "LIB-NAME");
  if (!is_name && !absl::EqualsIgnoreCase(c.words[2], "LIB-VER")) {
    return c.reply.Error(absl::StrCat("ERR Unrecognized option '", c.words[2], "'"));
  }
  if (!IsClientName(c.words[3])) {
    return c.reply.Error(absl::StrCat("ERR ", c.words[2],
                                      " cannot contain spaces, newlines or special characters."));
  }
  ClientInfo& info = c.session.info();
  storage::MutexLock lock(info.mutex);
  (is_name ? info.lib_name : info.lib_version) = std::string(c.words[3]);
  c.reply.Ok();
}

void ClientReply(Context& c) {
  Session& session = c.session;
  if (absl::EqualsIgnoreCase(c.words[2], "ON")) {
    session.reply_mode = ReplyMode::kOn;
    c.reply.Ok();
  } else if (absl::EqualsIgnoreCase(c.words[2], "OFF")) {
    session.reply_mode = ReplyMode::kOff;
  } else if (absl::EqualsIgnoreCase(c.words[2], "SKIP")) {
    if (session.reply_mode != ReplyMode::kOff) session.reply_mode = ReplyMode::kSkipNext;
  } else {
    c.Syntax();
  }
}

// Reads ON or OFF at words[2].
bool OnOff(Context& c, bool* on) {
  *on = absl::EqualsIgnoreCase(c.words[2], "ON");
  if (*on || absl::EqualsIgnoreCase(c.words[2], "OFF")) return true;
  c.Syntax();
  return false;
}

void ClientNoEvict(Context& c) {
  bool on = false;
  if (!OnOff(c, &on)) return;
  c.session.info().no_evict.store(on, std::memory_order_relaxed);
  c.reply.Ok();
}

void ClientNoTouch(Context& c) {
  bool on = false;
  if (!OnOff(c, &on)) return;
  c.session.no_touch = on;
  c.reply.Ok();
}

// Whom CLIENT KILL means.
struct KillFilter {
  bool has_address = false;
  bool has_local_address = false;
  bool has_type = false;
  bool has_user = false;
  bool skip_me = true;
  uint64_t id = 0;  // 0: any
  ClientType type = ClientType::kNormal;
  absl::string_view address;
  absl::string_view local_address;
  absl::string_view user;

  bool Matches(const ClientInfo& info) const {
    if (Get(info.closing)) return false;
    if (has_address && info.address != address) return false;
    if (has_local_address && info.local_address != local_address) return false;
    if (has_type && type != TypeOf(info)) return false;
    if (id != 0 && info.id != id) return false;
    if (!has_user) return true;
    storage::MutexLock lock(info.mutex);
    return info.user == user;
  }
};

// One option of the new form; false after an error was written.
bool ParseKillOption(Context& c, size_t i, KillFilter& filter) {
  const absl::string_view option = c.words[i];
  const absl::string_view value = c.words[i + 1];
  if (absl::EqualsIgnoreCase(option, "ID")) {
    int64_t id = 0;
    if (!protocol::ParseInt64(value, &id) || id < 1) {
      c.reply.Error("ERR client-id should be greater than 0");
      return false;
    }
    filter.id = static_cast<uint64_t>(id);
  } else if (absl::EqualsIgnoreCase(option, "TYPE")) {
    filter.has_type = true;
    if (!ParseType(value, &filter.type)) {
      c.reply.Error(absl::StrCat("ERR Unknown client type '", value, "'"));
      return false;
    }
  } else if (absl::EqualsIgnoreCase(option, "ADDR")) {
    filter.has_address = true;
    filter.address = value;
  } else if (absl::EqualsIgnoreCase(option, "LADDR")) {
    filter.has_local_address = true;
    filter.local_address = value;
  } else if (absl::EqualsIgnoreCase(option, "USER")) {
    filter.has_user = true;
    filter.user = value;
    if (c.services.users->Find(value).user == nullptr) {
      c.reply.Error(absl::StrCat("ERR No such user '", value, "'"));
      return false;
    }
  } else if (absl::EqualsIgnoreCase(option, "SKIPME") &&
             (absl::EqualsIgnoreCase(value, "YES") || absl::EqualsIgnoreCase(value, "NO"))) {
    filter.skip_me = absl::EqualsIgnoreCase(value, "YES");
  } else {
    c.Syntax();
    return false;
  }
  return true;
}

void ClientKill(Context& c) {
  KillFilter filter;
  const bool old_form = c.words.size() == 3;
  if (old_form) {
    filter.has_address = true;
    filter.address = c.words[2];
    filter.skip_me = false;
  } else {
    for (size_t i = 2; i < c.words.size(); i += 2) {
      if (i + 1 == c.words.size()) return c.Syntax();
      if (!ParseKillOption(c, i, filter)) return;
    }
  }
  int64_t killed = 0;
  for (const auto& peer : c.services.clients.All()) {
    const bool me = peer->info().id == c.session.info().id;
    if ((me && filter.skip_me) || !filter.Matches(peer->info())) continue;
    ++killed;
    peer->info().closing.store(true, std::memory_order_relaxed);
    if (me)
      c.session.close_after_reply = true;  // after it has read how many were killed
    else
      peer->Kill();
  }
  if (!old_form) return c.reply.Integer(killed);
  if (killed == 0) return c.reply.Error("ERR No such client");
  c.reply.Ok();
}

void ClientUnblock(Context& c) {
  if (c.words.size() > 4) return ReplySubcommandSyntaxError(c);
  bool with_error = false;
  if (c.words.size() == 4) {
    with_error = absl::EqualsIgnoreCase(c.words[3], "ERROR");
    if (!with_error && !absl::EqualsIgnoreCase(c.words[3], "TIMEOUT")) {
      return c.reply.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  int64_t id = 0;
  if (!c.Int(2, &id)) return;
  const std::shared_ptr<Peer> peer = c.services.clients.Find(static_cast<uint64_t>(id));
  c.reply.Integer(peer != nullptr && UnblockSession(*peer, with_error) ? 1 : 0);
}

void ClientUnpause(Context& c) {
  c.services.pause->End();
  c.reply.Ok();
}

void ClientPause(Context& c) {
  if (c.words.size() > 4) return ReplySubcommandSyntaxError(c);
  Pause::Mode mode = Pause::Mode::kAll;
  if (c.words.size() == 4 && absl::EqualsIgnoreCase(c.words[3], "WRITE")) {
    mode = Pause::Mode::kWrite;
  } else if (c.words.size() == 4 && !absl::EqualsIgnoreCase(c.words[3], "ALL")) {
    return c.reply.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  int64_t ms = 0;
  if (!c.Int(2, &ms, "ERR timeout is not an integer or out of range")) return;
  if (ms < 0) return c.reply.Error("ERR timeout is negative");
  int64_t until_ms = 0;
  if (__builtin_add_overflow(SteadyMs(), ms, &until_ms)) until_ms = INT64_MAX;
  if (ms != 0) c.services.pause->Begin(mode, until_ms);
  c.reply.Ok();
}

constexpr ArgSpec kTypes[] = {
    {.name = "normal", .type = ArgType::kToken, .token = "NORMAL"},
    {.name = "master", .type = ArgType::kToken, .token = "MASTER", .since = "3.2.0"},
    {.name = "slave", .type = ArgType::kToken, .token = "SLAVE"},
    {.name = "replica", .type = ArgType::kToken, .token = "REPLICA", .since = "5.0.0"},
    {.name = "pubsub", .type = ArgType::kToken, .token = "PUBSUB"}};
constexpr ArgSpec kListId[] = {{.name = "client-id", .type = ArgType::kInteger, .multiple = true}};
constexpr ArgSpec kListArgs[] = {{.name = "client-type",
                                  .type = ArgType::kOneOf,
                                  .token = "TYPE",
                                  .optional = true,
                                  .since = "5.0.0",
                                  .args = kTypes},
                                 {.name = "id",
                                  .type = ArgType::kBlock,
                                  .token = "ID",
                                  .optional = true,
                                  .since = "6.2.0",
                                  .args = kListId}};
constexpr ArgSpec kKillOptions[] = {
    {.name = "client-id",
     .type = ArgType::kInteger,
     .token = "ID",
     .optional = true,
     .since = "2.8.12"},
    {.name = "client-type",
     .type = ArgType::kOneOf,
     .token = "TYPE",
     .optional = true,
     .since = "2.8.12",
     .args = kTypes},
    {.name = "username", .token = "USER", .optional = true},
    {.name = "ip:port", .token = "ADDR", .optional = true},
    {.name = "ip:port", .token = "LADDR", .optional = true, .since = "6.2.0"},
    {.name = "yes/no", .token = "SKIPME", .optional = true}};
constexpr ArgSpec kKillForms[] = {
    {.name = "ip:port"},
    {.name = "new-format", .type = ArgType::kBlock, .multiple = true, .args = kKillOptions}};
constexpr ArgSpec kKillArgs[] = {{.name = "filter", .type = ArgType::kOneOf, .args = kKillForms}};
constexpr ArgSpec kSetNameArgs[] = {{.name = "connection-name"}};
constexpr ArgSpec kSetInfoOptions[] = {{.name = "libname", .token = "LIB-NAME"},
                                       {.name = "libver", .token = "LIB-VER"}};
constexpr ArgSpec kSetInfoArgs[] = {
    {.name = "attr", .type = ArgType::kOneOf, .args = kSetInfoOptions}};
constexpr ArgSpec kReplyModes[] = {{.name = "on", .type = ArgType::kToken, .token = "ON"},
                                   {.name = "off", .type = ArgType::kToken, .token = "OFF"},
                                   {.name = "skip", .type = ArgType::kToken, .token = "SKIP"}};
constexpr ArgSpec kReplyArgs[] = {{.name = "mode", .type = ArgType::kOneOf, .args = kReplyModes}};
constexpr ArgSpec kOnOff[] = {{.name = "on", .type = ArgType::kToken, .token = "ON"},
                              {.name = "off", .type = ArgType::kToken, .token = "OFF"}};
constexpr ArgSpec kOnOffArgs[] = {{.name = "enabled", .type = ArgType::kOneOf, .args = kOnOff}};
constexpr ArgSpec kUnblockReasons[] = {
    {.name = "timeout", .type = ArgType::kToken, .token = "TIMEOUT"},
    {.name = "error", .type = ArgType::kToken, .token = "ERROR"}};
constexpr ArgSpec kUnblockArgs[] = {
    {.name = "client-id", .type = ArgType::kInteger},
    {.name = "unblock-type", .type = ArgType::kOneOf, .optional = true, .args = kUnblockReasons}};
constexpr ArgSpec kPauseModes[] = {{.name = "write", .type = ArgType::kToken, .token = "WRITE"},
                                   {.name = "all", .type = ArgType::kToken, .token = "ALL"}};
constexpr ArgSpec kPauseArgs[] = {{.name = "timeout", .type = ArgType::kInteger},
                                  {.name = "mode",
                                   .type = ArgType::kOneOf,
                                   .optional = true,
                                   .since = "6.2.0",
                                   .args = kPauseModes}};
constexpr ArgSpec kYesNo[] = {{.name = "yes", .type = ArgType::kToken, .token = "YES"},
                              {.name = "no", .type = ArgType::kToken, .token = "NO"}};
constexpr ArgSpec kCachingArgs[] = {{.name = "mode", .type = ArgType::kOneOf, .args = kYesNo}};

constexpr uint32_t kPlain = kNoScript | kLoading | kStale;

constexpr CommandSpec kClientSubcommands[] = {
    {.name = "CACHING",
     .handler = &ClientCaching,
     .arity = 3,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "6.0.0",
     .summary = "Says whether the keys of the next command are tracked.",
     .args = kCachingArgs},
    {.name = "GETNAME",
     .handler = &ClientGetName,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "2.6.9",
     .summary = "The name of this connection."},
    {.name = "GETREDIR",
     .handler = &ClientGetRedir,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "6.0.0",
     .summary = "The client that tracking notifications go to, -1 without tracking."},
    {.name = "HELP",
     .handler = &ReplyHelp,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kConnection,
     .since = "5.0.0",
     .summary = "Prints this help."},
    {.name = "ID",
     .handler = &ClientId,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "5.0.0",
     .summary = "The number of this connection; never given twice while the server runs."},
    {.name = "INFO",
     .handler = &ClientInfoLine,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "6.2.0",
     .summary = "What CLIENT LIST says of this connection."},
    {.name = "KILL",
     .handler = &ClientKill,
     .arity = -3,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "2.4.0",
     .complexity = "O(N) where N is the number of connections",
     .summary = "Closes connections, chosen by address, number, kind or user.",
     .args = kKillArgs},
    {.name = "LIST",
     .handler = &ClientList,
     .arity = -2,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "2.4.0",
     .complexity = "O(N) where N is the number of connections",
     .summary = "One line for each open connection.",
     .args = kListArgs},
    {.name = "NO-EVICT",
     .handler = &ClientNoEvict,
     .arity = 3,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "7.0.0",
     .summary = "Keeps this connection from being closed to save memory.",
     .args = kOnOffArgs},
    {.name = "NO-TOUCH",
     .handler = &ClientNoTouch,
     .arity = 3,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "7.2.0",
     .summary = "Whether commands of this connection change the access time of keys.",
     .args = kOnOffArgs},
    {.name = "PAUSE",
     .handler = &ClientPause,
     .arity = -3,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "2.9.50",
     .summary = "Holds commands back, all or those that write, for some milliseconds.",
     .args = kPauseArgs},
    {.name = "REPLY",
     .handler = &ClientReply,
     .arity = 3,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "3.2.0",
     .summary = "Whether this connection gets replies.",
     .args = kReplyArgs},
    {.name = "SETINFO",
     .handler = &ClientSetInfo,
     .arity = 4,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "7.2.0",
     .summary = "Tells the server which library is used on this connection.",
     .args = kSetInfoArgs},
    {.name = "SETNAME",
     .handler = &ClientSetName,
     .arity = 3,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "2.6.9",
     .summary = "Names this connection.",
     .args = kSetNameArgs},
    {.name = "TRACKING",
     .handler = &ClientTracking,
     .arity = -3,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "6.0.0",
     .complexity = "O(1). Some options may introduce additional complexity.",
     .summary = "Whether this client is told when keys change that it has read.",
     .args = kTrackingArgs},
    {.name = "TRACKINGINFO",
     .handler = &ClientTrackingInfo,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kConnection,
     .since = "6.2.0",
     .summary = "The state of tracking on this connection."},
    {.name = "UNBLOCK",
     .handler = &ClientUnblock,
     .arity = -3,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "5.0.0",
     .summary = "Ends the waiting of another connection.",
     .args = kUnblockArgs},
    {.name = "UNPAUSE",
     .handler = &ClientUnpause,
     .arity = 2,
     .flags = kAdmin | kPlain,
     .group = Group::kConnection,
     .since = "6.2.0",
     .summary = "Ends a pause."}};

constexpr CommandSpec kClientCommands[] = {{.name = "CLIENT",
                                            .arity = -2,
                                            .group = Group::kConnection,
                                            .since = "2.4.0",
                                            .complexity = "Depends on subcommand.",
                                            .summary = "Commands about connections.",
                                            .subcommands = kClientSubcommands}};

}  // namespace

std::string ClientLine(const CommandTable& commands, const ClientInfo& info) {
  std::string line;
  AppendClientLine(commands, info, line);
  return line;
}

absl::Span<const CommandSpec> ClientCommands() { return kClientCommands; }

}  // namespace idemd::server

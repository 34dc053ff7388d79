// Commands about the connection itself: PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/acl/users.h"
#include "server/clients.h"
#include "server/commands/acl_check.h"
#include "server/commands/connection.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/transaction.h"
#include "server/version.h"

namespace idemd::server {
namespace {

using protocol::Writer;

constexpr absl::string_view kNameError =
    "ERR Client names cannot contain spaces, newlines or special characters.";
constexpr absl::string_view kHelloNoAuth =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
    "<user> <pass> option "
    "can be used to authenticate the client and select the RESP protocol version at the same time";
constexpr absl::string_view kAuthNotConfigured =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration "
    "is correct?";

void Ping(Context& c) {
  if (c.words.size() > 2) return c.reply.Error("ERR wrong number of arguments for 'ping' command");
  if (c.session.resp == 2 && c.session.info().subscribed()) {
    c.reply.Array(2);
    c.reply.Bulk("pong");
    return c.reply.Bulk(c.words.size() == 2 ? c.words[1] : absl::string_view());
  }
  if (c.words.size() == 2) return c.reply.Bulk(c.words[1]);
  c.reply.Simple("PONG");
}

void Echo(Context& c) { c.reply.Bulk(c.words[1]); }

void BecomeUser(Session& session, acl::Users::Seen seen) {
  session.user = seen.user->name();
  session.restricted = !seen.user->unrestricted();
  session.rights = std::move(seen.user);
  session.rights_version = seen.version;
  storage::MutexLock lock(session.info().mutex);
  session.info().user = session.user;
}

void Auth(Context& c) {
  if (c.words.size() > 3) return c.Syntax();
  const bool with_user = c.words.size() == 3;
  if (!with_user && c.services.users->Find("default").user->nopass()) return c.reply.Error(kAuthNotConfigured);
  const absl::string_view user = with_user ? c.words[1] : absl::string_view("default");
  if (!Authenticate(c, user, c.words.back()))
    return c.reply.Error(protocol::errors::kWrongPass);
  c.reply.Ok();
}

void ReplyHello(Context& c) {
  Writer& reply = c.reply;
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("redis");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(c.session.resp);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(c.session.info().id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

void Hello(Context& c) {
  int64_t version = 0;
  if (c.words.size() > 1) {
    if (!c.Int(1, &version, "ERR Protocol version is not an integer or out of range")) return;
    if (version < 2 || version > 3) return c.reply.Error(protocol::errors::kNoProto);
  }
  for (size_t i = 2; i < c.words.size(); ++i) {
    const size_t more = c.words.size() - 1 - i;
    if (absl::EqualsIgnoreCase(c.words[i], "AUTH") && more >= 2) {
      if (!Authenticate(c, c.words[i + 1], c.words[i + 2])) {
        return c.reply.Error(protocol::errors::kWrongPass);
      }
      i += 2;
    } else if (absl::EqualsIgnoreCase(c.words[i], "SETNAME") && more >= 1) {
      if (!IsClientName(c.words[i + 1])) return c.reply.Error(kNameError);
      SetClientName(c.session, c.words[i + 1]);
      i += 1;
    } else {
      return c.reply.Error(absl::StrCat("ERR Syntax error in HELLO option '", c.words[i], "'"));
    }
  }
  if (!c.session.authenticated && c.services.settings.has_password.load(std::memory_order_relaxed))
    return c.reply.Error(kHelloNoAuth);
  if (version != 0) {
    SetProtocol(c.session, static_cast<int>(version));
    c.reply.set_resp(c.session.resp);
  }
  ReplyHello(c);
}

void Select(Context& c) {
  int64_t index = 0;
  if (!c.Int(1, &index)) return;
  if (index < 0 || index >= c.services.settings.databases.load(std::memory_order_relaxed)) {
    return c.reply.Error(protocol::errors::kDbIndex);
  }
  SelectDb(c.session, static_cast<storage::DbIndex>(index));
  c.reply.Ok();
}

void Quit(Context& c) {
  c.session.close_after_reply = true;
  c.reply.Ok();
}

void Reset(Context& c) {
  Session& session = c.session;
  EndSubscriptions(c.services, session);
  EndTracking(c.services, session);
  DropTransaction(c.services, session);
  if (session.monitor) {
    session.monitor = false;
    session.info().monitor.store(false, std::memory_order_relaxed);
    c.services.clients.RemoveMonitor(session.info().id);
  }
  DropTransaction(c.services, session);
  SelectDb(session, 0);
  SetProtocol(session, 2);
  c.reply.set_resp(2);
  SetClientName(session, "");
  session.reply_mode = ReplyMode::kOn;
  session.no_touch = false;
  BecomeDefaultUser(c.services, session);
  c.reply.Simple("RESET");
}

constexpr ArgSpec kPingArgs[] = {{.name = "message", .optional = true}};
constexpr ArgSpec kEchoArgs[] = {{.name = "message"}};
constexpr ArgSpec kAuthArgs[] = {{.name = "username", .optional = true, .since = "6.0.0"},
                                 {.name = "password"}};
constexpr ArgSpec kSelectArgs[] = {{.name = "index", .type = ArgType::kInteger}};
constexpr ArgSpec kHelloAuthArgs[] = {{.name = "username"}, {.name = "password"}};
constexpr ArgSpec kHelloInner[] = {{.name = "protover", .type = ArgType::kInteger},
                                   {.name = "username_password",
                                    .type = ArgType::kBlock,
                                    .token = "AUTH",
                                    .optional = true,
                                    .args = kHelloAuthArgs},
                                   {.name = "clientname", .token = "SETNAME", .optional = true}};
constexpr ArgSpec kHelloArgs[] = {
    {.name = "arguments", .type = ArgType::kBlock, .optional = true, .args = kHelloInner}};

constexpr CommandSpec kConnectionCommands[] = {
    {.name = "PING",
     .handler = &Ping,
     .arity = -1,
     .flags = kFast | kWhileSubscribed,
     .group = Group::kConnection,
     .since = "1.0.0",
     .summary = "Answers PONG, or with the message it was given.",
     .args = kPingArgs},
    {.name = "ECHO",
     .handler = &Echo,
     .arity = 2,
     .flags = kLoading | kStale | kFast,
     .group = Group::kConnection,
     .since = "1.0.0",
     .summary = "Answers with the message it was given.",
     .args = kEchoArgs},
    {.name = "AUTH",
     .handler = &Auth,
     .arity = -2,
     .flags = kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy,
     .group = Group::kConnection,
     .since = "1.0.0",
     .summary = "Logs the connection in.",
     .args = kAuthArgs},
    {.name = "HELLO",
     .handler = &Hello,
     .arity = -1,
     .flags = kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy,
     .group = Group::kConnection,
     .since = "6.0.0",
     .summary =
         "Greets the server: chooses RESP2 or RESP3, logs in and names the connection in one step.",
     .args = kHelloArgs},
    {.name = "SELECT",
     .handler = &Select,
     .arity = 2,
     .flags = kLoading | kStale | kFast,
     .group = Group::kConnection,
     .since = "1.0.0",
     .summary = "Chooses the database that later commands of this connection use.",
     .args = kSelectArgs},
    {.name = "QUIT",
     .handler = &Quit,
     .arity = -1,
     .flags = kAllowBusy | kNoScript | kLoading | kStale | kFast | kNoAuth | kNotQueued |
              kWhileSubscribed,
     .group = Group::kConnection,
     .since = "1.0.0",
     .summary = "Ends the connection after all replies were sent."},
    {.name = "RESET",
     .handler = &Reset,
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kNotQueued |
              kWhileSubscribed,
     .group = Group::kConnection,
     .since = "6.2.0",
     .summary = "Puts the connection back to the state it had when it was opened."}};

}  // namespace

bool Authenticate(Context& c, absl::string_view name, absl::string_view password) {
  // The version is from before the password was looked at: what changes meanwhile is seen at the next command.
  acl::Users::Seen seen = c.services.users->Find(name);
  if (seen.user == nullptr || !seen.user->LetsIn(password)) {
    LogFailedLogin(c.services, c.session, name, c.words[0]);
    return false;
  }
  BecomeUser(c.session, std::move(seen));
  c.session.authenticated = true;
  return true;
}

void BecomeDefaultUser(Services& services, Session& session) {
  acl::Users::Seen seen = services.users->Find("default");
  session.authenticated = seen.user->enabled() && seen.user->nopass();
  BecomeUser(session, std::move(seen));
}

bool IsClientName(absl::string_view name) {
  for (char byte : name) {
    if (byte < '!' || byte > '~') return false;
  }
  return true;
}

void SetClientName(Session& session, absl::string_view name) {
  session.name = std::string(name);
  storage::MutexLock lock(session.info().mutex);
  session.info().name = session.name;
}

void SelectDb(Session& session, storage::DbIndex db) {
  session.db = db;
  session.info().db.store(db, std::memory_order_relaxed);
}

void SetProtocol(Session& session, int resp) {
  session.resp = resp;
  session.info().resp.store(resp, std::memory_order_relaxed);
}

absl::Span<const CommandSpec> ConnectionCommands() { return kConnectionCommands; }

}  // namespace idemd::server

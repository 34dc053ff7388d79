// ACL: who the users are and what they may do.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/acl/users.h"
#include "server/admin/log.h"
#include "server/admin/password.h"
#include "server/admin/settings.h"
#include "server/commands/acl_categories.h"
#include "server/commands/acl_check.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

constexpr int64_t kPasswordBitsMax = 4096;
constexpr absl::string_view kNoFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the "
    "ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) "
    "in order to store users in the Redis configuration.";

void AclWhoAmI(Context& c) { c.reply.Bulk(c.session.user); }

void AclUsers(Context& c) {
  const auto users = c.services.users->All();
  c.reply.Array(users.size());
  for (const auto& user : users) c.reply.Bulk(user->name());
}

void AclList(Context& c) {
  const auto users = c.services.users->All();
  c.reply.Array(users.size());
  for (const auto& user : users) c.reply.Bulk(user->Describe(c.services.users->catalog()));
}

void ReplySelector(Context& c, const acl::Selector& selector) {
  c.reply.Bulk("commands");
  c.reply.Bulk(selector.CommandRules(c.services.users->catalog()));
  c.reply.Bulk("keys");
  c.reply.Bulk(selector.KeyRules());
  c.reply.Bulk("channels");
  c.reply.Bulk(selector.ChannelRules());
}

void AclGetUser(Context& c) {
  const auto user = c.services.users->Find(c.words[2]).user;
  if (user == nullptr) return c.reply.Null();
  c.reply.Map(6);
  c.reply.Bulk("flags");
  const std::vector<absl::string_view> flags = user->Flags();
  c.reply.Set(flags.size());
  for (absl::string_view flag : flags) c.reply.Bulk(flag);
  c.reply.Bulk("passwords");
  c.reply.Array(user->passwords().size());
  for (const std::string& password : user->passwords()) c.reply.Bulk(password);
  ReplySelector(c, user->own());
  c.reply.Bulk("selectors");
  c.reply.Array(user->others().size());
  for (const acl::Selector& selector : user->others()) {
    c.reply.Map(3);
    ReplySelector(c, selector);
  }
}

void AclSetUser(Context& c) {
  const absl::string_view name = c.words[2];
  if (name.find_first_of(absl::string_view(" \t\n\v\f\r\0", 7)) != absl::string_view::npos)
    return c.reply.Error("ERR Usernames can't contain spaces or null characters");
  const absl::Status set = c.services.users->Set(name, c.words.subspan(3));
  if (!set.ok()) return c.reply.Error(absl::StrCat("ERR ", set.message()));
  if (const auto user = c.services.users->Find(name).user; user != nullptr)
    EndForbiddenSubscribers(c.services, c.session, *user);
  c.reply.Ok();
}

void AclDelUser(Context& c) {
  int64_t removed = 0;
  for (absl::string_view name : c.words.subspan(2)) {
    if (name == "default") return c.reply.Error("ERR The 'default' user cannot be removed");
  }
  for (absl::string_view name : c.words.subspan(2)) {
    if (!c.services.users->Remove(name)) continue;
    ++removed;
    EndConnectionsOf(c.services, c.session, name);
  }
  c.reply.Integer(removed);
}

void AclCat(Context& c) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  if (c.words.size() == 2) {
    c.reply.Array(CategoryNames().size());
    for (absl::string_view name : CategoryNames()) c.reply.Bulk(name);
    return;
  }
  const uint32_t category = CategoryBit(c.words[2]);
  if (category == 0) return c.reply.Error(absl::StrCat("ERR Unknown category '", c.words[2], "'"));
  std::vector<const CommandEntry*> inside;
  for (const CommandEntry* entry : c.services.commands.all()) {
    if ((CategoriesOf(*entry->spec) & category) != 0) inside.push_back(entry);
  }
  c.reply.Array(inside.size());
  for (const CommandEntry* entry : inside) c.reply.Bulk(entry->full_name);
}

void AclGenPass(Context& c) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  int64_t bits = 256;
  if (c.words.size() == 3 && !c.Int(2, &bits)) return;
  if (bits <= 0 || bits > kPasswordBitsMax) {
    return c.reply.Error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
  }
  const std::string password = RandomPassword(static_cast<size_t>(bits + 3) / 4);
  if (password.empty()) return c.reply.Error("ERR no random bytes");
  c.reply.Bulk(password);
}

void AclLog(Context& c) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  int64_t count = 10;
  if (c.words.size() == 3) {
    if (absl::EqualsIgnoreCase(c.words[2], "RESET")) {
      c.services.users->denials().Clear();
      return c.reply.Ok();
    }
    if (!c.Int(2, &count)) return;
  }
  const auto entries = c.services.users->denials().Newest(static_cast<size_t>(std::max<int64_t>(0, count)));
  const int64_t now_ms = acl::Denials::NowMs();
  c.reply.Array(entries.size());
  for (const acl::Denials::Entry& entry : entries) {
    c.reply.Map(7);
    c.reply.Bulk("count");
    c.reply.Integer(static_cast<int64_t>(entry.count));
    for (const auto& [name, value] : {std::pair<const char*, absl::string_view>{"reason", entry.reason},
                                      {"context", entry.context},
                                      {"object", entry.object},
                                      {"username", entry.user}}) {
      c.reply.Bulk(name);
      c.reply.Bulk(value);
    }
    c.reply.Bulk("age-seconds");
    c.reply.Double(static_cast<double>(now_ms - entry.at_ms) / 1000);
    c.reply.Bulk("client-info");
    c.reply.Bulk(entry.client);
  }
}

void AclDryRun(Context& c) {
  acl::Users& users = *c.services.users;
  const auto user = users.Find(c.words[2]).user;
  if (user == nullptr) return c.reply.Error(absl::StrCat("ERR User '", c.words[2], "' not found"));
  const absl::Span<const absl::string_view> words = c.words.subspan(3);
  const CommandEntry* entry = c.services.commands.Find(words[0]);
  if (entry != nullptr && !entry->subcommands.empty() && words.size() > 1)
    entry = c.services.commands.FindSubcommand(*entry, words[1]);
  if (entry == nullptr) return c.reply.Error(absl::StrCat("ERR Command '", words[0], "' not found"));
  if (!ArityFits(*entry->spec, words.size()))
    return c.reply.Error(absl::StrCat("ERR wrong number of arguments for '", entry->full_name, "' command"));
  size_t word = 0;
  const CallParts parts(*entry, words, *user);
  const auto deny = [&](absl::string_view kind, absl::string_view object) {
    c.reply.Bulk(absl::StrCat("This user has no permissions to access the '", object, "' ", kind));
  };
  switch (user->Check(users.catalog(), parts.call(), &word)) {
    case acl::Verdict::kAllowed:
      return c.reply.Ok();
    case acl::Verdict::kCommand:
      return c.reply.Bulk(
          absl::StrCat("This user has no permissions to run the '", entry->full_name, "' command"));
    case acl::Verdict::kKey:
      return deny("key", words[word]);
    case acl::Verdict::kChannel:
      return deny("channel", words[word]);
  }
}

void AclLoad(Context& c) {
  const std::string path = c.services.settings.Text("aclfile");
  if (path.empty()) return c.reply.Error(kNoFile);
  std::vector<std::string> replaced;
  if (const absl::Status loaded = c.services.users->Load(path, &replaced); !loaded.ok())
    return c.reply.Error(absl::StrCat("ERR ", loaded.message()));
  // As in Redis 7.0: connections of users other than the default one have to log in again.
  for (const std::string& name : replaced) EndConnectionsOf(c.services, c.session, name);
  c.reply.Ok();
}

void AclSave(Context& c) {
  const std::string path = c.services.settings.Text("aclfile");
  if (path.empty()) return c.reply.Error(kNoFile);
  if (const absl::Status saved = c.services.users->Save(path); !saved.ok()) {
    LogWarning(saved.message());
    return c.reply.Error(
        "ERR There was an error trying to save the ACLs. Please check the server logs for more information");
  }
  c.reply.Ok();
}

constexpr ArgSpec kCatArgs[] = {{.name = "categoryname", .optional = true}};
constexpr ArgSpec kGenPassArgs[] = {{.name = "bits", .type = ArgType::kInteger, .optional = true}};
constexpr ArgSpec kUserArgs[] = {{.name = "username"}};
constexpr ArgSpec kUsersArgs[] = {{.name = "username", .multiple = true}};
constexpr ArgSpec kSetUserArgs[] = {{.name = "username"},
                                    {.name = "rule", .optional = true, .multiple = true}};
constexpr ArgSpec kDryRunArgs[] = {
    {.name = "username"}, {.name = "command"}, {.name = "arg", .optional = true, .multiple = true}};
constexpr ArgSpec kLogOperations[] = {{.name = "count", .type = ArgType::kInteger},
                                      {.name = "reset", .type = ArgType::kToken, .token = "RESET"}};
constexpr ArgSpec kLogArgs[] = {
    {.name = "operation", .type = ArgType::kOneOf, .optional = true, .args = kLogOperations}};

constexpr uint32_t kPlain = kNoScript | kLoading | kStale;
constexpr Group kGroup = Group::kServer;

constexpr CommandSpec kSubcommands[] = {
    {.name = "CAT", .handler = &AclCat, .arity = -2, .flags = kPlain, .group = kGroup, .since = "6.0.0",
     .complexity = "O(1) since the categories and commands are a fixed set.",
     .summary = "The categories of commands, or the commands of one.", .args = kCatArgs},
    {.name = "DELUSER", .handler = &AclDelUser, .arity = -3, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of connections",
     .summary = "Removes users and ends their connections.", .args = kUsersArgs},
    {.name = "DRYRUN", .handler = &AclDryRun, .arity = -4, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "7.0.0", .summary = "Whether a user may run a command; it is not run.", .args = kDryRunArgs},
    {.name = "GENPASS", .handler = &AclGenPass, .arity = -2, .flags = kPlain, .group = kGroup,
     .since = "6.0.0", .summary = "Makes a random password.", .args = kGenPassArgs},
    {.name = "GETUSER", .handler = &AclGetUser, .arity = 3, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of rules of the user",
     .summary = "The rights of a user.", .args = kUserArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = kGroup,
     .since = "6.0.0", .summary = "Prints this help."},
    {.name = "LIST", .handler = &AclList, .arity = 2, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of users",
     .summary = "All users and their rights, as in an ACL file."},
    {.name = "LOAD", .handler = &AclLoad, .arity = 2, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of users",
     .summary = "Replaces all users by those of the ACL file."},
    {.name = "LOG", .handler = &AclLog, .arity = -2, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) with N entries",
     .summary = "What was denied lately; RESET forgets it.", .args = kLogArgs},
    {.name = "SAVE", .handler = &AclSave, .arity = 2, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of users",
     .summary = "Writes all users into the ACL file."},
    {.name = "SETUSER", .handler = &AclSetUser, .arity = -3, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of rules",
     .summary = "Makes a user, or changes one.", .args = kSetUserArgs},
    {.name = "USERS", .handler = &AclUsers, .arity = 2, .flags = kAdmin | kPlain, .group = kGroup,
     .since = "6.0.0", .complexity = "O(N) where N is the number of users",
     .summary = "The names of all users."},
    {.name = "WHOAMI", .handler = &AclWhoAmI, .arity = 2, .flags = kPlain, .group = kGroup, .since = "6.0.0",
     .summary = "The user of this connection."}};

constexpr CommandSpec kAclCommands[] = {{.name = "ACL",
                                         .arity = -2,
                                         .group = Group::kServer,
                                         .since = "6.0.0",
                                         .complexity = "Depends on subcommand.",
                                         .summary = "Commands about users and their rights.",
                                         .subcommands = kSubcommands}};

}  // namespace

absl::Span<const CommandSpec> AclCommands() { return kAclCommands; }

}  // namespace idemd::server

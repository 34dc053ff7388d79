// ACL: there is one user, "default", who may do everything; only a password can stand before it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/admin/password.h"
#include "server/admin/settings.h"
#include "server/commands/acl_categories.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

constexpr int64_t kPasswordBitsMax = 4096;

void AclWhoAmI(Context& c) { c.reply.Bulk(c.session.user); }

void AclUsers(Context& c) {
  c.reply.Array(1);
  c.reply.Bulk("default");
}

void AclList(Context& c) {
  const std::string password = c.services.settings.requirepass();
  c.reply.Array(1);
  c.reply.Bulk(
      absl::StrCat("user default on ",
                   password.empty() ? "nopass" : absl::StrCat("#", PasswordDigestHex(password)),
                   " ~* &* +@all"));
}

void AclGetUser(Context& c) {
  if (c.words[2] != "default") return c.reply.Null();
  const std::string password = c.services.settings.requirepass();
  c.reply.Map(6);
  c.reply.Bulk("flags");
  c.reply.Set(password.empty() ? 2 : 1);
  c.reply.Bulk("on");
  if (password.empty()) c.reply.Bulk("nopass");
  c.reply.Bulk("passwords");
  c.reply.Array(password.empty() ? 0 : 1);
  if (!password.empty()) c.reply.Bulk(PasswordDigestHex(password));
  for (const auto& [name, value] :
       {std::pair{"commands", "+@all"}, {"keys", "~*"}, {"channels", "&*"}}) {
    c.reply.Bulk(name);
    c.reply.Bulk(value);
  }
  c.reply.Bulk("selectors");
  c.reply.Array(0);
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

void AclNotSupported(Context& c) {
  c.reply.Error(absl::StrCat("ERR ACL ", c.words[1].substr(0, 128),
                             " is not supported by this version: there is one user, default"));
}

constexpr ArgSpec kCatArgs[] = {{.name = "categoryname", .optional = true}};
constexpr ArgSpec kGenPassArgs[] = {{.name = "bits", .type = ArgType::kInteger, .optional = true}};
constexpr ArgSpec kUserArgs[] = {{.name = "username"}};
constexpr ArgSpec kSetUserArgs[] = {{.name = "username"},
                                    {.name = "rule", .optional = true, .multiple = true}};

constexpr uint32_t kPlain = kNoScript | kLoading | kStale;

constexpr CommandSpec kSubcommands[] = {
    {.name = "CAT",
     .handler = &AclCat,
     .arity = -2,
     .flags = kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "The categories of commands, or the commands of one.",
     .args = kCatArgs},
    {.name = "DELUSER",
     .handler = &AclNotSupported,
     .arity = -3,
     .flags = kAdmin | kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "Not supported by this version.",
     .args = kUserArgs},
    {.name = "GENPASS",
     .handler = &AclGenPass,
     .arity = -2,
     .flags = kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "Makes a random password.",
     .args = kGenPassArgs},
    {.name = "GETUSER",
     .handler = &AclGetUser,
     .arity = 3,
     .flags = kAdmin | kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "The rights of a user.",
     .args = kUserArgs},
    {.name = "HELP",
     .handler = &ReplyHelp,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "Prints this help."},
    {.name = "LIST",
     .handler = &AclList,
     .arity = 2,
     .flags = kAdmin | kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "All users and their rights, as in an ACL file."},
    {.name = "SETUSER",
     .handler = &AclNotSupported,
     .arity = -3,
     .flags = kAdmin | kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "Not supported by this version.",
     .args = kSetUserArgs},
    {.name = "USERS",
     .handler = &AclUsers,
     .arity = 2,
     .flags = kAdmin | kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
     .summary = "The names of all users."},
    {.name = "WHOAMI",
     .handler = &AclWhoAmI,
     .arity = 2,
     .flags = kPlain,
     .group = Group::kServer,
     .since = "6.0.0",
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

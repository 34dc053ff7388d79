// Writes HELP and argument syntax from command entries.
#include "server/commands/help.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

constexpr size_t kShownWordBytes = 128;  // of a word that is repeated in an error, as Redis

std::string One(const ArgSpec& arg);

std::string Joined(absl::Span<const ArgSpec> args, absl::string_view between) {
  std::string text;
  for (const ArgSpec& arg : args) absl::StrAppend(&text, text.empty() ? "" : between, One(arg));
  return text;
}

// The argument without the brackets of "optional" and without repetition.
std::string Bare(const ArgSpec& arg) {
  std::string value;
  switch (arg.type) {
    case ArgType::kToken:
      return arg.token;
    case ArgType::kOneOf:
      value = Joined(arg.args, " | ");
      if (!arg.optional && arg.args.size() > 1) value = absl::StrCat("<", value, ">");
      break;
    case ArgType::kBlock:
      value = Joined(arg.args, " ");
      break;
    case ArgType::kKey:
    case ArgType::kString:
    case ArgType::kInteger:
    case ArgType::kDouble:
    case ArgType::kPattern:
    case ArgType::kUnixTime:
      value = arg.name;
      break;
  }
  return arg.token == nullptr ? value : absl::StrCat(arg.token, " ", value);
}

std::string One(const ArgSpec& arg) {
  std::string text = Bare(arg);
  if (arg.multiple) text = absl::StrCat(text, " [", text, " ...]");
  return arg.optional ? absl::StrCat("[", text, "]") : text;
}

}  // namespace

std::string ArgumentSyntax(absl::Span<const ArgSpec> args) { return Joined(args, " "); }

void ReplyHelp(Context& c) {
  const CommandEntry& container = *c.services.commands.EntryOf(*c.spec).parent;
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(container.spec->name,
                               " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
  const auto add = [&lines](const CommandSpec& spec) {
    const std::string syntax = ArgumentSyntax(spec.args);
    lines.push_back(absl::StrCat(spec.name, syntax.empty() ? "" : " ", syntax));
    lines.push_back(absl::StrCat("    ", spec.summary));
  };
  for (const CommandEntry* sub : container.subcommands) {
    if (sub->spec != c.spec) add(*sub->spec);
  }
  add(*c.spec);  // HELP comes last
  c.reply.Array(lines.size());
  for (const std::string& line : lines) c.reply.Simple(line);
}

void ReplySubcommandSyntaxError(Context& c) {
  c.reply.Error(absl::StrCat("ERR unknown subcommand or wrong number of arguments for '",
                             c.words[1].substr(0, kShownWordBytes), "'. Try ",
                             absl::AsciiStrToUpper(c.words[0]), " HELP."));
}

}  // namespace idemd::server

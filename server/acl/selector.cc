// Reads rules about commands, keys and channels, and holds calls against them.
#include "server/acl/selector.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "protocol/glob.h"

namespace idemd::server::acl {
namespace {

bool HasBlanks(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char byte) {
    return absl::ascii_isspace(static_cast<unsigned char>(byte)) || byte == '\0';
  });
}

bool IsOneOf(absl::string_view rule, absl::string_view a, absl::string_view b) {
  return absl::EqualsIgnoreCase(rule, a) || absl::EqualsIgnoreCase(rule, b);
}

}  // namespace

absl::string_view RuleErrorText(RuleError error) {
  switch (error) {
    case RuleError::kNone:
      return "";
    case RuleError::kUnknown:
      return "Unknown command or category name in ACL";
    case RuleError::kSyntax:
      return "Syntax error";
    case RuleError::kKeysAreAll:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
             "not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    case RuleError::kChannelsAreAll:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
             "does not have any effect. Try 'resetchannels' to start with an empty list of channels";
    case RuleError::kNoSuchPassword:
      return "The password you are trying to remove from the user does not exist";
    case RuleError::kBadDigest:
      return "The password hash must be exactly 64 characters and contain only lowercase "
             "hexadecimal characters";
    case RuleError::kFirstWordOfSubcommand:
      return "Allowing first-arg of a subcommand is not supported";
  }
  return "";
}

RuleError Selector::Apply(const Catalog& catalog, absl::string_view rule) {
  if (IsOneOf(rule, "allkeys", "~*")) {
    all_keys_ = true;
    keys_.clear();
  } else if (absl::EqualsIgnoreCase(rule, "resetkeys")) {
    all_keys_ = false;
    keys_.clear();
  } else if (IsOneOf(rule, "allchannels", "&*")) {
    all_channels_ = true;
    channels_.clear();
  } else if (absl::EqualsIgnoreCase(rule, "resetchannels")) {
    all_channels_ = false;
    channels_.clear();
  } else if (IsOneOf(rule, "allcommands", "+@all")) {
    ChangeAll(true);
  } else if (IsOneOf(rule, "nocommands", "-@all")) {
    ChangeAll(false);
  } else if (absl::StartsWith(rule, "~") || absl::StartsWith(rule, "%")) {
    return AddKeyPattern(rule);
  } else if (absl::StartsWith(rule, "&")) {
    return AddChannelPattern(rule.substr(1));
  } else if (absl::StartsWith(rule, "+@") || absl::StartsWith(rule, "-@")) {
    return ChangeCategory(catalog, rule.substr(2), rule[0] == '+');
  } else if (absl::StartsWith(rule, "+")) {
    return Allow(catalog, rule.substr(1));
  } else if (absl::StartsWith(rule, "-")) {
    const CommandId command = catalog.Find(rule.substr(1));
    if (command == kNoCommand) return RuleError::kUnknown;
    Change(catalog, command, false);
  } else {
    return RuleError::kSyntax;
  }
  return RuleError::kNone;
}

RuleError Selector::AddKeyPattern(absl::string_view rule) {
  if (all_keys_) return RuleError::kKeysAreAll;
  Access access = kReadWrite;
  absl::string_view pattern = rule.substr(1);
  if (rule[0] == '%') {
    access = 0;
    while (!pattern.empty() && !(pattern[0] == '~' && access != 0)) {
      const char letter = absl::ascii_toupper(static_cast<unsigned char>(pattern[0]));
      const Access bit = letter == 'R' ? kRead : letter == 'W' ? kWrite : Access{0};
      if (bit == 0 || (access & bit) != 0) return RuleError::kSyntax;
      access |= bit;
      pattern.remove_prefix(1);
    }
    if (access == 0) return RuleError::kSyntax;  // "%" alone, which a description could only make more of
    // A rule without "~" allows the key without a name, as in Redis.
    if (!pattern.empty()) pattern.remove_prefix(1);
  }
  if (HasBlanks(pattern)) return RuleError::kSyntax;
  for (KeyPattern& known : keys_) {
    if (known.pattern != pattern) continue;
    known.access |= access;
    return RuleError::kNone;
  }
  keys_.push_back({std::string(pattern), access});
  return RuleError::kNone;
}

RuleError Selector::AddChannelPattern(absl::string_view pattern) {
  if (all_channels_) return RuleError::kChannelsAreAll;
  if (HasBlanks(pattern)) return RuleError::kSyntax;
  if (std::find(channels_.begin(), channels_.end(), pattern) == channels_.end())
    channels_.emplace_back(pattern);
  return RuleError::kNone;
}

RuleError Selector::Allow(const Catalog& catalog, absl::string_view name) {
  const size_t bar = name.rfind('|');
  if (bar == absl::string_view::npos) {
    const CommandId command = catalog.Find(name);
    if (command == kNoCommand) return RuleError::kUnknown;
    Change(catalog, command, true);
    return RuleError::kNone;
  }
  const CommandId container = catalog.Find(name.substr(0, bar));
  if (container == kNoCommand) return RuleError::kUnknown;
  const Catalog::Command& entry = catalog.commands()[container];
  if (entry.parent != kNoCommand) return RuleError::kFirstWordOfSubcommand;
  const absl::string_view word = name.substr(bar + 1);
  if (word.empty() || HasBlanks(word)) return RuleError::kSyntax;
  if (!entry.subcommands.empty()) {
    const CommandId command = catalog.Find(name);
    if (command == kNoCommand) return RuleError::kUnknown;
    Change(catalog, command, true);
    return RuleError::kNone;
  }
  std::vector<std::string>& words = first_words_[container];
  for (const std::string& known : words) {
    if (absl::EqualsIgnoreCase(known, word)) return RuleError::kNone;
  }
  words.emplace_back(word);
  return RuleError::kNone;
}

void Selector::Change(const Catalog& catalog, CommandId command, bool allow) {
  allowed_.set(command, allow);
  first_words_.erase(command);
  for (CommandId sub : catalog.commands()[command].subcommands) allowed_.set(sub, allow);
  if (!allow) all_commands_ = false;
}

void Selector::ChangeAll(bool allow) {
  allow ? allowed_.set() : allowed_.reset();
  all_commands_ = future_ = allow;
  first_words_.clear();
}

RuleError Selector::ChangeCategory(const Catalog& catalog, absl::string_view name, bool allow) {
  const int category = catalog.FindCategory(name);
  if (category < 0) return RuleError::kUnknown;
  const CommandBits& reach = catalog.Reach(category);
  allow ? allowed_ |= reach : allowed_ &= ~reach;
  std::erase_if(first_words_, [&](const auto& entry) { return reach.test(entry.first); });
  if (!allow) all_commands_ = false;
  return RuleError::kNone;
}

bool Selector::AllowsCommand(const Catalog& catalog, const Call& call) const {
  if (all_commands_ || allowed_.test(call.command)) return true;
  if (catalog.commands()[call.command].always) return true;
  const auto words = first_words_.find(call.command);
  if (words == first_words_.end() || call.words.size() < 2) return false;
  return std::any_of(words->second.begin(), words->second.end(), [&](const std::string& word) {
    return absl::EqualsIgnoreCase(word, call.words[1]);
  });
}

// Whether a pattern that matches something matches it with anything behind it, too.
static bool OpenEnded(absl::string_view pattern) {
  if (pattern.empty() || pattern.back() != '*') return false;
  pattern.remove_suffix(1);
  const size_t last = pattern.find_last_not_of('\\');
  return (pattern.size() - (last == absl::string_view::npos ? 0 : last + 1)) % 2 == 0;  // backslashes
}

bool Selector::AllowsKey(const KeyUse& use) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& known) {
    return (known.access & use.access) == use.access && (!use.prefix || OpenEnded(known.pattern)) &&
           protocol::GlobMatch(known.pattern, use.key, /*ignore_case=*/false);
  });
}

bool Selector::AllowsChannel(absl::string_view channel, bool pattern) const {
  if (all_channels_) return true;
  return std::any_of(channels_.begin(), channels_.end(), [&](const std::string& known) {
    return pattern ? known == channel
                   : protocol::GlobMatch(known, channel, /*ignore_case=*/false);
  });
}

bool Selector::ReadsAllKeys() const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [](const KeyPattern& known) {
           return known.pattern == "*" && (known.access & kRead) != 0;
         });
}

Verdict Selector::Check(const Catalog& catalog, const Call& call, size_t* word) const {
  if (!AllowsCommand(catalog, call)) return Verdict::kCommand;
  if (!all_keys_) {
    for (const KeyUse& use : call.keys) {
      if (AllowsKey(use)) continue;
      *word = use.word;
      return Verdict::kKey;
    }
  }
  if (!all_channels_) {
    for (const ChannelUse& use : call.channels) {
      if (AllowsChannel(use.channel, use.pattern)) continue;
      *word = use.word;
      return Verdict::kChannel;
    }
  }
  return Verdict::kAllowed;
}

}  // namespace idemd::server::acl

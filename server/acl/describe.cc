// Puts a selector into words again: the rules that make one with the same rights.
//
// Of the rules about commands only their result is kept. The categories that fit it best come first, each time the one
// with the fewest commands that do not fit, and of equals the one with the most that do; single commands mend what is
// left. That is how Redis 7.0 chooses, so that the words are the same as there.
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/acl/selector.h"

namespace idemd::server::acl {
namespace {

constexpr int kNone = -1;

// The category to name next, or kNone. `left` is what the categories so far have left over.
int BestCategory(const Catalog& catalog, const CommandBits& left, const std::vector<bool>& named,
                 bool additive) {
  int best = kNone;
  size_t fewest_wrong = std::numeric_limits<size_t>::max();
  size_t most_right = 0;
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i]) continue;
    const CommandBits& members = catalog.Members(static_cast<int>(i));
    const size_t on = (members & left).count();
    const size_t off = members.count() - on;
    const size_t right = additive ? on : off;
    const size_t wrong = additive ? off : on;
    if (right <= wrong) continue;
    if (wrong > fewest_wrong || (wrong == fewest_wrong && right <= most_right)) continue;
    best = static_cast<int>(i);
    fewest_wrong = wrong;
    most_right = right;
  }
  return best;
}

}  // namespace

std::string Selector::CommandRules(const Catalog& catalog) const {
  const bool additive = !future_;
  std::string rules = additive ? "-@all" : "+@all";
  CommandBits left = allowed_;  // what is still to be said, as Redis works it off
  CommandBits said;             // what the rules so far amount to
  if (!additive) said.set();
  const auto apply = [](CommandBits& bits, const CommandBits& reach, bool allow) {
    allow ? bits |= reach : bits &= ~reach;
  };
  std::vector<bool> named(catalog.categories().size());
  for (int best; (best = BestCategory(catalog, left, named, additive)) != kNone;) {
    const auto place = static_cast<size_t>(best);
    apply(said, catalog.Reach(best), additive);
    apply(left, catalog.Reach(best), !additive);
    absl::StrAppend(&rules, additive ? " +@" : " -@", catalog.categories()[place]);
    named[place] = true;
  }
  for (CommandId id = 0; id < catalog.commands().size(); ++id) {
    const Catalog::Command& command = catalog.commands()[id];
    if (allowed_.test(id) != said.test(id)) {
      absl::StrAppend(&rules, allowed_.test(id) ? " +" : " -", command.name);
      said.set(id, allowed_.test(id));
      for (CommandId sub : command.subcommands) said.set(sub, allowed_.test(id));
    }
    const auto words = first_words_.find(id);
    if (words == first_words_.end() || allowed_.test(id)) continue;
    for (const std::string& word : words->second)
      absl::StrAppend(&rules, " +", command.name, "|", word);
  }
  return rules;
}

std::string Selector::KeyRules() const {
  if (all_keys_) return "~*";
  std::string rules;
  for (const KeyPattern& key : keys_) {
    // "~*" would be the flag, behind which no pattern may stand.
    const bool flag = key.pattern == "*";
    const char* const prefix =
        key.access == kReadWrite ? (flag ? "%RW~" : "~") : key.access == kRead ? "%R~" : "%W~";
    absl::StrAppend(&rules, rules.empty() ? "" : " ", prefix, key.pattern);
  }
  return rules;
}

std::string Selector::ChannelRules() const {
  if (all_channels_) return "&*";
  std::string rules;
  for (const std::string& channel : channels_)
    absl::StrAppend(&rules, rules.empty() ? "" : " ", "&", channel);
  return rules;
}

std::string Selector::Describe(const Catalog& catalog) const {
  std::string text = KeyRules();
  if (!text.empty()) text += ' ';
  if (!all_channels_) text += "resetchannels ";
  if (const std::string channels = ChannelRules(); !channels.empty())
    absl::StrAppend(&text, channels, " ");
  return text + CommandRules(catalog);
}

}  // namespace idemd::server::acl

// One set of rights: commands, keys and channels. A user has one of its own, and others in parentheses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/acl/catalog.h"

namespace idemd::server::acl {

// Why a rule was not taken.
enum class RuleError : uint8_t {
  kNone,
  kUnknown,               // command or category
  kSyntax,
  kKeysAreAll,            // a pattern after ~*
  kChannelsAreAll,        // a pattern after &*
  kNoSuchPassword,
  kBadDigest,
  kFirstWordOfSubcommand,
};
// As Redis says it.
absl::string_view RuleErrorText(RuleError error);

// What is done to a key, and what a pattern allows; bits.
using Access = uint8_t;
inline constexpr Access kRead = 1;
inline constexpr Access kWrite = 2;
inline constexpr Access kReadWrite = kRead | kWrite;

struct KeyUse {
  absl::string_view key;
  Access access = 0;  // 0: it is only asked whether it is there
  size_t word = 0;    // its place among the words
  bool prefix = false;  // of keys that nobody knows yet: allowed only if whatever follows is
};

struct ChannelUse {
  absl::string_view channel;
  bool pattern = false;  // PSUBSCRIBE: allowed only if it is word for word what was allowed
  size_t word = 0;
};

// A command with its words, as far as rights depend on them. Views.
struct Call {
  CommandId command = 0;
  absl::Span<const absl::string_view> words;
  absl::Span<const KeyUse> keys;
  absl::Span<const ChannelUse> channels;
};

// In the order in which the reasons of several selectors weigh.
enum class Verdict : uint8_t { kAllowed, kCommand, kKey, kChannel };

class Selector {
 public:
  // Nothing is allowed; with `all_channels` (acl-pubsub-default) channels are.
  explicit Selector(bool all_channels = false) : all_channels_(all_channels) {}

  // One rule: "+get", "~k*", "allchannels".
  [[nodiscard]] RuleError Apply(const Catalog& catalog, absl::string_view rule);
  // `word` gets the place of the key or channel that is not allowed.
  Verdict Check(const Catalog& catalog, const Call& call, size_t* word) const;
  bool AllowsChannel(absl::string_view channel, bool pattern) const;
  // Whether any key may be read, whatever its name.
  bool ReadsAllKeys() const;

  bool unrestricted() const { return all_commands_ && all_keys_ && all_channels_; }
  bool all_keys() const { return all_keys_; }
  bool all_channels() const { return all_channels_; }

  // As ACL GETUSER shows them: "+@all -get", "~a* %R~b", "&c*".
  std::string CommandRules(const Catalog& catalog) const;  // describe.cc
  std::string KeyRules() const;
  std::string ChannelRules() const;
  // All of it, as in ACL LIST.
  std::string Describe(const Catalog& catalog) const;

 private:
  struct KeyPattern {
    std::string pattern;
    Access access;
  };

  RuleError AddKeyPattern(absl::string_view rule);
  RuleError AddChannelPattern(absl::string_view pattern);
  RuleError Allow(const Catalog& catalog, absl::string_view name);
  RuleError ChangeCategory(const Catalog& catalog, absl::string_view name, bool allow);
  void Change(const Catalog& catalog, CommandId command, bool allow);
  void ChangeAll(bool allow);
  bool AllowsCommand(const Catalog& catalog, const Call& call) const;
  bool AllowsKey(const KeyUse& use) const;

  bool all_commands_ = false;  // nothing was taken since +@all
  bool future_ = false;        // began with +@all: commands that there will be are allowed
  bool all_keys_ = false;
  bool all_channels_ = false;
  CommandBits allowed_;
  // Commands that are allowed only with one of these as their first word: "+select|0".
  std::map<CommandId, std::vector<std::string>> first_words_;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

}  // namespace idemd::server::acl

// A user: whether it may log in and with what, and its selectors.
//
// Threads   changed while only one thread knows it; shared as `const`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/acl/selector.h"

namespace idemd::server::acl {

// Rules, with the words between parentheses made one rule. False when a parenthesis is not closed: `*open` is the word
// that has it.
bool JoinSelectors(absl::Span<const absl::string_view> words, std::vector<std::string>* rules,
                   absl::string_view* open);

class User {
 public:
  // Off, without passwords or rights.
  User(std::string name, bool all_channels);
  // May do everything, without a password.
  static User Default();

  // `all_channels`: what reset, and selectors that are made anew, begin with (acl-pubsub-default).
  [[nodiscard]] RuleError Apply(const Catalog& catalog, absl::string_view rule, bool all_channels);
  // requirepass: the only password; "" lets everybody in.
  void SetPassword(absl::string_view password);

  // Whether somebody with the password may log in. The time tells nothing about the passwords.
  bool LetsIn(absl::string_view password) const;
  Verdict Check(const Catalog& catalog, const Call& call, size_t* word) const;
  bool AllowsChannel(absl::string_view channel, bool pattern) const;
  // Whether the call is allowed by a selector that lets it read any key.
  bool MayReadAllKeys(const Catalog& catalog, const Call& call) const;

  const std::string& name() const { return name_; }
  bool enabled() const { return enabled_; }
  bool nopass() const { return nopass_; }
  // No call needs to be checked.
  bool unrestricted() const { return selectors_.front().unrestricted(); }
  // Whether a check looks at them.
  bool limits_keys() const;
  bool limits_channels() const;
  const Selector& own() const { return selectors_.front(); }
  absl::Span<const Selector> others() const { return absl::MakeConstSpan(selectors_).subspan(1); }
  const std::vector<std::string>& passwords() const { return passwords_; }  // digests
  std::vector<absl::string_view> Flags() const;  // "on", "nopass"
  // The line of an ACL file: "user alice on ~* ...".
  std::string Describe(const Catalog& catalog) const;

 private:
  RuleError AddDigest(std::string digest);
  RuleError RemoveDigest(absl::string_view digest);
  RuleError AddSelector(const Catalog& catalog, absl::string_view rule, bool all_channels);

  std::string name_;
  bool enabled_ = false;
  bool nopass_ = false;
  // Two flags, as in Redis: neither is set before one was asked for.
  bool sanitize_ = false;
  bool skip_sanitize_ = false;
  std::vector<std::string> passwords_;  // SHA-256 in hexadecimal, in the order in which they came
  std::vector<Selector> selectors_;     // the user's own first
};

}  // namespace idemd::server::acl

// Reads rules about a user, and asks its selectors.
#include "server/acl/user.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/admin/password.h"

namespace idemd::server::acl {
namespace {

constexpr size_t kDigestChars = 64;

bool IsDigest(absl::string_view text) {
  return text.size() == kDigestChars && std::all_of(text.begin(), text.end(), [](char byte) {
           return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
         });
}

}  // namespace

bool JoinSelectors(absl::Span<const absl::string_view> words, std::vector<std::string>* rules,
                   absl::string_view* open) {
  for (size_t i = 0; i < words.size(); ++i) {
    rules->emplace_back(words[i]);
    if (!absl::StartsWith(words[i], "(")) continue;
    *open = words[i];
    while (!absl::EndsWith(rules->back(), ")")) {
      if (++i == words.size()) return false;
      absl::StrAppend(&rules->back(), " ", words[i]);
    }
  }
  return true;
}

User::User(std::string name, bool all_channels) : name_(std::move(name)), selectors_{Selector(all_channels)} {}

User User::Default() {
  User user("default", false);
  const Catalog none({});
  user.enabled_ = user.nopass_ = true;
  for (absl::string_view rule : {"+@all", "~*", "&*"}) (void)user.selectors_.front().Apply(none, rule);
  return user;
}

RuleError User::Apply(const Catalog& catalog, absl::string_view rule, bool all_channels) {
  const auto is = [rule](absl::string_view word) { return absl::EqualsIgnoreCase(rule, word); };
  if (rule.empty()) return RuleError::kNone;
  if (is("on") || is("off")) {
    enabled_ = is("on");
  } else if (is("nopass") || is("resetpass")) {
    nopass_ = is("nopass");
    passwords_.clear();
  } else if (is("sanitize-payload") || is("skip-sanitize-payload")) {
    sanitize_ = is("sanitize-payload");
    skip_sanitize_ = !sanitize_;
  } else if (is("clearselectors")) {
    selectors_.erase(selectors_.begin() + 1, selectors_.end());
  } else if (is("reset")) {
    *this = User(std::move(name_), all_channels);
    sanitize_ = true;
  } else if (rule[0] == '>') {
    return AddDigest(PasswordDigestHex(rule.substr(1)));
  } else if (rule[0] == '#') {
    return AddDigest(std::string(rule.substr(1)));
  } else if (rule[0] == '<') {
    return RemoveDigest(PasswordDigestHex(rule.substr(1)));
  } else if (rule[0] == '!') {
    return RemoveDigest(rule.substr(1));
  } else if (rule[0] == '(' && rule.back() == ')') {
    return AddSelector(catalog, rule.substr(1, rule.size() - 2), all_channels);
  } else {
    return selectors_.front().Apply(catalog, rule);
  }
  return RuleError::kNone;
}

RuleError User::AddDigest(std::string digest) {
  if (!IsDigest(digest)) return RuleError::kBadDigest;
  if (std::find(passwords_.begin(), passwords_.end(), digest) == passwords_.end())
    passwords_.push_back(std::move(digest));
  nopass_ = false;
  return RuleError::kNone;
}

RuleError User::RemoveDigest(absl::string_view digest) {
  if (!IsDigest(digest)) return RuleError::kBadDigest;
  const auto found = std::find(passwords_.begin(), passwords_.end(), digest);
  if (found == passwords_.end()) return RuleError::kNoSuchPassword;
  passwords_.erase(found);
  return RuleError::kNone;
}

RuleError User::AddSelector(const Catalog& catalog, absl::string_view rule, bool all_channels) {
  Selector selector(all_channels);
  for (absl::string_view part : absl::StrSplit(rule, ' ', absl::SkipEmpty())) {
    // In a description it would end the selector.
    if (absl::EndsWith(part, ")")) return RuleError::kSyntax;
    const RuleError error = selector.Apply(catalog, part);
    if (error != RuleError::kNone) return error;
  }
  selectors_.push_back(std::move(selector));
  return RuleError::kNone;
}

void User::SetPassword(absl::string_view password) {
  passwords_.clear();
  nopass_ = password.empty();
  if (!nopass_) passwords_.push_back(PasswordDigestHex(password));
}

bool User::LetsIn(absl::string_view password) const {
  if (!enabled_) return false;
  if (nopass_) return true;
  const std::string digest = PasswordDigestHex(password);
  bool fits = false;
  for (const std::string& known : passwords_) fits |= SameDigest(digest, known);
  return fits;
}

Verdict User::Check(const Catalog& catalog, const Call& call, size_t* word) const {
  // Of what the selectors object to, the weightiest is told, and of that kind the last.
  Verdict worst = Verdict::kCommand;
  *word = 0;
  for (const Selector& selector : selectors_) {
    size_t place = 0;
    const Verdict verdict = selector.Check(catalog, call, &place);
    if (verdict == Verdict::kAllowed) return verdict;
    if (verdict < worst || (verdict == worst && place <= *word)) continue;
    worst = verdict;
    *word = place;
  }
  return worst;
}

bool User::AllowsChannel(absl::string_view channel, bool pattern) const {
  return std::any_of(selectors_.begin(), selectors_.end(), [&](const Selector& selector) {
    return selector.AllowsChannel(channel, pattern);
  });
}

bool User::MayReadAllKeys(const Catalog& catalog, const Call& call) const {
  return std::any_of(selectors_.begin(), selectors_.end(), [&](const Selector& selector) {
    size_t word = 0;
    return selector.ReadsAllKeys() && selector.Check(catalog, call, &word) == Verdict::kAllowed;
  });
}

bool User::limits_keys() const {
  return !std::all_of(selectors_.begin(), selectors_.end(), [](const Selector& s) { return s.all_keys(); });
}

bool User::limits_channels() const {
  return !std::all_of(selectors_.begin(), selectors_.end(), [](const Selector& s) { return s.all_channels(); });
}

std::vector<absl::string_view> User::Flags() const {
  std::vector<absl::string_view> flags = {enabled_ ? "on" : "off"};
  if (nopass_) flags.push_back("nopass");
  if (skip_sanitize_) flags.push_back("skip-sanitize-payload");
  if (sanitize_) flags.push_back("sanitize-payload");
  return flags;
}

std::string User::Describe(const Catalog& catalog) const {
  std::string line = absl::StrCat("user ", name_, " ");
  for (absl::string_view flag : Flags()) absl::StrAppend(&line, flag, " ");
  for (const std::string& password : passwords_) absl::StrAppend(&line, "#", password, " ");
  line += own().Describe(catalog);
  for (const Selector& selector : others()) absl::StrAppend(&line, " (", selector.Describe(catalog), ")");
  return line;
}

}  // namespace idemd::server::acl

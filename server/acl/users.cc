// Keeps the users, and publishes a new copy of one whenever it changes.
#include "server/acl/users.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace idemd::server::acl {

Users::Users(Catalog catalog, std::function<void(bool open)> on_default)
    : catalog_(std::move(catalog)), on_default_(std::move(on_default)) {
  storage::MutexLock lock(mutex_);
  Publish(User::Default());
}

void Users::Publish(User user) {
  std::string name = user.name();
  users_[std::move(name)] = std::make_shared<const User>(std::move(user));
  Changed();
}

void Users::Changed() {
  const User& standard = *users_.find("default")->second;
  on_default_(standard.enabled() && standard.nopass());
  version_.fetch_add(1, std::memory_order_release);
}

Users::Seen Users::Find(absl::string_view name) const {
  storage::MutexLock lock(mutex_);
  const auto it = users_.find(name);
  return {it == users_.end() ? nullptr : it->second, version()};
}

std::vector<std::shared_ptr<const User>> Users::All() const {
  storage::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const User>> all;
  for (const auto& [name, user] : users_) all.push_back(user);
  return all;
}

absl::Status Users::Set(absl::string_view name, Rules words) {
  std::vector<std::string> rules;
  absl::string_view open;
  if (!JoinSelectors(words, &rules, &open))
    return absl::InvalidArgumentError(
        absl::StrCat("Unmatched parenthesis in acl selector starting at '", open, "'."));
  const bool channels = all_channels.load(std::memory_order_relaxed);
  storage::MutexLock lock(mutex_);
  const auto known = users_.find(name);
  User user = known != users_.end() ? *known->second : User(std::string(name), channels);
  for (const std::string& rule : rules) {
    const RuleError error = user.Apply(catalog_, rule, channels);
    if (error == RuleError::kNone) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Error in ACL SETUSER modifier '", rule, "': ", RuleErrorText(error)));
  }
  Publish(std::move(user));
  return absl::OkStatus();
}

bool Users::Remove(absl::string_view name) {
  storage::MutexLock lock(mutex_);
  const auto it = users_.find(name);
  if (it == users_.end() || name == "default") return false;
  users_.erase(it);
  Changed();
  return true;
}

void Users::SetDefaultPassword(absl::string_view password) {
  storage::MutexLock lock(mutex_);
  User user = *users_.find("default")->second;
  user.SetPassword(password);
  Publish(std::move(user));
}

absl::Status Users::Declare(absl::Span<const std::vector<std::string>> users) {
  const bool channels = all_channels.load(std::memory_order_relaxed);
  storage::MutexLock lock(mutex_);
  Map declared;
  for (const std::vector<std::string>& words : users) {
    const std::string& name = words.front();
    // A line of a file could not tell it from its rules.
    if (name.empty() || std::any_of(name.begin(), name.end(), [](char c) { return c == '\0' || absl::ascii_isspace(static_cast<unsigned char>(c)); }))
      return absl::InvalidArgumentError("Usernames can't be empty or contain spaces or null characters");
    User user(name, channels);
    // The one that was there before any line begins anew.
    if (name == "default") (void)user.Apply(catalog_, "reset", channels);
    std::vector<std::string> rules;
    absl::string_view open;
    const std::vector<absl::string_view> views(words.begin() + 1, words.end());
    if (!JoinSelectors(views, &rules, &open))
      return absl::InvalidArgumentError(
          absl::StrCat("Unmatched parenthesis in acl selector starting at '", open, "'."));
    for (const std::string& rule : rules) {
      const RuleError error = user.Apply(catalog_, rule, channels);
      if (error == RuleError::kNone) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("Error loading ACL rule '", rule, "' for the user named '", name, "': ", RuleErrorText(error)));
    }
    declared.emplace(name, std::make_shared<const User>(std::move(user)));
  }
  for (auto& [name, user] : declared) users_[name] = std::move(user);
  Changed();
  return absl::OkStatus();
}

}  // namespace idemd::server::acl

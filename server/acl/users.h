// All users by name, each published as an immutable copy.
//
// Whoever acts for a user keeps a copy, and asks for another when version() has changed: one relaxed load for each
// command, no lock and no counter that others write.
//
// Threads   any; changes are made one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/acl/catalog.h"
#include "server/acl/denials.h"
#include "server/acl/user.h"
#include "storage/sync/mutex.h"

namespace idemd::server::acl {

class Users {
 public:
  using Rules = absl::Span<const absl::string_view>;

  // `on_default` is told whether connections may act for the default user without logging in, whenever that may have
  // changed; under a lock.
  Users(Catalog catalog, std::function<void(bool open)> on_default);
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  const Catalog& catalog() const { return catalog_; }
  Denials& denials() { return denials_; }
  // acl-pubsub-default: what new users begin with.
  std::atomic<bool> all_channels{false};

  // Never 0.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  struct Seen {
    std::shared_ptr<const User> user;  // null: there is none of that name
    uint64_t version = 0;
  };
  Seen Find(absl::string_view name) const;
  std::vector<std::shared_ptr<const User>> All() const;  // by name

  // Makes or changes a user: all rules or none. The error's message is what Redis says behind "ERR ".
  [[nodiscard]] absl::Status Set(absl::string_view name, Rules rules);
  // False when there is none; the default user stays.
  bool Remove(absl::string_view name);
  void SetDefaultPassword(absl::string_view password);
  // Users of the configuration file: the words behind "user", no name twice.
  [[nodiscard]] absl::Status Declare(absl::Span<const std::vector<std::string>> users);

  // ACL files: a line for each user (acl_file.cc). Loading takes all of a file or nothing; `replaced` gets the names of
  // those whose connections end, all but the default user.
  [[nodiscard]] absl::Status Load(const std::string& path, std::vector<std::string>* replaced);
  [[nodiscard]] absl::Status Save(const std::string& path) const;

 private:
  using Map = std::map<std::string, std::shared_ptr<const User>, std::less<>>;

  void Publish(User user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Catalog catalog_;
  const std::function<void(bool open)> on_default_;
  Denials denials_;
  mutable storage::Mutex mutex_;
  Map users_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{1};  // written under the mutex, after the map
};

}  // namespace idemd::server::acl

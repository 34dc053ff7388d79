// Runs the commands of a log that somebody else wrote (Redis' own), one by one, as a client without
// a connection.
//
// Threads   one, before anybody is served.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/commands/services.h"
#include "server/session.h"
#include "storage/effect.h"

namespace idemd::server {

struct ThreadStats;  // server/admin/stats.h

class Replayer {
 public:
  explicit Replayer(Services& services);
  ~Replayer();

  // In database *db, which SELECT changes. A command that idemd does not have, or that answers with
  // an error, is an error that names it.
  [[nodiscard]] absl::Status Run(const std::vector<absl::string_view>& words, storage::DbIndex* db);

 private:
  Services& services_;
  ThreadStats* const thread_stats_;
  Session session_;
  std::string out_;
};

}  // namespace idemd::server

// What was denied lately: ACL LOG.
//
// Threads   any, under a lock that is taken only when something is denied or asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/sync/mutex.h"

namespace idemd::server::acl {

class Denials {
 public:
  struct Entry {
    uint64_t count = 1;
    const char* reason = "";   // "command", "key", "channel", "auth"
    const char* context = "";  // "toplevel", "multi", "lua"
    std::string object;        // what was not allowed
    std::string user;
    std::string client = {};  // as CLIENT LIST shows it
    int64_t at_ms = 0;   // unix milliseconds, of the last time
  };

  static int64_t NowMs();
  // One like it that is not old counts once more instead. At most `entries_max` are kept.
  void Add(Entry entry, size_t entries_max);
  // The newest first.
  std::vector<Entry> Newest(size_t count) const;
  void Clear();

 private:
  mutable storage::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the newest first
};

}  // namespace idemd::server::acl

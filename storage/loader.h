// Fills a store that nobody uses yet: from a snapshot, from a log.
//
// Keys are hashed and sorted into batches by shard on the caller's thread; worker threads put the batches into the tables. What
// concerns one key is done in the order in which it was said. Nothing is decided by time: keys that have expired stay until
// somebody looks at them when the loading is over.
//
// Threads   a Loader belongs to one thread; the store must have no other users until Finish() has returned.
// Lifetime  views are copied.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace idemd::storage {

class Loader {
 public:
  // `workers` 0: everything is done on the caller's thread.
  Loader(Store& store, unsigned workers);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // About so many keys will be in that database: tables are made that large at once. Before the first of them.
  void Expect(DbIndex db, uint64_t keys);
  void Set(DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms);
  void SetCollection(DbIndex db, absl::string_view key, std::unique_ptr<Collection> value, int64_t deadline_ms);
  void Delete(DbIndex db, absl::string_view key);
  void SetDeadline(DbIndex db, absl::string_view key, int64_t deadline_ms);
  void FlushDb(DbIndex db);
  void FlushAll();
  void SwapDb(DbIndex a, DbIndex b);
  // Waits until all of that has been done.
  void Wait();
  // And lets time pass again.
  void Finish();
  // Whether any value looked like a record.
  bool saw_records() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// After a restart: claims that were live at `last_ms`, the log's last time, get at least until `at_least_ms`. The changes are
// logged. Returns how many were.
uint64_t ExtendClaims(Store& store, int64_t last_ms, int64_t at_least_ms);

}  // namespace idemd::storage

// A snapshot of all databases as of one moment, taken while others go on reading and writing.
//
// The cut takes all shard locks: from then on whoever changes a line of a table first writes that
// line out as it was (RDB bytes, into the hand-over buffer of its shard), and marks it; the walker
// does the same with the lines that nobody touches. So each key of the cut is written exactly once,
// as of the cut. Rules S3 to S6 of the durability design.
//
//   Snapshot snapshot(store, [&] { ... });     // under all locks: switch log files, note the LSN
//   while (snapshot.Walk(out)) Write(out);     // RDB entries, each run preceded by its SELECTDB
//   snapshot.keys_walked() == snapshot.keys()  // or it is thrown away
//
// Threads   one thread makes, walks and destroys a snapshot; one at a time per store. Units run beside it on any thread.
//           That thread's own units never wait for it, whatever they have saved.
// Lifetime  shorter than the store's. Destroying it early ends it; what was not walked is forgotten.
// Time      nothing is decided by time: what had expired at the cut and was still there is written too.
// Cost      Without a snapshot a change looks at one pointer. With one, the first change of a line writes out up to six
//           keys; a segment is written out before it is copied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "storage/store.h"

namespace idemd::storage {

class Snapshot {
 public:
  struct Limits {
    // What writers have saved and the walker has not taken over yet: about so much at the most, then they wait.
    size_t hand_over_bytes = 8 << 20;
    // What one Walk() appends, about; one hold of a lock saves no more than that either.
    size_t walk_bytes = 64 << 10;
  };

  Snapshot(Store& store, absl::FunctionRef<void()> at_cut) : Snapshot(store, at_cut, Limits()) {}
  Snapshot(Store& store, absl::FunctionRef<void()> at_cut, const Limits& limits);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // At the cut.
  uint64_t keys() const;
  uint64_t keys(DbIndex db) const;
  uint64_t with_deadline(DbIndex db) const;

  // Appends the next entries to `out`, about 64 KiB at a time, or what writers of one shard have saved. False: there was
  // nothing left to append.
  bool Walk(std::string& out);
  // Written out so far, by the walker and by writers. Any thread.
  uint64_t keys_walked() const;
  // Units that wait, before they take a lock, for Walk() to take over what was saved. Any thread.
  uint32_t writers_waiting() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace idemd::storage

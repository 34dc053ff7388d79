// Common prefixes of keys, each kept once for the whole process.
//
// An entry names its prefix by one byte. A prefix gets an id when it has been seen 64 times and
// keeps it for ever: ids stand in entries. So whoever uses many prefixes can use the ids up; then
// keys with other prefixes are kept as text, and nothing worse happens. Sightings are counted in a
// fixed array, where rare prefixes push each other out.
//
// Threads     Id(), Find() and what is asked about an id run on any thread; registering holds mu_.
// Lifetime    What At() views stays for as long as the dictionary: Instance() is never destroyed.
// Invariants  [P1] What an id stands for never changes once Find() or Id() has answered it.
//             [P2] A prefix has at most one id.
// Linearized  Registering at the store to the index (id_index.h). At() and HashAt() take only ids
// that Id() or Find()
//             answered, here or on a thread that passed them on with release and acquire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/key/id_index.h"
#include "storage/key/sightings.h"
#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"

namespace idemd::storage {

inline constexpr size_t kPrefixBytesMax = 64;  // longer ones are not common
inline constexpr uint8_t kEmptyPrefixId = 1;
inline constexpr uint8_t kPrefixIdMax = 254;

class Prefixes {
 public:
  static Prefixes& Instance() {
    static Prefixes& instance = *new Prefixes;  // outlives every entry, those of other statics too
    return instance;
  }

  Prefixes();  // tests have their own
  Prefixes(const Prefixes&) = delete;
  Prefixes& operator=(const Prefixes&) = delete;

  // The prefix's id, or 0. Find() only looks; Id() counts a sighting, and the one that is enough
  // answers the new id.
  uint8_t Find(absl::string_view prefix) const;
  uint8_t Id(absl::string_view prefix);

  // What an id stands for, and its PrefixHash().
  absl::string_view At(uint8_t id) const { return {entries_[id].text.data(), entries_[id].bytes}; }
  uint64_t HashAt(uint8_t id) const { return entries_[id].hash; }

 private:
  struct Entry {
    uint64_t hash = 0;
    uint8_t bytes = 0;
    std::array<char, kPrefixBytesMax> text = {};
  };

  uint8_t FindHashed(absl::string_view prefix, uint64_t hash) const;
  uint8_t Register(absl::string_view prefix, uint64_t hash) ABSL_LOCKS_EXCLUDED(mu_);

  std::array<Entry, 256>
      entries_;  // written under mu_ before the index names them, then never again [P1]
  IdIndex index_;
  Sightings sightings_;
  RealSync::Atomic<bool> full_{false};  // set under mu_; readers then count no more
  Mutex mu_;
  uint8_t used_ ABSL_GUARDED_BY(mu_) = kEmptyPrefixId;  // the highest id given
};

}  // namespace idemd::storage

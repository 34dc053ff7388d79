// Shapes: what a key with a tail and a short value has beside the tail's bytes, each kept once for the whole
// process.
//
// A shape is a prefix, the kind of tail and a short value: ("login:", kUuid, "1"). With it in one
// byte, an entry is its 16 bytes and a deadline. A shape gets an id when it has been seen 64 times
// and keeps it for ever, since ids stand in entries.
//
// An attacker who writes many prefixes or values can use the ids up. Then entries of other shapes
// stay out of line, which costs memory and a cache miss each, and nothing worse: no answer depends
// on a shape being there.
//
// Threads     Id(), Find() and At() run on any thread; registering holds mu_.
// Lifetime    What At() refers to stays for as long as the dictionary: Instance() is never
// destroyed. Invariants  [P1] What an id stands for never changes once Find() or Id() has answered
// it.
//             [P2] A shape has at most one id.
// Linearized  Registering at the store to the index (id_index.h). At() takes only ids that Id() or
// Find() answered, here
//             or on a thread that passed them on with release and acquire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/key/id_index.h"
#include "storage/key/prefixes.h"
#include "storage/key/sightings.h"
#include "storage/key/tail.h"
#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"

namespace idemd::storage {

inline constexpr size_t kShapeValueBytesMax = 15;
inline constexpr uint8_t kShapeIdMin = 2;  // 0 and 1 mean other things to the table
inline constexpr uint8_t kShapeIdMax = 255;

struct Shape {
  absl::string_view prefix;  // at most kPrefixBytesMax
  uint64_t prefix_hash = 0;
  TailKind kind = TailKind::kNone;
  absl::string_view value;  // at most kShapeValueBytesMax
};

class Shapes {
 public:
  static Shapes& Instance() {
    static Shapes& instance = *new Shapes;  // outlives every entry, those of other statics too
    return instance;
  }

  // With the shapes that are useful at once: a bare UUID that holds "1", "0", "" or "OK". (Tests
  // have their own.)
  Shapes();
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;

  // The shape's id, or 0. Find() only looks; Id() counts a sighting, and the one that is enough
  // answers the new id. Keys without a tail, long prefixes and values, and values of the
  // native commands ("idem/...") have no shape.
  uint8_t Find(absl::string_view prefix, TailKind kind, absl::string_view value) const;
  uint8_t Id(absl::string_view prefix, TailKind kind, absl::string_view value);

  const Shape& At(uint8_t id) const { return shapes_[id]; }

 private:
  // A value as two words: its bytes, zeros, its size in the last byte. Compared and hashed without
  // a loop.
  using PackedValue = std::array<uint64_t, 2>;
  struct Text {
    std::array<char, kPrefixBytesMax> prefix = {};
    PackedValue value = {};
  };
  struct Sought {
    absl::string_view prefix;
    uint64_t prefix_hash;
    TailKind kind;
    absl::string_view value;
    PackedValue packed;
    uint64_t hash;
  };

  static PackedValue Pack(absl::string_view value);
  static bool MakeSought(absl::string_view prefix, TailKind kind, absl::string_view value,
                         Sought* sought);
  uint8_t FindSought(const Sought& sought) const;
  uint8_t Register(const Sought& sought) ABSL_LOCKS_EXCLUDED(mu_);

  std::array<Shape, 256>
      shapes_;  // written under mu_ before the index names them, then never again [P1]
  std::array<Text, 256> texts_;  // what the shapes view
  IdIndex index_;
  Sightings sightings_;
  RealSync::Atomic<bool> full_{false};  // set under mu_; readers then count no more
  Mutex mu_;
  uint8_t used_ ABSL_GUARDED_BY(mu_) = kShapeIdMin - 1;  // the highest id given
};

}  // namespace idemd::storage

// Some entries of a stream in one listpack, each told as its difference from the first.
//
//   master entry    live | deleted | fields | name ... name | 0
//   an entry        flags | ms | seq | value ... value | elements                          its fields are the master entry's
//                   flags | ms | seq | fields | name | value | ... | elements              they are not
//
//   ms, seq         of the entry's ID, less those of the node's key, the ID of its first entry
//   elements        how many there are before this one: so that the entry's beginning is found from behind
//
// An entry that goes is marked, and the node goes with its last live one.
//
// Source    the stream format of Redis 5.0 and later (redis/src/t_stream.c), as it is in RDB files.
// Threads   one, or several that only read.
// Lifetime  an Entry, and a position, are good until the node is changed.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/collection/listpack.h"
#include "storage/collection/stream_id.h"

namespace idemd::storage {

class StreamNode {
 public:
  using At = Listpack::At;
  static constexpr At kNone = Listpack::kNone;
  using Words = absl::Span<const absl::string_view>;  // a field, its value, the next field, ...

  struct Entry {
    StreamId id;
    bool deleted = false;
    bool same_fields = false;  // those of the master entry
    At at = kNone;             // where it begins
    At body = kNone;           // its first value, or the name before it
    uint64_t fields = 0;
  };

  // Without entries yet; the names that `words` have are told once.
  explicit StreamNode(Words words);
  // Takes over bytes from a file. None: they are no node through and through, or its live entries' IDs do not ascend.
  static std::optional<StreamNode> FromBytes(StreamId key, absl::string_view bytes);

  absl::string_view view() const { return pack_.view(); }
  size_t size() const { return pack_.size(); }  // bytes
  size_t memory_bytes() const { return pack_.memory_bytes(); }
  uint64_t live() const { return Number(pack_.First()); }
  uint64_t deleted() const { return Number(pack_.Next(pack_.First())); }

  // Entries, those that are deleted too; kNone: no more.
  At First() const;
  At Last() const { return BeforeCount(pack_.Last()); }
  At Next(const Entry& entry) const;
  At Previous(const Entry& entry) const { return BeforeCount(pack_.Previous(entry.at)); }
  Entry Read(StreamId key, At at) const;

  // For walking an entry's body: the name of the master entry's first field, and what an element says.
  At FirstName() const { return pack_.Seek(kHeadElements); }
  At After(At at) const { return pack_.Next(at); }
  absl::string_view Text(At at, Listpack::Digits& room) const { return pack_.Text(at, room); }

  void Append(StreamId key, StreamId id, Words words);
  void Delete(const Entry& entry);
  // Marks up to `most` live entries, from the front on, while their IDs are below `below`. Returns how many.
  uint64_t DeleteFront(StreamId key, uint64_t most, StreamId below);

 private:
  static constexpr int64_t kHeadElements = 3;  // live, deleted, fields
  static constexpr uint64_t kDeleted = 1, kSameFields = 2;  // flags

  explicit StreamNode(Listpack pack) : pack_(std::move(pack)) {}
  uint64_t Number(At at) const { return static_cast<uint64_t>(pack_.Get(at).number); }
  uint64_t Names() const { return Number(pack_.Seek(kHeadElements - 1)); }
  At BeforeCount(At at) const;
  bool HasNames(Words words) const;
  bool IsSound(StreamId key) const;
  void Mark(const Entry& entry);
  void CountsChange(int64_t live, int64_t deleted);

  Listpack pack_;
};

}  // namespace idemd::storage

// A stream: entries in the order of their IDs, kept in nodes of some hundred bytes to some kilobytes, and its consumer groups.
//
//   btree: ID of a node's first entry ──► StreamNode, a listpack (stream_node.h)
//   map:   name of a group            ──► StreamGroup (stream_group.h)
//
// Entries come at the end only and go anywhere. Where none of some node is left, the node goes; the stream stays when it is empty.
//
// Source    what Redis 7.0 counts about a stream, and when it knows how far behind a group is (redis/src/t_stream.c).
// Threads   as for every Collection.
// Lifetime  groups stay where they are until they are removed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"
#include "storage/collection/counting_allocator.h"
#include "storage/collection/stream_group.h"
#include "storage/collection/stream_id.h"
#include "storage/collection/stream_node.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

// Which entries are to go, from the front on.
struct StreamTrim {
  enum class Keep : uint8_t { kAll, kNewest, kFromId };
  Keep keep = Keep::kAll;
  uint64_t newest = 0;     // kNewest: so many
  StreamId from;           // kFromId
  bool whole_nodes = false;  // only those that make up a whole node
  int64_t most = 0;        // so many at most, as long as a node's are not cut; 0: no limit
};

class Stream final : public Collection {
 public:
  using Words = StreamNode::Words;
  using Nodes =
      absl::btree_map<StreamId, StreamNode, std::less<StreamId>, CountingAllocator<std::pair<const StreamId, StreamNode>>>;
  using Groups = ByStreamName<StreamGroup>;
  // When a node is full: stream-node-max-bytes and stream-node-max-entries; 0: no limit.
  struct NodeLimits {
    size_t bytes = 4096;
    size_t entries = 100;
  };
  static constexpr size_t kEntryBytesMax = size_t{1} << 30;  // of fields and values together: a listpack holds no more

  Stream();

  ValueType type() const override { return ValueType::kStream; }
  size_t size() const override { return static_cast<size_t>(length_); }
  bool gone() const override { return false; }
  size_t memory_bytes() const override { return own_bytes_ + bytes_ + node_bytes_; }
  const char* encoding() const override { return "stream"; }
  std::unique_ptr<Collection> Clone() const override;
  uint8_t rdb_type() const override;
  void AppendRdb(RdbStrings strings, std::string& out) const override;
  void ForEach(absl::FunctionRef<void(absl::string_view element)>) const override {}
  // Types 15, 19 and 21. Null: `scan` says what is wrong.
  static std::unique_ptr<Collection> ReadRdb(uint8_t type, RdbScanner& scan);

  uint64_t length() const { return length_; }
  const Nodes& nodes() const { return nodes_; }
  StreamId first_id() const { return first_id_; }              // of what is there; 0-0 when nothing is
  StreamId last_id() const { return last_id_; }                // that was ever given out
  StreamId max_deleted_id() const { return max_deleted_id_; }  // of those that were deleted one by one
  uint64_t entries_added() const { return entries_added_; }    // in its whole life
  // The last entry that is there; 0-0 when none is.
  StreamId last_entry_id() const;
  bool Has(StreamId id) const;

  // The ID for an entry that comes now. None: the last one has been given out.
  std::optional<StreamId> NextId(int64_t now_ms) const;
  // `id` must be above last_id(), and `words` have kEntryBytesMax bytes at most.
  void Append(StreamId id, Words words, const NodeLimits& limits);
  // False: there is no such entry.
  bool Delete(StreamId id);
  // Returns how many went.
  uint64_t Trim(const StreamTrim& trim);
  // What XSETID sets; not below last_entry_id() and length().
  void SetLastId(StreamId id) { last_id_ = id; }
  void SetEntriesAdded(uint64_t count) { entries_added_ = count; }
  void SetMaxDeletedId(StreamId id) { max_deleted_id_ = id; }

  const Groups& groups() const { return groups_; }
  const StreamGroup* FindGroup(absl::string_view name) const;
  StreamGroup* FindGroup(absl::string_view name);
  // Null: there is one of that name.
  StreamGroup* AddGroup(absl::string_view name, StreamId last_id, int64_t entries_read);
  bool RemoveGroup(absl::string_view name);
  // How many entries of the stream's life lie up to this ID; StreamGroup::kUnknown where entries that were deleted, or an ID
  // somewhere in the middle, leave that open.
  int64_t EntriesUpTo(StreamId id) const;
  // The group has been given this entry, the next one after its last.
  void Advance(StreamGroup& group, StreamId id) const;
  // How many entries the group has not been given yet, where that is known.
  std::optional<int64_t> Lag(const StreamGroup& group) const;

 private:
  // Whether an entry from here on was deleted, while others before or behind it are there.
  bool HasGapFrom(StreamId id) const;
  Nodes::iterator NodeOf(StreamId id);
  void FindFirstId();
  void EraseFrontNode();
  static bool ReadNodes(uint64_t count, RdbScanner& scan, Stream& stream);
  static bool ReadGroup(uint8_t type, RdbScanner& scan, Stream& stream);

  size_t bytes_ = 0;       // of the containers below; before them, since it outlives them
  size_t node_bytes_ = 0;  // of the listpacks
  size_t own_bytes_;
  Nodes nodes_;
  Groups groups_;
  uint64_t length_ = 0;
  uint64_t entries_added_ = 0;
  StreamId first_id_, last_id_, max_deleted_id_;
};

}  // namespace idemd::storage

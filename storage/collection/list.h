// A list: nodes of a few kilobytes in a ring, each a listpack, so that both ends are cheap and small elements stay compact.
//
//   ring   [ node ][ node ][ node ] ...
//             |       |       +--> one element that is too large for company
//             +--> listpack of up to Limits elements and bytes
//
// An index is looked up by the nodes' counts from the nearer end, then inside one listpack.
//
// Source    the idea of Redis' quicklist (redis/src/quicklist.c, version 7.0), with a ring in place of its links.
// Threads   as in collection.h.
// Lifetime  texts handed out are good during the call that hands them out. No text that is put in may lie in the list itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <boost/circular_buffer.hpp>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"
#include "storage/collection/listpack.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

class List final : public Collection {
 public:
  enum class End : uint8_t { kHead, kTail };

  // What a node may hold.
  struct Limits {
    size_t elements;
    size_t bytes;
    // What the setting list-max-listpack-size says: elements, or from -1 to -5 a class of bytes.
    static Limits Of(int64_t setting);
  };

  List() = default;

  ValueType type() const override { return ValueType::kList; }
  size_t size() const override { return size_; }
  size_t memory_bytes() const override { return sizeof(*this) + nodes_.capacity() * sizeof(Node) + node_bytes_; }
  const char* encoding() const override { return "quicklist"; }
  std::unique_ptr<Collection> Clone() const override;
  uint8_t rdb_type() const override;
  void AppendRdb(RdbStrings strings, std::string& out) const override;
  void ForEach(absl::FunctionRef<void(absl::string_view element)> each) const override { Walk(End::kHead, 0, size_, each); }

  // Counts and bytes as they are kept, looked at again; for tests.
  bool Sound() const;

  // Calls `each` for up to `n` elements on the way from one end to the other, behind the first `skip`.
  void Walk(End from, size_t skip, size_t n, absl::FunctionRef<void(absl::string_view text)> each) const;
  // Calls `match` with the index (always counted from the head) of each element that equals `text`, on the way from one end to
  // the other, looking at `most` elements at most. Ends when it returns false.
  void Find(End from, absl::string_view text, size_t most, absl::FunctionRef<bool(size_t index)> match) const;

  void Push(End end, absl::string_view text, const Limits& limits);
  // In front of the element at `index`, or at the end where that is size().
  void Insert(size_t index, absl::string_view text, const Limits& limits);
  // `index` is below size().
  void Set(size_t index, absl::string_view text, const Limits& limits);
  // Removes `n` elements (there are that many) at one end.
  void Drop(End end, size_t n);
  // Removes up to `most` elements that equal `text`, on the way from one end to the other. Returns how many.
  size_t Remove(End from, size_t most, absl::string_view text);

 private:
  using Plain = std::unique_ptr<std::string>;
  struct Node {
    std::variant<Listpack, Plain> content;
    uint32_t count = 0;

    bool packed() const { return content.index() == 0; }
    Listpack& pack() { return std::get<Listpack>(content); }
    const Listpack& pack() const { return std::get<Listpack>(content); }
    const std::string& plain() const { return *std::get<Plain>(content); }
    size_t memory_bytes() const;
  };
  // An element: its node, and how many elements of the node are in front of it.
  struct Place {
    size_t node;
    size_t skip;
  };
  // Keeps the sums right around a change of a node.
  class Changing;
  friend std::unique_ptr<Collection> ReadRdbList(uint8_t type, RdbScanner& scan);

  List(const List& other);

  static bool Fits(const Node& node, size_t element_bytes, const Limits& limits);
  static Node NodeOf(absl::string_view text, const Limits& limits);
  static Node NodeOf(Listpack pack);
  Place PlaceOf(size_t index) const;
  void MakeRoom();
  void AddNode(size_t at, Node node);
  void RemoveNode(size_t at);
  void RemoveEmptyNodes();
  void Erase(size_t index);
  void Split(const Place& place);
  void MergeWithNext(size_t at, const Limits& limits);
  void AppendRead(Listpack pack);

  boost::circular_buffer<Node> nodes_;
  size_t size_ = 0;
  size_t node_bytes_ = 0;  // what the nodes have allocated
};

// For rdb_collection.h: types 1, 10, 14 and 18.
std::unique_ptr<Collection> ReadRdbList(uint8_t type, RdbScanner& scan);

}  // namespace idemd::storage

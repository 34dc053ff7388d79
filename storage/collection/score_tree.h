// Members in the order of their scores, with ranks: a B+-tree whose inner nodes count what is below them.
//
//   inner   | child 0: first entry, how many | child 1: ... |  up to 36 children
//              |                                |
//   leaf    | score, member | score, member | ... |  up to 62, linked to the leaves beside it
//
// All of it costs O(log n): putting in, taking out, the rank of an entry and the entry of a rank, and how many entries are below
// a bound. The scores stand in the nodes, so that a member is only looked at where scores are equal. A node takes 1 KiB, in
// which a search is a few cache lines; entries that come in order leave full leaves behind.
//
// Measured beside a ranked index of Boost.MultiIndex, with a million members (bytes beside the member; ns of processor time):
//
//                    bytes   insert   rank    of a rank   walk
//   this             25      360      840     320         28
//   ranked index     48      1900     2700    1400        210
//
// A skip list with spans, as Redis has it, takes 45 bytes and looks at a member for each step.
//
// Threads   one, or several that only read.
// Lifetime  members belong to the caller and keep their score while they are in the tree, but for what Move() does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/collection/scored_member.h"

namespace idemd::storage {

class ScoreTree {
 public:
  ScoreTree() = default;
  ~ScoreTree();
  ScoreTree(const ScoreTree&) = delete;
  ScoreTree& operator=(const ScoreTree&) = delete;

  size_t size() const { return size_; }
  size_t memory_bytes() const { return nodes_ * kNodeBytes; }  // the members not included

  // A member that is not in the tree.
  void Insert(const ScoredMember* member);
  // One that is.
  void Erase(const ScoredMember* member);
  // Gives one that is in the tree another score.
  void Move(ScoredMember* member, double score);

  // How many stand before a member that is in the tree.
  size_t Rank(const ScoredMember* member) const;
  // How many have a lower score, or, with `equal`, no higher one.
  size_t CountBelow(double score, bool equal) const;
  // The same by their bytes; where all scores are equal.
  size_t CountBelow(absl::string_view text, bool equal) const;

  // A place in the order; good until the tree changes.
  class Place {
   public:
    explicit operator bool() const { return leaf_ != nullptr; }
    const ScoredMember& operator*() const;
    // From here to the neighbour; nothing behind the last and before the first.
    void Next();
    void Previous();

   private:
    friend class ScoreTree;
    const void* leaf_ = nullptr;
    uint32_t at_ = 0;
  };
  // The member of this rank; nothing when there are not that many.
  Place At(size_t rank) const;

  // For tests: stops the process when a node is not as it should be.
  void CheckInvariants() const;

 private:
  static constexpr size_t kNodeBytes = 1024;
  static constexpr uint32_t kLeafEntries = 62;
  static constexpr uint32_t kChildren = 36;
  static constexpr size_t kDepthMax = 12;  // more than the members of a tree can be counted for

  struct Entry {
    double score;
    const ScoredMember* member;
  };
  struct Leaf {
    Leaf* before;
    Leaf* behind;
    uint32_t size;
    Entry entries[kLeafEntries];
  };
  struct Inner {
    uint32_t size;
    uint32_t counts[kChildren];  // members below each child
    Entry firsts[kChildren];     // the first of them
    void* children[kChildren];
  };
  static_assert(sizeof(Leaf) <= kNodeBytes && sizeof(Inner) <= kNodeBytes);

  // Inner nodes from the root down, and which child was taken.
  struct Step {
    Inner* node;
    uint32_t at;
  };
  struct Path {
    std::array<Step, kDepthMax> steps;
    Leaf* leaf;
  };

  static bool Before(const Entry& a, const Entry& b);
  // How many of the first `n` come before what `before` ends at.
  template <class Predicate>
  static uint32_t CountPrefix(const Entry* entries, uint32_t n, const Predicate& before);
  template <class Predicate>
  size_t CountWhile(const Predicate& before) const;
  // To the leaf where the entry is, or where it would be put in.
  void Descend(const Entry& entry, Path* path) const;
  static uint32_t Find(const Leaf& leaf, const Entry& entry);

  Leaf* NewLeaf();
  Inner* NewInner();
  void FreeNode(void* node);
  void InsertSplitting(Path& path, uint32_t at, const Entry& entry);
  void InsertChild(Path& path, size_t level, void* child, const Entry& first, uint32_t moved);
  void FirstChanged(const Path& path, const Entry& first);
  void AddToCounts(const Path& path, int32_t by);
  void RemoveLeaf(Path& path);
  void RemoveChild(Path& path, size_t level);
  void MergeLeaf(Path& path);
  void MergeInner(Path& path, size_t level);
  static void DropSlot(Inner& node, uint32_t at);
  void FreeBelow(void* node, size_t level);
  size_t CheckNode(const void* node, size_t level, const Entry* floor, const Leaf** last) const;

  void* root_ = nullptr;  // a leaf when levels_ is 0
  size_t levels_ = 0;     // inner nodes on the way to a leaf
  size_t size_ = 0;
  size_t nodes_ = 0;
};

}  // namespace idemd::storage

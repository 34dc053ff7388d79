// Splits, merges and counts; each way down is remembered, so that nodes need no parents.
#include "storage/collection/score_tree.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "storage/check.h"

namespace idemd::storage {

ScoreTree::~ScoreTree() {
  if (root_ != nullptr) FreeBelow(root_, 0);
}

void ScoreTree::FreeBelow(void* node, size_t level) {
  if (level < levels_) {
    const Inner& inner = *static_cast<Inner*>(node);
    for (uint32_t i = 0; i < inner.size; ++i) FreeBelow(inner.children[i], level + 1);
  }
  std::free(node);
}

ScoreTree::Leaf* ScoreTree::NewLeaf() {
  void* const at = std::malloc(kNodeBytes);
  if (at == nullptr) throw std::bad_alloc();
  ++nodes_;
  Leaf* const leaf = new (at) Leaf;
  leaf->before = leaf->behind = nullptr;
  leaf->size = 0;
  return leaf;
}

ScoreTree::Inner* ScoreTree::NewInner() {
  void* const at = std::malloc(kNodeBytes);
  if (at == nullptr) throw std::bad_alloc();
  ++nodes_;
  Inner* const inner = new (at) Inner;
  inner->size = 0;
  return inner;
}

void ScoreTree::FreeNode(void* node) {
  std::free(node);
  --nodes_;
}

// --- finding

bool ScoreTree::Before(const Entry& a, const Entry& b) {
  return a.score != b.score ? a.score < b.score : a.member->text() < b.member->text();
}

template <class Predicate>
uint32_t ScoreTree::CountPrefix(const Entry* entries, uint32_t n, const Predicate& before) {
  uint32_t from = 0;
  while (n > 0) {
    const uint32_t half = n / 2;
    if (before(entries[from + half])) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

// Of a child whose first entry is before the bound, all that is in the children in front of it is too.
template <class Predicate>
size_t ScoreTree::CountWhile(const Predicate& before) const {
  if (root_ == nullptr) return 0;
  size_t count = 0;
  const void* node = root_;
  for (size_t level = 0; level < levels_; ++level) {
    const Inner& inner = *static_cast<const Inner*>(node);
    const uint32_t n = CountPrefix(inner.firsts, inner.size, before);
    if (n == 0) return count;
    for (uint32_t i = 0; i + 1 < n; ++i) count += inner.counts[i];
    node = inner.children[n - 1];
  }
  const Leaf& leaf = *static_cast<const Leaf*>(node);
  return count + CountPrefix(leaf.entries, leaf.size, before);
}

size_t ScoreTree::Rank(const ScoredMember* member) const {
  const Entry entry{member->score, member};
  return CountWhile([&](const Entry& e) { return e.member != member && Before(e, entry); });
}

size_t ScoreTree::CountBelow(double score, bool equal) const {
  if (equal) return CountWhile([=](const Entry& e) { return e.score <= score; });
  return CountWhile([=](const Entry& e) { return e.score < score; });
}

size_t ScoreTree::CountBelow(absl::string_view text, bool equal) const {
  if (equal) return CountWhile([=](const Entry& e) { return e.member->text() <= text; });
  return CountWhile([=](const Entry& e) { return e.member->text() < text; });
}

ScoreTree::Place ScoreTree::At(size_t rank) const {
  Place place;
  if (rank >= size_) return place;
  const void* node = root_;
  for (size_t level = 0; level < levels_; ++level) {
    const Inner& inner = *static_cast<const Inner*>(node);
    uint32_t i = 0;
    for (; rank >= inner.counts[i]; ++i) rank -= inner.counts[i];
    node = inner.children[i];
  }
  place.leaf_ = node;
  place.at_ = static_cast<uint32_t>(rank);
  return place;
}

const ScoredMember& ScoreTree::Place::operator*() const { return *static_cast<const Leaf*>(leaf_)->entries[at_].member; }

void ScoreTree::Place::Next() {
  const Leaf& leaf = *static_cast<const Leaf*>(leaf_);
  if (++at_ < leaf.size) return;
  leaf_ = leaf.behind;
  at_ = 0;
}

void ScoreTree::Place::Previous() {
  if (at_ > 0) {
    --at_;
    return;
  }
  const Leaf* const leaf = static_cast<const Leaf*>(leaf_)->before;
  leaf_ = leaf;
  if (leaf != nullptr) at_ = leaf->size - 1;
}

void ScoreTree::Descend(const Entry& entry, Path* path) const {
  void* node = root_;
  const auto not_behind = [&](const Entry& e) { return e.member == entry.member || Before(e, entry); };
  for (size_t level = 0; level < levels_; ++level) {
    Inner* const inner = static_cast<Inner*>(node);
    const uint32_t n = CountPrefix(inner->firsts, inner->size, not_behind);
    const uint32_t at = n == 0 ? 0 : n - 1;
    path->steps[level] = {inner, at};
    node = inner->children[at];
  }
  path->leaf = static_cast<Leaf*>(node);
}

uint32_t ScoreTree::Find(const Leaf& leaf, const Entry& entry) {
  return CountPrefix(leaf.entries, leaf.size,
                     [&](const Entry& e) { return e.member != entry.member && Before(e, entry); });
}

// --- putting in

void ScoreTree::AddToCounts(const Path& path, int32_t by) {
  for (size_t level = 0; level < levels_; ++level)
    path.steps[level].node->counts[path.steps[level].at] += static_cast<uint32_t>(by);
}

// The first entry of the path's leaf is another one; so is that of every node it is the first child of.
void ScoreTree::FirstChanged(const Path& path, const Entry& first) {
  for (size_t level = levels_; level-- > 0;) {
    path.steps[level].node->firsts[path.steps[level].at] = first;
    if (path.steps[level].at != 0) return;
  }
}

void ScoreTree::Insert(const ScoredMember* member) {
  if (root_ == nullptr) root_ = NewLeaf();
  const Entry entry{member->score, member};
  Path path;
  Descend(entry, &path);
  Leaf& leaf = *path.leaf;
  const uint32_t at = Find(leaf, entry);
  ++size_;
  if (leaf.size == kLeafEntries) return InsertSplitting(path, at, entry);
  std::memmove(leaf.entries + at + 1, leaf.entries + at, (leaf.size - at) * sizeof(Entry));
  leaf.entries[at] = entry;
  ++leaf.size;
  AddToCounts(path, 1);
  if (at == 0) FirstChanged(path, entry);
}

// The leaf is full. Half of it moves to a new one behind it; at either end of the tree only the new entry is apart from the rest,
// so that entries that come in order fill their leaves.
void ScoreTree::InsertSplitting(Path& path, uint32_t at, const Entry& entry) {
  Leaf& left = *path.leaf;
  Leaf& right = *NewLeaf();
  const uint32_t keep = at == kLeafEntries && left.behind == nullptr ? kLeafEntries
                        : at == 0 && left.before == nullptr          ? 0
                                                                     : kLeafEntries / 2;
  right.size = kLeafEntries - keep;
  left.size = keep;
  std::memcpy(right.entries, left.entries + keep, right.size * sizeof(Entry));
  right.before = &left;
  right.behind = left.behind;
  if (right.behind != nullptr) right.behind->before = &right;
  left.behind = &right;
  const bool to_left = at < keep || (at == keep && right.size != 0);
  Leaf& target = to_left ? left : right;
  const uint32_t place = to_left ? at : at - keep;
  std::memmove(target.entries + place + 1, target.entries + place, (target.size - place) * sizeof(Entry));
  target.entries[place] = entry;
  ++target.size;
  AddToCounts(path, 1);
  if (at == 0) FirstChanged(path, entry);
  InsertChild(path, levels_, &right, right.entries[0], right.size);
}

// Puts `child` behind the node of the path at `level`; `moved` members went into it from there.
void ScoreTree::InsertChild(Path& path, size_t level, void* child, const Entry& first, uint32_t moved) {
  if (level == 0) {
    Inner& root = *NewInner();
    root.size = 2;
    root.children[0] = root_;
    root.children[1] = child;
    root.counts[0] = static_cast<uint32_t>(size_) - moved;
    root.counts[1] = moved;
    root.firsts[0] = levels_ == 0 ? static_cast<Leaf*>(root_)->entries[0] : static_cast<Inner*>(root_)->firsts[0];
    root.firsts[1] = first;
    root_ = &root;
    ++levels_;
    Check(levels_ < kDepthMax, "a tree of scores is not that deep");
    return;
  }
  const auto put = [&](Inner& node, uint32_t at) {
    const uint32_t behind = node.size - at;
    std::memmove(node.children + at + 1, node.children + at, behind * sizeof(void*));
    std::memmove(node.counts + at + 1, node.counts + at, behind * sizeof(uint32_t));
    std::memmove(node.firsts + at + 1, node.firsts + at, behind * sizeof(Entry));
    node.children[at] = child;
    node.counts[at] = moved;
    node.firsts[at] = first;
    ++node.size;
  };
  Inner& left = *path.steps[level - 1].node;
  const uint32_t at = path.steps[level - 1].at + 1;
  left.counts[at - 1] -= moved;
  if (left.size < kChildren) return put(left, at);
  Inner& right = *NewInner();
  const uint32_t keep = at == kChildren ? kChildren : kChildren / 2;
  right.size = kChildren - keep;
  left.size = keep;
  std::memcpy(right.children, left.children + keep, right.size * sizeof(void*));
  std::memcpy(right.counts, left.counts + keep, right.size * sizeof(uint32_t));
  std::memcpy(right.firsts, left.firsts + keep, right.size * sizeof(Entry));
  if (at <= keep && keep != kChildren) {
    put(left, at);
  } else {
    put(right, at - keep);
  }
  uint32_t below = 0;
  for (uint32_t i = 0; i < right.size; ++i) below += right.counts[i];
  InsertChild(path, level - 1, &right, right.firsts[0], below);
}

// --- taking out

void ScoreTree::Erase(const ScoredMember* member) {
  const Entry entry{member->score, member};
  Path path;
  Descend(entry, &path);
  Leaf& leaf = *path.leaf;
  const uint32_t at = Find(leaf, entry);
  Check(at < leaf.size && leaf.entries[at].member == member, "what is taken out of a tree of scores is in it");
  --leaf.size;
  --size_;
  std::memmove(leaf.entries + at, leaf.entries + at + 1, (leaf.size - at) * sizeof(Entry));
  AddToCounts(path, -1);
  if (leaf.size == 0) return RemoveLeaf(path);
  if (at == 0) FirstChanged(path, leaf.entries[0]);
  if (leaf.size < kLeafEntries / 4 && levels_ > 0) MergeLeaf(path);
}

void ScoreTree::DropSlot(Inner& node, uint32_t at) {
  --node.size;
  const uint32_t behind = node.size - at;
  std::memmove(node.children + at, node.children + at + 1, behind * sizeof(void*));
  std::memmove(node.counts + at, node.counts + at + 1, behind * sizeof(uint32_t));
  std::memmove(node.firsts + at, node.firsts + at + 1, behind * sizeof(Entry));
}

void ScoreTree::RemoveLeaf(Path& path) {
  Leaf& leaf = *path.leaf;
  if (leaf.before != nullptr) leaf.before->behind = leaf.behind;
  if (leaf.behind != nullptr) leaf.behind->before = leaf.before;
  FreeNode(&leaf);
  if (levels_ == 0) {
    root_ = nullptr;
    return;
  }
  RemoveChild(path, levels_ - 1);
}

// The child that the path took at this level is gone.
void ScoreTree::RemoveChild(Path& path, size_t level) {
  Inner& node = *path.steps[level].node;
  const uint32_t at = path.steps[level].at;
  DropSlot(node, at);
  if (node.size == 0) {
    FreeNode(&node);
    if (level == 0) {
      root_ = nullptr;
      levels_ = 0;
      return;
    }
    return RemoveChild(path, level - 1);
  }
  if (at == 0) {
    for (size_t above = level; above-- > 0;) {
      path.steps[above].node->firsts[path.steps[above].at] = node.firsts[0];
      if (path.steps[above].at != 0) break;
    }
  }
  if (level > 0 && node.size < kChildren / 4) return MergeInner(path, level);
  while (levels_ > 0 && static_cast<Inner*>(root_)->size == 1) {
    void* const only = static_cast<Inner*>(root_)->children[0];
    FreeNode(root_);
    root_ = only;
    --levels_;
  }
}

// Puts a leaf that is nearly empty together with one beside it, where that leaves room. Where not, that one is well filled.
void ScoreTree::MergeLeaf(Path& path) {
  Step& step = path.steps[levels_ - 1];
  Inner& parent = *step.node;
  for (const uint32_t left_at : {step.at - 1, step.at}) {
    if (left_at >= parent.size || left_at + 1 >= parent.size) continue;
    Leaf& left = *static_cast<Leaf*>(parent.children[left_at]);
    Leaf& right = *static_cast<Leaf*>(parent.children[left_at + 1]);
    if (left.size + right.size > kLeafEntries * 3 / 4) continue;
    std::memcpy(left.entries + left.size, right.entries, right.size * sizeof(Entry));
    left.size += right.size;
    parent.counts[left_at] += parent.counts[left_at + 1];
    path.leaf = &right;
    step.at = left_at + 1;
    return RemoveLeaf(path);
  }
}

void ScoreTree::MergeInner(Path& path, size_t level) {
  Step& step = path.steps[level - 1];
  Inner& parent = *step.node;
  for (const uint32_t left_at : {step.at - 1, step.at}) {
    if (left_at >= parent.size || left_at + 1 >= parent.size) continue;
    Inner& left = *static_cast<Inner*>(parent.children[left_at]);
    Inner& right = *static_cast<Inner*>(parent.children[left_at + 1]);
    if (left.size + right.size > kChildren * 3 / 4) continue;
    std::memcpy(left.children + left.size, right.children, right.size * sizeof(void*));
    std::memcpy(left.counts + left.size, right.counts, right.size * sizeof(uint32_t));
    std::memcpy(left.firsts + left.size, right.firsts, right.size * sizeof(Entry));
    left.size += right.size;
    parent.counts[left_at] += parent.counts[left_at + 1];
    FreeNode(&right);
    step.at = left_at + 1;
    return RemoveChild(path, level - 1);
  }
}

void ScoreTree::Move(ScoredMember* member, double score) {
  const Entry from{member->score, member};
  Path path;
  Descend(from, &path);
  Leaf& leaf = *path.leaf;
  const uint32_t at = Find(leaf, from);
  const Entry to{score, member};
  // Where it stays in its leaf, and is not the first there, nothing above needs to know.
  const bool last_of_all = at + 1 == leaf.size && leaf.behind == nullptr;
  if (at > 0 && Before(leaf.entries[0], to) && (last_of_all || Before(to, leaf.entries[leaf.size - 1]))) {
    member->score = score;
    std::memmove(leaf.entries + at, leaf.entries + at + 1, (leaf.size - 1 - at) * sizeof(Entry));
    const uint32_t place =
        CountPrefix(leaf.entries, leaf.size - 1, [&](const Entry& e) { return Before(e, to); });
    std::memmove(leaf.entries + place + 1, leaf.entries + place, (leaf.size - 1 - place) * sizeof(Entry));
    leaf.entries[place] = to;
    return;
  }
  Erase(member);
  member->score = score;
  Insert(member);
}

// --- checking

size_t ScoreTree::CheckNode(const void* node, size_t level, const Entry* floor, const Leaf** last) const {
  if (level == levels_) {
    const Leaf& leaf = *static_cast<const Leaf*>(node);
    Check(leaf.size > 0 && leaf.size <= kLeafEntries, "a leaf holds something");
    Check(leaf.before == *last, "a leaf knows the one before it");
    Check(*last == nullptr || (*last)->behind == &leaf, "a leaf knows the one behind it");
    Check(floor == nullptr || floor->member == leaf.entries[0].member, "a node above knows the first entry");
    for (uint32_t i = 0; i < leaf.size; ++i) {
      Check(leaf.entries[i].score == leaf.entries[i].member->score, "an entry has its member's score");
      Check(i == 0 || Before(leaf.entries[i - 1], leaf.entries[i]), "entries stand in order");
    }
    Check(*last == nullptr || Before((*last)->entries[(*last)->size - 1], leaf.entries[0]), "leaves stand in order");
    *last = &leaf;
    return leaf.size;
  }
  const Inner& inner = *static_cast<const Inner*>(node);
  Check(inner.size > (level == 0 ? 1u : 0u) && inner.size <= kChildren, "an inner node has children");
  Check(floor == nullptr || floor->member == inner.firsts[0].member, "a node above knows the first entry");
  size_t count = 0;
  for (uint32_t i = 0; i < inner.size; ++i) {
    const size_t below = CheckNode(inner.children[i], level + 1, &inner.firsts[i], last);
    Check(below == inner.counts[i], "a node knows how many are below it");
    Check(inner.firsts[i].score == inner.firsts[i].member->score, "a first entry has its member's score");
    count += below;
  }
  return count;
}

void ScoreTree::CheckInvariants() const {
  const Leaf* last = nullptr;
  const size_t count = root_ == nullptr ? 0 : CheckNode(root_, 0, nullptr, &last);
  Check(count == size_, "the tree knows how many are in it");
  Check(last == nullptr || last->behind == nullptr, "the last leaf is the last");
}

}  // namespace idemd::storage

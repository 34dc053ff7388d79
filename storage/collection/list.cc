// Nodes are filled up to the limits, split where something is put into the middle of a full one, and merged where both halves
// of a split have small neighbours.
#include "storage/collection/list.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "storage/collection/number_text.h"
#include "storage/collection/packed_formats.h"

namespace idemd::storage {
namespace {

// Where a setting counts elements, bytes are limited all the same.
constexpr size_t kSafeBytes = 8192;
constexpr int64_t kElementsMax = (1 << 15) - 1;
constexpr std::array<size_t, 5> kByteClasses = {4096, 8192, 16384, 32768, 65536};
constexpr int64_t kDefaultSetting = -2;

constexpr uint8_t kRdbListZiplist = 10;
constexpr uint8_t kRdbListQuicklist = 14;
constexpr uint8_t kRdbListQuicklist2 = 18;
constexpr uint64_t kRdbPlainNode = 1;
constexpr uint64_t kRdbPackedNode = 2;

// What an element is compared with; read as a number once.
class Wanted {
 public:
  explicit Wanted(absl::string_view text) : text_(text), is_number_(ReadCanonicalInt64(text, &number_)) {}
  bool Is(const Listpack::Value& value) const {
    return value.is_number ? is_number_ && value.number == number_ : value.text == text_;
  }
  bool Is(absl::string_view text) const { return text == text_; }
  absl::string_view text() const { return text_; }

 private:
  const absl::string_view text_;
  int64_t number_ = 0;
  const bool is_number_;
};

constexpr size_t kPackHeaderBytes = 6;

// The elements of `first` and `second`, which are the bytes between a listpack's header and its end.
Listpack PackOf(absl::string_view first, absl::string_view second) {
  std::string bytes(kPackHeaderBytes, '\0');
  const auto size = static_cast<uint32_t>(kPackHeaderBytes + first.size() + second.size() + 1);
  std::memcpy(bytes.data(), &size, sizeof(size));
  bytes[4] = bytes[5] = '\xff';  // not counted
  bytes.append(first.data(), first.size());
  bytes.append(second.data(), second.size());
  bytes.push_back('\xff');
  return *Listpack::FromBytes(bytes);
}

absl::string_view ElementsOf(const Listpack& pack) {
  return pack.view().substr(kPackHeaderBytes, pack.size() - kPackHeaderBytes - 1);
}

}  // namespace

List::Limits List::Limits::Of(int64_t setting) {
  if (setting >= 0) return {static_cast<size_t>(std::clamp<int64_t>(setting, 1, kElementsMax)), kSafeBytes};
  const auto nth = static_cast<size_t>(-std::max<int64_t>(setting, -5) - 1);
  return {SIZE_MAX, kByteClasses[nth]};
}

size_t List::Node::memory_bytes() const {
  if (packed()) return pack().memory_bytes();
  // A text that has its own memory: shorter ones are in listpacks.
  return sizeof(std::string) + malloc_usable_size(const_cast<char*>(plain().data()));
}

class List::Changing {
 public:
  Changing(List& list, Node& node) : list_(list), node_(node), bytes_(node.memory_bytes()) { list.size_ -= node.count; }
  ~Changing() {
    list_.size_ += node_.count;
    list_.node_bytes_ += node_.memory_bytes() - bytes_;
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  List& list_;
  Node& node_;
  const size_t bytes_;
};

// --- nodes

bool List::Fits(const Node& node, size_t element_bytes, const Limits& limits) {
  return node.packed() && node.count < limits.elements && node.pack().size() + element_bytes <= limits.bytes;
}

List::Node List::NodeOf(absl::string_view text, const Limits& limits) {
  Node node;
  node.count = 1;
  if (Listpack::ElementBytes(text) + node.pack().size() > limits.bytes) {
    node.content = std::make_unique<std::string>(text.data(), text.size());
  } else {
    node.pack().Append(text);
  }
  return node;
}

List::Node List::NodeOf(Listpack pack) {
  Node node;
  node.count = static_cast<uint32_t>(pack.count());
  node.content = std::move(pack);
  return node;
}

void List::MakeRoom() {
  if (nodes_.full()) nodes_.set_capacity(std::max<size_t>(1, nodes_.capacity() * 2));
}

void List::AddNode(size_t at, Node node) {
  MakeRoom();
  size_ += node.count;
  node_bytes_ += node.memory_bytes();
  if (at == 0) {
    nodes_.push_front(std::move(node));
  } else if (at == nodes_.size()) {
    nodes_.push_back(std::move(node));
  } else {
    nodes_.insert(nodes_.begin() + static_cast<ptrdiff_t>(at), std::move(node));
  }
}

void List::RemoveNode(size_t at) {
  size_ -= nodes_[at].count;
  node_bytes_ -= nodes_[at].memory_bytes();
  if (at == 0) {
    nodes_.pop_front();
  } else if (at + 1 == nodes_.size()) {
    nodes_.pop_back();
  } else {
    nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(at));
  }
  // A ring that was large once does not stay so; it takes as many pushes as this had removals until it grows again.
  constexpr size_t kRingMin = 8;
  if (nodes_.capacity() > kRingMin && nodes_.size() < nodes_.capacity() / 4) nodes_.set_capacity(nodes_.capacity() / 2);
}

void List::RemoveEmptyNodes() {
  const auto end = std::remove_if(nodes_.begin(), nodes_.end(), [this](const Node& node) {
    if (node.count == 0) node_bytes_ -= node.memory_bytes();
    return node.count == 0;
  });
  nodes_.erase(end, nodes_.end());
}

List::Place List::PlaceOf(size_t index) const {
  if (index < size_ / 2) {
    size_t node = 0;
    for (; index >= nodes_[node].count; ++node) index -= nodes_[node].count;
    return {node, index};
  }
  size_t behind = size_ - index;  // this one and those behind it
  size_t node = nodes_.size() - 1;
  for (; behind > nodes_[node].count; --node) behind -= nodes_[node].count;
  return {node, nodes_[node].count - behind};
}

// --- looking

void List::Walk(End from, size_t skip, size_t n, absl::FunctionRef<void(absl::string_view text)> each) const {
  if (skip >= size_) return;
  n = std::min(n, size_ - skip);
  if (n == 0) return;
  const bool forward = from == End::kHead;
  Place place = PlaceOf(forward ? skip : size_ - 1 - skip);
  Listpack::Digits digits;
  while (true) {
    const Node& node = nodes_[place.node];
    if (!node.packed()) {
      each(node.plain());
      --n;
    } else {
      const Listpack& pack = node.pack();
      Listpack::At at = pack.Seek(static_cast<int64_t>(place.skip));
      for (; at != Listpack::kNone && n != 0; --n) {
        each(pack.Text(at, digits));
        at = forward ? pack.Next(at) : pack.Previous(at);
      }
    }
    if (n == 0) return;
    place.node += forward ? size_t{1} : SIZE_MAX;
    place.skip = forward ? 0 : nodes_[place.node].count - 1;
  }
}

void List::Find(End from, absl::string_view text, size_t most, absl::FunctionRef<bool(size_t index)> match) const {
  const Wanted wanted(text);
  const bool forward = from == End::kHead;
  size_t seen = 0;  // elements in front, on our way
  most = std::min(most, size_);
  for (size_t i = 0; i < nodes_.size() && seen < most; ++i) {
    const Node& node = nodes_[forward ? i : nodes_.size() - 1 - i];
    const auto told = [&] { return match(forward ? seen : size_ - 1 - seen); };
    if (!node.packed()) {
      if (wanted.Is(node.plain()) && !told()) return;
      ++seen;
      continue;
    }
    const Listpack& pack = node.pack();
    for (Listpack::At at = forward ? pack.First() : pack.Last(); at != Listpack::kNone && seen < most; ++seen) {
      if (wanted.Is(pack.Get(at)) && !told()) return;
      at = forward ? pack.Next(at) : pack.Previous(at);
    }
  }
}

// --- changing

void List::Push(End end, absl::string_view text, const Limits& limits) {
  const bool head = end == End::kHead;
  if (!nodes_.empty()) {
    Node& node = head ? nodes_.front() : nodes_.back();
    if (Fits(node, Listpack::ElementBytes(text), limits)) {
      const Changing changing(*this, node);
      head ? node.pack().Prepend(text) : node.pack().Append(text);
      ++node.count;
      return;
    }
  }
  AddNode(head ? 0 : nodes_.size(), NodeOf(text, limits));
}

// The element at `place`, which is not the first of its node, becomes the first of the next one.
void List::Split(const Place& place) {
  Node& node = nodes_[place.node];
  const Listpack::At at = node.pack().Seek(static_cast<int64_t>(place.skip));
  Node second = NodeOf(PackOf(node.pack().view().substr(at, node.pack().size() - 1 - at), {}));
  {
    const Changing changing(*this, node);
    node.pack().Erase(at, second.count);
    node.count -= second.count;
  }
  AddNode(place.node + 1, std::move(second));
}

void List::MergeWithNext(size_t at, const Limits& limits) {
  if (at + 1 >= nodes_.size()) return;
  Node& first = nodes_[at];
  const Node& second = nodes_[at + 1];
  if (!first.packed() || !second.packed() || first.count + second.count > limits.elements) return;
  if (first.pack().size() + ElementsOf(second.pack()).size() > limits.bytes) return;
  {
    const Changing changing(*this, first);
    first = NodeOf(PackOf(ElementsOf(first.pack()), ElementsOf(second.pack())));
  }
  RemoveNode(at + 1);
}

void List::Insert(size_t index, absl::string_view text, const Limits& limits) {
  if (index == 0) return Push(End::kHead, text, limits);
  if (index == size_) return Push(End::kTail, text, limits);
  const Place place = PlaceOf(index);
  const size_t bytes = Listpack::ElementBytes(text);
  Node& node = nodes_[place.node];
  if (Fits(node, bytes, limits)) {
    const Changing changing(*this, node);
    node.pack().InsertBefore(node.pack().Seek(static_cast<int64_t>(place.skip)), text);
    ++node.count;
    return;
  }
  if (place.skip == 0) {
    Node& before = nodes_[place.node - 1];  // there is one: `index` is not 0
    if (!Fits(before, bytes, limits)) return AddNode(place.node, NodeOf(text, limits));
    const Changing changing(*this, before);
    before.pack().Append(text);
    ++before.count;
    return;
  }
  Split(place);
  // Now it is the first of its node.
  Insert(index, text, limits);
  // At most three nodes more than before stand here: the halves, and one for the text.
  MergeWithNext(place.node + 2, limits);
  MergeWithNext(place.node + 1, limits);
  if (place.node > 0) MergeWithNext(place.node - 1, limits);
}

void List::Erase(size_t index) {
  const Place place = PlaceOf(index);
  Node& node = nodes_[place.node];
  if (node.count == 1) return RemoveNode(place.node);
  const Changing changing(*this, node);
  node.pack().Erase(node.pack().Seek(static_cast<int64_t>(place.skip)));
  --node.count;
}

void List::Set(size_t index, absl::string_view text, const Limits& limits) {
  const Place place = PlaceOf(index);
  Node& node = nodes_[place.node];
  if (node.packed()) {
    Listpack& pack = node.pack();
    const Listpack::At at = pack.Seek(static_cast<int64_t>(place.skip));
    Listpack::Digits digits;
    const size_t others = pack.size() - Listpack::ElementBytes(pack.Text(at, digits));
    if (others + Listpack::ElementBytes(text) <= limits.bytes) {
      const Changing changing(*this, node);
      pack.Replace(at, text);
      return;
    }
  } else if (Listpack::ElementBytes(text) + kPackHeaderBytes + 1 > limits.bytes) {
    const Changing changing(*this, node);
    std::get<Plain>(node.content) = std::make_unique<std::string>(text.data(), text.size());
    return;
  }
  Erase(index);
  Insert(index, text, limits);
}

void List::Drop(End end, size_t n) {
  const bool head = end == End::kHead;
  while (n != 0) {
    const size_t at = head ? 0 : nodes_.size() - 1;
    Node& node = nodes_[at];
    if (node.count <= n) {
      n -= node.count;
      RemoveNode(at);
      continue;
    }
    const Changing changing(*this, node);
    Listpack& pack = node.pack();
    pack.Erase(head ? pack.First() : pack.Seek(-static_cast<int64_t>(n)), n);
    node.count -= static_cast<uint32_t>(n);
    return;
  }
}

size_t List::Remove(End from, size_t most, absl::string_view text) {
  const Wanted wanted(text);
  const bool forward = from == End::kHead;
  size_t removed = 0;
  bool emptied = false;
  for (size_t i = 0; i < nodes_.size() && removed < most; ++i) {
    Node& node = nodes_[forward ? i : nodes_.size() - 1 - i];
    if (!node.packed()) {
      if (!wanted.Is(node.plain())) continue;
      const Changing changing(*this, node);
      node.count = 0;
      ++removed;
    } else {
      const size_t before = removed;
      const Changing changing(*this, node);
      Listpack& pack = node.pack();
      if (forward) {
        Listpack::At at = pack.Find(pack.First(), wanted.text(), 0);
        while (at != Listpack::kNone && removed < most) {
          ++removed;
          at = pack.Find(pack.Erase(at), wanted.text(), 0);
        }
      } else {
        for (Listpack::At at = pack.Last(); at != Listpack::kNone && removed < most;) {
          const Listpack::At next = pack.Previous(at);
          if (wanted.Is(pack.Get(at))) {
            ++removed;
            pack.Erase(at);
          }
          at = next;
        }
      }
      node.count -= static_cast<uint32_t>(removed - before);
    }
    emptied = emptied || node.count == 0;
  }
  if (emptied) RemoveEmptyNodes();
  return removed;
}

// --- whole

List::List(const List& other) : Collection(other) {
  nodes_.set_capacity(other.nodes_.size());
  for (const Node& node : other.nodes_) {
    Node copy;
    copy.count = node.count;
    if (node.packed()) {
      copy.content = Listpack(node.pack());
    } else {
      copy.content = std::make_unique<std::string>(node.plain());
    }
    AddNode(nodes_.size(), std::move(copy));
  }
}

std::unique_ptr<Collection> List::Clone() const { return std::unique_ptr<Collection>(new List(*this)); }

bool List::Sound() const {
  size_t size = 0, bytes = 0;
  for (const Node& node : nodes_) {
    if (node.count == 0 || node.count != (node.packed() ? node.pack().count() : 1)) return false;
    size += node.count;
    bytes += node.memory_bytes();
  }
  return size == size_ && bytes == node_bytes_;
}

// --- files

uint8_t List::rdb_type() const { return kRdbListQuicklist2; }

void List::AppendRdb(RdbStrings strings, std::string& out) const {
  AppendRdbLength(nodes_.size(), out);
  for (const Node& node : nodes_) {
    AppendRdbLength(node.packed() ? kRdbPackedNode : kRdbPlainNode, out);
    AppendRdbString(node.packed() ? node.pack().view() : absl::string_view(node.plain()), strings, out);
  }
}

// Nodes of files stay as they are.
void List::AppendRead(Listpack pack) {
  Node node = NodeOf(std::move(pack));
  if (node.count != 0) AddNode(nodes_.size(), std::move(node));
}

std::unique_ptr<Collection> ReadRdbList(uint8_t type, RdbScanner& scan) {
  const List::Limits limits = List::Limits::Of(kDefaultSetting);
  auto list = std::make_unique<List>();
  const auto push = [&](absl::string_view text) { list->Push(List::End::kTail, text, limits); };
  uint64_t parts = 1;
  if (type != kRdbListZiplist && !scan.Length(&parts)) return nullptr;
  RdbHold hold;
  for (; parts != 0; --parts) {
    uint64_t container = kRdbPlainNode;
    const uint64_t at = scan.input().offset();
    if (type == kRdbListQuicklist2 && !scan.Length(&container)) return nullptr;
    absl::string_view text;
    if (!scan.String(hold, &text)) return nullptr;
    const bool packed = container == kRdbPackedNode;
    if (!packed && container != kRdbPlainNode) {
      scan.Damaged(at, "there is no such kind of list node");
      return nullptr;
    }
    if (type == kRdbListZiplist || type == kRdbListQuicklist) {
      if (ReadZiplist(text, push)) continue;
      scan.Damaged(at, "the list's node is no ziplist");
      return nullptr;
    }
    if (!packed) {
      push(text);
      continue;
    }
    std::optional<Listpack> pack = Listpack::FromBytes(text);
    if (!pack.has_value()) {
      scan.Damaged(at, "the list's node is no listpack");
      return nullptr;
    }
    list->AppendRead(*std::move(pack));
  }
  return list;
}

}  // namespace idemd::storage

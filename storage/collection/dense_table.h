// Elements side by side, found through an index of their hashes: what HSCAN, SSCAN and ZSCAN walk, and draws draw from.
//
//   places   0 1 2 ... size-1, without a gap, in pieces of 4096, so that growth copies little
//   index    place_index.h, once there were kIndexFrom elements
//
// The last element takes the place of one that goes. So a scan goes from the end to the front, and its cursor is the number of
// places that it has not seen: what comes is put behind them, and what moves was seen, or moves to a place that is not. Each element that
// is there throughout is shown once at least, however the table grows or shrinks meanwhile; and a scan ends, since its cursor falls.
//
// Element   what a place holds: bytes that may be copied, whose meaning and memory are the owner's.
// KeyOf     `static absl::string_view KeyOf::Of(const Element&)`: what it is found by.
// Threads   one, or several that only read.
// Lifetime  a reference to an element is good until the table is changed.
// Limits    2^32 - 2 elements.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/collection/place_index.h"
#include "storage/key/hashed_key.h"

namespace idemd::storage {

// With the seed of the process: clients choose the elements, and must not choose where they go.
inline uint64_t ElementHash(absl::string_view key) { return TextHash(key); }

template <class Element, class KeyOf>
class DenseTable {
  static_assert(std::is_trivially_copyable_v<Element>);

 public:
  static constexpr uint32_t kNone = PlaceIndex::kNone;

  DenseTable() = default;
  ~DenseTable() {
    for (Element* piece : pieces_) std::free(piece);
  }
  DenseTable(const DenseTable&) = delete;
  DenseTable& operator=(const DenseTable&) = delete;

  uint32_t size() const { return size_; }
  Element& operator[](uint32_t place) { return pieces_[place >> kPieceLog][place & kPieceMask]; }
  const Element& operator[](uint32_t place) const { return pieces_[place >> kPieceLog][place & kPieceMask]; }

  // The place of what is found by `key`, whose ElementHash() is `hash`; or kNone.
  uint32_t Find(absl::string_view key, uint64_t hash) const {
    if (index_.empty()) {
      for (uint32_t place = 0; place < size_; ++place)
        if (KeyOf::Of((*this)[place]) == key) return place;
      return kNone;
    }
    return index_.Find(hash, [&](uint32_t place) { return KeyOf::Of((*this)[place]) == key; });
  }
  uint32_t Find(absl::string_view key) const { return Find(key, ElementHash(key)); }

  // At the end; it must not be there yet.
  void Append(const Element& element, uint64_t hash);
  // Takes out what is at `place`, whose hash this is; the last one comes there.
  void Remove(uint32_t place, uint64_t hash);

  // Shows up to `count` elements; returns the next cursor, 0 at the end. Any number is a good cursor.
  template <class Each>
  uint64_t Scan(uint64_t cursor, uint64_t count, Each each) const {
    uint64_t unseen = cursor == 0 ? size_ : std::min<uint64_t>(cursor, size_);
    for (const uint64_t end = count < unseen ? unseen - count : 0; unseen > end;) each((*this)[static_cast<uint32_t>(--unseen)]);
    return unseen;
  }

  // Without this object, and without what the elements own.
  size_t memory_bytes() const { return piece_bytes_ + pieces_.capacity() * sizeof(Element*) + index_.memory_bytes(); }

 private:
  static constexpr uint32_t kPieceLog = 12;
  static constexpr uint32_t kPieceSize = 1u << kPieceLog, kPieceMask = kPieceSize - 1;
  static constexpr uint32_t kFirstMin = 4;   // places of the first piece, which grows
  static constexpr uint32_t kIndexFrom = 9;  // fewer are looked through

  void ResizeFirst(uint32_t places) {
    piece_bytes_ -= malloc_usable_size(pieces_[0]);
    auto* const piece = static_cast<Element*>(std::realloc(static_cast<void*>(pieces_[0]), places * sizeof(Element)));
    if (piece == nullptr) throw std::bad_alloc();
    pieces_[0] = piece;
    piece_bytes_ += malloc_usable_size(piece);
    first_places_ = places;
  }
  void AddPiece(uint32_t places) {
    auto* const piece = static_cast<Element*>(std::malloc(places * sizeof(Element)));
    if (piece == nullptr) throw std::bad_alloc();
    pieces_.push_back(piece);
    piece_bytes_ += malloc_usable_size(piece);
  }
  void GiveBack();

  uint32_t size_ = 0;
  uint32_t first_places_ = 0;
  std::vector<Element*> pieces_;
  size_t piece_bytes_ = 0;
  PlaceIndex index_;
};

template <class Element, class KeyOf>
void DenseTable<Element, KeyOf>::Append(const Element& element, uint64_t hash) {
  if (size_ == 0 && pieces_.empty()) {
    AddPiece(first_places_ = kFirstMin);
  } else if (size_ == first_places_ && size_ < kPieceSize) {
    ResizeFirst(first_places_ * 2);
  } else if (size_ == pieces_.size() << kPieceLog) {
    AddPiece(kPieceSize);
  }
  (*this)[size_] = element;
  ++size_;
  if (index_.empty()) {
    if (size_ < kIndexFrom) return;
    for (uint32_t place = 0; place + 1 < size_; ++place) index_.Insert(ElementHash(KeyOf::Of((*this)[place])), place);
  }
  index_.Insert(hash, size_ - 1);
}

template <class Element, class KeyOf>
void DenseTable<Element, KeyOf>::Remove(uint32_t place, uint64_t hash) {
  const uint32_t last = size_ - 1;
  if (last < kIndexFrom / 2) {
    index_.Clear();
  } else if (!index_.empty()) {
    index_.Erase(hash, place);
    if (place != last) index_.Move(ElementHash(KeyOf::Of((*this)[last])), last, place);
  }
  (*this)[place] = (*this)[last];
  size_ = last;
  GiveBack();
}

// The last piece goes when the one before it is half empty, so that coming and going at a border costs nothing.
template <class Element, class KeyOf>
void DenseTable<Element, KeyOf>::GiveBack() {
  if (pieces_.size() > 1 && size_ + kPieceSize / 2 <= (pieces_.size() - 1) << kPieceLog) {
    piece_bytes_ -= malloc_usable_size(pieces_.back());
    std::free(pieces_.back());
    pieces_.pop_back();
  }
  if (pieces_.size() == 1 && first_places_ > kFirstMin && size_ < first_places_ / 4) ResizeFirst(first_places_ / 2);
}

}  // namespace idemd::storage

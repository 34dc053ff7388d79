// What a thread has retired, first in first out. Keeps memory for some of it, so that retiring asks
// for none in the steady state.
//
// Threads   one, or under a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace idemd::storage {

struct Garbage {
  void* at;
  void (*destroy)(void*);
  uint64_t pin;  // of the guard under which it was retired
};

class GarbageRing {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t capacity() const { return places_.size(); }
  const Garbage& front() const { return places_[first_]; }
  void push_back(const Garbage& garbage) {
    if (size_ == places_.size()) Grow();
    places_[(first_ + size_++) & (places_.size() - 1)] = garbage;
  }
  void pop_front() {
    first_ = (first_ + 1) & (places_.size() - 1);
    if (--size_ == 0 && places_.size() > kKept) places_ = {};
  }

 private:
  static constexpr size_t kFirst = 64;
  static constexpr size_t kKept = 1024;  // more were for something that came once, such as FLUSHALL

  void Grow() {
    std::vector<Garbage> more(places_.empty() ? kFirst : 2 * places_.size());
    for (size_t i = 0; i < size_; ++i) more[i] = places_[(first_ + i) & (places_.size() - 1)];
    places_ = std::move(more);
    first_ = 0;
  }

  std::vector<Garbage> places_;  // a power of two of them
  size_t first_ = 0, size_ = 0;
};

}  // namespace idemd::storage

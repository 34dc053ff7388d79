// An allocator that keeps count: what a container takes is known at any moment, without walking it.
//
// Threads   those of its container; the count belongs to the container's owner.
// Lifetime  the count outlives every container that was given it.
// Units     bytes as the heap rounds them.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace idemd::storage {

template <class T>
class CountingAllocator {
 public:
  using value_type = T;

  explicit CountingAllocator(size_t* bytes) : bytes_(bytes) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : bytes_(other.bytes()) {}  // NOLINT: allocators convert

  T* allocate(size_t n) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    void* const at = std::malloc(n * sizeof(T));
    if (at == nullptr) throw std::bad_alloc();
    *bytes_ += malloc_usable_size(at);
    return static_cast<T*>(at);
  }
  void deallocate(T* at, size_t) {
    *bytes_ -= malloc_usable_size(at);
    std::free(at);
  }

  size_t* bytes() const { return bytes_; }
  template <class U>
  bool operator==(const CountingAllocator<U>& other) const {
    return bytes_ == other.bytes();
  }

 private:
  size_t* bytes_;
};

}  // namespace idemd::storage

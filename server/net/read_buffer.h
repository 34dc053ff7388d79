// The bytes a client has sent and nobody has consumed: contiguous, so that words can be views into
// it.
//
// Room is made by realloc and never cleared, so a large word costs no pass over fresh zeros, and a
// very large one is moved by the kernel instead of copied. Bytes that are in somebody else's memory can be looked at there:
// what is left of them when that goes is copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/string_view.h"

namespace idemd::server {

class ReadBuffer {
 public:
  // One read of an ordinary client, and what a connection holds while it is active.
  static constexpr size_t kBytesMin = 16 * 1024;
  // A client whose reads fill the buffer gets larger ones, up to here.
  static constexpr size_t kBytesBusy = 64 * 1024;

  ReadBuffer() = default;
  ~ReadBuffer() { std::free(lent_ ? own_ : bytes_); }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  absl::string_view view() const { return {bytes_ + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }
  char* space() { return bytes_ + end_; }
  size_t space_bytes() const { return capacity_ - end_; }

  void Commit(size_t n) {
    end_ += n;
    filled_ = end_ == capacity_;
  }
  // Nothing moves: a read may be under way into space().
  void Consume(size_t n) { begin_ += n; }
  void Clear() { begin_ = end_; }
  // Gives the memory back; the buffer must be empty.
  void Free() {
    if (lent_) TakeBack();
    std::free(bytes_);
    bytes_ = nullptr;
    begin_ = end_ = capacity_ = 0;
  }

  // The empty buffer's bytes are these until KeepRest(); no room can be made meanwhile.
  void Lend(char* bytes, size_t n) {
    own_ = bytes_;
    own_capacity_ = capacity_;
    lent_ = true;
    bytes_ = bytes;
    begin_ = 0;
    end_ = capacity_ = n;
  }
  bool lent() const { return lent_; }
  // False: there is no memory. `wanted` as for MakeRoom().
  [[nodiscard]] bool KeepRest(size_t wanted) {
    const absl::string_view rest = view();
    TakeBack();
    return Append(rest, wanted);
  }
  // Copies: for who has read already. `wanted` as for MakeRoom(); false: there is no memory.
  [[nodiscard]] bool Append(absl::string_view bytes, size_t wanted) {
    while (!bytes.empty()) {
      if (space_bytes() == 0 && !MakeRoom(wanted)) return false;
      const size_t n = std::min(bytes.size(), space_bytes());
      std::memcpy(space(), bytes.data(), n);
      Commit(n);
      bytes.remove_prefix(n);
    }
    return true;
  }

  // Makes room for another read, while none is under way. `wanted`: how long the request at the
  // front is known to be; since that is only what a client says, the room never exceeds four times
  // what has arrived. False: there is no memory.
  [[nodiscard]] bool MakeRoom(size_t wanted) {
    if (begin_ > 0) {
      std::memmove(bytes_, bytes_ + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (empty() && capacity_ > kBytesBusy) Free();
    const size_t trusted = std::min(wanted, 4 * size());
    size_t target = std::max({kBytesMin, capacity_, trusted});
    if (filled_ && size() < kBytesBusy)
      target = std::max(target, std::min(kBytesBusy, 2 * capacity_));
    const bool suffices = wanted > size() && target >= wanted;
    if (!suffices && target - size() < kBytesMin / 2) target = 2 * size() + kBytesMin;
    if (target <= capacity_) return true;
    void* const more = std::realloc(bytes_, target);
    if (more == nullptr) return false;
    bytes_ = static_cast<char*>(more);
    capacity_ = target;
    return true;
  }

 private:
  void TakeBack() {
    bytes_ = own_;
    capacity_ = own_capacity_;
    begin_ = end_ = 0;
    lent_ = false;
  }

  char* bytes_ = nullptr;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool filled_ = false;  // the last read got all that it had asked for
  bool lent_ = false;
  char* own_ = nullptr;  // while others' bytes stand in its place
  size_t own_capacity_ = 0;
};

}  // namespace idemd::server

// Replies that the socket did not take at once, in order: own bytes, and bytes shared with other
// connections.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::server {

class OutputQueue {
 public:
  // Buffers of one write. Rarely more than one is there.
  static constexpr size_t kBuffersMax = 16;
  using Buffers = std::array<boost::asio::const_buffer, kBuffersMax>;

  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }

  // The part of `out` from `from` on, which is left empty; a long one is taken over, so that it is
  // not copied.
  void Append(std::string& out, size_t from);
  void Append(absl::string_view bytes);
  // Bytes that others have, too: short ones are copied, long ones kept as they are.
  void AppendShared(std::shared_ptr<const std::string> shared);
  // What to write next; unused buffers are empty.
  Buffers Front() const;
  void Consume(size_t n);
  void Clear();

 private:
  struct Piece {
    std::string own;
    std::shared_ptr<const std::string> shared;
    size_t offset = 0;

    absl::string_view rest() const {
      const std::string& all = shared != nullptr ? *shared : own;
      return absl::string_view(all).substr(offset);
    }
  };

  std::string& Room(size_t n);

  std::deque<std::unique_ptr<Piece>> pieces_;
  size_t bytes_ = 0;
};

}  // namespace idemd::server

// Replies that wait for the socket.
#include "server/net/output_queue.h"

#include <utility>

namespace idemd::server {
namespace {

// Longer replies are taken over, shorter ones copied together.
constexpr size_t kTakeOverBytes = 16 * 1024;
// Shared bytes that are fewer than this are cheaper to copy than to keep track of.
constexpr size_t kShareBytes = 2 * 1024;

}  // namespace

void OutputQueue::Append(std::string& out, size_t from) {
  const size_t n = out.size() - from;
  if (n == 0) return;
  bytes_ += n;
  if (n >= kTakeOverBytes) {
    pieces_.push_back(std::make_unique<Piece>(Piece{std::move(out), nullptr, from}));
    out = std::string();
    return;
  }
  Room(n).append(out, from, n);
  out.clear();
}

void OutputQueue::Append(absl::string_view bytes) {
  std::string copy(bytes);
  Append(copy, 0);
}

// A string that has room for so many more bytes, which are fewer than are taken over. A piece may be in the hands of a
// write that is under way: it may grow, but its bytes must not move.
std::string& OutputQueue::Room(size_t n) {
  Piece* piece = pieces_.empty() ? nullptr : pieces_.back().get();
  if (piece == nullptr || piece->shared != nullptr ||
      piece->own.capacity() - piece->own.size() < n) {
    pieces_.push_back(std::make_unique<Piece>());
    piece = pieces_.back().get();
    piece->own.reserve(kTakeOverBytes);
  }
  return piece->own;
}

void OutputQueue::AppendShared(std::shared_ptr<const std::string> shared) {
  if (shared->empty()) return;
  bytes_ += shared->size();
  if (shared->size() < kShareBytes) {
    Room(shared->size()).append(*shared);
    return;
  }
  pieces_.push_back(std::make_unique<Piece>(Piece{{}, std::move(shared), 0}));
}

OutputQueue::Buffers OutputQueue::Front() const {
  Buffers buffers;
  size_t i = 0;
  for (const auto& piece : pieces_) {
    if (i == kBuffersMax) break;
    const absl::string_view rest = piece->rest();
    buffers[i++] = boost::asio::const_buffer(rest.data(), rest.size());
  }
  return buffers;
}

void OutputQueue::Consume(size_t n) {
  bytes_ -= n;
  while (n > 0) {
    Piece& piece = *pieces_.front();
    const size_t rest = piece.rest().size();
    if (n < rest) {
      piece.offset += n;
      return;
    }
    n -= rest;
    pieces_.pop_front();
  }
}

void OutputQueue::Clear() {
  pieces_.clear();
  bytes_ = 0;
}

}  // namespace idemd::server

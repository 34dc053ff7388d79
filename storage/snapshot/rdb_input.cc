// Where one chunk ends and the next begins.
#include "storage/snapshot/rdb_input.h"

#include <algorithm>
#include <utility>

#include "storage/snapshot/crc64.h"

namespace idemd::storage {

uint64_t RdbInput::Sum() {
  sum_ = Crc64(sum_, absl::string_view(summed_, static_cast<size_t>(at_ - summed_)));
  summed_ = at_;
  return sum_;
}

// The chunk is used up: what is kept of it is copied, and it goes into the sum as a whole.
bool RdbInput::Refill() {
  if (over_) return false;
  if (kept_ != nullptr) {
    kept_hold_->assign(kept_->data(), kept_->size());
    *kept_ = *kept_hold_;
    kept_ = nullptr;
  }
  Sum();
  chunk_offset_ = offset();
  chunk_ = summed_ = at_ = end_ = nullptr;
  absl::StatusOr<absl::string_view> chunk = source_(kChunkBytes);
  if (!chunk.ok()) status_ = chunk.status();
  over_ = !chunk.ok() || chunk->empty();
  if (over_) return false;
  chunk_ = summed_ = at_ = chunk->data();
  end_ = at_ + chunk->size();
  return true;
}

bool RdbInput::Gather(uint64_t size, absl::string_view* view, std::string& hold) {
  if (hold.capacity() > kHoldBytes) hold = std::string();
  hold.clear();
  while (true) {
    const size_t step = static_cast<size_t>(std::min<uint64_t>(size - hold.size(), Left()));
    hold.append(at_, step);
    at_ += step;
    if (hold.size() == size) break;
    if (!Refill()) return false;
  }
  *view = hold;
  return true;
}

bool RdbInput::GatherSmall(void* value, size_t size) {
  char* to = static_cast<char*>(value);
  for (; size > 0; ++to, --size) {
    uint8_t byte = 0;
    if (!Byte(&byte)) return false;
    *to = static_cast<char>(byte);
  }
  return true;
}

}  // namespace idemd::storage

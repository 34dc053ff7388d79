// Batches are found by their headers and proved by their sums.
#include "server/journal/log_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

constexpr size_t kReadBytes = 4 << 20;
constexpr size_t kEchoBytesMax = 300;

}  // namespace

absl::StatusOr<absl::string_view> FileWindow::Peek(size_t bytes) {
  bytes = static_cast<size_t>(std::min<uint64_t>(bytes, left()));
  if (buffer_.size() - begin_ < bytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const uint64_t have_to = offset_ + buffer_.size();
    const uint64_t want = std::max<uint64_t>(bytes - buffer_.size(), std::min<uint64_t>(kReadBytes, size_ - have_to));
    absl::StatusOr<std::string> more = file_.ReadAt(have_to, static_cast<size_t>(want));
    if (!more.ok()) return more.status();
    if (buffer_.empty())
      buffer_ = *std::move(more);
    else
      buffer_ += *more;
    if (buffer_.size() < bytes) return absl::DataLossError(absl::StrCat("the file ends before byte ", offset_ + bytes));
  }
  return absl::string_view(buffer_).substr(begin_);
}

void FileWindow::Skip(uint64_t bytes) {
  offset_ += bytes;
  if (bytes >= buffer_.size() - begin_) {
    buffer_.clear();
    begin_ = 0;
  } else {
    begin_ += static_cast<size_t>(bytes);
  }
}

absl::StatusOr<LogReader::Step> LogReader::Next() {
  window_.Skip(skip_);
  skip_ = 0;
  Step step;
  if (window_.left() == 0) return step;
  absl::StatusOr<absl::string_view> bytes = window_.Peek(kEchoBytesMax);
  if (!bytes.ok()) return bytes.status();
  size_t echo_bytes = 0;
  step.kind = Step::Kind::kBad;
  switch (ReadBatchHeader(*bytes, &step.header, &echo_bytes)) {
    case HeaderVerdict::kCut:
      step.why = "the header of a batch is cut short";
      return step;
    case HeaderVerdict::kOther:
      step.why = "no header of a batch stands here";
      return step;
    case HeaderVerdict::kHeader:
      break;
  }
  if (step.header.bytes > window_.left() - echo_bytes) {
    step.why = "a batch is cut short";
    return step;
  }
  const size_t all = echo_bytes + static_cast<size_t>(step.header.bytes);
  bytes = window_.Peek(all);
  if (!bytes.ok()) return bytes.status();
  step.commands = bytes->substr(echo_bytes, static_cast<size_t>(step.header.bytes));
  if (!SumFits(step.header, bytes->substr(0, echo_bytes), step.commands)) {
    step.why = "the sum of a batch is wrong";
    return step;
  }
  step.kind = Step::Kind::kBatch;
  skip_ = all;
  return step;
}

absl::StatusOr<uint64_t> BytesBeforeZeros(storage::File& file, uint64_t size) {
  constexpr uint64_t kBlockBytes = 64 << 10;
  while (size > 0) {
    const uint64_t from = size - std::min(size, kBlockBytes);
    const absl::StatusOr<std::string> block = file.ReadAt(from, static_cast<size_t>(size - from));
    if (!block.ok()) return block.status();
    const size_t last = block->find_last_not_of('\0');
    if (last != std::string::npos) return from + last + 1;
    size = from;
  }
  return 0;
}

absl::StatusOr<bool> TellsOfSynced(storage::File& file, uint64_t size, uint64_t offset, storage::Lsn lsn) {
  FileWindow window(file, size);
  window.Skip(offset);
  while (window.left() >= kBatchMark.size()) {
    absl::StatusOr<absl::string_view> bytes = window.Peek(kReadBytes);
    if (!bytes.ok()) return bytes.status();
    const size_t at = bytes->find(kBatchMark);
    if (at == absl::string_view::npos) {
      window.Skip(bytes->size() - kBatchMark.size() + 1);
      continue;
    }
    window.Skip(at);
    bytes = window.Peek(kEchoBytesMax);
    if (!bytes.ok()) return bytes.status();
    BatchHeader header;
    size_t echo_bytes = 0;
    if (ReadBatchHeader(*bytes, &header, &echo_bytes) == HeaderVerdict::kHeader && header.synced > lsn &&
        header.bytes <= window.left() - echo_bytes) {
      bytes = window.Peek(echo_bytes + static_cast<size_t>(header.bytes));
      if (!bytes.ok()) return bytes.status();
      if (SumFits(header, bytes->substr(0, echo_bytes), bytes->substr(echo_bytes, static_cast<size_t>(header.bytes))))
        return true;
    }
    window.Skip(1);
  }
  return false;
}

}  // namespace idemd::server

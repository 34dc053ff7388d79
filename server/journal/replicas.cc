// Replicas: a snapshot into a file of its own, the file to the replica, and then what was kept meanwhile.
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/admin/log.h"
#include "server/journal/persistence_impl.h"

namespace idemd::server {
namespace {

using std::chrono::steady_clock;
using storage::Lsn;

constexpr auto kTendEvery = std::chrono::seconds(1);
constexpr size_t kReadBytes = 256 << 10;
// A slow replica has so many parts in its queue, and the sender waits for it.
constexpr size_t kPartsAhead = 8;
constexpr auto kLookAgain = std::chrono::milliseconds(1);

}  // namespace

void Persistence::Impl::AddReplica(ReplicaSink sink) {
  std::unique_lock<std::mutex> lock(mutex_);
  replicas_to_come_.push_back(std::move(sink));
  wake_.notify_all();
}

absl::Status Persistence::Impl::MakeReplica(ReplicaSink sink) {
  std::erase_if(senders_, [](const std::future<void>& sender) {
    return sender.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  const std::string path = directory_.ReplicaPath();
  uint64_t id = 0, bytes = 0, fence = 0;
  Lsn lsn = 0;
  std::vector<std::string> libraries;
  std::unique_lock<std::mutex> feeding(feeding_mutex_);
  journal_.feed().Want();
  store_->SetLogging(true);
  storage::Snapshot snapshot(*store_, [&] {
    libraries = Libraries();
    lsn = journal_.last_lsn();
    fence = store_->fences().last();
    id = journal_.feed().Open(sink);
  });
  feeding.unlock();
  LogNotice("Synchronization with replica started");
  const auto dropped = [&](const absl::Status& why) {
    journal_.feed().Drop(id);
    return why;
  };
  SnapshotFacts facts = Facts(lsn, fence);  // the key of tokens, too, which lives with the data
  facts.libraries = std::move(libraries);
  if (absl::Status written = WriteSnapshotFile(directory_, path, snapshot, facts, &bytes); !written.ok()) return dropped(written);
  absl::StatusOr<std::unique_ptr<storage::File>> file = files_.Open(path, storage::FileSystem::Mode::kRead);
  files_.Unlink(path).IgnoreError();
  if (!file.ok()) return dropped(file.status());
  try {
    senders_.push_back(std::async(std::launch::async, [this, file = *std::move(file), bytes, id, sink = std::move(sink)] {
      SendSnapshot(*file, bytes, id, sink);
    }));
  } catch (const std::system_error& error) {  // there is no thread to be had
    return dropped(absl::ResourceExhaustedError(error.what()));
  }
  return absl::OkStatus();
}

void Persistence::Impl::SendSnapshot(storage::File& file, uint64_t bytes, uint64_t id, const ReplicaSink& sink) {
  std::deque<std::weak_ptr<const std::string>> ahead;  // parts that are there until they have been sent
  journal_.feed().BeginSnapshot(id, absl::StrCat("$", bytes, "\r\n"));
  for (uint64_t at = 0; at < bytes;) {
    absl::StatusOr<std::string> part = file.ReadAt(at, kReadBytes);
    const bool ended = senders_end_.load(std::memory_order_relaxed);
    if (ended || !part.ok() || part->empty() || !sink.alive()) {
      sink.kill();
      return journal_.feed().Drop(id);
    }
    at += part->size();
    auto shared = std::make_shared<const std::string>(*std::move(part));
    ahead.emplace_back(shared);
    sink.send(std::move(shared), storage::kNoLsn);
    while (ahead.size() >= kPartsAhead && sink.alive() && !senders_end_.load(std::memory_order_relaxed)) {
      if (ahead.front().expired())
        ahead.pop_front();
      else
        std::this_thread::sleep_for(kLookAgain);
    }
  }
  journal_.feed().Begin(id);
  LogNotice(absl::StrCat("Synchronization with replica succeeded: ", bytes, " bytes"));
}

// Effects are made no longer than somebody wants them.
void Persistence::Impl::TendReplicas() {
  if (!journal_.feed().wanted()) return;
  const auto now = steady_clock::now();
  if (now - tended_ < kTendEvery) return;
  tended_ = now;
  const std::unique_lock<std::mutex> feeding(feeding_mutex_, std::try_to_lock);
  if (!feeding.owns_lock() || journal_.feed().StillWanted()) return;
  store_->SetLogging(log_on());
}

}  // namespace idemd::server

// The thread that frees flushed tables.
#include "storage/graveyard.h"

#include <system_error>
#include <utility>

namespace idemd::storage {

Graveyard::~Graveyard() {
  if (worker_.joinable()) worker_.join();
  for (Table* table : TakeAll()) delete table;
}

void Graveyard::Bury(Table* table) {
  MutexLock lock(mutex_);
  buried_.push_back(table);
}

std::vector<Table*> Graveyard::TakeAll() {
  MutexLock lock(mutex_);
  return std::exchange(buried_, {});
}

void Graveyard::Work() {
  if (working_.load(std::memory_order_acquire)) return;
  std::vector<Table*> tables = TakeAll();
  if (tables.empty()) return;
  if (worker_.joinable()) worker_.join();
  working_.store(true, std::memory_order_relaxed);
  const auto work = [this, tables = std::move(tables)] {
    for (Table* table : tables) delete table;
    working_.store(false, std::memory_order_release);
  };
  try {
    worker_ = std::thread(work);
  } catch (const std::system_error&) {  // no thread is to be had
    work();
  }
}

}  // namespace idemd::storage

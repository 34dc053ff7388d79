// When a key was used, or how often: what eviction chooses by.
#include <algorithm>

#include "storage/shard.h"
#include "storage/store.h"
#include "storage/token/token.h"
#include "storage/use_count.h"

namespace idemd::storage {

void Unit::CountUse(Entry& entry) {
  entry.touch(UseOnce(entry.access(), store_.impl_->coarse_s.load(std::memory_order_relaxed), store_.counting(), RandomU64()));
}

// A value that takes the place of another goes on with its count.
void Unit::NoteFirstUse(Entry& fresh, const Entry* old) {
  const uint32_t now_s = store_.impl_->coarse_s.load(std::memory_order_relaxed);
  if (!store_.CountsUses()) [[likely]]
    return fresh.touch(now_s);
  const uint32_t before = old == nullptr ? 0 : old->access();
  fresh.touch(before == 0 ? PackUses(now_s, kFirstUses) : UseOnce(before, now_s, store_.counting(), RandomU64()));
}

void Unit::SetIdle(DbIndex db, const HashedKey& key, int64_t idle_s) {
  if (store_.CountsUses()) return;
  const Item item = LiveItem(ShardOf(key), db, key);
  const int64_t now_s = store_.impl_->coarse_s.load(std::memory_order_relaxed);
  if (item.entry != nullptr) item.entry->touch(static_cast<uint32_t>(std::max<int64_t>(now_s - std::min(idle_s, now_s), 1)));
}

void Unit::SetUses(DbIndex db, const HashedKey& key, uint8_t uses) {
  if (!store_.CountsUses()) return;
  const Item item = LiveItem(ShardOf(key), db, key);
  if (item.entry != nullptr) item.entry->touch(PackUses(store_.impl_->coarse_s.load(std::memory_order_relaxed), uses));
}

uint8_t Unit::Uses(const KeyView& view) const {
  return UsesNow(view.access, store_.impl_->coarse_s.load(std::memory_order_relaxed), store_.counting());
}

}  // namespace idemd::storage

// Registers prefixes once they are common.
#include "storage/key/prefixes.h"

#include <cstring>

#include "storage/key/hashed_key.h"

namespace idemd::storage {

Prefixes::Prefixes() { entries_[kEmptyPrefixId].hash = PrefixHash({}); }

uint8_t Prefixes::FindHashed(absl::string_view prefix, uint64_t hash) const {
  return index_.Find(hash, [&](uint8_t id) { return At(id) == prefix; });
}

uint8_t Prefixes::Find(absl::string_view prefix) const {
  if (prefix.empty()) return kEmptyPrefixId;
  if (prefix.size() > kPrefixBytesMax) return 0;
  return FindHashed(prefix, PrefixHash(prefix));
}

uint8_t Prefixes::Id(absl::string_view prefix) {
  if (prefix.empty()) return kEmptyPrefixId;
  if (prefix.size() > kPrefixBytesMax) return 0;
  const uint64_t hash = PrefixHash(prefix);
  const uint8_t id = FindHashed(prefix, hash);
  if (id != 0) return id;
  // Relaxed: it only saves work; Register() looks at used_.
  if (full_.load(std::memory_order_relaxed) || !sightings_.Add(hash)) return 0;
  return Register(prefix, hash);
}

uint8_t Prefixes::Register(absl::string_view prefix, uint64_t hash) {
  MutexLock lock(mu_);
  const uint8_t known = FindHashed(prefix, hash);  // [P2] another thread may have come first
  if (known != 0 || used_ == kPrefixIdMax) return known;
  const uint8_t id = ++used_;
  Entry& entry = entries_[id];
  entry.hash = hash;
  entry.bytes = static_cast<uint8_t>(prefix.size());
  std::memcpy(entry.text.data(), prefix.data(), prefix.size());
  index_.Add(hash, id);  // [P1] whole before seen
  if (used_ == kPrefixIdMax) full_.store(true, std::memory_order_relaxed);
  return id;
}

}  // namespace idemd::storage

// Registers shapes once they are common.
#include "storage/key/shapes.h"

#include <cstring>

#include "storage/key/hashed_key.h"

#define XXH_INLINE_ALL  // values are short: the whole hash is a dozen instructions
#include "xxhash.h"

namespace idemd::storage {
namespace {

// States of the native commands hold fences and times: no two are alike, and they change in place.
bool IsNativeState(absl::string_view value) {
  return value.size() >= 5 && std::memcmp(value.data(), "idem/", 5) == 0;
}

template <class Word>
uint64_t Load(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

// By size, with loads that overlap: copying a few bytes by a loop or a call would cost more than
// all the rest.
Shapes::PackedValue Shapes::Pack(absl::string_view value) {
  const char* const at = value.data();
  const size_t size = value.size();
  uint64_t low = 0;
  uint64_t high = 0;
  if (size >= 8) {
    low = Load<uint64_t>(at);
    high = Load<uint64_t>(at + size - 8) >> 8 >> (15 - size) * 8;
  } else if (size >= 4) {
    low = Load<uint32_t>(at) | Load<uint32_t>(at + size - 4) << (size - 4) * 8;
  } else if (size > 0) {
    low = Load<uint8_t>(at) | Load<uint8_t>(at + size / 2) << size / 2 * 8 |
          Load<uint8_t>(at + size - 1) << (size - 1) * 8;
  }
  return {low, high | uint64_t{size} << 56};
}

bool Shapes::MakeSought(absl::string_view prefix, TailKind kind, absl::string_view value,
                        Sought* sought) {
  if (kind == TailKind::kNone || prefix.size() > kPrefixBytesMax ||
      value.size() > kShapeValueBytesMax || IsNativeState(value)) {
    return false;
  }
  constexpr uint64_t kKindFactor = 0xC2B2AE3D27D4EB4F;  // odd, with bits all over
  sought->prefix = prefix;
  sought->prefix_hash = PrefixHash(prefix);
  sought->kind = kind;
  sought->value = value;
  sought->packed = Pack(value);
  sought->hash =
      XXH3_64bits_withSeed(sought->packed.data(), sizeof(PackedValue),
                           sought->prefix_hash ^ static_cast<uint64_t>(kind) * kKindFactor);
  return true;
}

Shapes::Shapes() {
  for (absl::string_view value : {"1", "0", "", "OK"}) {
    Sought sought;
    if (MakeSought({}, TailKind::kUuid, value, &sought)) Register(sought);
  }
}

uint8_t Shapes::FindSought(const Sought& sought) const {
  return index_.Find(sought.hash, [&](uint8_t id) {
    const Shape& at = shapes_[id];
    return at.kind == sought.kind && texts_[id].value == sought.packed &&
           at.prefix == sought.prefix;
  });
}

uint8_t Shapes::Find(absl::string_view prefix, TailKind kind, absl::string_view value) const {
  Sought sought;
  return MakeSought(prefix, kind, value, &sought) ? FindSought(sought) : 0;
}

uint8_t Shapes::Id(absl::string_view prefix, TailKind kind, absl::string_view value) {
  Sought sought;
  if (!MakeSought(prefix, kind, value, &sought)) return 0;
  const uint8_t id = FindSought(sought);
  if (id != 0) return id;
  // Relaxed: it only saves work; Register() looks at used_.
  if (full_.load(std::memory_order_relaxed) || !sightings_.Add(sought.hash)) return 0;
  return Register(sought);
}

uint8_t Shapes::Register(const Sought& sought) {
  MutexLock lock(mu_);
  const uint8_t known = FindSought(sought);  // [P2] another thread may have come first
  if (known != 0 || used_ == kShapeIdMax) return known;
  const uint8_t id = ++used_;
  Text& text = texts_[id];
  sought.prefix.copy(text.prefix.data(), text.prefix.size());
  text.value = sought.packed;
  shapes_[id] = {.prefix = {text.prefix.data(), sought.prefix.size()},
                 .prefix_hash = sought.prefix_hash,
                 .kind = sought.kind,
                 .value = {reinterpret_cast<const char*>(text.value.data()), sought.value.size()}};
  index_.Add(sought.hash, id);  // [P1] whole before seen
  if (used_ == kShapeIdMax) full_.store(true, std::memory_order_relaxed);
  return id;
}

}  // namespace idemd::storage

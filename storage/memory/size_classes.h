// Which sizes the slabs have, and in blocks of how many pages: waste in an object and at the end of
// a block stay small.
//
//   bytes        16 .. 256    .. 512   .. 1024   .. 8184
//   step         8            16       32        a 64 KiB block divided by 62, 58, ... 9, 8
//   block        16 KiB       16 KiB   32 KiB    64 KiB
//
// Powers of two above 1 KiB would leave up to an eighth of a block unused beside its header;
// dividing the block leaves less than 64 bytes. Small blocks matter since each of 64 shards has one
// partly used block per class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace idemd::storage {

inline constexpr size_t kBlockHeaderBytes = 64;
inline constexpr size_t kSlabBytesMax = 8184;  // an eighth of a 64 KiB block without its header
inline constexpr size_t kObjectBytesMin = 16;

struct SizeClassSpec {
  uint32_t bytes = 0;        // a multiple of 8
  uint32_t block_bytes = 0;  // a power of two, and the block's alignment
  uint32_t capacity = 0;     // objects per block
};

namespace size_classes_internal {

// Objects per 64 KiB block above 1 KiB: each at most about 7 % fewer than the one before, while
// whole numbers allow.
inline constexpr std::array kParts = {62, 58, 54, 50, 46, 43, 40, 37, 34, 31, 29, 27, 25, 23,
                                      21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  8};
inline constexpr uint32_t kFine = (256 - 16) / 8 + 1;
inline constexpr uint32_t kMiddle = (512 - 256) / 16;
inline constexpr uint32_t kCoarse = (1024 - 512) / 32;
inline constexpr uint32_t kCount = kFine + kMiddle + kCoarse + kParts.size();

constexpr std::array<SizeClassSpec, kCount> MakeSpecs() {
  std::array<SizeClassSpec, kCount> specs{};
  uint32_t n = 0;
  const auto add = [&](uint32_t bytes, uint32_t block_bytes) {
    specs[n++] = {bytes, block_bytes,
                  static_cast<uint32_t>((block_bytes - kBlockHeaderBytes) / bytes)};
  };
  for (uint32_t bytes = 16; bytes <= 256; bytes += 8) add(bytes, 16 << 10);
  for (uint32_t bytes = 272; bytes <= 512; bytes += 16) add(bytes, 16 << 10);
  for (uint32_t bytes = 544; bytes <= 1024; bytes += 32) add(bytes, 32 << 10);
  for (const int parts : kParts)
    add(static_cast<uint32_t>((65536 - kBlockHeaderBytes) / static_cast<uint32_t>(parts)) & ~7u,
        64 << 10);
  return specs;
}
inline constexpr std::array<SizeClassSpec, kCount> kSpecs = MakeSpecs();

constexpr std::array<uint8_t, kSlabBytesMax / 8 + 1> MakeClassOfWords() {
  std::array<uint8_t, kSlabBytesMax / 8 + 1> of{};
  uint8_t number = 0;
  for (uint32_t words = 0; words < of.size(); ++words) {
    while (kSpecs[number].bytes < words * 8) ++number;
    of[words] = number;
  }
  return of;
}
inline constexpr std::array<uint8_t, kSlabBytesMax / 8 + 1> kClassOfWords = MakeClassOfWords();

}  // namespace size_classes_internal

inline constexpr uint32_t kSizeClasses = size_classes_internal::kCount;

constexpr const SizeClassSpec& SizeClassAt(uint32_t number) {
  return size_classes_internal::kSpecs[number];
}
// bytes <= kSlabBytesMax.
constexpr uint32_t SizeClassOf(size_t bytes) {
  return size_classes_internal::kClassOfWords[(bytes + 7) / 8];
}

// The same without the table: Free() wants the mask at once.
constexpr size_t BlockBytesFor(size_t bytes) {
  return bytes <= 512 ? 16 << 10 : bytes <= 1024 ? 32 << 10 : 64 << 10;
}

// What malloc takes for a large object with its prefix: as jemalloc says where the process runs on
// it, else glibc's rounding.
size_t LargeClassBytes(size_t bytes);
inline constexpr size_t kLargePrefixBytes = 16;

inline size_t ClassBytes(size_t bytes) {
  return bytes <= kSlabBytesMax ? SizeClassAt(SizeClassOf(bytes)).bytes : LargeClassBytes(bytes);
}

static_assert(BlockBytesFor(512) == SizeClassAt(SizeClassOf(512)).block_bytes &&
              BlockBytesFor(513) == SizeClassAt(SizeClassOf(513)).block_bytes &&
              BlockBytesFor(1024) == SizeClassAt(SizeClassOf(1024)).block_bytes &&
              BlockBytesFor(1025) == SizeClassAt(SizeClassOf(1025)).block_bytes);
static_assert(SizeClassAt(kSizeClasses - 1).bytes == kSlabBytesMax);
static_assert(SizeClassOf(0) == 0 && SizeClassOf(16) == 0 && SizeClassOf(17) == 1);

}  // namespace idemd::storage

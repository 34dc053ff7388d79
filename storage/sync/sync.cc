// Where the memory of lock-free structures comes from.
#include "storage/sync/sync.h"

#include <new>

#include "storage/memory/page_pool.h"

namespace idemd::storage {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr std::align_val_t kLine{64};

// Under a sanitizer each object is an allocation of its own, so that a use after free is seen.
#if defined(IDEMD_SANITIZED) || defined(__SANITIZE_THREAD__)
constexpr bool kPages = false;
#else
constexpr bool kPages = true;
#endif

bool FromPages(size_t bytes) { return kPages && bytes >= kPageBytes; }
uint32_t Pages(size_t bytes) { return static_cast<uint32_t>((bytes + kPageBytes - 1) / kPageBytes); }

}  // namespace

void* RealSync::Allocate(size_t bytes) {
  return FromPages(bytes) ? ProcessPages().Allocate(Pages(bytes), 1, PagePool::Contents::kAny)
                          : ::operator new(bytes, kLine);
}

void RealSync::Free(void* at, size_t bytes) {
  FromPages(bytes) ? ProcessPages().Free(at, Pages(bytes)) : ::operator delete(at, kLine);
}

}  // namespace idemd::storage

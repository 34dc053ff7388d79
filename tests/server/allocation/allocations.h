// The allocations of this test program: counted, or made to fail.
//
// They are those of operator new, and of malloc, calloc and realloc in what is linked statically: all of idemd's own, and its interpreter's.
// Threads   Any; FailAt(), Count() and Stop() while nobody else allocates that minds.
#pragma once

#include <cstdint>

namespace idemd::testing::allocations {

// Whether this build can count them: with a sanitizer, which has an allocator of its own, it cannot.
bool CanCount();
// From now on the n-th fails, and those behind it if `all`.
void FailAt(int64_t n, bool all);
// From now on they are counted, and none fails.
void Count();
void Stop();
// Between FailAt() or Count(), and Stop().
int64_t Seen();

}  // namespace idemd::testing::allocations

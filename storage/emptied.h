// Hash tables keep the slots that they once needed.
#pragma once

#include <cstddef>

namespace idemd::storage {

// After an erase: the slots go with the last entry, unless they are few enough to be kept for what
// comes next. Allocates nothing.
template <typename FlatTable>
void FreeIfEmptied(FlatTable& table) {
  constexpr size_t kKeptSlots = 127;
  if (table.empty() && table.capacity() > kKeptSlots) table = FlatTable();
}

}  // namespace idemd::storage

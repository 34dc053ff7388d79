// A collection as text that is the same for equal ones, however they are kept in memory.
#pragma once

#include <string>

#include "storage/collection/collection.h"

namespace idemd::testing {

// Hashes and sets in the order of their bytes; of streams everything but when a consumer last asked
// for something, which no log tells.
std::string Shown(const storage::Collection& collection);

}  // namespace idemd::testing

// `numkeys key [key ...] LEFT|RIGHT [COUNT count]`: what LMPOP and its kin have behind their name.
#pragma once

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/commands/context.h"
#include "storage/store.h"

namespace idemd::server {

struct PopWords {
  absl::InlinedVector<storage::HashedKey, 4> keys;
  bool second = false;  // the second one of the two ends
  size_t count = 1;
};

// Reads from words[at] on; `first_end` and `second_end` in small letters. False: the error was written.
[[nodiscard]] bool ReadPopWords(Context& c, size_t at, absl::string_view first_end, absl::string_view second_end,
                                PopWords* pop);

}  // namespace idemd::server

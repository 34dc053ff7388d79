// The words of SORT and SORT_RO.
//
// Lifetime  as the words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/commands/context.h"

namespace idemd::server {

struct SortOptions {
  bool descending = false;
  bool alpha = false;
  bool sorts = true;  // not with BY and a pattern without a star
  int64_t limit_start = 0;
  int64_t limit_count = -1;
  bool has_by = false;
  absl::string_view by;
  std::vector<absl::string_view> gets;
  size_t store = 0;  // the position of the key, 0: none

  // Whether other keys are looked at, which only the elements name.
  bool follows_patterns() const;
};

// False: the error was written.
[[nodiscard]] bool ReadSortOptions(Context& c, bool may_store, SortOptions* options);
// The key, and that of STORE, for COMMAND GETKEYS.
bool FindSortKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions);

}  // namespace idemd::server

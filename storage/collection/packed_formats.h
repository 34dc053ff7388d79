// The packed forms in which older versions of Redis keep small collections in RDB files: ziplists, zipmaps, intsets.
//
// Source    redis/src/ziplist.c, zipmap.c and intset.c of versions 2.6 to 7.0 (the descriptions of the formats).
// Threads   any.
// Errors    false: the bytes are not of that format through and through. `each` may have been called by then.
// Lifetime  what `each` gets is good during the call.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace idemd::storage {

using EachText = absl::FunctionRef<void(absl::string_view text)>;

[[nodiscard]] bool ReadListpack(absl::string_view bytes, EachText each);
[[nodiscard]] bool ReadZiplist(absl::string_view bytes, EachText each);
// A field, its value, the next field, ...
[[nodiscard]] bool ReadZipmap(absl::string_view bytes, EachText each);
// Ascending, without repetition.
[[nodiscard]] bool ReadIntset(absl::string_view bytes, absl::FunctionRef<void(int64_t number)> each);

}  // namespace idemd::storage

// The words of stream commands: IDs, intervals and what is to be trimmed, each with the error that Redis gives.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/commands/context.h"
#include "storage/collection/stream.h"

namespace idemd::server {

using StreamIds = absl::InlinedVector<storage::StreamId, 8>;

// How an ID may be written, beside "ms" and "ms-seq".
enum class IdForm : uint8_t {
  kPlain,
  kOrEnds,  // "-" and "+": the first and the last one there can be
  kOrAuto,  // "ms-*": the next one of this millisecond
};

// "ms" alone stands for ms-missing_seq. False: it is no ID. `auto_seq` is asked for with kOrAuto.
[[nodiscard]] bool ParseStreamId(absl::string_view text, IdForm form, uint64_t missing_seq, storage::StreamId* id,
                                 bool* auto_seq = nullptr);
// The same for words[i]. False: the error was written.
[[nodiscard]] bool ReadStreamId(Context& c, size_t i, IdForm form, uint64_t missing_seq, storage::StreamId* id,
                                bool* auto_seq = nullptr);
// All words from `first` on.
[[nodiscard]] bool ReadStreamIds(Context& c, size_t first, StreamIds* ids);
// The ends of an interval, an ID behind "(" being left out.
[[nodiscard]] bool ReadRangeStart(Context& c, size_t i, storage::StreamId* id);
[[nodiscard]] bool ReadRangeEnd(Context& c, size_t i, storage::StreamId* id);

// The options before the ID of XADD, or those of XTRIM.
struct TrimWords {
  storage::StreamTrim trim;
  bool no_mkstream = false;
  // XADD's ID.
  size_t id_at = 0;
  bool auto_id = false;
  bool auto_seq = false;
  storage::StreamId id;
};
// False: the error was written.
[[nodiscard]] bool ReadTrimWords(Context& c, bool of_xadd, TrimWords* words);

// When a node is full, as it is set now.
storage::Stream::NodeLimits NodeLimitsNow(const Context& c);

}  // namespace idemd::server

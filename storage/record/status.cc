// The state word of a record at a time.
#include "storage/record/life.h"

namespace idemd::storage {

StatusWord StatusAt(const Record& record, int64_t now_ms) {
  switch (record.state) {
    case RecordState::kFailed:
      return StatusWord::kFailed;
    case RecordState::kDone:
      return StatusWord::kDone;
    case RecordState::kConsumed:
      return StatusWord::kConsumed;
    case RecordState::kPending:
      break;
  }
  // A released claim is free whatever its lease says, under STOP too: nothing happened that needs a
  // look.
  if (Released(record)) return StatusWord::kLapsed;
  if (record.lease_end_ms > now_ms) return StatusWord::kPending;
  return record.stop ? StatusWord::kUnknown : StatusWord::kLapsed;
}

const char* StatusWordName(StatusWord word) {
  switch (word) {
    case StatusWord::kIssued:
      return "issued";
    case StatusWord::kPending:
      return "pending";
    case StatusWord::kLapsed:
      return "lapsed";
    case StatusWord::kUnknown:
      return "unknown";
    case StatusWord::kFailed:
      return "failed";
    case StatusWord::kDone:
      return "done";
    case StatusWord::kConsumed:
      return "consumed";
  }
  return "";
}

}  // namespace idemd::storage

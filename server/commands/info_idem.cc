// INFO idem: the totals of the native commands, and the clock that they decide by.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/admin/native_stats.h"
#include "server/commands/info_sections.h"

namespace idemd::server {
namespace {

void AppendClock(storage::EffectiveClock& clock, std::string& out) {
  const storage::ClockState state = clock.State();
  absl::StrAppend(&out, "clock_effective_ms:", state.effective_ms,
                  "\r\nclock_wall_ms:", state.wall_ms,
                  "\r\nclock_difference_ms:", state.difference_ms,
                  "\r\nclock_suspect:", state.suspect ? 1 : 0,
                  "\r\nclock_jumps_seen:", clock.jumps_seen(), "\r\n");
}

// "tokens_issued": the name that IDEM.STATS gives, as a field of INFO.
std::string FieldName(NativeCounter counter) {
  return absl::StrReplaceAll(NativeCounterName(counter), {{"-", "_"}});
}

}  // namespace

void InfoIdem(Context& c, std::string& out) {
  const NativeTotals totals = c.services.native.Totals();
  for (size_t i = 0; i < kNativeCounters; ++i) {
    absl::StrAppend(&out, FieldName(static_cast<NativeCounter>(i)), ":", totals.values[i], "\r\n");
  }
  absl::StrAppend(&out, "duplicates_blocked:", totals.duplicates_blocked(), "\r\n");
  if (c.services.clock != nullptr) AppendClock(*c.services.clock, out);
}

}  // namespace idemd::server

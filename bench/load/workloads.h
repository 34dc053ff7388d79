// What can be measured: by name, the requests it sends, which keys they are about, and what must be
// there before.
//
// Everything that idemd offers stands beside its equivalent for Redis and Valkey: a plain command,
// or a Lua script that a service would use today.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::bench {

// Which numbers the requests are about.
enum class Order : uint8_t {
  kRandom,    // any of the first -r ones, again and again
  kInOrder,   // each of the first -r ones once
  kNew,       // numbers that were never used
  kPrepared,  // each of those that were prepared once, shuffled
  kRepeated,  // any of those that were prepared, again and again
  kStorm,     // new ones, and with --duplicates some recent one again
};

// What of a reply is kept for a later step about the same number.
enum class Capture : uint8_t { kNothing, kToken, kFence };

struct Step {
  std::vector<absl::string_view> words;  // none: `line` is sent as it is
  // How a reply may begin; anything else is counted as unexpected. Empty: anything.
  std::vector<absl::string_view> expected = {};
  Capture capture = Capture::kNothing;
  absl::string_view line = "";
  absl::string_view memcached = "";  // what asks memcached for the same; "" where nothing does
};

struct Workload {
  absl::string_view name;
  absl::string_view summary;
  Order order = Order::kRandom;
  // Sent one after another about the same numbers, each for a whole pipeline; with `mixed` one of
  // two is drawn for every request.
  std::vector<Step> steps = {};
  std::vector<Step> prepare = {};  // passes over the numbers before, outside the measurement
  std::vector<Step> clean = {};    // ... and after it
  bool mixed = false;
};

struct Script {
  absl::string_view name;  // __name__ in words is its digest
  absl::string_view text;
};

absl::Span<const Workload> Workloads();
absl::Span<const Script> Scripts();
// nullptr when there is none of that name.
const Workload* FindWorkload(absl::string_view name);
// True when every step has its equivalent for memcached.
bool SuitsMemcached(const Workload& workload);
// True for workloads whose requests use what earlier replies said.
bool UsesCaptures(const Workload& workload);

}  // namespace idemd::bench

// Measurements as text, as CSV, as JSON and as a picture.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/load/measurement.h"

namespace idemd::bench {

// A paragraph, and a line; both end with a line feed.
std::string TextReport(const Measurement& measured);
std::string QuietReport(const Measurement& measured);
// redis-benchmark's columns in its order, then ours.
std::string CsvHeader();
std::string CsvLine(const Measurement& measured);
std::string JsonReport(absl::Span<const Measurement> all);
// Latency (logarithmic) over percentile (as distance from 100 %, logarithmic), a line for each
// measurement.
std::string SvgReport(absl::Span<const Measurement> all, absl::string_view title);

// What went wrong, a line for each kind; "" when nothing did.
std::string Faults(const Measurement& measured);

}  // namespace idemd::bench

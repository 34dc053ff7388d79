// LATENCY: events that took too long, and how long each command takes.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/admin/latency.h"
#include "server/admin/settings.h"
#include "server/admin/stats.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

using Event = LatencyMonitor::Event;

constexpr size_t kGraphColumns = 80;
constexpr size_t kGraphRows = 4;

void LatencyHistory(Context& c) {
  Event event;
  c.services.latency.Find(c.words[2], &event);  // no such event: no samples
  c.reply.Array(event.samples.size());
  for (const LatencySample& sample : event.samples) {
    c.reply.Array(2);
    c.reply.Integer(sample.unix_s);
    c.reply.Integer(sample.ms);
  }
}

void LatencyLatest(Context& c) {
  const std::vector<Event> events = c.services.latency.Events();
  c.reply.Array(events.size());
  for (const Event& event : events) {
    c.reply.Array(4);
    c.reply.Bulk(event.name);
    c.reply.Integer(event.samples.back().unix_s);
    c.reply.Integer(event.samples.back().ms);
    c.reply.Integer(event.max_ms);
  }
}

void LatencyReset(Context& c) {
  if (c.words.size() == 2) return c.reply.Integer(static_cast<int64_t>(c.services.latency.Reset()));
  int64_t reset = 0;
  for (absl::string_view name : c.words.subspan(2)) reset += c.services.latency.Reset(name);
  c.reply.Integer(reset);
}

std::string Ago(int64_t seconds) {
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, "m");
  if (seconds < 86'400) return absl::StrCat(seconds / 3600, "h");
  return absl::StrCat(seconds / 86'400, "d");
}

// A column per sample, filled from below; under it the sample's age, written downwards.
void AppendColumns(const std::vector<LatencySample>& samples, int64_t low, int64_t high,
                   std::string& out) {
  const double range = high > low ? static_cast<double>(high - low) : 1.0;
  const int64_t now = static_cast<int64_t>(std::time(nullptr));
  std::vector<std::string> labels;
  size_t label_rows = 0;
  for (const LatencySample& sample : samples) {
    labels.push_back(Ago(std::max<int64_t>(0, now - sample.unix_s)));
    label_rows = std::max(label_rows, labels.back().size());
  }
  for (size_t row = kGraphRows; row-- > 0;) {
    for (const LatencySample& sample : samples) {
      // Half steps: '_' fills the lower half of a cell, '#' more.
      const double height =
          static_cast<double>(sample.ms - low) / range * static_cast<double>(kGraphRows) -
          static_cast<double>(row);
      out += height > 0.5 ? '#' : (height > 0 || row == 0) ? '_' : ' ';
    }
    out += '\n';
  }
  out += '\n';
  for (size_t row = 0; row < label_rows; ++row) {
    for (const std::string& label : labels) out += row < label.size() ? label[row] : ' ';
    out += '\n';
  }
  out += '\n';
}

void LatencyGraph(Context& c) {
  Event event;
  if (!c.services.latency.Find(c.words[2], &event)) {
    return c.reply.Error(absl::StrCat("ERR No samples available for event '", c.words[2], "'"));
  }
  int64_t low = event.samples.front().ms;
  int64_t high = low;
  for (const LatencySample& sample : event.samples) {
    low = std::min(low, sample.ms);
    high = std::max(high, sample.ms);
  }
  std::string graph =
      absl::StrCat(event.name, " - high ", high, " ms, low ", low, " ms (all time high ",
                   event.max_ms, " ms)\n", std::string(kGraphColumns, '-'), "\n");
  for (size_t i = 0; i < event.samples.size(); i += kGraphColumns) {
    const auto first = event.samples.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = event.samples.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                  event.samples.size(), i + kGraphColumns));
    AppendColumns({first, last}, low, high, graph);
  }
  c.reply.Verbatim(graph);
}

// What one event's samples look like, in one line.
std::string Describe(const Event& event) {
  double sum = 0;
  for (const LatencySample& sample : event.samples) sum += static_cast<double>(sample.ms);
  const double count = static_cast<double>(event.samples.size());
  const double average = sum / count;
  double deviation = 0;
  for (const LatencySample& sample : event.samples)
    deviation += std::abs(static_cast<double>(sample.ms) - average);
  const int64_t span = event.samples.back().unix_s - event.samples.front().unix_s;
  return absl::StrFormat(
      "%s: %d latency spikes (average %.0f ms, mean deviation %.0f ms, over %d seconds). Worst all "
      "time event %d ms.",
      event.name, event.samples.size(), average, deviation / count, span, event.max_ms);
}

void LatencyDoctor(Context& c) {
  const int64_t threshold_ms = c.services.latency.threshold_ms.load(std::memory_order_relaxed);
  if (threshold_ms == 0) {
    return c.reply.Verbatim(
        "Latency monitoring is disabled in this server. Switch it on with \"CONFIG SET "
        "latency-monitor-threshold "
        "<milliseconds>\".\n");
  }
  const std::vector<Event> events = c.services.latency.Events();
  if (events.empty()) {
    return c.reply.Verbatim(
        absl::StrCat("Nothing took ", threshold_ms, " ms or longer since the last reset.\n"));
  }
  std::string report = absl::StrCat("These took ", threshold_ms, " ms or longer:\n\n");
  size_t number = 0;
  for (const Event& event : events) absl::StrAppend(&report, ++number, ". ", Describe(event), "\n");
  absl::StrAppend(&report, "\nWhere to look next:\n\n",
                  "- SLOWLOG GET shows the slow commands themselves.\n",
                  "- KEYS, FLUSHALL and SCAN with a large COUNT take time in proportion to the "
                  "keys they visit.\n",
                  "- If no command stands out, the machine may be short of CPU or swapping; "
                  "compare INFO cpu.\n");
  c.reply.Verbatim(report);
}

// The bound of a power of two of 1.024 us, in the whole microseconds that Redis' histograms show
// for it.
int64_t BoundUsec(uint32_t octave) {
  const int64_t ns = int64_t{1024} << octave;
  return (ns + (ns >> 7) - 1) / 1000;
}

void WriteHistogram(const CommandEntry& entry, const CommandTotals& totals,
                    protocol::Writer& reply) {
  reply.Bulk(entry.full_name);
  reply.Map(2);
  reply.Bulk("calls");
  reply.Integer(static_cast<int64_t>(totals.calls));
  reply.Bulk("histogram_usec");
  const size_t mark = reply.Mark();
  size_t pairs = 0;
  int64_t cumulative = 0;
  for (uint32_t octave = 0; octave < LatencyClasses::kOctaves; ++octave) {
    int64_t here = 0;
    for (uint32_t i = 0; i < LatencyClasses::kPerOctave; ++i) {
      here += static_cast<int64_t>(totals.classes[octave * LatencyClasses::kPerOctave + i]);
    }
    if (here == 0) continue;
    cumulative += here;
    reply.Integer(BoundUsec(octave));
    reply.Integer(cumulative);
    ++pairs;
  }
  reply.InsertMap(mark, pairs);
}

void LatencyHistogram(Context& c) {
  std::vector<const CommandEntry*> entries;
  if (c.words.size() == 2) {
    const auto all = c.services.commands.all();
    entries.assign(all.begin(), all.end());
  }
  for (absl::string_view name : c.words.subspan(2)) {
    const CommandEntry* entry = c.services.commands.FindFullName(name);
    if (entry == nullptr) continue;
    entries.push_back(entry);
    entries.insert(entries.end(), entry->subcommands.begin(), entry->subcommands.end());
  }
  const size_t mark = c.reply.Mark();
  size_t written = 0;
  for (const CommandEntry* entry : entries) {
    if (!c.services.settings.latency_tracking.load(std::memory_order_relaxed)) break;
    const CommandTotals totals = c.services.stats.Command(entry->ordinal);
    if (totals.calls == 0) continue;
    WriteHistogram(*entry, totals, c.reply);
    ++written;
  }
  c.reply.InsertMap(mark, written);
}

constexpr ArgSpec kEventArgs[] = {{.name = "event"}};
constexpr ArgSpec kEventsArgs[] = {{.name = "event", .optional = true, .multiple = true}};
constexpr ArgSpec kCommandsArgs[] = {{.name = "command", .optional = true, .multiple = true}};

constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr CommandSpec kSubcommands[] = {
    {.name = "DOCTOR",
     .handler = &LatencyDoctor,
     .arity = 2,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "A report for people on what took too long."},
    {.name = "GRAPH",
     .handler = &LatencyGraph,
     .arity = 3,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "Draws the samples of one event.",
     .args = kEventArgs},
    {.name = "HELP",
     .handler = &ReplyHelp,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "Prints this help."},
    {.name = "HISTOGRAM",
     .handler = &LatencyHistogram,
     .arity = -2,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of commands with samples",
     .summary = "How many calls of each command took at most 1, 2, 4 ... microseconds.",
     .args = kCommandsArgs},
    {.name = "HISTORY",
     .handler = &LatencyHistory,
     .arity = 3,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "Time and milliseconds of one event's samples.",
     .args = kEventArgs},
    {.name = "LATEST",
     .handler = &LatencyLatest,
     .arity = 2,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "The latest sample of each event."},
    {.name = "RESET",
     .handler = &LatencyReset,
     .arity = -2,
     .flags = kFlags,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "Forgets the samples of the named events, or of all.",
     .args = kEventsArgs}};

constexpr CommandSpec kLatencyCommands[] = {{.name = "LATENCY",
                                             .arity = -2,
                                             .group = Group::kServer,
                                             .since = "2.8.13",
                                             .complexity = "Depends on subcommand.",
                                             .summary = "Commands about latency.",
                                             .subcommands = kSubcommands}};

}  // namespace

absl::Span<const CommandSpec> LatencyCommands() { return kLatencyCommands; }

}  // namespace idemd::server

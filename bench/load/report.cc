// Text, CSV and JSON.
#include "bench/load/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace idemd::bench {
namespace {

constexpr double kPercentiles[] = {50, 90, 95, 99, 99.9, 99.99};

double Ms(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }
double Ms(const Histogram& histogram, double percentile) {
  return Ms(histogram.Quantile(percentile / 100));
}

// Digits in groups of three.
std::string Grouped(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      // Replies are bytes; JSON wants characters, so a byte stands as the character of that number.
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A field of CSV, in quotes as redis-benchmark prints it; quotes within are doubled.
std::string CsvQuoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

void AppendFaults(const PassResult& result, absl::string_view where, std::string* out) {
  const auto line = [&](uint64_t count, absl::string_view what) {
    if (count != 0) absl::StrAppend(out, "  ", where, Grouped(count), " ", what, "\n");
  };
  line(result.errors, "errors");
  line(result.unexpected(), "replies that the test does not expect");
  line(result.unanswered(), "requests without a reply");
  line(result.lost_connections, "connections lost");
  for (const std::string& text : result.complaints) absl::StrAppend(out, "    ", text, "\n");
}

std::string OutcomesText(const PassResult& result) {
  std::vector<std::string> parts;
  for (const Outcomes& step : result.outcomes) {
    for (const Outcomes::Entry& entry : step.entries()) {
      parts.push_back(absl::StrCat(entry.head.substr(0, 24), " ", Grouped(entry.times)));
    }
    if (step.others() != 0) parts.push_back(absl::StrCat("others ", Grouped(step.others())));
  }
  return absl::StrJoin(parts, ", ");
}

std::string LatencyJson(const Histogram& histogram) {
  std::string out = absl::StrFormat("{\"mean\": %.6f, \"min\": %.6f", histogram.mean() * 1e-6,
                                    Ms(histogram.min()));
  for (const double p : kPercentiles)
    absl::StrAppendFormat(&out, ", \"p%g\": %.6f", p, Ms(histogram, p));
  return absl::StrFormat("%s, \"max\": %.6f}", out, Ms(histogram.max()));
}

}  // namespace

std::string Faults(const Measurement& measured) {
  std::string out;
  AppendFaults(measured.around, "before or after: ", &out);
  AppendFaults(measured.result, "", &out);
  return out;
}

std::string TextReport(const Measurement& m) {
  const PassResult& r = m.result;
  std::string out =
      absl::StrFormat("%s: %s requests in %.2f s, %d connections, pipeline %d, %s", m.name,
                      Grouped(r.replies), m.seconds, m.connections, m.pipeline,
                      m.threads == 1 ? "1 thread" : absl::StrCat(m.threads, " threads"));
  if (m.rate > 0)
    absl::StrAppendFormat(&out, ", %s a second due", Grouped(static_cast<uint64_t>(m.rate)));
  absl::StrAppendFormat(&out, "\n  %s requests/s\n  latency ms: mean %.3f",
                        Grouped(static_cast<uint64_t>(m.requests_per_second())),
                        r.latency.mean() * 1e-6);
  for (const double p : kPercentiles)
    absl::StrAppendFormat(&out, "  p%g %.3f", p, Ms(r.latency, p));
  absl::StrAppendFormat(&out, "  max %.3f\n", Ms(r.latency.max()));
  absl::StrAppendFormat(&out, "  longest wait of a connection for its next reply: %.3f ms\n", static_cast<double>(r.longest_silence_ns) * 1e-6);
  if (m.rate > 0) {
    absl::StrAppendFormat(&out, "  sent after it was due, ms: p50 %.3f  p99 %.3f  max %.3f\n",
                          Ms(r.late, 50), Ms(r.late, 99), Ms(r.late.max()));
  }
  if (m.has_server_cpu) {
    absl::StrAppendFormat(
        &out, "  server CPU: %.3f us a request (user %.2f, system %.2f), %.0f %% of a core\n",
        m.server_us(), m.Each(m.server_cpu.user_s), m.Each(m.server_cpu.system_s),
        100 * m.server_cpu.total_s / m.seconds);
  }
  absl::StrAppendFormat(&out, "  own CPU: %.3f us a request, %.0f %% of %s%s\n", m.own_us(),
                        100 * m.own_share(), m.threads == 1 ? "a core" : "the threads' cores",
                        m.own_share() > 0.97 ? ": the generator is the limit" : "");
  absl::StrAppend(&out, "  replies: ", OutcomesText(r), "\n", Faults(m));
  return out;
}

std::string QuietReport(const Measurement& m) {
  std::string out = absl::StrFormat("%s: %.2f requests per second, p50=%.3f msec", m.name,
                                    m.requests_per_second(), Ms(m.result.latency, 50));
  if (m.has_server_cpu) absl::StrAppendFormat(&out, ", server CPU %.3f us", m.server_us());
  return absl::StrCat(out, "\n", Faults(m));
}

std::string CsvHeader() {
  return "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_"
         "ms\","
         "\"p99_latency_ms\",\"max_latency_ms\",\"p99.9_latency_ms\",\"requests\",\"errors\","
         "\"unexpected\","
         "\"unanswered\",\"server_cpu_us\",\"own_cpu_us\"\n";
}

std::string CsvLine(const Measurement& m) {
  const Histogram& l = m.result.latency;
  std::string out = CsvQuoted(m.name);
  absl::StrAppendFormat(&out, ",\"%.2f\"", m.requests_per_second());
  for (const double ms :
       {l.mean() * 1e-6, Ms(l.min()), Ms(l, 50), Ms(l, 95), Ms(l, 99), Ms(l.max()), Ms(l, 99.9)}) {
    absl::StrAppendFormat(&out, ",\"%.3f\"", ms);
  }
  const uint64_t counts[] = {m.result.replies, m.result.errors + m.around.errors,
                             m.result.unexpected() + m.around.unexpected(),
                             m.result.unanswered() + m.around.unanswered()};
  for (const uint64_t count : counts) absl::StrAppend(&out, ",\"", count, "\"");
  absl::StrAppend(&out, ",\"", m.has_server_cpu ? absl::StrFormat("%.4f", m.server_us()) : "",
                  "\"");
  return absl::StrFormat("%s,\"%.4f\"\n", out, m.own_us());
}

std::string JsonReport(absl::Span<const Measurement> all) {
  std::vector<std::string> tests;
  for (const Measurement& m : all) {
    const PassResult& r = m.result;
    std::string out = absl::StrFormat(
        "  {\"test\": %s, \"connections\": %d, \"threads\": %d, \"pipeline\": %d, \"rate\": %g,\n"
        "   \"requests\": %d, \"replies\": %d, \"seconds\": %.6f, \"requests_per_second\": %.2f,\n"
        "   \"errors\": %d, \"unexpected\": %d, \"unanswered\": %d, \"lost_connections\": %d,\n"
        "   \"clean\": %s, \"longest_silence_ms\": %.3f, \"latency_ms\": %s,\n",
        Quoted(m.name), m.connections, m.threads, m.pipeline, m.rate, r.requests, r.replies,
        m.seconds, m.requests_per_second(), r.errors + m.around.errors,
        r.unexpected() + m.around.unexpected(), r.unanswered() + m.around.unanswered(),
        r.lost_connections + m.around.lost_connections, m.clean() ? "true" : "false",
        static_cast<double>(r.longest_silence_ns) * 1e-6, LatencyJson(r.latency));
    if (m.rate > 0) absl::StrAppend(&out, "   \"late_ms\": ", LatencyJson(r.late), ",\n");
    if (m.has_server_cpu) {
      absl::StrAppendFormat(
          &out,
          "   \"server_cpu_us\": %.6f, \"server_cpu_s\": %.6f, \"server_user_s\": %.2f, "
          "\"server_system_s\": %.2f,\n",
          m.server_us(), m.server_cpu.total_s, m.server_cpu.user_s, m.server_cpu.system_s);
    }
    std::vector<std::string> heads, complaints;
    for (const Outcomes& step : r.outcomes) {
      for (const auto& entry : step.entries()) {
        heads.push_back(absl::StrCat("{\"head\": ", Quoted(entry.head),
                                     ", \"times\": ", entry.times,
                                     ", \"expected\": ", entry.expected ? "true" : "false", "}"));
      }
    }
    for (const auto* result : {&m.around, &r}) {
      for (const std::string& text : result->complaints) complaints.push_back(Quoted(text));
    }
    absl::StrAppendFormat(
        &out,
        "   \"own_cpu_us\": %.6f, \"own_cpu_share\": %.4f,\n   \"replies_by_head\": [%s],\n"
        "   \"complaints\": [%s]}",
        m.own_us(), m.own_share(), absl::StrJoin(heads, ", "), absl::StrJoin(complaints, ", "));
    tests.push_back(std::move(out));
  }
  return absl::StrCat("[\n", absl::StrJoin(tests, ",\n"), "\n]\n");
}

}  // namespace idemd::bench

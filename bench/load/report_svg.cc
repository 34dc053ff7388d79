// Latency by percentile as a picture: what a table of five percentiles hides, the tail, is most of
// its width.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "bench/load/report.h"

namespace idemd::bench {
namespace {

constexpr double kWidth = 860, kHeight = 480, kLeft = 78, kRight = 44, kTop = 84, kBottom = 56;
constexpr double kLegendStep = 17;
constexpr const char* kColours[] = {"#1d6fb8", "#c0612b", "#4b8f5a", "#8a5fa8",
                                    "#b3922e", "#5a6570", "#c24a78", "#2f9aa0"};
constexpr const char* kFont = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'";

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Text(double x, double y, absl::string_view anchor, double size, absl::string_view fill,
                 absl::string_view words) {
  return absl::StrFormat(
      "<text x='%.1f' y='%.1f' %s font-size='%g' fill='%s' text-anchor='%s'>%s</text>\n", x, y,
      kFont, size, fill, anchor, Escaped(words));
}

std::string Line(double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#dfe4e8'/>\n", x1,
                         y1, x2, y2);
}

// Where things are: x by the logarithm of one over the share that is slower, y by the logarithm of
// the milliseconds.
class Axes {
 public:
  Axes(double nines, double low_ms, double high_ms, double top)
      : nines_(nines),
        low_(std::floor(std::log10(low_ms))),
        high_(std::max(low_ + 1, std::ceil(std::log10(high_ms)))),
        top_(top) {}
  double X(double slower_share) const {
    return kLeft + (kWidth - kLeft - kRight) * std::min(1.0, -std::log10(slower_share) / nines_);
  }
  double Y(double ms) const {
    const double share = (std::log10(ms) - low_) / (high_ - low_);
    return kHeight - kBottom - (kHeight - kBottom - top_) * std::clamp(share, 0.0, 1.0);
  }
  std::string Grid() const {
    std::string out;
    for (int decade = static_cast<int>(low_); decade <= static_cast<int>(high_); ++decade) {
      const double y = Y(std::pow(10, decade));
      absl::StrAppend(&out, Line(kLeft, y, kWidth - kRight, y),
                      Text(kLeft - 8, y + 4, "end", 11.5, "#1c2530",
                           absl::StrFormat("%g ms", std::pow(10, decade))));
    }
    for (int nine = 0; nine <= static_cast<int>(nines_); ++nine) {
      const double x = X(std::pow(10, -nine));
      const std::string label =
          nine == 0 ? "0 %"
          : nine == 1
              ? "90 %"
              : absl::StrCat("99", nine > 2 ? "." : "",
                             std::string(static_cast<size_t>(std::max(0, nine - 2)), '9'), " %");
      absl::StrAppend(&out, Line(x, top_, x, kHeight - kBottom),
                      Text(x, kHeight - kBottom + 18, "middle", 11.5, "#1c2530", label));
    }
    const double median = X(0.5);
    return absl::StrCat(out, Line(median, top_, median, kHeight - kBottom),
                        Text(median, kHeight - kBottom + 18, "middle", 11.5, "#1c2530", "50 %"));
  }

 private:
  double nines_, low_, high_, top_;
};

}  // namespace

std::string SvgReport(absl::Span<const Measurement> all, absl::string_view title) {
  double low_ms = 1e9, high_ms = 0;
  uint64_t most = 100;
  for (const Measurement& m : all) {
    const Histogram& l = m.result.latency;
    if (l.count() == 0) continue;
    low_ms = std::min(low_ms, std::max(1e-4, static_cast<double>(l.min()) * 1e-6));
    high_ms = std::max(high_ms, static_cast<double>(l.max()) * 1e-6);
    most = std::max(most, l.count());
  }
  if (high_ms == 0) low_ms = high_ms = 1;
  const double top = kTop + kLegendStep * static_cast<double>(all.size() > 1 ? all.size() - 1 : 0);
  // A percentile that less than one reply lies beyond says nothing.
  const double nines = std::clamp(std::floor(std::log10(static_cast<double>(most))), 2.0, 6.0);
  const Axes axes(nines, low_ms, high_ms, top);
  std::string out = absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' viewBox='0 0 %g %g'>\n"
      "<rect width='%g' height='%g' fill='#ffffff'/>\n",
      kWidth, kHeight, kWidth, kHeight, kWidth, kHeight);
  absl::StrAppend(&out, Text(24, 32, "start", 18, "#1c2530", title), axes.Grid(),
                  Text(kWidth - kRight, kHeight - 14, "end", 11.5, "#5a6570",
                       "share of the requests that took no longer"));
  size_t row = 0;
  for (const Measurement& m : all) {
    const char* colour = kColours[row % std::size(kColours)];
    const Histogram& l = m.result.latency;
    std::string points;
    for (double nine = 0; nine <= nines + 1e-9; nine += 0.02) {
      const double slower = std::pow(10, -nine);
      const double ms = std::max(1e-4, static_cast<double>(l.Quantile(1 - slower)) * 1e-6);
      absl::StrAppendFormat(&points, "%.1f,%.1f ", axes.X(slower), axes.Y(ms));
    }
    absl::StrAppendFormat(
        &out, "<polyline points='%s' fill='none' stroke='%s' stroke-width='2'/>\n", points, colour);
    const double y = 58 + kLegendStep * static_cast<double>(row);
    absl::StrAppendFormat(&out, "<rect x='24' y='%.1f' width='14' height='4' fill='%s'/>\n", y - 6,
                          colour);
    absl::StrAppend(
        &out,
        Text(46, y, "start", 11.5, "#1c2530",
             absl::StrFormat("%s, %d connections, pipeline %d: %.0f requests/s, longest %.2f ms",
                             m.name, m.connections, m.pipeline, m.requests_per_second(),
                             static_cast<double>(l.max()) * 1e-6)));
    ++row;
  }
  return out + "</svg>\n";
}

}  // namespace idemd::bench

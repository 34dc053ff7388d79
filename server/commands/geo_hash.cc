// Interleaving, distances on a sphere, and the nine cells around a place.
#include "server/commands/geo_hash.h"

#include <algorithm>
#include <cmath>

namespace idemd::server {
namespace {

constexpr int kSteps = 26;  // bits a coordinate
constexpr double kEarthRadius = 6372797.560856;
constexpr double kMercatorMax = 20037726.37;
constexpr double kRadians = 3.14159265358979323846 / 180;

double Radians(double degrees) { return degrees * kRadians; }
double Degrees(double radians) { return radians / kRadians; }

// Spreads the low 32 bits over the even places.
uint64_t Spread(uint64_t bits) {
  bits &= 0xffffffff;
  bits = (bits | bits << 16) & 0x0000ffff0000ffff;
  bits = (bits | bits << 8) & 0x00ff00ff00ff00ff;
  bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits << 2) & 0x3333333333333333;
  return (bits | bits << 1) & 0x5555555555555555;
}

uint64_t Gather(uint64_t bits) {
  bits &= 0x5555555555555555;
  bits = (bits | bits >> 1) & 0x3333333333333333;
  bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
  bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
  return (bits | bits >> 16) & 0x00000000ffffffff;
}

// How many cells east and north of the corner, at so many bits a coordinate.
struct Cell {
  uint64_t east = 0;
  uint64_t north = 0;
  int steps = 0;

  uint64_t bits() const { return Spread(north) | Spread(east) << 1; }
  // Around the globe where it comes to an end; which the coordinate that does not move may lie on.
  Cell Moved(int to_east, int to_north) const {
    const uint64_t mask = (uint64_t{1} << steps) - 1;
    const auto moved = [mask](uint64_t place, int by) {
      return by == 0 ? place : (place + static_cast<uint64_t>(int64_t{by})) & mask;
    };
    return {moved(east, to_east), moved(north, to_north), steps};
  }
};

struct Bounds {
  double west, south, east, north;
};

Cell CellOf(const GeoPoint& point, int steps, double latitude_max) {
  const auto cells = static_cast<double>(uint64_t{1} << steps);
  const auto place = [&](double value, double max) { return static_cast<uint64_t>((value + max) / (2 * max) * cells); };
  return {place(point.longitude, kLongitudeMax), place(point.latitude, latitude_max), steps};
}

Bounds BoundsOf(const Cell& cell) {
  const auto cells = static_cast<double>(uint64_t{1} << cell.steps);
  const auto edge = [&](uint64_t place, double max) { return -max + static_cast<double>(place) / cells * (2 * max); };
  return {edge(cell.east, kLongitudeMax), edge(cell.north, kLatitudeMax), edge(cell.east + 1, kLongitudeMax),
          edge(cell.north + 1, kLatitudeMax)};
}

// Around the shape, so far as a rectangle of degrees can be: the wider of its two edges counts.
Bounds BoundsOf(const GeoShape& shape) {
  const double height = shape.box ? shape.height / 2 : shape.radius;
  const double width = shape.box ? shape.width / 2 : shape.radius;
  const double north = Degrees(height / kEarthRadius);
  const double far = shape.middle.latitude + (shape.middle.latitude < 0 ? -north : north);
  const double east = Degrees(width / kEarthRadius / std::cos(Radians(far)));
  return {shape.middle.longitude - east, shape.middle.latitude - north, shape.middle.longitude + east,
          shape.middle.latitude + north};
}

// With how many bits a cell is at least as large as the radius; fewer where the meridians come together.
int StepsFor(double radius, double latitude) {
  if (radius == 0) return kSteps;
  int steps = 1;
  for (; radius < kMercatorMax; radius *= 2) ++steps;
  steps -= 2;
  if (std::abs(latitude) > 66) --steps;
  if (std::abs(latitude) > 80) --steps;
  return std::clamp(steps, 1, kSteps);
}

// Whether the cells beside this one reach the bounds of what is looked for.
bool Reaches(const Cell& cell, const Bounds& wanted) {
  return BoundsOf(cell.Moved(0, 1)).north >= wanted.north && BoundsOf(cell.Moved(0, -1)).south <= wanted.south &&
         BoundsOf(cell.Moved(1, 0)).east >= wanted.east && BoundsOf(cell.Moved(-1, 0)).west <= wanted.west;
}

}  // namespace

uint64_t GeoEncode(const GeoPoint& point) { return CellOf(point, kSteps, kLatitudeMax).bits(); }

GeoPoint GeoDecode(double score) {
  const bool fits = score >= 0 && score < 0x1p63;  // anybody may have put any score there
  const uint64_t bits = fits ? static_cast<uint64_t>(score) : 0;
  const Bounds cell = BoundsOf(Cell{Gather(bits >> 1), Gather(bits), kSteps});
  return {std::clamp((cell.west + cell.east) / 2, -kLongitudeMax, kLongitudeMax),
          std::clamp((cell.south + cell.north) / 2, -kLatitudeMax, kLatitudeMax)};
}

std::string GeoLetters(const GeoPoint& point) {
  constexpr char kAlphabet[] = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr double kLatitudeOfLetters = 90;
  const uint64_t bits = CellOf(point, kSteps, kLatitudeOfLetters).bits();
  std::string letters;
  for (int shift = 2 * kSteps - 5; shift >= 0; shift -= 5) letters += kAlphabet[bits >> shift & 31];
  return letters + kAlphabet[0];  // for the two bits that are left
}

double GeoDistance(const GeoPoint& a, const GeoPoint& b) {
  const double south = Radians(a.latitude), north = Radians(b.latitude);
  const double u = std::sin((north - south) / 2);
  const double v = std::sin((Radians(b.longitude) - Radians(a.longitude)) / 2);
  return 2 * kEarthRadius * std::asin(std::sqrt(u * u + std::cos(south) * std::cos(north) * v * v));
}

bool GeoShape::Contains(const GeoPoint& point, double* distance) const {
  if (box) {
    const double east = GeoDistance(point, {middle.longitude, point.latitude});
    const double north = GeoDistance(point, {point.longitude, middle.latitude});
    if (east > width / 2 || north > height / 2) return false;
  }
  *distance = GeoDistance(middle, point);
  return box || *distance <= radius;
}

absl::InlinedVector<GeoSpan, 9> GeoCover(const GeoShape& shape) {
  const Bounds wanted = BoundsOf(shape);
  const double reach = shape.box ? std::sqrt(shape.width / 2 * (shape.width / 2) + shape.height / 2 * (shape.height / 2)) : shape.radius;
  int steps = StepsFor(reach, shape.middle.latitude);
  Cell middle = CellOf(shape.middle, steps, kLatitudeMax);
  if (steps > 1 && !Reaches(middle, wanted)) middle = CellOf(shape.middle, --steps, kLatitudeMax);
  const Bounds own = BoundsOf(middle);
  // Cells that are larger than what is looked for need no neighbours on that side; the largest ones need them all.
  const bool choosy = steps >= 2;
  const bool no_south = choosy && own.south < wanted.south, no_north = choosy && own.north > wanted.north;
  const bool no_west = choosy && own.west < wanted.west, no_east = choosy && own.east > wanted.east;
  constexpr int kAround[9][2] = {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
  absl::InlinedVector<GeoSpan, 9> spans;
  for (const auto& [east, north] : kAround) {
    if ((north < 0 && no_south) || (north > 0 && no_north) || (east < 0 && no_west) || (east > 0 && no_east)) continue;
    const uint64_t bits = middle.Moved(east, north).bits();
    const int shift = 2 * (kSteps - steps);
    // On a globe of few cells two neighbours may be the same.
    if (spans.empty() || spans.back().from != bits << shift) spans.push_back({bits << shift, (bits + 1) << shift});
  }
  return spans;
}

}  // namespace idemd::server

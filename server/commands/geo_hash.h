// Places on the globe as numbers of 52 bits, in which places that are near each other mostly have near numbers.
//
// A place's number interleaves how far east and how far north it is, 26 bits each, east first; a cell is a prefix of it, a
// rectangle. So all places around one lie in nine cells of a size that fits, each of which is one range of scores of a sorted set.
//
// Source    Redis 7.0's geohash (redis/src/geohash.c, geohash_helper.c): the ranges, the choice of cells and their order are what
//           replies show. The letters are those of geohash.org.
// Units     degrees and metres.
// Threads   any.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"

namespace idemd::server {

struct GeoPoint {
  double longitude = 0;
  double latitude = 0;
};

// Beyond these the projection does not go.
inline constexpr double kLongitudeMax = 180;
inline constexpr double kLatitudeMax = 85.05112878;
inline bool IsOnMap(const GeoPoint& point) {
  return point.longitude >= -kLongitudeMax && point.longitude <= kLongitudeMax && point.latitude >= -kLatitudeMax &&
         point.latitude <= kLatitudeMax;
}

// The number of a point on the map, and the middle of the cell that a score stands for, whatever it is.
uint64_t GeoEncode(const GeoPoint& point);
GeoPoint GeoDecode(double score);
// Eleven letters as geohash.org has them; the last one is always 0.
std::string GeoLetters(const GeoPoint& point);
double GeoDistance(const GeoPoint& a, const GeoPoint& b);

// A circle, or a rectangle along the meridians.
struct GeoShape {
  GeoPoint middle;
  bool box = false;
  double radius = 0;
  double width = 0, height = 0;

  // False: the point lies outside.
  [[nodiscard]] bool Contains(const GeoPoint& point, double* distance) const;
};

// Scores from `from` up to but not including `to`.
struct GeoSpan {
  uint64_t from = 0;
  uint64_t to = 0;
};
// The cells in which all places of the shape lie, in the order in which they are looked at.
absl::InlinedVector<GeoSpan, 9> GeoCover(const GeoShape& shape);

}  // namespace idemd::server

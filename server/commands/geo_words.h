// What geo commands read alike: coordinates, units and distances.
//
// False: the error was written.
#pragma once

#include "server/commands/context.h"
#include "server/commands/geo_hash.h"

namespace idemd::server {

// Longitude and latitude at words[i] and behind it.
[[nodiscard]] bool ReadPoint(Context& c, size_t i, GeoPoint* point);
// How many metres it has.
[[nodiscard]] bool ReadUnit(Context& c, size_t i, double* metres);
// A radius and its unit; the radius comes out in metres.
[[nodiscard]] bool ReadRadius(Context& c, size_t i, double* radius, double* unit);
// Width, height and their unit.
[[nodiscard]] bool ReadBox(Context& c, size_t i, double* width, double* height, double* unit);

// A distance with four digits behind the point.
void ReplyDistance(Context& c, double distance);
void ReplyPoint(Context& c, const GeoPoint& point);

inline constexpr ArgSpec kGeoUnitArgs[] = {{.name = "m", .type = ArgType::kToken, .token = "M"},
                                           {.name = "km", .type = ArgType::kToken, .token = "KM"},
                                           {.name = "ft", .type = ArgType::kToken, .token = "FT"},
                                           {.name = "mi", .type = ArgType::kToken, .token = "MI"}};

}  // namespace idemd::server

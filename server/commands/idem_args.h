// Arguments that several native commands have, as COMMAND DOCS shows them.
#pragma once

#include "server/commands/command.h"

namespace idemd::server {

inline constexpr ArgSpec kTimedArgs[] = {
    {.name = "seconds", .type = ArgType::kInteger, .token = "EX"},
    {.name = "milliseconds", .type = ArgType::kInteger, .token = "PX"},
    {.name = "unix-time-seconds", .type = ArgType::kUnixTime, .token = "EXAT"},
    {.name = "unix-time-milliseconds", .type = ArgType::kUnixTime, .token = "PXAT"}};

inline constexpr ArgSpec kLifetimeArgs[] = {
    kTimedArgs[0],
    kTimedArgs[1],
    kTimedArgs[2],
    kTimedArgs[3],
    {.name = "forever", .type = ArgType::kToken, .token = "FOREVER"}};

inline constexpr ArgSpec kOnLapseArgs[] = {
    {.name = "take", .type = ArgType::kToken, .token = "TAKE"},
    {.name = "stop", .type = ArgType::kToken, .token = "STOP"}};

}  // namespace idemd::server

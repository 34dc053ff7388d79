// The options of what is on disk.
#include <climits>

#include "server/admin/option.h"

namespace idemd::server {
namespace {

using S = Settings;
using T = OptionType;

constexpr int64_t kIntMax = INT_MAX;

constexpr OptionSpec kOptions[] = {
    {.name = "appendonly",
     .type = T::kBool,
     .initial = "yes",
     .group = "durability",
     .doc = "Whether every write goes to a log on disk.",
     .flag = &S::appendonly},
    {.name = "appendfsync",
     .type = T::kEnum,
     .initial = "everysec",
     .words = "always everysec no",
     .group = "durability",
     .doc = "When the log is forced to disk: always before a reply leaves, every second, or when "
            "the system likes. A killed process loses nothing in any of them; a power cut loses "
            "nothing, about a second, or more.",
     .number = &S::appendfsync},
    {.name = "appenddirname",
     .type = T::kFileName,
     .initial = "appendonlydir",
     .flags = kImmutable,
     .group = "durability",
     .doc = "The directory of the log, inside dir."},
    {.name = "appendfilename",
     .type = T::kFileName,
     .initial = "appendonly.aof",
     .flags = kImmutable,
     .group = "durability",
     .doc = "How the names of the log's files begin."},
    {.name = "auto-aof-rewrite-percentage",
     .type = T::kInteger,
     .initial = "100",
     .max = kIntMax,
     .unit = "percent",
     .group = "durability",
     .doc = "The log is replaced by a snapshot when it has grown by this much since the last time; "
            "0 for never.",
     .number = &S::auto_aof_rewrite_percentage},
    {.name = "auto-aof-rewrite-min-size",
     .type = T::kMemory,
     .initial = "67108864",
     .unit = "bytes",
     .group = "durability",
     .doc = "... but not while it is smaller than this.",
     .number = &S::auto_aof_rewrite_min_bytes},
    {.name = "save",
     .type = T::kSave,
     .initial = "3600 1 300 100 60 10000",
     .flags = kManyWords,
     .unit = "seconds, changes",
     .group = "durability",
     .doc = "A dump is written when this many seconds have passed since the last one and this many "
            "changes were made; empty for never.",
     .flag = &S::has_save_points},
    {.name = "dbfilename",
     .type = T::kFileName,
     .initial = "dump.rdb",
     .flags = kProtected,
     .group = "durability",
     .doc = "The name of the dump, inside dir."},
    {.name = "stop-writes-on-bgsave-error",
     .type = T::kBool,
     .initial = "yes",
     .group = "durability",
     .doc = "Whether writes are refused after a dump has failed, until one succeeds.",
     .flag = &S::stop_writes_on_bgsave_error},
    {.name = "rdbcompression",
     .type = T::kBool,
     .initial = "yes",
     .effect = Effect::kPartial,
     .limit = "long strings in dumps are always compressed where that helps",
     .group = "durability",
     .doc = "Whether dumps are compressed."},
    {.name = "rdbchecksum",
     .type = T::kBool,
     .initial = "yes",
     .flags = kImmutable,
     .effect = Effect::kPartial,
     .limit = "every dump has its sum, and none without is trusted",
     .group = "durability",
     .doc = "Whether dumps end with a sum over them."},
    {.name = "aof-use-rdb-preamble",
     .type = T::kBool,
     .initial = "yes",
     .effect = Effect::kDefaultOnly,
     .limit = "the base of a log is always a snapshot",
     .group = "durability",
     .doc = "Whether the base of a log is a snapshot."},
    {.name = "no-appendfsync-on-rewrite",
     .type = T::kBool,
     .initial = "no",
     .effect = Effect::kPartial,
     .limit = "snapshots do not get in the way of syncs",
     .group = "durability",
     .doc = "Whether syncs pause while a snapshot is written."},
    {.name = "shutdown-on-sigterm",
     .type = T::kWords,
     .initial = "default",
     .words = "default save nosave now force",
     .flags = kManyWords,
     .group = "durability",
     .doc = "What SIGTERM does, in the words of SHUTDOWN; by default a dump is written where there "
            "are save points."},
    {.name = "shutdown-on-sigint",
     .type = T::kWords,
     .initial = "default",
     .words = "default save nosave now force",
     .flags = kManyWords,
     .group = "durability",
     .doc = "What SIGINT does."},
};

}  // namespace

absl::Span<const OptionSpec> OptionsOfDurability() { return kOptions; }

}  // namespace idemd::server

// Every error text that a client can get, code word first, as Redis 7.0.15 words them where Redis
// has one.
#pragma once

#include "absl/strings/string_view.h"

namespace idemd::protocol::errors {

inline constexpr absl::string_view kSyntax = "ERR syntax error";
inline constexpr absl::string_view kNotInteger = "ERR value is not an integer or out of range";
inline constexpr absl::string_view kNotFloat = "ERR value is not a valid float";
inline constexpr absl::string_view kOverflow = "ERR increment or decrement would overflow";
inline constexpr absl::string_view kNanOrInfinity = "ERR increment would produce NaN or Infinity";
inline constexpr absl::string_view kNanOrInfinityGiven = "ERR value is NaN or Infinity";
inline constexpr absl::string_view kHashNotInteger = "ERR hash value is not an integer";
inline constexpr absl::string_view kHashNotFloat = "ERR hash value is not a float";
inline constexpr absl::string_view kOutOfRangeValue = "ERR value is out of range";
inline constexpr absl::string_view kMustBePositive = "ERR value is out of range, must be positive";
inline constexpr absl::string_view kDrawCount =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
inline constexpr absl::string_view kReplyTooLong = "ERR the reply is longer than proto-max-reply-len";
inline constexpr absl::string_view kTransactionTooLong =
    "ERR the transaction is longer than client-query-buffer-limit and has been given up";
inline constexpr absl::string_view kNumKeysPositive = "ERR numkeys should be greater than 0";
inline constexpr absl::string_view kNumKeysMany = "ERR Number of keys can't be greater than number of args";
inline constexpr absl::string_view kLimitNegative = "ERR LIMIT can't be negative";
inline constexpr absl::string_view kNoHyperLogLog = "WRONGTYPE Key is not a valid HyperLogLog string value.";
inline constexpr absl::string_view kSortScore = "ERR One or more scores can't be converted into double";
inline constexpr absl::string_view kNoLists = "ERR this version has no lists to store into";
inline constexpr absl::string_view kNoSuchKey = "ERR no such key";
inline constexpr absl::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr absl::string_view kOutOfRange = "ERR index out of range";
inline constexpr absl::string_view kNoMemory = "OOM out of memory, nothing was done";
inline constexpr absl::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr absl::string_view kLoading = "LOADING Redis is loading the dataset in memory";
inline constexpr absl::string_view kSaveFailed =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands "
    "that may modify the data set are disabled, because this instance is configured to report errors during "
    "writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for "
    "details about the RDB error.";
inline constexpr absl::string_view kNoAuth = "NOAUTH Authentication required.";
inline constexpr absl::string_view kWrongPass =
    "WRONGPASS invalid username-password pair or user is disabled.";
inline constexpr absl::string_view kNoProto = "NOPROTO unsupported protocol version";
inline constexpr absl::string_view kStringTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr absl::string_view kDbIndex = "ERR DB index is out of range";
inline constexpr absl::string_view kOffset = "ERR offset is out of range";
inline constexpr absl::string_view kBitOffset = "ERR bit offset is not an integer or out of range";
inline constexpr absl::string_view kBit = "ERR bit is not an integer or out of range";
inline constexpr absl::string_view kSameObject = "ERR source and destination objects are the same";
inline constexpr absl::string_view kMaxClients = "ERR max number of clients reached";
inline constexpr absl::string_view kCountPositive = "ERR count should be greater than 0";
inline constexpr absl::string_view kRankZero =
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from "
    "the end of the list";
inline constexpr absl::string_view kTimeoutNotFloat =
    "ERR timeout is not a float or out of range";
inline constexpr absl::string_view kTimeoutNegative = "ERR timeout is negative";
inline constexpr absl::string_view kUnblocked = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
inline constexpr absl::string_view kDecrementOverflow = "ERR decrement would overflow";
inline constexpr absl::string_view kLcsLenAndIdx =
    "ERR If you want both the length and indexes, please just use IDX.";
inline constexpr absl::string_view kLcsTooLong = "ERR String too long for LCS";
inline constexpr absl::string_view kLcsTableTooLarge =
    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
inline constexpr absl::string_view kLcsNoMemory =
    "ERR Insufficient memory, failed allocating transient memory for LCS";
inline constexpr absl::string_view kDigestLength =
    "ERR digest must be exactly 16 hexadecimal characters";
inline constexpr absl::string_view kInvalidCondition =
    "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE";
inline constexpr absl::string_view kBusyKey = "BUSYKEY Target key name already exists.";
inline constexpr absl::string_view kTtlRange = "ERR Invalid TTL value, must be >= 0";
inline constexpr absl::string_view kIdleTimeRange = "ERR Invalid IDLETIME value, must be >= 0";
inline constexpr absl::string_view kFreqRange = "ERR Invalid FREQ value, must be >= 0 and <= 255";
inline constexpr absl::string_view kDumpVersionOrSum =
    "ERR DUMP payload version or checksum are wrong";
inline constexpr absl::string_view kDumpFormat = "ERR Bad data format";
inline constexpr absl::string_view kBitArgument = "ERR The bit argument must be 1 or 0.";
inline constexpr absl::string_view kBitOpNot =
    "ERR BITOP NOT must be called with a single source key.";
inline constexpr absl::string_view kBitFieldType =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";
inline constexpr absl::string_view kBitFieldOverflow = "ERR Invalid OVERFLOW type specified";
inline constexpr absl::string_view kBitFieldReadOnly =
    "ERR BITFIELD_RO only supports the GET subcommand";
inline constexpr absl::string_view kScoreNan = "ERR resulting score is not a number (NaN)";
inline constexpr absl::string_view kScoreRange = "ERR min or max is not a float";
inline constexpr absl::string_view kLexRange = "ERR min or max not valid string range item";
inline constexpr absl::string_view kOutOfPositiveRange = "ERR value is out of range, must be positive";

// --- native commands (docs/commands.md). What needs a name or number in it is put together by server/commands/idem_*.
inline constexpr absl::string_view kDamagedRecord =
    "ERR the string at this key begins with idem/ but is no record of this version: read it with GET, then "
    "delete it or upgrade this server; until then it is neither absent nor a token";
inline constexpr absl::string_view kNotFound =
    "NOTFOUND no reservation at this key: it ended, was released or deleted; stop, and reserve again before "
    "doing the work";
inline constexpr absl::string_view kConflict =
    "CONFLICT the key is over, with another answer, which stays: read it with IDEM.STATUS and do not apply "
    "the effect again";
inline constexpr absl::string_view kCheckpointTooLarge =
    "ERR the checkpoint is larger than idem-max-result and was not saved: keep it elsewhere and save a "
    "reference to it";
inline constexpr absl::string_view kFence = "ERR fence must be an integer above 0, as IDEM.RESERVE gave it";
inline constexpr absl::string_view kTimeRange = "ERR the time is out of range";
inline constexpr absl::string_view kTokenExpiryRange = "ERR a token must expire before 2^48 ms from 1970";
inline constexpr absl::string_view kReservedValue =
    "ERR values and states may not begin with idem/, which marks reservations";
inline constexpr absl::string_view kNoRandomness =
    "ERR the system gives no random bytes: no token was made; try again";
inline constexpr absl::string_view kTwoLifetimes = "ERR only one of EX, PX, EXAT, PXAT and FOREVER may be given";
inline constexpr absl::string_view kOnLapse = "ERR ONLAPSE must be TAKE or STOP";
inline constexpr absl::string_view kIfeqNeedsIssued = "ERR IFEQ is allowed only with ISSUED";
inline constexpr absl::string_view kCountRange = "ERR COUNT must be from 1 to ";
inline constexpr absl::string_view kNumKeys =
    "ERR numkeys must be from 1 to 1000 and that many keys must follow";
inline constexpr absl::string_view kKeyTwice = "ERR a key is given twice";
inline constexpr absl::string_view kFromNeeded =
    "ERR FROM with the number of states, then the states, is needed";
inline constexpr absl::string_view kFromCount =
    "ERR the number after FROM must be that of the states that follow; 0 is allowed with INIT";
inline constexpr absl::string_view kThrottleRange =
    "ERR max-burst must be 0 or more, count and period 1 or more, cost 0 or more, all within range";
inline constexpr absl::string_view kThrottleState =
    "ERR the string at this key is no throttle state: use another key, or delete it";

}  // namespace idemd::protocol::errors

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
inline constexpr absl::string_view kNoSuchKey = "ERR no such key";
inline constexpr absl::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr absl::string_view kOutOfRange = "ERR index out of range";
inline constexpr absl::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
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
inline constexpr absl::string_view kBitArgument = "ERR The bit argument must be 1 or 0.";
inline constexpr absl::string_view kBitOpNot =
    "ERR BITOP NOT must be called with a single source key.";
inline constexpr absl::string_view kBitFieldType =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";
inline constexpr absl::string_view kBitFieldOverflow = "ERR Invalid OVERFLOW type specified";
inline constexpr absl::string_view kBitFieldReadOnly =
    "ERR BITFIELD_RO only supports the GET subcommand";

}  // namespace idemd::protocol::errors

// How a command is declared, once: from the entry come dispatch, arity, COMMAND and its kin, flags, docs and tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::server {

struct Context;
struct Services;
using Handler = void (*)(Context&);

enum class ArgType : uint8_t { kKey, kString, kInteger, kDouble, kPattern, kUnixTime, kToken, kOneOf, kBlock };

// As in COMMAND DOCS: `token` is the literal word before the value (or, for kToken, the whole argument).
struct ArgSpec {
  const char* name = "";
  ArgType type = ArgType::kString;
  const char* token = nullptr;
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;  // of several, each has the token before it
  int key_spec = 0;             // kKey, and a kPattern that leads to keys: which of the command's key specs
  const char* since = nullptr;
  absl::Span<const ArgSpec> args = {};  // kOneOf, kBlock
};

enum Flag : uint32_t {
  kWrite = 1u << 0,
  kReadonly = 1u << 1,
  kDenyOom = 1u << 2,
  kAdmin = 1u << 3,
  kPubSub = 1u << 4,
  kNoScript = 1u << 5,
  kBlocking = 1u << 6,
  kLoading = 1u << 7,
  kStale = 1u << 8,
  kSkipMonitor = 1u << 9,
  kSkipSlowlog = 1u << 10,
  kFast = 1u << 11,
  kNoAuth = 1u << 12,
  kMayReplicate = 1u << 13,
  kNoMulti = 1u << 14,
  kMovableKeys = 1u << 15,
  kAllowBusy = 1u << 16,
  kSentinelOnly = 1u << 17,
  kNoAsyncLoading = 1u << 18,
  kNoMandatoryKeys = 1u << 19,
  kProtected = 1u << 20,
  // Categories that no flag or group implies.
  kDangerous = 1u << 21,
  // Runs at once between MULTI and EXEC, instead of being queued.
  kNotQueued = 1u << 22,
  // Its keys cannot be told from its words (FLUSHALL, SCAN, IDEM.TOKEN): EXEC takes all locks.
  kAnyKeys = 1u << 23,
  // When it is refused, the transaction is over (EXEC).
  kEndsTransaction = 1u << 24,
  // Allowed to a RESP2 client that is subscribed to something.
  kWhileSubscribed = 1u << 25,
  // Takes constant time but for the bytes of its words and its reply, though Redis does not call it fast.
  kQuick = 1u << 26,
};

enum class Group : uint8_t {
  kGeneric, kString, kList, kSet, kSortedSet, kHash, kPubSub, kTransactions, kConnection, kServer, kScripting,
  kHyperLogLog, kCluster, kSentinel, kGeo, kStream, kBitmap, kIdem,
};
const char* GroupName(Group group);  // "generic", "string", ..., "idem"

// Where the keys are: positions in the words, the name being 0; `last` may be negative (from the end); first 0: none.
struct Keys {
  int first = 0;
  int last = 0;
  int step = 0;
  static constexpr Keys None() { return {}; }
  static constexpr Keys At(int i) { return {i, i, 1}; }
  static constexpr Keys From(int i, int step = 1) { return {i, -1, step}; }
  static constexpr Keys Range(int a, int b) { return {a, b, 1}; }
};

// One group of a command's keys, where there are several or their place is no mere number: for COMMAND INFO and
// GETKEYSANDFLAGS, which say of each what is done to it.
struct KeySpec {
  const char* flags = "";         // "RW ACCESS DELETE"
  int index = 0;                  // where it begins; 0: behind `keyword` or, without one, nobody knows
  const char* keyword = nullptr;  // looked for from words[keyword_from] on
  int keyword_from = 1;
  int last = 0;                   // counted from the first; negative: from the end
  int step = 1;
  int limit = 0;                  // of what is left one in so many is a key
  bool counted = false;           // the first word is how many keys follow
};

// Which words are channels that the caller needs a right to.
enum class Channels : uint8_t { kNone, kFirst, kAll, kAllPatterns };

// Keys whose place depends on a count (numkeys): fills positions; false on nonsense.
using FindKeys = bool (*)(absl::Span<const absl::string_view> words, std::vector<int>& positions);

// What a full command does to its keys, where that depends on its words (COMMAND GETKEYSANDFLAGS).
using KeyFlagsOf = const char* (*)(absl::Span<const absl::string_view> words);

// Whether this call may write, where the command may but need not (a script that says that it does not).
using MayWrite = bool (*)(Services& services, absl::Span<const absl::string_view> words);

struct CommandSpec {
  const char* name = "";       // upper case; a subcommand has only its own word ("LIST")
  Handler handler = nullptr;   // containers: nullptr, unless they run without a subcommand (COMMAND)
  int arity = 0;               // as in Redis: counts the name (and the subcommand's word); negative: at least
  uint32_t flags = 0;
  Keys keys = {};
  FindKeys find_keys = nullptr;
  // key spec flags of COMMAND INFO, e.g. "RW ACCESS UPDATE"; empty: derived from kWrite / kReadonly
  const char* key_flags = nullptr;
  absl::Span<const KeySpec> key_specs = {};  // empty: one, made of `keys` and `key_flags`
  KeyFlagsOf key_flags_of = nullptr;
  bool keys_are_prefixes = false;  // the rest of a key is made up here
  MayWrite may_write = nullptr;  // null: as kWrite and kMayReplicate say
  Group group = Group::kGeneric;
  const char* since = "1.0.0";
  const char* complexity = "O(1)";
  const char* summary = "";
  absl::Span<const ArgSpec> args = {};
  absl::Span<const CommandSpec> subcommands = {};
  // ACL categories in place of the one that the group implies, where that one is wrong: "keyspace", "admin dangerous".
  const char* categories = nullptr;
  Channels channels = Channels::kNone;
};

}  // namespace idemd::server

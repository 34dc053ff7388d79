// Every command with its n-th allocation failing, for every n: afterwards everything is as it was before, or as it is after the
// command; or the process has ended, which is as good as a kill at that moment (tests/crash shows what the next start finds).
//
// Each try runs in a child process. A thread's first script is not among them: neither LuaJIT nor its cjson begins without memory, and what
// they do then is to end the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "protocol/resp/parser.h"
#include "tests/server/allocation/allocations.h"
#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

constexpr char kNoMemory[] = "-OOM out of memory, nothing was done\r\n";
constexpr char kClosed[] = "(closed)";
constexpr int64_t kNone = INT64_MAX;    // counts, and fails nothing
constexpr int64_t kFailuresMax = 3000;  // of one command

struct Case {
  const char* before;   // lines, each run first
  const char* command;
  bool random = false;   // what it leaves behind is another thing each time
  bool tables = false;   // of Abseil, which do not survive it either: server/operator_new.cc
};

// Values of more than one size, so that they are kept in more than one way.
constexpr char kLong[] = "a-value-that-is-too-long-to-be-kept-inline-or-in-a-small-string-0123456789-0123456789-0123456789";

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      // strings
      {"", "SET k v"},
      {"SET k v", "SET k LONG"},
      {"SET k v", "SET k w EX 100 GET"},
      {"SET k v EX 100", "GET k"},
      {"SET k LONG", "GET k"},
      {"SET k LONG", "GETSET k v"},
      {"SET k v", "GETDEL k"},
      {"SET k v", "GETEX k EX 50"},
      {"SET k v", "APPEND k LONG"},
      {"APPEND k v", "APPEND k LONG"},
      {"", "SETRANGE k 100000 x"},
      {"SETRANGE k 10 x", "SETRANGE k 1000000 x"},
      {"SET k LONG", "GETRANGE k 3 50"},
      {"", "INCR k"},
      {"SET k 41", "INCRBY k 1000000000000"},
      {"SET k 1.5", "INCRBYFLOAT k 0.1"},
      {"", "MSET a 1 b LONG c 3"},
      {"SET a 1", "MSETNX a 1 b 2"},
      {"MSET a 1 b LONG", "MGET a b c"},
      {"SET k v", "SETBIT k 9000 1"},
      {"SET k LONG", "BITCOUNT k"},
      {"MSET a abc b LONG", "BITOP XOR k a b"},
      {"SET k LONG", "BITFIELD k SET u8 0 255 GET u4 3"},
      {"MSET a LONG b v", "LCS a b"},
      // keys
      {"SET k v", "EXPIRE k 100"},
      {"SET k v EX 100", "PERSIST k"},
      {"SET k LONG", "RENAME k other"},
      {"SET k LONG", "COPY k other"},
      {"SET k v", "MOVE k 1"},
      {"MSET a 1 b 2 c LONG", "DEL a b c"},
      {"MSET a 1 b 2 c LONG", "UNLINK a b c"},
      {"MSET a 1 b 2 c LONG", "KEYS *"},
      {"MSET a 1 b 2 c LONG", "SCAN 0 COUNT 100"},
      {"SET k LONG", "DUMP k"},
      {"SET k v", "OBJECT ENCODING k"},
      {"SET k v", "TYPE k"},
      {"MSET a 1 b 2 c LONG", "FLUSHDB"},
      {"MSET a 1 b 2 c LONG", "FLUSHALL"},
      {"MSET a 1 b 2 c LONG", "SWAPDB 0 1"},
      {"RPUSH k 3 1 2", "SORT k BY w* GET # STORE other"},
      // tokens and reservations
      {"", "IDEM.TOKEN t: COUNT 3", true},
      {"SET t v", "IDEM.CONSUME t"},
      {"SET t v", "IDEM.CONSUME t IFEQ v BY me REASON"},
      {"", "IDEM.RESERVE k CLAIM me FINGERPRINT f LEASE 1000"},
      {"IDEM.RESERVE k CLAIM me", "IDEM.RESERVE k CLAIM other"},
      {"IDEM.RESERVE k CLAIM me", "IDEM.STATUS k"},
      {"IDEM.RESERVE k", "IDEM.COMPLETE k 1740800000000001 LONG"},
      {"IDEM.RESERVE k", "IDEM.FAIL k 1740800000000001"},
      {"IDEM.RESERVE k", "IDEM.RELEASE k 1740800000000001"},
      {"IDEM.RESERVE k", "IDEM.EXTEND k 1740800000000001 5000"},
      {"IDEM.RESERVE k", "IDEM.CHECKPOINT k 1740800000000001 LONG"},
      {"IDEM.RESERVE k\nIDEM.COMPLETE k 1740800000000001 LONG", "IDEM.RESERVE k"},
      {"", "IDEM.MRESERVE 3 a b c CLAIM me"},
      {"SET k new", "IDEM.TRANSITION k new paid"},
      {"", "IDEM.THROTTLE k 5 10 60"},
      {"", "CL.THROTTLE k 5 10 60"},
      {"IDEM.RESERVE a:k", "IDEM.STATS"},
      {"IDEM.RESERVE k LEASE 100000", "IDEM.RESERVE k CLAIM other WAIT 1000"},
      // collections
      {"", "HSET k f v g LONG"},
      {"HSET k f v", "HSET k f LONG g w"},
      {"HSET k f v g LONG", "HGETALL k"},
      {"HSET k f 1", "HINCRBY k f 5"},
      {"HSET k f v g w", "HDEL k f"},
      {"HSET k f v", "HDEL k f"},
      {"", "SADD k 1 2 3"},
      {"SADD k 1 2 3", "SADD k x LONG"},
      {"SADD k 1 2 3", "SMEMBERS k"},
      {"SADD k 1 2 3", "SREM k 1 2"},
      {"SADD a 1 2 3\nSADD b 2 3 4", "SINTERSTORE k a b"},
      {"SADD a 1 2 3\nSADD b 2 3 4", "SUNION a b"},
      {"SADD a 1 2 3", "SMOVE a b 1"},
      {"", "ZADD k 1 a 2 LONG"},
      {"ZADD k 1 a", "ZADD k 5 a 2 LONG"},
      {"ZADD k 1 a 2 b 3 c", "ZRANGE k 0 -1 WITHSCORES"},
      {"ZADD k 1 a 2 b 3 c", "ZREM k a b"},
      {"ZADD a 1 x 2 y\nZADD b 2 y 3 z", "ZUNIONSTORE k 2 a b", false, true},
      {"ZADD k 1 a 2 b 3 c", "ZPOPMIN k 2"},
      {"", "RPUSH k a b LONG"},
      {"RPUSH k a b c", "LPUSH k LONG"},
      {"RPUSH k a b c", "LRANGE k 0 -1"},
      {"RPUSH k a b c", "LINSERT k BEFORE b LONG"},
      {"RPUSH k a b c", "LPOP k 2"},
      {"RPUSH k a", "LMOVE k other LEFT RIGHT"},
      {"RPUSH k a b c", "LTRIM k 1 1"},
      {"", "XADD k 1-1 f v g LONG"},
      {"XADD k 1-1 f v", "XADD k 1-2 f LONG"},
      {"XADD k 1-1 f v\nXADD k 1-2 f w", "XRANGE k - +"},
      {"XADD k 1-1 f v", "XGROUP CREATE k g 0"},
      {"XADD k 1-1 f v\nXGROUP CREATE k g 0", "XREADGROUP GROUP g me STREAMS k >"},
      {"XADD k 1-1 f v\nXADD k 1-2 f w", "XTRIM k MAXLEN 1"},
      {"", "PFADD k a b c"},
      {"PFADD a 1 2\nPFADD b 2 3", "PFMERGE k a b"},
      {"", "GEOADD k 13.36 38.11 palermo"},
      {"GEOADD k 13.36 38.11 palermo", "GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 300 km"},
      // transactions, scripts, sessions
      {"SET a 1\nMULTI\nSET a 2\nINCR b", "EXEC"},
      {"MULTI\nGET a\nGET b", "EXEC"},
      {"EVAL \"return 1\" 0", "EVAL \"redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])\" 1 k LONG"},
      {"EVAL \"return 1\" 0\nSET k v", "EVAL \"return redis.call('get', KEYS[1])\" 1 k"},
      {"EVAL \"return 1\" 0", "SCRIPT LOAD \"return 1\""},
      {"FUNCTION LOAD \"#!lua name=k\\nredis.register_function('g', function() return 1 end)\"", "FUNCTION LOAD \"#!lua name=l\\nredis.register_function('f', function() return 1 end)\""},
      {"", "CONFIG SET maxmemory 100mb idem-lease 5000"},
      {"", "CONFIG GET *"},
      {"", "INFO"},
      {"", "COMMAND DOCS set"},
      {"", "CLIENT LIST"},
      {"", "MULTI"},
      {"", "BLPOP nobody 10"},
      {"RPUSH k a", "BLPOP k 10"},
      {"", "WATCH k"},
  };
  return cases;
}

std::string Spelled(absl::string_view line) { return absl::StrReplaceAll(line, {{"LONG", kLong}}); }

// All that is kept, and the settings.
std::string StateOf(Harness& server) {
  std::string state;
  const std::unique_ptr<TestClient> client = server.Connect();
  for (int db = 0; db < 2; ++db) {
    server.Do(*client, absl::StrCat("SELECT ", db));
    const std::string list = server.Do(*client, "KEYS *");
    std::vector<std::string> keys = absl::StrSplit(absl::StripSuffix(absl::StripPrefix(list, "["), "]"), ' ', absl::SkipEmpty());
    std::sort(keys.begin(), keys.end());
    for (const std::string& quoted : keys) {
      absl::StrAppend(&state, db, " ", quoted, " ", server.Do(*client, absl::StrCat("DUMP ", quoted)), " ",
                      server.Do(*client, absl::StrCat("PEXPIRETIME ", quoted)), "\n");
    }
  }
  return absl::StrCat(state, server.Do(*client, "CONFIG GET *"), server.Do(*client, "FUNCTION LIST"));
}

struct Outcome {
  std::string reply, state;
  int64_t allocations = 0;
  int signal = 0;  // that the process ended with
};

// What a connection does: one request, and without memory beside a command it is closed.
std::string RunAtOnce(Harness& server, absl::string_view line, int64_t n, bool all) {
  std::vector<std::string> words;
  protocol::SplitWords(line, words);
  std::string request = absl::StrCat("*", words.size(), "\r\n");
  for (const std::string& word : words) absl::StrAppend(&request, "$", word.size(), "\r\n", word, "\r\n");
  protocol::Parser parser;
  protocol::Batch batch;
  parser.Parse(request, protocol::ParserLimits(), 16, batch);
  std::string out;
  allocations::FailAt(n, all);
  try {
    server.dispatcher.Run(server.me->session, batch, 0, SIZE_MAX, out);
  } catch (const std::bad_alloc&) {
    out = kClosed;
  }
  allocations::Stop();
  return out;
}

void WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// A copy of the server, in a process of its own, runs the command while the n-th allocation fails, and those behind it if `all`.
Outcome Try(Harness& server, const std::string& command, int64_t n, bool all) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (n != kNone && std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    [&]() noexcept {
      const std::string reply = RunAtOnce(server, command, n, all);
      WriteAll(ends[1], absl::StrCat(allocations::Seen(), " ", reply.size(), "\n", reply, StateOf(server)));
    }();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char room[4096];
  for (ssize_t got; (got = read(ends[0], room, sizeof(room))) > 0;) text.append(room, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  Outcome result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    return result;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  unsigned long long allocated = 0, reply_bytes = 0;
  int head = 0;
  EXPECT_EQ(std::sscanf(text.c_str(), "%llu %llu\n%n", &allocated, &reply_bytes, &head), 2);
  result.allocations = static_cast<int64_t>(allocated);
  result.reply = text.substr(static_cast<size_t>(head), reply_bytes);
  result.state = text.substr(static_cast<size_t>(head) + reply_bytes);
  return result;
}

class AllocationFailureTest : public ::testing::TestWithParam<Case> {};

TEST_P(AllocationFailureTest, LeavesTheStateBeforeOrAfter) {
  if (!allocations::CanCount()) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  const Case& c = GetParam();
  Harness server;
  for (absl::string_view line : absl::StrSplit(c.before, '\n', absl::SkipEmpty())) server.Do(Spelled(line));
  const std::string command = Spelled(c.command), before = StateOf(server);
  const Outcome whole = Try(server, command, kNone, false);
  ASSERT_EQ(whole.signal, 0);
  ASSERT_LT(whole.allocations, kFailuresMax);
  int refused = 0, closed = 0, unharmed = 0, ended = 0;
  for (int64_t n = 1; n <= whole.allocations; ++n) {
    for (const bool all : {false, true}) {
      const Outcome now = Try(server, command, n, all);
      SCOPED_TRACE(absl::StrCat("allocation ", n, " of ", whole.allocations, all ? " and those behind it" : "", ", reply ", now.reply));
      if (now.signal != 0) {
        EXPECT_TRUE(now.signal == SIGABRT || c.tables) << now.signal;
        EXPECT_NE(whole.state, before) << "who only reads, or finds nothing to do, lives";
        ++ended;
        continue;
      }
      if (absl::StartsWith(now.reply, kNoMemory)) {
        EXPECT_EQ(now.state, before);
        ++refused;
      } else if (now.reply == kClosed) {
        EXPECT_TRUE(now.state == before || now.state == whole.state || c.random);
        ++closed;
      } else if (now.reply == whole.reply || c.random) {
        EXPECT_TRUE(now.state == whole.state || c.random);
        ++unharmed;
      } else {  // a way of its own to say so
        EXPECT_THAT(now.reply, ::testing::ContainsRegex("memory|OOM|Error"));
        EXPECT_TRUE(now.state == before || now.state == whole.state);
        ++refused;
      }
    }
  }
  RecordProperty("failures", static_cast<int>(whole.allocations));
  std::printf("%-60.60s %3lld allocations; refused %d, closed %d, unharmed %d, ended %d\n", c.command,
              static_cast<long long>(whole.allocations), refused, closed, unharmed, ended);
}

INSTANTIATE_TEST_SUITE_P(Commands, AllocationFailureTest, ::testing::ValuesIn(Cases()));

}  // namespace
}  // namespace idemd::testing

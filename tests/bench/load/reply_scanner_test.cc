// The scanner says the same of a stream of replies whole, split at every byte, and byte by byte.
#include "bench/load/reply_scanner.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::bench {
namespace {

struct Seen {
  bool error;
  std::string head, second;
  friend bool operator==(const Seen&, const Seen&) = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << (seen.error ? "error " : "") << seen.head << " | " << seen.second;
}

class Stream {
 public:
  explicit Stream(Dialect dialect = Dialect::kResp) : scanner_(dialect) {}
  void Feed(absl::string_view bytes) {
    scanner_.Feed(bytes.data(), bytes.size(), [this](const Reply& reply) {
      seen_.push_back({reply.error, std::string(reply.head), std::string(reply.second)});
    });
  }
  const std::vector<Seen>& seen() const { return seen_; }
  bool broken() const { return scanner_.broken(); }

 private:
  ReplyScanner scanner_;
  std::vector<Seen> seen_;
};

struct Case {
  absl::string_view bytes;
  Seen seen;
};

std::vector<Case> Cases() {
  return {
      {"+OK\r\n", {false, "OK", ""}},
      {":42\r\n", {false, "42", ""}},
      {":-1\r\n", {false, "-1", ""}},
      {"-ERR no\r\n", {true, "ERR no", ""}},
      {"+\r\n", {false, "", ""}},
      {"$3\r\nabc\r\n", {false, "abc", ""}},
      {"$0\r\n\r\n", {false, "", ""}},
      {"$-1\r\n", {false, "nil", ""}},
      {"*-1\r\n", {false, "nil", ""}},
      {"$4\r\n\r\n\r\n\r\n", {false, "\r\n\r\n", ""}},
      {"$7\r\n+OK\r\n-E\r\n", {false, "+OK\r\n-E", ""}},
      {"*0\r\n", {false, "", ""}},
      {"*2\r\n$1\r\na\r\n:5\r\n", {false, "a", "5"}},
      {"*6\r\n$8\r\nRESERVED\r\n:1839107827950593\r\n:1\r\n:3600000\r\n:0\r\n$-1\r\n",
       {false, "RESERVED", "1839107827950593"}},
      {"*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n+x\r\n", {false, "1", "2"}},
      {"*2\r\n*0\r\n:7\r\n", {false, "7", ""}},
      {"*2\r\n+fine\r\n-WRONGTYPE not\r\n", {true, "fine", "WRONGTYPE not"}},
      {"_\r\n", {false, "nil", ""}},
      {"#t\r\n", {false, "t", ""}},
      {",1.5\r\n", {false, "1.5", ""}},
      {"(123456789012345678901234567890\r\n", {false, "123456789012345678901234567890", ""}},
      {"=7\r\ntxt:abc\r\n", {false, "txt:abc", ""}},
      {"!5\r\nERR a\r\n", {true, "ERR a", ""}},
      {"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", {false, "a", "1"}},
      {"~2\r\n:8\r\n:9\r\n", {false, "8", "9"}},
  };
}

std::string Together(const std::vector<Case>& cases) {
  std::string bytes;
  for (const Case& one : cases) bytes.append(one.bytes.data(), one.bytes.size());
  return bytes;
}

std::vector<Seen> Expected(const std::vector<Case>& cases) {
  std::vector<Seen> seen;
  for (const Case& one : cases) seen.push_back(one.seen);
  return seen;
}

TEST(ReplyScanner, SeesOneReplyOfEachType) {
  for (const Case& one : Cases()) {
    Stream stream;
    stream.Feed(one.bytes);
    EXPECT_EQ(stream.seen(), std::vector<Seen>{one.seen}) << one.bytes;
    EXPECT_FALSE(stream.broken());
  }
}

TEST(ReplyScanner, IsNotDoneBeforeTheLastByte) {
  for (const Case& one : Cases()) {
    Stream stream;
    stream.Feed(one.bytes.substr(0, one.bytes.size() - 1));
    EXPECT_TRUE(stream.seen().empty()) << one.bytes;
    stream.Feed(one.bytes.substr(one.bytes.size() - 1));
    EXPECT_EQ(stream.seen().size(), 1u) << one.bytes;
  }
}

TEST(ReplyScanner, SeesTheSameHoweverTheStreamIsCutInTwo) {
  const std::vector<Case> cases = Cases();
  const std::string bytes = Together(cases);
  for (size_t at = 0; at <= bytes.size(); ++at) {
    Stream stream;
    stream.Feed(absl::string_view(bytes).substr(0, at));
    stream.Feed(absl::string_view(bytes).substr(at));
    ASSERT_EQ(stream.seen(), Expected(cases)) << "cut at " << at;
  }
}

TEST(ReplyScanner, SeesTheSameByteByByteAndInRandomPieces) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const std::vector<Case> cases = Cases();
  const std::string bytes = Together(cases);
  for (const size_t longest : {1, 2, 3, 7, 50}) {
    Stream stream;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = std::min(1 + random() % longest, bytes.size() - at);
      stream.Feed(absl::string_view(bytes).substr(at, n));
      at += n;
    }
    ASSERT_EQ(stream.seen(), Expected(cases)) << longest;
  }
}

TEST(ReplyScanner, KeepsTheBeginningOfWhatIsLong) {
  const std::string text(1000, 'x');
  const std::string kept(ReplyScanner::kKept, 'x');
  for (const std::string& bytes : {"$1000\r\n" + text + "\r\n", "+" + text + "\r\n"}) {
    for (const size_t cut : {1, 5, 50, 99, 100, 500}) {
      Stream stream;
      stream.Feed(absl::string_view(bytes).substr(0, cut));
      stream.Feed(absl::string_view(bytes).substr(cut));
      stream.Feed("+OK\r\n");
      EXPECT_EQ(stream.seen(), (std::vector<Seen>{{false, kept, ""}, {false, "OK", ""}})) << cut;
    }
  }
}

TEST(ReplyScanner, AnArrayOfManyElementsIsOneReply) {
  std::string bytes = "*1000\r\n";
  for (int i = 0; i < 1000; ++i) bytes += "$1\r\nv\r\n";
  Stream stream;
  stream.Feed(bytes);
  EXPECT_EQ(stream.seen(), (std::vector<Seen>{{false, "v", "v"}}));
}

TEST(ReplyScanner, BytesThatAreNoRespBreakIt) {
  for (const absl::string_view bytes :
       {"x\r\n", "\r\n", "$a\r\n", "$-2\r\n", "*x\r\n", "*-2\r\n", "$99999999999999999999\r\n",
        "HTTP/1.1 400\r\n", ">1\r\n:1\r\n"}) {
    Stream stream;
    stream.Feed(bytes);
    EXPECT_TRUE(stream.broken()) << bytes;
    stream.Feed("+OK\r\n");
    EXPECT_TRUE(stream.seen().empty()) << bytes;
  }
}

std::vector<Case> MemcachedCases() {
  return {
      {"STORED\r\n", {false, "OK", ""}},
      {"NOT_STORED\r\n", {false, "nil", ""}},
      {"DELETED\r\n", {false, "1", ""}},
      {"NOT_FOUND\r\n", {false, "0", ""}},
      {"END\r\n", {false, "nil", ""}},
      {"VALUE key:1 0 3\r\nabc\r\nEND\r\n", {false, "abc", ""}},
      {"VALUE key:1 0 0\r\n\r\nEND\r\n", {false, "", ""}},
      {"VALUE key:1 0 5\r\nEND\r\n\r\nEND\r\n", {false, "END\r\n", ""}},
      {"VERSION 1.6.18\r\n", {false, "VERSION 1.6.18", ""}},
      {"ERROR\r\n", {true, "ERROR", ""}},
      {"CLIENT_ERROR bad data chunk\r\n", {true, "CLIENT_ERROR bad data chunk", ""}},
      {"SERVER_ERROR out of memory storing object\r\n",
       {true, "SERVER_ERROR out of memory storing object", ""}},
  };
}

TEST(ReplyScanner, ReadsMemcachedHoweverItIsCut) {
  const std::vector<Case> cases = MemcachedCases();
  const std::string bytes = Together(cases);
  for (size_t at = 0; at <= bytes.size(); ++at) {
    Stream stream(Dialect::kMemcached);
    stream.Feed(absl::string_view(bytes).substr(0, at));
    stream.Feed(absl::string_view(bytes).substr(at));
    ASSERT_EQ(stream.seen(), Expected(cases)) << "cut at " << at;
  }
  Stream stream(Dialect::kMemcached);
  for (const char byte : bytes) stream.Feed({&byte, 1});
  EXPECT_EQ(stream.seen(), Expected(cases));
}

TEST(ReplyScanner, WhatIsNoWordOfMemcachedBreaksIt) {
  for (const absl::string_view bytes :
       {"+OK\r\n", "HELLO\r\n", "VALUE a 0 x\r\n", "VALUE a 0 -1\r\n"}) {
    Stream stream(Dialect::kMemcached);
    stream.Feed(bytes);
    EXPECT_TRUE(stream.broken()) << bytes;
  }
}

}  // namespace
}  // namespace idemd::bench

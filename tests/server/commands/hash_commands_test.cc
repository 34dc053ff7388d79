// Hashes through their commands: replies in both protocols, and what the log is told.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kWrongType[] = "-WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr char kNotInteger[] = "-ERR value is not an integer or out of range";

// A command as it stands in the log.
std::string Logged(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

TEST(HashCommands, FieldsAreSetAndRead) {
  PlayFresh({{"HSET h a 1 b 2", "2"},
             {"HSET h a 3 c 4", "1"},
             {"HGET h a", "\"3\""},
             {"HGET h x", "nil"},
             {"HGET none a", "nil"},
             {"HMGET h a x c", "[\"3\" nil \"4\"]"},
             {"HMGET none a b", "[nil nil]"},
             {"HGETALL h", "[\"a\" \"3\" \"b\" \"2\" \"c\" \"4\"]"},
             {"HGETALL none", "[]"},
             {"HKEYS h", "[\"a\" \"b\" \"c\"]"},
             {"HVALS h", "[\"3\" \"2\" \"4\"]"},
             {"HLEN h", "3"},
             {"HLEN none", "0"},
             {"HEXISTS h a", "1"},
             {"HEXISTS h x", "0"},
             {"HSTRLEN h a", "1"},
             {"HSTRLEN h x", "0"},
             {"HMSET h a 5", "OK"},
             {"HSETNX h a 6", "0"},
             {"HSETNX h d 6", "1"},
             {"HSETNX fresh f v", "1"},
             {"HDEL h a x b", "2"},
             {"HDEL h c d", "2"},
             {"EXISTS h", "0"},
             {"HDEL h c", "0"},
             {"TYPE fresh", "hash"},
             {"OBJECT ENCODING fresh", "\"listpack\""}});
}

TEST(HashCommands, WordsThatAreWrongChangeNothing) {
  Harness server;
  server.Do("SET s text");
  server.Do("HSET h f 10 w word");
  server.NewEffects();
  for (const char* line : {"HSET s a 1", "HGET s a", "HMGET s a", "HDEL s a", "HGETALL s", "HKEYS s", "HVALS s", "HLEN s",
                           "HSTRLEN s a", "HEXISTS s a", "HINCRBY s a 1", "HINCRBYFLOAT s a 1", "HSETNX s a 1", "HSCAN s 0",
                           "HRANDFIELD s", "HRANDFIELD s 1"})
    EXPECT_EQ(server.Do(line), kWrongType) << line;
  EXPECT_EQ(server.Do("GET h"), kWrongType);
  Play(server, {{"HSET h f", "-ERR wrong number of arguments for 'hset' command"},
                {"HSET h f 1 g", "-ERR wrong number of arguments for 'hset' command"},
                {"HMSET h f 1 g", "-ERR wrong number of arguments for 'hmset' command"},
                {"HINCRBY h f x", kNotInteger},
                {"HINCRBY h w 1", "-ERR hash value is not an integer"},
                {"HINCRBY h f 9223372036854775807", "-ERR increment or decrement would overflow"},
                {"HINCRBYFLOAT h f x", "-ERR value is not a valid float"},
                {"HINCRBYFLOAT h f inf", "-ERR value is NaN or Infinity"},
                {"HINCRBYFLOAT h w 1", "-ERR hash value is not a float"},
                {"HSCAN h x", "-ERR invalid cursor"},
                {"HSCAN h 0 COUNT 0", "-ERR syntax error"},
                {"HSCAN h 0 COUNT x", kNotInteger},
                {"HSCAN h 0 MATCH", "-ERR syntax error"},
                {"HSCAN none 0 NOSUCH", "[\"0\" []]"},
                {"HRANDFIELD h x", kNotInteger},
                {"HRANDFIELD h 1 x", "-ERR syntax error"},
                {"HRANDFIELD h 9223372036854775807 WITHVALUES", "-ERR value is out of range"},
                {"HRANDFIELD h -9223372036854775807", "-ERR value is out of range"}});
  EXPECT_THAT(server.NewEffects(), IsEmpty());
}

TEST(HashCommands, NumbersAreAddedTo) {
  PlayFresh({{"HINCRBY h n 5", "5"},
             {"HINCRBY h n -7", "-2"},
             {"HINCRBY h n -9223372036854775806", "-9223372036854775808"},
             {"HINCRBY h n -1", "-ERR increment or decrement would overflow"},
             {"HINCRBYFLOAT h f 0.1", "\"0.1\""},
             {"HINCRBYFLOAT h f 0.2", "\"0.3\""},
             {"HINCRBYFLOAT h f 1e20", "\"100000000000000000000\""},
             {"HSET h s \" 1\"", "1"},
             {"HINCRBYFLOAT h s 1", "-ERR hash value is not a float"}});
}

TEST(HashCommands, MapsAndPairsAreThoseOfTheProtocol) {
  Harness server;
  server.Do("HELLO 3");
  Play(server, {{"HSET h a 1", "1"},
                {"HGETALL h", "{\"a\": \"1\"}"},
                {"HGETALL none", "{}"},
                {"HRANDFIELD h 1 WITHVALUES", "[[\"a\" \"1\"]]"},
                {"HRANDFIELD h -2", "[\"a\" \"a\"]"},
                {"HRANDFIELD h 5", "[\"a\"]"}});
  server.Do("HELLO 2");
  Play(server, {{"HRANDFIELD h -2 WITHVALUES", "[\"a\" \"1\" \"a\" \"1\"]"},
                {"HRANDFIELD h", "\"a\""},
                {"HRANDFIELD none", "nil"},
                {"HRANDFIELD none 5", "[]"},
                {"HRANDFIELD h 0", "[]"}});
}

TEST(HashCommands, TheLogIsToldWhatStands) {
  Harness server;
  server.Do("HSET h f 1 g 2");
  EXPECT_THAT(server.NewEffects(), ElementsAre(Logged({"HSET", "h", "f", "1", "g", "2"})));
  server.Do("HSETNX h f 9");
  server.Do("HDEL h nothing");
  server.Do("HGET h f");
  EXPECT_THAT(server.NewEffects(), IsEmpty());
  server.Do("HSETNX h n 9");
  server.Do("HINCRBY h f 41");
  server.Do("HINCRBYFLOAT h f 0.5");
  server.Do("HDEL h n nothing");
  EXPECT_THAT(server.NewEffects(), ElementsAre(Logged({"HSET", "h", "n", "9"}), Logged({"HSET", "h", "f", "42"}),
                                               Logged({"HSET", "h", "f", "42.5"}), Logged({"HDEL", "h", "n", "nothing"})));
  server.Do("HDEL h f g");
  EXPECT_THAT(server.NewEffects(), ElementsAre(Logged({"HDEL", "h", "f", "g"}))) << "with its last field a hash is gone, for every reader of the log";
  server.Do("HSET h f 1");
  server.NewEffects();
  for (const char* line : {"MULTI", "HDEL h f", "SET h text", "DEL h", "EXEC"}) server.Do(line);
  EXPECT_THAT(server.NewEffects(), ElementsAre("DEL 0 h"));
}

TEST(HashCommands, AWatchedHashTripsWhenItChanges) {
  Harness server;
  const auto other = server.Connect();
  server.Do("HSET h f 1");
  Play(server, {{"WATCH h", "OK"}, {"HGET h f", "\"1\""}});
  server.Do(*other, "HSETNX h f 2");
  Play(server, {{"MULTI", "OK"}, {"HLEN h", "QUEUED"}, {"EXEC", "[1]"}, {"WATCH h", "OK"}});
  server.Do(*other, "HSET h f 1");
  Play(server, {{"MULTI", "OK"}, {"HLEN h", "QUEUED"}, {"EXEC", "nil"}});
}

TEST(HashCommands, AScanOfALargeHashShowsEveryFieldOnce) {
  Harness server;
  for (int i = 0; i < 1'000; ++i) server.Do("HSET h field:" + std::to_string(i) + " v");
  EXPECT_EQ(server.Do("OBJECT ENCODING h"), "\"hashtable\"");
  std::string cursor = "0";
  size_t fields = 0, calls = 0;
  do {
    const std::string reply = server.Do("HSCAN h " + cursor + " COUNT 30");
    cursor = reply.substr(2, reply.find('"', 2) - 2);
    for (size_t at = 0; (at = reply.find("field:", at)) != std::string::npos; ++at) ++fields;
    ++calls;
  } while (cursor != "0");
  EXPECT_EQ(fields, 1'000u);
  EXPECT_EQ(calls, 34u);
}

}  // namespace
}  // namespace idemd::testing

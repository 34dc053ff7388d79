// Requests on hashes, sets, sorted sets, lists and streams, alone, several in one unit, and by scripts.
// Nothing here is left to the server's own dice, so that a seed tells everything.
#include "tests/crash/workload.h"

namespace idemd::testing {
namespace {

// A key of each kind, each of which a wrong type makes fail half-way.
constexpr const char* kFourKinds =
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
    "redis.call('RPUSH', KEYS[2], ARGV[1], ARGV[2]) "
    "redis.call('SADD', KEYS[3], ARGV[1]) "
    "return redis.call('ZINCRBY', KEYS[4], 1, ARGV[1])";
// What is taken from one goes to the other.
constexpr const char* kMove =
    "local one = redis.call('LPOP', KEYS[1]) "
    "if one then redis.call('SADD', KEYS[2], one) redis.call('HINCRBY', KEYS[3], 'moved', 1) end "
    "return one";
constexpr const char* kNames = "hezlx";  // hashes, sets, sorted sets, lists, streams

}  // namespace

std::string Workload::Few(const char* kind) { return kind + std::to_string(Below(3)); }
std::string Workload::Part() { return "m" + std::to_string(Below(14)); }
std::string Workload::AnyCollection() {
  return std::string(1, kNames[Below(5)]) + std::to_string(Below(3));
}
std::string Workload::Element() {
  if (Below(10) == 0) return Value();
  return Below(3) == 0 ? std::to_string(static_cast<int64_t>(Below(2000)) - 1000) : Part();
}

void Workload::Collection() {
  switch (Below(7)) {
    case 0:
      return Hash();
    case 1:
      return Set();
    case 2:
      return SortedSet();
    case 3:
      return List();
    case 4:
    case 5:
      return Stream();
    default:
      return AnyOfThem();
  }
}

void Workload::Hash() {
  const std::string key = Few("h");
  switch (Below(6)) {
    case 0:
      Run({"HDEL", key, Part(), Part()});
      break;
    case 1:
      Run({"HINCRBY", key, "n", std::to_string(Below(9))});
      break;
    case 2:
      Run({"HINCRBYFLOAT", key, "f", "0.3"});
      break;
    case 3:
      Run({"HSETNX", key, Part(), Element()});
      break;
    default:
      Run({"HSET", key, Part(), Element(), Part(), Element()});
  }
}

void Workload::Set() {
  const std::string key = Few("e");
  switch (Below(7)) {
    case 0:
      Run({"SREM", key, Part(), Part(), Element()});
      break;
    case 1:
      Run({"SPOP", key, "100"});  // all
      break;
    case 2:
      Run({"SMOVE", key, Few("e"), Part()});
      break;
    case 3:
      Run({Below(2) == 0 ? "SUNIONSTORE" : "SDIFFSTORE", Few("e"), key, Few("e")});
      break;
    default:
      Run({"SADD", key, Part(), Element(), std::to_string(Below(30))});
  }
}

void Workload::SortedSet() {
  const std::string key = Few("z");
  switch (Below(8)) {
    case 0:
      Run({"ZREM", key, Part(), Part()});
      break;
    case 1:
      Run({"ZINCRBY", key, "0.1", Part()});
      break;
    case 2:
      Run({Below(2) == 0 ? "ZPOPMIN" : "ZPOPMAX", key, std::to_string(1 + Below(3))});
      break;
    case 3:
      Run({"ZREMRANGEBYRANK", key, "0", std::to_string(Below(3))});
      break;
    case 4:
      Run({"ZUNIONSTORE", Few("z"), "2", key, Few("e")});
      break;
    default:
      Run({"ZADD", key, std::to_string(Below(50)), Part(), std::to_string(Below(50)), Element()});
  }
}

void Workload::List() {
  const std::string key = Few("l");
  switch (Below(9)) {
    case 0:
      Run({Below(2) == 0 ? "LPOP" : "RPOP", key, std::to_string(1 + Below(3))});
      break;
    case 1:
      Run({"LMOVE", key, Few("l"), Below(2) == 0 ? "LEFT" : "RIGHT", Below(2) == 0 ? "LEFT" : "RIGHT"});
      break;
    case 2:
      Run({"LTRIM", key, std::to_string(Below(3)), std::to_string(static_cast<int64_t>(Below(12)) - 3)});
      break;
    case 3:
      Run({"LSET", key, std::to_string(static_cast<int64_t>(Below(6)) - 3), Element()});
      break;
    case 4:
      Run({"LINSERT", key, Below(2) == 0 ? "BEFORE" : "AFTER", Part(), Element()});
      break;
    case 5:
      Run({"LREM", key, std::to_string(static_cast<int64_t>(Below(5)) - 2), Part()});
      break;
    default:
      Run({Below(2) == 0 ? "LPUSH" : "RPUSH", key, Element(), Element()});
  }
}

void Workload::Stream() {
  const std::string key = Few("x"), group = "g" + std::to_string(Below(2)), who = Few("c");
  // IDs that there may be: every second one is told, and they are small.
  const std::string id = "0-" + std::to_string(1 + Below(80));
  switch (Below(16)) {
    case 0:
      Run({"XDEL", key, id, "0-" + std::to_string(1 + Below(80))});
      break;
    case 1:
      Run({"XGROUP", "CREATE", key, group, Below(2) == 0 ? "$" : "0", "MKSTREAM"});
      break;
    case 2:
      Run({"XGROUP", Below(3) == 0 ? "DESTROY" : "CREATE", key, group, "0", "MKSTREAM"});
      break;
    case 3:
      Below(2) == 0 ? Run({"XGROUP", "SETID", key, group, id})
                    : Run({"XGROUP", Below(2) == 0 ? "DELCONSUMER" : "CREATECONSUMER", key, group, who});
      break;
    case 4:
      Run({"XACK", key, group, id, "0-" + std::to_string(1 + Below(80))});
      break;
    case 5:
      Run({"XTRIM", key, "MAXLEN", Below(2) == 0 ? "~" : "=", std::to_string(Below(20))});
      break;
    case 6:
      Run({"XCLAIM", key, group, who, "0", id, "0-" + std::to_string(1 + Below(80))});
      break;
    case 7:
      Run({"XAUTOCLAIM", key, group, who, "0", "0", "COUNT", "3"});
      break;
    case 8:
    case 9:
    case 10: {
      Words words = {"XREADGROUP", "GROUP", group, who, "COUNT", std::to_string(1 + Below(4))};
      if (Below(4) == 0) words.emplace_back("NOACK");
      words.insert(words.end(), {"STREAMS", key, Below(4) == 0 ? "0" : ">"});
      Run(words);
      break;
    }
    default: {
      Words words = {"XADD", key};
      if (Below(5) == 0) words.insert(words.end(), {"MAXLEN", "~", "8"});
      words.push_back(Below(3) == 0 ? "0-" + std::to_string(1 + ++ids_) : "0-*");
      words.insert(words.end(), {Part(), Element()});
      if (Below(3) == 0) words.insert(words.end(), {"second", Element()});
      Run(words);
    }
  }
}

void Workload::AnyOfThem() {
  const std::string key = AnyCollection();
  switch (Below(10)) {
    case 0:
      Run({"COPY", key, AnyCollection(), "REPLACE"});
      break;
    case 1:
      Run({"RENAME", key, AnyCollection()});
      break;
    case 2:
      Run({"PEXPIRE", key, std::to_string(1 + Below(1500))});
      break;
    case 3:
      Run({"PERSIST", key});
      break;
    case 4:
      Run({"DEL", key, AnyCollection(), Key("p")});
      break;
    case 5:
      Below(2) == 0 ? Run({"SET", key, Value()}) : Run({"COPY", key, key, "DB", "1", "REPLACE"});
      break;
    case 6:
      Run({"SORT", Few("l"), "ALPHA", "STORE", Few("l")});
      break;
    case 7:
    case 8:
      Run({"EVAL", kFourKinds, "4", Few("h"), Few("l"), Few("e"), Below(6) == 0 ? AnyCollection() : Few("z"),
           Part(), Element()});
      break;
    default:
      Run({"EVAL", kMove, "3", Few("l"), Few("e"), Few("h")});
  }
}

}  // namespace idemd::testing

// The table of workloads. A line that differs between two servers differs in nothing but the
// command.
#include "bench/load/workloads.h"

#include <utility>

namespace idemd::bench {
namespace {

// A one-shot token is spent by comparing and deleting in one step.
constexpr absl::string_view kTokenScript =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
    "return 0";

// The least that a reservation in a string needs: who has it, for which request, until when. The
// state is P (at work) or D (done), the fingerprint, then the claim or the answer. It has no fence
// and no take-over, which idemd's has.
//   ARGV: claim, fingerprint (16 characters), lease in milliseconds
constexpr absl::string_view kReserveScript =
    "local state = redis.call('GET', KEYS[1]) "
    "if not state then "
    "redis.call('SET', KEYS[1], 'P' .. ARGV[2] .. ARGV[1], 'PX', ARGV[3]) "
    "return {'RESERVED', ARGV[1]} end "
    "if string.sub(state, 2, 17) ~= ARGV[2] then return {'MISMATCH', ''} end "
    "if string.sub(state, 1, 1) == 'D' then return {'DONE', string.sub(state, 18)} end "
    "return {'PENDING', redis.call('PTTL', KEYS[1])}";

//   ARGV: claim, fingerprint, answer, lifetime in milliseconds
constexpr absl::string_view kCompleteScript =
    "local state = redis.call('GET', KEYS[1]) "
    "if state ~= 'P' .. ARGV[2] .. ARGV[1] then return redis.error_reply('STALE not the claim') "
    "end "
    "redis.call('SET', KEYS[1], 'D' .. ARGV[2] .. ARGV[3], 'PX', ARGV[4]) "
    "return redis.status_reply('OK')";

// The same over a hash, as libraries that keep several fields do it.
//   ARGV: claim, fingerprint, lease in milliseconds
constexpr absl::string_view kReserveHashScript =
    "local f = redis.call('HMGET', KEYS[1], 'state', 'fp', 'result') "
    "if not f[1] then "
    "redis.call('HSET', KEYS[1], 'state', 'P', 'fp', ARGV[2], 'claim', ARGV[1], 'attempt', '1') "
    "redis.call('PEXPIRE', KEYS[1], ARGV[3]) "
    "return {'RESERVED', ARGV[1]} end "
    "if f[2] ~= ARGV[2] then return {'MISMATCH', ''} end "
    "if f[1] == 'D' then return {'DONE', f[3]} end "
    "return {'PENDING', redis.call('PTTL', KEYS[1])}";

constexpr absl::string_view kLease = "3600000";  // longer than any run
constexpr absl::string_view kKeepMs = "86400000";

Step PingInline() { return {.words = {}, .expected = {"PONG"}, .line = "PING\r\n"}; }
Step Get() { return {.words = {"GET", "__key__"}, .memcached = "get __key__\r\n"}; }
Step Set() {
  return {.words = {"SET", "__key__", "__data__", "EX", "__ttl__"},
          .expected = {"OK"},
          .memcached = "set __key__ 0 __ttl__ __data_bytes__\r\n__data__\r\n"};
}
Step SetNx() {
  return {.words = {"SET", "__key__", "__data__", "NX", "EX", "__ttl__"},
          .expected = {"OK"},
          .memcached = "add __key__ 0 __ttl__ __data_bytes__\r\n__data__\r\n"};
}
Step SetNxGet(std::vector<absl::string_view> expected) {
  return {{"SET", "__key__", "__new_claim__", "NX", "GET", "PX", kLease}, std::move(expected)};
}
Step Token() {
  return {.words = {"SET", "__key__", "1", "EX", "__ttl__"},
          .expected = {"OK"},
          .memcached = "set __key__ 0 __ttl__ 1\r\n1\r\n"};
}
Step Delete(std::vector<absl::string_view> expected = {"0", "1"}) {
  return {.words = {"DEL", "__key__"},
          .expected = std::move(expected),
          .memcached = "delete __key__\r\n"};
}
Step Consume(absl::string_view expected) { return {{"IDEM.CONSUME", "__key__"}, {expected}}; }
Step LuaToken(absl::string_view expected) {
  return {{"EVALSHA", "__token_script__", "1", "__key__", "1"}, {expected}};
}
Step Issue() { return {{"IDEM.TOKEN", "__prefix__", "EX", "__ttl__"}, {}, Capture::kToken}; }
Step ConsumeIssued() { return {{"IDEM.CONSUME", "__prefix____token__"}, {"1"}}; }

// With `claim` that of the number, a reservation can be completed by whoever knows the number.
Step Reserve(absl::string_view claim, std::vector<absl::string_view> expected,
             Capture capture = Capture::kNothing) {
  return {{"IDEM.RESERVE", "__key__", "CLAIM", claim, "FINGERPRINT", "__fingerprint__", "LEASE",
           kLease},
          std::move(expected),
          capture};
}
Step LuaReserve(absl::string_view script, absl::string_view claim,
                std::vector<absl::string_view> expected) {
  return {{"EVALSHA", script, "1", "__key__", claim, "__fingerprint__", kLease},
          std::move(expected)};
}
Step Complete() {
  return {{"IDEM.COMPLETE", "__key__", "__fence__", "__data__", "CODE", "200"}, {"OK"}};
}
Step LuaComplete() {
  return {{"EVALSHA", "__complete_script__", "1", "__key__", "__claim__", "__fingerprint__",
           "__data__", kKeepMs},
          {"OK"}};
}

constexpr absl::string_view kLuaReserve = "__reserve_script__";
constexpr absl::string_view kLuaReserveHash = "__reserve_hash_script__";

std::vector<Workload> MakeWorkloads() {
  std::vector<Workload> all = {
      {"ping_inline", "PING as a line", Order::kRandom, {PingInline()}},
      {"ping", "PING", Order::kRandom, {{{"PING"}, {"PONG"}}}},
      {"load", "SET EX of each of the first -r keys once", Order::kInOrder, {Set()}},
      {"get", "GET of any of the first -r keys", Order::kRandom, {Get()}},
      {"set", "SET", Order::kRandom, {{{"SET", "__key__", "__data__"}, {"OK"}}}},
      {"incr", "INCR", Order::kRandom, {{{"INCR", "counter:__rand_int__"}}}},
      {"set_ex", "SET EX of any of the first -r keys", Order::kRandom, {Set()}},
      {"set_nx", "SET NX EX of new keys", Order::kNew, {SetNx()}, {}, {Delete()}},
      {"set_nx_get", "SET NX GET PX of new keys", Order::kNew, {SetNxGet({"nil"})}, {}, {Delete()}},
      {"set_nx_get_taken",
       "SET NX GET PX of keys that are there",
       Order::kRepeated,
       {SetNxGet({})},
       {Set()},
       {Delete()}},
      {"del",
       "DEL of keys that are there",
       Order::kPrepared,
       {Delete({"1"})},
       {Token()},
       {Delete()}},
      {"mixed",
       "GET, and --sets percent SET EX, of the first -r keys",
       Order::kRandom,
       {Get(), Set()},
       {},
       {},
       true},

      {"token", "IDEM.TOKEN", Order::kNew, {Issue()}, {}, {ConsumeIssued()}},
      {"consume",
       "IDEM.CONSUME of tokens that are there",
       Order::kPrepared,
       {Consume("1")},
       {Token()},
       {Delete()}},
      {"consume_absent", "IDEM.CONSUME of tokens that are gone", Order::kNew, {Consume("0")}},
      {"token_cycle",
       "IDEM.TOKEN, then IDEM.CONSUME of what it gave",
       Order::kNew,
       {Issue(), ConsumeIssued()}},
      {"reserve",
       "IDEM.RESERVE of new keys",
       Order::kNew,
       {Reserve("__claim__", {"RESERVED"})},
       {},
       {Delete()}},
      {"reserve_pending",
       "IDEM.RESERVE of keys somebody works on",
       Order::kRepeated,
       {Reserve("__new_claim__", {"PENDING"})},
       {Reserve("__claim__", {"RESERVED"})},
       {Delete()}},
      {"reserve_done",
       "IDEM.RESERVE of keys whose answer is there",
       Order::kRepeated,
       {Reserve("__new_claim__", {"DONE"})},
       {Reserve("__claim__", {"RESERVED"}, Capture::kFence), Complete()},
       {Delete()}},
      {"complete",
       "IDEM.COMPLETE of reserved keys",
       Order::kPrepared,
       {Complete()},
       {Reserve("__claim__", {"RESERVED"}, Capture::kFence)},
       {Delete()}},
      {"reserve_cycle",
       "IDEM.RESERVE, then IDEM.COMPLETE",
       Order::kNew,
       {Reserve("__claim__", {"RESERVED"}, Capture::kFence), Complete()},
       {},
       {Delete()}},
      {"retry_storm",
       "IDEM.RESERVE, --duplicates percent of recent keys",
       Order::kStorm,
       {Reserve("__new_claim__", {"RESERVED", "PENDING"})},
       {},
       {Delete()}},

      {"lua_token",
       "EVALSHA of the token script, tokens that are there",
       Order::kPrepared,
       {LuaToken("1")},
       {Token()},
       {Delete()}},
      {"lua_token_absent", "... tokens that are gone", Order::kNew, {LuaToken("0")}},
      {"lua_token_cycle",
       "SET NX EX, then the token script",
       Order::kNew,
       {{{"SET", "__key__", "1", "NX", "EX", "__ttl__"}, {"OK"}}, LuaToken("1")}},
      {"lua_reserve",
       "a reserve script, new keys",
       Order::kNew,
       {LuaReserve(kLuaReserve, "__claim__", {"RESERVED"})},
       {},
       {Delete()}},
      {"lua_reserve_pending",
       "... keys somebody works on",
       Order::kRepeated,
       {LuaReserve(kLuaReserve, "__new_claim__", {"PENDING"})},
       {LuaReserve(kLuaReserve, "__claim__", {"RESERVED"})},
       {Delete()}},
      {"lua_reserve_done",
       "... keys whose answer is there",
       Order::kRepeated,
       {LuaReserve(kLuaReserve, "__new_claim__", {"DONE"})},
       {LuaReserve(kLuaReserve, "__claim__", {"RESERVED"}), LuaComplete()},
       {Delete()}},
      {"lua_complete",
       "a complete script",
       Order::kPrepared,
       {LuaComplete()},
       {LuaReserve(kLuaReserve, "__claim__", {"RESERVED"})},
       {Delete()}},
      {"lua_reserve_cycle",
       "the reserve script, then the complete script",
       Order::kNew,
       {LuaReserve(kLuaReserve, "__claim__", {"RESERVED"}), LuaComplete()},
       {},
       {Delete()}},
      {"lua_retry_storm",
       "the reserve script, --duplicates percent of recent keys",
       Order::kStorm,
       {LuaReserve(kLuaReserve, "__new_claim__", {"RESERVED", "PENDING"})},
       {},
       {Delete()}},
      {"lua_reserve_hash",
       "a reserve script over a hash, new keys",
       Order::kNew,
       {LuaReserve(kLuaReserveHash, "__claim__", {"RESERVED"})},
       {},
       {Delete()}},
  };
  return all;
}

}  // namespace

absl::Span<const Workload> Workloads() {
  static const std::vector<Workload>* const all = new std::vector<Workload>(MakeWorkloads());
  return *all;
}

absl::Span<const Script> Scripts() {
  static constexpr Script kScripts[] = {{"token_script", kTokenScript},
                                        {"reserve_script", kReserveScript},
                                        {"reserve_hash_script", kReserveHashScript},
                                        {"complete_script", kCompleteScript}};
  return kScripts;
}

const Workload* FindWorkload(absl::string_view name) {
  for (const Workload& workload : Workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

bool SuitsMemcached(const Workload& workload) {
  for (const auto* steps : {&workload.steps, &workload.prepare, &workload.clean}) {
    for (const Step& step : *steps) {
      if (step.memcached.empty()) return false;
    }
  }
  return true;
}

bool UsesCaptures(const Workload& workload) {
  for (const auto* steps : {&workload.steps, &workload.prepare}) {
    for (const Step& step : *steps) {
      if (step.capture != Capture::kNothing) return true;
    }
  }
  return false;
}

}  // namespace idemd::bench

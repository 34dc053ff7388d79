// hiredis against a running idemd: reply types in RESP2 and RESP3, pipelines, binary words, and the
// unix socket.
//
// usage: hiredis_client PORT [SOCKET]
#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

// hiredis before 1.0 speaks RESP2 only.
#ifdef REDIS_REPLY_MAP
constexpr bool kHasResp3 = true;
constexpr int kMapType = REDIS_REPLY_MAP;
#else
constexpr bool kHasResp3 = false;
constexpr int kMapType = REDIS_REPLY_ARRAY;
#endif

int passed = 0;
int failed = 0;

void Check(bool good, const std::string& what) {
  good ? ++passed : ++failed;
  if (!good) std::printf("FAILED  %s\n", what.c_str());
}

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Context = std::unique_ptr<redisContext, FreeContext>;

Reply Call(redisContext* context, const std::vector<std::string>& words) {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    data.push_back(word.data());
    sizes.push_back(word.size());
  }
  auto* reply = static_cast<redisReply*>(
      redisCommandArgv(context, static_cast<int>(words.size()), data.data(), sizes.data()));
  if (reply == nullptr) {
    std::printf("FAILED  connection lost at %s: %s\n", words[0].c_str(), context->errstr);
    std::exit(1);
  }
  return Reply(reply);
}

std::string Text(const redisReply* reply) { return std::string(reply->str, reply->len); }

bool IsText(const redisReply* reply, int type, const std::string& text) {
  return reply->type == type && Text(reply) == text;
}

// The value of `field` in a map reply of either protocol.
const redisReply* Field(const redisReply* map, const std::string& field) {
  for (size_t i = 0; i + 1 < map->elements; i += 2) {
    if (Text(map->element[i]) == field) return map->element[i + 1];
  }
  return nullptr;
}

void Strings(redisContext* context, const std::string& label) {
  const std::string binary("a\0\r\n\xff", 5);
  const std::string large(3'000'000, 'x');
  Check(IsText(Call(context, {"SET", "h:" + binary, binary}).get(), REDIS_REPLY_STATUS, "OK"),
        label + "SET of binary words");
  Check(IsText(Call(context, {"GET", "h:" + binary}).get(), REDIS_REPLY_STRING, binary),
        label + "GET of binary words");
  Check(IsText(Call(context, {"SET", "h:large", large}).get(), REDIS_REPLY_STATUS, "OK"),
        label + "SET of 3 MB");
  Check(IsText(Call(context, {"GET", "h:large"}).get(), REDIS_REPLY_STRING, large),
        label + "GET of 3 MB");
  Check(Call(context, {"GET", "h:absent"})->type == REDIS_REPLY_NIL,
        label + "GET of nothing is nil");
  Check(Call(context, {"DEL", "h:large", "h:" + binary})->integer == 2, label + "DEL counts");
  Check(Call(context, {"SET"})->type == REDIS_REPLY_ERROR, label + "arity error");
}

void Native(redisContext* context, const std::string& label, bool resp3) {
  const Reply token = Call(context, {"IDEM.TOKEN", "h:token:", "VALUE", "v"});
  Check(token->type == REDIS_REPLY_STRING && token->len == 32,
        label + "IDEM.TOKEN gives 32 characters");
  const std::string key = "h:token:" + Text(token.get());
  Check(Call(context, {"IDEM.CONSUME", key})->integer == 1, label + "IDEM.CONSUME wins");
  Check(Call(context, {"IDEM.CONSUME", key})->integer == 0, label + "IDEM.CONSUME loses");
  Check(
      IsText(Call(context, {"IDEM.CONSUME", key, "REASON"}).get(), REDIS_REPLY_STATUS, "DUPLICATE"),
      label + "a status alone is a simple string");

  const std::string job = "h:job" + label;
  const Reply first = Call(context, {"IDEM.RESERVE", job, "CLAIM", "c"});
  Check(first->type == REDIS_REPLY_ARRAY && first->elements == 6 &&
            IsText(first->element[0], REDIS_REPLY_STRING, "RESERVED") &&
            first->element[1]->type == REDIS_REPLY_INTEGER &&
            first->element[5]->type == REDIS_REPLY_NIL,
        label + "IDEM.RESERVE replies six elements");
  const std::string fence = std::to_string(first->element[1]->integer);
  Check(Call(context, {"IDEM.COMPLETE", job, fence, "answer", "CODE", "200"})->type ==
            REDIS_REPLY_STATUS,
        label + "IDEM.COMPLETE");
  const Reply done = Call(context, {"IDEM.RESERVE", job});
  Check(done->elements == 6 && IsText(done->element[0], REDIS_REPLY_STRING, "DONE") &&
            done->element[4]->integer == 200 &&
            IsText(done->element[5], REDIS_REPLY_STRING, "answer"),
        label + "IDEM.RESERVE replays the answer");
  const Reply stale = Call(context, {"IDEM.COMPLETE", job, "1", "other"});
  Check(stale->type == REDIS_REPLY_ERROR && Text(stale.get()).rfind("STALE", 0) == 0,
        label + "an old fence is STALE");
  const Reply status = Call(context, {"IDEM.STATUS", job});
  Check(status->type == (resp3 ? kMapType : REDIS_REPLY_ARRAY), label + "IDEM.STATUS is a map");
  const redisReply* state = Field(status.get(), "state");
  Check(state != nullptr && Text(state) == "done", label + "IDEM.STATUS says done");
  const Reply moved = Call(context, {"IDEM.TRANSITION", job + "s", "new", "FROM", "0", "INIT"});
  Check(moved->elements == 2 && IsText(moved->element[0], REDIS_REPLY_STRING, "MOVED") &&
            moved->element[1]->type == REDIS_REPLY_NIL,
        label + "IDEM.TRANSITION");
  Check(Call(context, {"IDEM.THROTTLE", job + "t", "15", "30", "60000"})->element[2]->integer == 15,
        label + "IDEM.THROTTLE");
  Check(Call(context, {"DEL", job, job + "s", job + "t"})->integer == 3,
        label + "native keys are deleted");
}

void Pipeline(redisContext* context, const std::string& label) {
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) redisAppendCommand(context, "INCR h:counter");
  redisAppendCommand(context, "IDEM.RESERVE h:pipeline CLAIM %b", "a\0b", size_t{3});
  bool good = true;
  for (int i = 0; i < kMany; ++i) {
    void* reply = nullptr;
    good = redisGetReply(context, &reply) == REDIS_OK &&
           static_cast<redisReply*>(reply)->integer == i + 1 && good;
    freeReplyObject(reply);
  }
  void* last = nullptr;
  good = redisGetReply(context, &last) == REDIS_OK &&
         static_cast<redisReply*>(last)->elements == 6 && good;
  freeReplyObject(last);
  Check(good, label + "10 001 commands in one pipeline");
  Call(context, {"DEL", "h:counter", "h:pipeline"});
}

void Everything(redisContext* context, const std::string& label) {
  if (context == nullptr || context->err != 0) return Check(false, label + "connect");
  const timeval patience{10, 0};
  redisSetTimeout(context, patience);
  Strings(context, label + "RESP2: ");
  Native(context, label + "RESP2: ", false);
  Pipeline(context, label + "RESP2: ");
  if (!kHasResp3) return;
  const Reply hello = Call(context, {"HELLO", "3", "SETNAME", "hiredis"});
  Check(hello->type == kMapType, label + "HELLO 3 replies a map");
  Strings(context, label + "RESP3: ");
  Native(context, label + "RESP3: ", true);
  Pipeline(context, label + "RESP3: ");
  Check(IsText(Call(context, {"CLIENT", "GETNAME"}).get(), REDIS_REPLY_STRING, "hiredis"),
        label + "the name was set");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const Context tcp(redisConnect("127.0.0.1", std::atoi(argv[1])));
  Everything(tcp.get(), "tcp ");
  if (argc > 2) {
    const Context local(redisConnectUnix(argv[2]));
    Everything(local.get(), "unix ");
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

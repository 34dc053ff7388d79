// What goes over the wire: every hole filled, nothing else touched.
#include "bench/load/request_template.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace idemd::bench {
namespace {

using Constants = std::map<std::string, std::string, std::less<>>;
using ::testing::HasSubstr;

std::string Made(const std::vector<std::string>& words, const Constants& constants,
                 RequestValues values, KeySpace space = KeySpace::kRedis) {
  auto compiled = RequestTemplate::Compile(words, space, constants);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return "";
  std::string out(compiled->size() + 1, '?');
  compiled->Write(values, out.data());
  EXPECT_EQ(out.back(), '?');
  out.pop_back();
  return out;
}

TEST(RequestTemplate, WordsWithoutNamesGoAsTheyAre) {
  EXPECT_EQ(Made({"SET", "a_b", ""}, {}, {}), "*3\r\n$3\r\nSET\r\n$3\r\na_b\r\n$0\r\n\r\n");
}

TEST(RequestTemplate, KeysStandBehindThePrefix) {
  EXPECT_EQ(Made({"GET", "__key__"}, {{"prefix", "app:"}}, {.number = 17}),
            "*2\r\n$3\r\nGET\r\n$20\r\napp:key:000000000017\r\n");
  EXPECT_EQ(Made({"GET", "__key__"}, {}, {.number = 17}),
            "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000017\r\n");
}

TEST(RequestTemplate, AWordMayHaveSeveralNamesAndOtherText) {
  EXPECT_EQ(Made({"a__rand_int__b__data__c__rand_int__"}, {{"data", "xyz"}}, {.number = 5}),
            "*1\r\n$30\r\na000000000005bxyzc000000000005\r\n");
}

TEST(RequestTemplate, ClaimsOfANumberAreTheSameAndNewOnesDiffer) {
  const std::vector<std::string> of_number = {"__claim__"}, fresh = {"__new_claim__"};
  EXPECT_EQ(Made(of_number, {}, {.number = 1, .random = 2}),
            Made(of_number, {}, {.number = 1, .random = 3}));
  EXPECT_NE(Made(of_number, {}, {.number = 1}), Made(of_number, {}, {.number = 2}));
  EXPECT_EQ(Made(fresh, {}, {.number = 1, .random = 3}),
            Made(fresh, {}, {.number = 2, .random = 3}));
  EXPECT_NE(Made(fresh, {}, {.number = 1, .random = 2}),
            Made(fresh, {}, {.number = 1, .random = 3}));
  EXPECT_NE(Made(of_number, {}, {.number = 7}), Made(fresh, {}, {.random = 7}));
  EXPECT_THAT(Made({"__fingerprint__"}, {}, {.number = 7}), HasSubstr("$16\r\n"));
}

TEST(RequestTemplate, WhatAReplySaidGoesIntoTheNextRequest) {
  const std::string token = "AaIoTU5iEcmeq4-pn0bVq4bhHaQUUuwF",
                    fence = "1839075203596289????????????????";
  EXPECT_EQ(
      Made({"IDEM.CONSUME", "__prefix____token__"}, {{"prefix", "p:"}}, {.captured = token.data()}),
      "*2\r\n$12\r\nIDEM.CONSUME\r\n$34\r\np:" + token + "\r\n");
  EXPECT_EQ(Made({"__fence__"}, {}, {.captured = fence.data()}),
            "*1\r\n$16\r\n1839075203596289\r\n");
}

TEST(RequestTemplate, TellsWhetherItNeedsAReply) {
  EXPECT_TRUE(RequestTemplate::Compile({"__fence__"}, KeySpace::kUuid, {})->needs_capture());
  EXPECT_TRUE(RequestTemplate::Compile({"__token__"}, KeySpace::kUuid, {})->needs_capture());
  EXPECT_FALSE(
      RequestTemplate::Compile({"__key__", "__claim__"}, KeySpace::kUuid, {})->needs_capture());
}

TEST(RequestTemplate, RefusesNamesThatThereAreNot) {
  EXPECT_THAT(RequestTemplate::Compile({"__kay__"}, KeySpace::kUuid, {}).status().message(),
              HasSubstr("__kay__"));
  EXPECT_FALSE(RequestTemplate::Compile({"a__key"}, KeySpace::kUuid, {}).ok());
  EXPECT_FALSE(RequestTemplate::Compile({"____"}, KeySpace::kUuid, {}).ok());
}

TEST(RequestTemplate, RawBytesHaveNoFrame) {
  auto raw = RequestTemplate::CompileRaw("add __key__ 0 60 __data_bytes__\r\n__data__\r\n",
                                         KeySpace::kRedis,
                                         {{"data", "xy"}, {"data_bytes", "2"}, {"prefix", "p:"}});
  ASSERT_TRUE(raw.ok()) << raw.status();
  std::string out(raw->size(), '?');
  raw->Write({.number = 3}, out.data());
  EXPECT_EQ(out, "add p:key:000000000003 0 60 2\r\nxy\r\n");
  EXPECT_FALSE(RequestTemplate::CompileRaw("get __kay__\r\n", KeySpace::kRedis, {}).ok());
}

}  // namespace
}  // namespace idemd::bench

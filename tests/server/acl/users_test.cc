// All users: changes, files, and what was denied.
#include "server/acl/users.h"

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/acl/catalog_of_test.h"

namespace idemd::server::acl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UsersTest : public ::testing::Test {
 protected:
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const auto& user : users_.All()) lines.push_back(user->Describe(users_.catalog()));
    return lines;
  }
  std::string Set(absl::string_view name, std::vector<absl::string_view> rules) {
    return std::string(users_.Set(name, rules).message());
  }
  void Write(absl::string_view text) { std::ofstream(path_) << text; }

  bool open_ = false;
  Users users_{TestCatalog(), [this](bool open) { open_ = open; }};
  const std::string path_ = ::testing::TempDir() + "users_test.acl";
};

TEST_F(UsersTest, ThereIsADefaultOneFromTheBeginning) {
  EXPECT_THAT(Lines(), ElementsAre("user default on nopass ~* &* +@all"));
  EXPECT_TRUE(open_);
  EXPECT_NE(users_.version(), 0u);
}

TEST_F(UsersTest, AChangeIsANewCopyAndANewVersion) {
  ASSERT_EQ(Set("a", {"on", "+get"}), "");
  const Users::Seen before = users_.Find("a");
  EXPECT_EQ(before.version, users_.version());
  ASSERT_EQ(Set("a", {"-get"}), "");
  EXPECT_NE(before.version, users_.version());
  EXPECT_EQ(before.user->Describe(users_.catalog()), "user a on resetchannels -@all +get");
  EXPECT_THAT(Lines(), ElementsAre("user a on resetchannels -@all", "user default on nopass ~* &* +@all"));
}

TEST_F(UsersTest, OfRulesAllCountOrNone) {
  EXPECT_EQ(Set("a", {"on", "+nosuch"}),
            "Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL");
  EXPECT_EQ(users_.Find("a").user, nullptr);
  EXPECT_EQ(Set("a", {"on", "(+get"}), "Unmatched parenthesis in acl selector starting at '(+get'.");
  ASSERT_EQ(Set("a", {"off"}), "");
  const uint64_t version = users_.version();
  EXPECT_NE(Set("a", {"on", "~* ~x"}), "");
  EXPECT_EQ(users_.version(), version);
  EXPECT_FALSE(users_.Find("a").user->enabled());
}

TEST_F(UsersTest, ARemovedOneIsGoneButTheDefaultOneStays) {
  ASSERT_EQ(Set("a", {}), "");
  const uint64_t version = users_.version();
  EXPECT_TRUE(users_.Remove("a"));
  EXPECT_NE(users_.version(), version);
  EXPECT_EQ(users_.Find("a").user, nullptr);
  EXPECT_FALSE(users_.Remove("a"));
  EXPECT_FALSE(users_.Remove("default"));
}

TEST_F(UsersTest, WhetherAnybodyMayComeInFollowsTheDefaultUser) {
  ASSERT_EQ(Set("default", {">pw"}), "");
  EXPECT_FALSE(open_);
  ASSERT_EQ(Set("default", {"nopass"}), "");
  EXPECT_TRUE(open_);
  ASSERT_EQ(Set("default", {"off"}), "");
  EXPECT_FALSE(open_);
  ASSERT_EQ(Set("default", {"on"}), "");
  users_.SetDefaultPassword("pw");
  EXPECT_FALSE(open_);
  EXPECT_TRUE(users_.Find("default").user->LetsIn("pw"));
  users_.SetDefaultPassword("");
  EXPECT_TRUE(open_);
}

TEST_F(UsersTest, NewOnesMayHaveAllChannels) {
  users_.all_channels.store(true);
  ASSERT_EQ(Set("a", {"(+get)"}), "");
  EXPECT_EQ(users_.Find("a").user->Describe(users_.catalog()), "user a off &* -@all (&* -@all +get)");
}

TEST_F(UsersTest, WhatWasSavedIsLoadedAgain) {
  ASSERT_EQ(Set("a", {"on", ">pw", "~k*", "%R~r", "&c", "+@all", "-@admin", "(+get ~x)"}), "");
  ASSERT_EQ(Set("b", {"nopass", "+select|0"}), "");
  const std::vector<std::string> before = Lines();
  ASSERT_TRUE(users_.Save(path_).ok());
  ASSERT_EQ(Set("c", {}), "");
  ASSERT_EQ(Set("default", {"off"}), "");
  std::vector<std::string> replaced;
  ASSERT_TRUE(users_.Load(path_, &replaced).ok());
  EXPECT_EQ(Lines(), before);
  EXPECT_TRUE(open_);
  EXPECT_THAT(replaced, ElementsAre("a", "b", "c"));
}

TEST_F(UsersTest, AFileWithAMistakeChangesNothing) {
  ASSERT_EQ(Set("a", {"on"}), "");
  const std::vector<std::string> before = Lines();
  std::vector<std::string> replaced;
  const auto error = [&](absl::string_view text) {
    Write(text);
    const std::string message(users_.Load(path_, &replaced).message());
    EXPECT_EQ(Lines(), before);
    EXPECT_THAT(message, HasSubstr("no change to the previously active ACL rules was performed"));
    return message;
  };
  EXPECT_THAT(error("user b on\n\nuser b off\n"), HasSubstr("WARNING: Duplicate user 'b' found on line 3. "));
  EXPECT_THAT(error("usr b on\n"), HasSubstr(path_ + ":1: "));
  EXPECT_THAT(error("user b +nosuch\n"), HasSubstr(":1: Unknown command or category name in ACL."));
  EXPECT_THAT(error("user b (+get\n"), HasSubstr(":1: Unmatched parenthesis in selector definition."));
  EXPECT_FALSE(users_.Load(path_ + ".none", &replaced).ok());
  EXPECT_EQ(Lines(), before);
  EXPECT_TRUE(replaced.empty());
}

TEST_F(UsersTest, AFileWithoutADefaultUserHasTheUsualOne) {
  ASSERT_EQ(Set("default", {"off", "resetkeys"}), "");
  Write("# a comment\nuser a on nopass  ~x   +get\r\n");
  std::vector<std::string> replaced;
  ASSERT_TRUE(users_.Load(path_, &replaced).ok());
  EXPECT_THAT(Lines(), ElementsAre("user a on nopass ~x resetchannels -@all +get",
                                   "user default on nopass ~* &* +@all"));
}

TEST_F(UsersTest, ConfigurationFilesDeclareUsers) {
  const auto declare = [&](std::vector<std::vector<std::string>> users) {
    return std::string(users_.Declare(users).message());
  };
  EXPECT_EQ(declare({{"a", "on", "(", "+get", ")"}, {"default", "off"}}), "");
  EXPECT_THAT(Lines(), ElementsAre("user a on resetchannels -@all (resetchannels -@all +get)",
                                   "user default off sanitize-payload resetchannels -@all"));
  EXPECT_FALSE(open_);
  EXPECT_EQ(declare({{"b", "+x"}}),
            "Error loading ACL rule '+x' for the user named 'b': Unknown command or category name in ACL");
  EXPECT_EQ(users_.Find("b").user, nullptr);
  for (const char* name : {"", "a b", "a\tb"}) EXPECT_NE(declare({{name, "on"}}), "") << name;
}

Denials::Entry Denied(const char* reason, std::string object, int64_t at_ms) {
  return {.reason = reason, .context = "toplevel", .object = std::move(object), .user = "u", .at_ms = at_ms};
}

TEST(Denials, LikeOnesCountTogetherForAMinute) {
  Denials denials;
  denials.Add(Denied("command", "get", 1'000), 128);
  denials.Add(Denied("key", "get", 2'000), 128);
  denials.Add(Denied("command", "get", 61'000), 128);
  auto newest = denials.Newest(10);
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0].count, 2u);
  EXPECT_EQ(newest[0].at_ms, 61'000);
  EXPECT_STREQ(newest[1].reason, "key");
  denials.Add(Denied("command", "get", 121'001), 128);
  newest = denials.Newest(10);
  ASSERT_EQ(newest.size(), 3u);
  EXPECT_EQ(newest[0].count, 1u);
  EXPECT_EQ(denials.Newest(1).size(), 1u);
  denials.Clear();
  EXPECT_TRUE(denials.Newest(10).empty());
}

TEST(Denials, OnlySoManyAreKept) {
  Denials denials;
  for (int i = 0; i < 5; ++i) denials.Add(Denied("key", std::to_string(i), i), 3);
  const auto newest = denials.Newest(10);
  ASSERT_EQ(newest.size(), 3u);
  EXPECT_EQ(newest[0].object, "4");
  EXPECT_EQ(newest[2].object, "2");
  denials.Add(Denied("key", "5", 5), 0);
  EXPECT_TRUE(denials.Newest(10).empty());
}

}  // namespace
}  // namespace idemd::server::acl

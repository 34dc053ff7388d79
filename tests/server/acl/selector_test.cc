// Rules about commands, keys and channels, and what they allow.
#include "server/acl/selector.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/server/acl/catalog_of_test.h"
#include "tests/support/seed.h"

namespace idemd::server::acl {
namespace {

class SelectorTest : public ::testing::Test {
 protected:
  Selector Of(absl::string_view rules) {
    Selector selector;
    for (absl::string_view rule : absl::StrSplit(rules, ' ', absl::SkipEmpty()))
      EXPECT_EQ(selector.Apply(catalog_, rule), RuleError::kNone) << rule;
    return selector;
  }
  RuleError Error(absl::string_view rules) {
    Selector selector;
    RuleError error = RuleError::kNone;
    for (absl::string_view rule : absl::StrSplit(rules, ' ')) {
      if (error == RuleError::kNone) error = selector.Apply(catalog_, rule);
    }
    return error;
  }
  Verdict Call(const Selector& selector, absl::string_view command, std::vector<absl::string_view> words = {},
               std::vector<KeyUse> keys = {}, std::vector<ChannelUse> channels = {}) {
    return selector.Check(catalog_, {catalog_.Find(command), words, keys, channels}, &word_);
  }
  Verdict Key(absl::string_view rules, absl::string_view key, Access access) {
    return Call(Of(rules), "get", {"get", key}, {{key, access, 1}});
  }
  Verdict Channel(absl::string_view rules, absl::string_view channel, bool pattern) {
    return Call(Of(rules), "get", {"get", channel}, {}, {{channel, pattern, 1}});
  }

  const Catalog catalog_ = TestCatalog();
  size_t word_ = 0;
};

TEST_F(SelectorTest, ANewOneAllowsNothingButToLogIn) {
  const Selector none;
  EXPECT_EQ(Call(none, "get"), Verdict::kCommand);
  EXPECT_EQ(Call(none, "auth"), Verdict::kAllowed);
  EXPECT_FALSE(none.unrestricted());
  EXPECT_EQ(none.Describe(catalog_), "resetchannels -@all");
}

TEST_F(SelectorTest, APrefixIsAllowedOnlyWithWhateverFollows) {
  const auto prefix = [&](absl::string_view rules, absl::string_view key) {
    return Call(Of(rules), "get", {"get", key}, {{key, kWrite, 1, true}});
  };
  for (absl::string_view rules : {"+@all ~*", "+@all ~t:*", "+@all ~t*", "+@all %W~t:*", R"(+@all ~t:\\*)", "allcommands allkeys"})
    EXPECT_EQ(prefix(rules, rules.find('\\') == absl::string_view::npos ? "t:" : R"(t:\)"), Verdict::kAllowed) << rules;
  for (absl::string_view rules : {"+@all ~t:", "+@all ~t:?", "+@all ~t:a*", "+@all %R~t:*", R"(+@all ~t:\*)", "+@all ~u*"})
    EXPECT_EQ(prefix(rules, "t:"), Verdict::kKey) << rules;
  EXPECT_EQ(prefix(R"(+@all ~t:\*)", "t:*"), Verdict::kKey) << "a star that stands for itself";
}

TEST_F(SelectorTest, RulesCountInTheirOrder) {
  EXPECT_EQ(Call(Of("+@all -get"), "get"), Verdict::kCommand);
  EXPECT_EQ(Call(Of("-get +@all"), "get"), Verdict::kAllowed);
  EXPECT_EQ(Call(Of("+@read -get"), "mget"), Verdict::kAllowed);
  EXPECT_EQ(Call(Of("+@read -@read"), "get"), Verdict::kCommand);
  EXPECT_EQ(Call(Of("ALLCOMMANDS NoCommands"), "get"), Verdict::kCommand);
}

TEST_F(SelectorTest, SubcommandsFollowTheirContainerUntilOneIsNamed) {
  EXPECT_EQ(Call(Of("+config"), "config|get"), Verdict::kAllowed);
  EXPECT_EQ(Call(Of("+config -config|set"), "config|set"), Verdict::kCommand);
  EXPECT_EQ(Call(Of("+CONFIG|GET"), "config|get"), Verdict::kAllowed);
  EXPECT_EQ(Call(Of("+config|get"), "config|set"), Verdict::kCommand);
  // A category that has the container reaches what is in it.
  EXPECT_EQ(Call(Of("+@slow"), "config|set"), Verdict::kAllowed);
}

TEST_F(SelectorTest, ACommandMayBeAllowedForOneFirstWord) {
  const Selector selector = Of("+select|0 +select|a");
  EXPECT_EQ(Call(selector, "select", {"select", "0"}), Verdict::kAllowed);
  EXPECT_EQ(Call(selector, "select", {"select", "A"}), Verdict::kAllowed);
  EXPECT_EQ(Call(selector, "select", {"select", "1"}), Verdict::kCommand);
  EXPECT_EQ(Call(selector, "select", {"select"}), Verdict::kCommand);
  EXPECT_EQ(Call(Of("+select|0 -select"), "select", {"select", "0"}), Verdict::kCommand);
  EXPECT_EQ(selector.CommandRules(catalog_), "-@all +select|0 +select|a");
}

TEST_F(SelectorTest, KeysNeedAPatternThatAllowsAllThatIsDoneToThem) {
  EXPECT_EQ(Key("+get ~a*", "ab", kReadWrite), Verdict::kAllowed);
  EXPECT_EQ(Key("+get ~a*", "b", kRead), Verdict::kKey);
  EXPECT_EQ(word_, 1u);
  EXPECT_EQ(Key("+get %R~a", "a", kRead), Verdict::kAllowed);
  EXPECT_EQ(Key("+get %R~a", "a", kWrite), Verdict::kKey);
  EXPECT_EQ(Key("+get %W~a", "a", kReadWrite), Verdict::kKey);
  EXPECT_EQ(Key("+get %R~a %W~*", "a", kReadWrite), Verdict::kKey) << "one pattern has to allow it all";
  EXPECT_EQ(Key("+get %R~a %w~a", "a", kReadWrite), Verdict::kAllowed) << "the same pattern twice is one";
  EXPECT_EQ(Key("+get %W~a", "a", 0), Verdict::kAllowed);
  EXPECT_EQ(Key("+get", "a", 0), Verdict::kKey);
  EXPECT_EQ(Key("+get allkeys", "a", kReadWrite), Verdict::kAllowed);
  EXPECT_EQ(Key("+get ~* resetkeys", "a", kRead), Verdict::kKey);
}

TEST_F(SelectorTest, ChannelsMatchAndPatternsMustBeTheSame) {
  EXPECT_EQ(Channel("+get &a*", "ab", false), Verdict::kAllowed);
  EXPECT_EQ(Channel("+get &a*", "b", false), Verdict::kChannel);
  EXPECT_EQ(Channel("+get &a*", "a*", true), Verdict::kAllowed);
  EXPECT_EQ(Channel("+get &a*", "ab", true), Verdict::kChannel);
  EXPECT_EQ(Channel("+get allchannels", "*", true), Verdict::kAllowed);
  EXPECT_EQ(Channel("+get &* resetchannels", "a", false), Verdict::kChannel);
}

TEST_F(SelectorTest, WrongRulesAreNamed) {
  EXPECT_EQ(Error("+nosuch"), RuleError::kUnknown);
  EXPECT_EQ(Error("-nosuch"), RuleError::kUnknown);
  EXPECT_EQ(Error("+@nosuch"), RuleError::kUnknown);
  EXPECT_EQ(Error("-@nosuch"), RuleError::kUnknown);
  EXPECT_EQ(Error("+config|nosuch"), RuleError::kUnknown);
  EXPECT_EQ(Error("+config|"), RuleError::kSyntax);
  EXPECT_EQ(Error("+config|get|x"), RuleError::kFirstWordOfSubcommand);
  EXPECT_EQ(Error("-get|x"), RuleError::kUnknown);
  EXPECT_EQ(Error("get"), RuleError::kSyntax);
  EXPECT_EQ(Error("~* ~a"), RuleError::kKeysAreAll);
  EXPECT_EQ(Error("allkeys %R~a"), RuleError::kKeysAreAll);
  EXPECT_EQ(Error("&* &a"), RuleError::kChannelsAreAll);
  for (const char* rule : {"%X~a", "%~a", "%", "%RR~a", "%RWR~a", "~a\tb", "&a\nb", "+select|0\t1"})
    EXPECT_EQ(Error(rule), RuleError::kSyntax) << rule;
  EXPECT_EQ(Selector().Apply(catalog_, "+select|0 1"), RuleError::kSyntax) << "it would be two rules in a file";
}

TEST_F(SelectorTest, IsDescribedByTheCategoriesThatFitBest) {
  EXPECT_EQ(Of("+@all").CommandRules(catalog_), "+@all");
  EXPECT_EQ(Of("+get +mget").CommandRules(catalog_), "-@all +@read");
  EXPECT_EQ(Of("+@all -@read").CommandRules(catalog_), "+@all -@read");
  EXPECT_EQ(Of("+@all -@read +get").CommandRules(catalog_), "+@all -mget") << "half of a category is none";
  EXPECT_EQ(Of("+@all -set").CommandRules(catalog_), "+@all -set");
  EXPECT_EQ(Of("+@write -config|get").CommandRules(catalog_), "-@all +@write");
  EXPECT_EQ(Of("~a %R~b %W~c %RW~d &x &y +get").Describe(catalog_),
            "~a %R~b %W~c ~d resetchannels &x &y -@all +get");
}

TEST_F(SelectorTest, APatternForAllKeysIsDescribedSoThatOthersMayFollowIt) {
  const std::string words = Of("%R~* %W~* ~a").KeyRules();
  EXPECT_EQ(words, "%RW~* ~a");
  EXPECT_EQ(Of(words).KeyRules(), words);
}

// Whatever the rules, the words for the result make the same selector again.
TEST_F(SelectorTest, ItsDescriptionMakesTheSameRights) {
  const std::vector<std::string> rules = {"+@all", "-@all", "+@read", "-@read", "+@write", "-@admin", "+@slow",
                                          "+get", "-get", "+config", "-config", "+config|get", "-config|set",
                                          "+select|0", "-select"};
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Selector selector;
    std::string said;
    for (int i = 0; i < 6; ++i) {
      const std::string& rule = rules[random() % rules.size()];
      said += rule + " ";
      ASSERT_EQ(selector.Apply(catalog_, rule), RuleError::kNone);
    }
    const std::string words = selector.CommandRules(catalog_);
    const Selector again = Of(words);
    ASSERT_EQ(again.CommandRules(catalog_), words) << said;
    for (const Catalog::Command& command : catalog_.commands()) {
      for (absl::string_view first : {"0", "1"})
        ASSERT_EQ(Call(selector, command.name, {command.name, first}), Call(again, command.name, {command.name, first}))
            << said << " against " << words << ": " << command.name;
    }
  }
}

TEST_F(SelectorTest, OnlyWhoMayReadAnyKeyMayFollowPatterns) {
  EXPECT_TRUE(Of("~*").ReadsAllKeys());
  EXPECT_TRUE(Of("%R~*").ReadsAllKeys());
  EXPECT_FALSE(Of("%W~*").ReadsAllKeys());
  EXPECT_FALSE(Of("~a*").ReadsAllKeys());
}

TEST_F(SelectorTest, IsUnrestrictedOnlyWhenNothingIsLimited) {
  EXPECT_TRUE(Of("+@all ~* &*").unrestricted());
  EXPECT_FALSE(Of("+@all ~* &* -get").unrestricted());
  EXPECT_FALSE(Of("+@all ~* &* -get +get").unrestricted()) << "as in Redis, until the next +@all";
  EXPECT_FALSE(Of("+@all %RW~* &*").unrestricted());
  EXPECT_FALSE(Of("+@all ~*").unrestricted());
}

}  // namespace
}  // namespace idemd::server::acl

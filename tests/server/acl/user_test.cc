// Passwords and selectors of a user.
#include "server/acl/user.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/acl/catalog_of_test.h"

namespace idemd::server::acl {
namespace {

using ::testing::ElementsAre;

// SHA-256 of "pw", from another program.
constexpr const char* kPwDigest = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";

class UserTest : public ::testing::Test {
 protected:
  RuleError Apply(absl::string_view rule) { return user_.Apply(catalog_, rule, false); }
  Verdict Key(absl::string_view command, absl::string_view key, Access access) {
    const std::vector<absl::string_view> words = {command, key};
    const std::vector<KeyUse> keys = {{key, access, 1}};
    return user_.Check(catalog_, {catalog_.Find(command), words, keys, {}}, &word_);
  }

  const Catalog catalog_ = TestCatalog();
  User user_{"u", false};
  size_t word_ = 0;
};

TEST_F(UserTest, ANewOneIsOffAndMayNothing) {
  EXPECT_EQ(user_.Describe(catalog_), "user u off resetchannels -@all");
  EXPECT_FALSE(user_.LetsIn(""));
}

TEST_F(UserTest, TheDefaultOneMayEverything) {
  EXPECT_EQ(User::Default().Describe(catalog_), "user default on nopass ~* &* +@all");
  EXPECT_TRUE(User::Default().unrestricted());
  EXPECT_TRUE(User::Default().LetsIn("whatever"));
}

TEST_F(UserTest, AnyOfItsPasswordsLetsIn) {
  ASSERT_EQ(Apply(">pw"), RuleError::kNone);
  EXPECT_FALSE(user_.LetsIn("pw")) << "it is off";
  ASSERT_EQ(Apply("on"), RuleError::kNone);
  EXPECT_TRUE(user_.LetsIn("pw"));
  EXPECT_FALSE(user_.LetsIn("p"));
  EXPECT_FALSE(user_.LetsIn(""));
  EXPECT_FALSE(user_.LetsIn(kPwDigest));
  ASSERT_EQ(Apply(">other"), RuleError::kNone);
  ASSERT_EQ(Apply(">pw"), RuleError::kNone);
  EXPECT_EQ(user_.passwords().size(), 2u);
  EXPECT_EQ(user_.passwords()[0], kPwDigest);
  EXPECT_TRUE(user_.LetsIn("other"));
  ASSERT_EQ(Apply("<pw"), RuleError::kNone);
  EXPECT_FALSE(user_.LetsIn("pw"));
  EXPECT_EQ(Apply("<pw"), RuleError::kNoSuchPassword);
  EXPECT_EQ(Apply(std::string("!") + kPwDigest), RuleError::kNoSuchPassword);
  ASSERT_EQ(Apply(std::string("#") + kPwDigest), RuleError::kNone);
  EXPECT_TRUE(user_.LetsIn("pw"));
  for (const char* rule : {"#abc", "!abc", "#30C952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4"})
    EXPECT_EQ(Apply(rule), RuleError::kBadDigest) << rule;
}

TEST_F(UserTest, NopassForgetsPasswordsAndAPasswordEndsNopass) {
  ASSERT_EQ(Apply("on"), RuleError::kNone);
  ASSERT_EQ(Apply(">pw"), RuleError::kNone);
  ASSERT_EQ(Apply("nopass"), RuleError::kNone);
  EXPECT_TRUE(user_.LetsIn("x"));
  EXPECT_TRUE(user_.passwords().empty());
  ASSERT_EQ(Apply(">pw"), RuleError::kNone);
  EXPECT_FALSE(user_.LetsIn("x"));
  ASSERT_EQ(Apply("resetpass"), RuleError::kNone);
  EXPECT_FALSE(user_.LetsIn("pw"));
}

TEST_F(UserTest, OneOfItsSelectorsHasToAllowTheWholeCall) {
  for (const char* rule : {"+get", "~a", "(+set ~b)", "(%R~c +get)"}) ASSERT_EQ(Apply(rule), RuleError::kNone);
  EXPECT_EQ(Key("get", "a", kRead), Verdict::kAllowed);
  EXPECT_EQ(Key("set", "b", kWrite), Verdict::kAllowed);
  EXPECT_EQ(Key("get", "c", kRead), Verdict::kAllowed);
  EXPECT_EQ(Key("get", "b", kRead), Verdict::kKey);
  EXPECT_EQ(word_, 1u);
  EXPECT_EQ(Key("del", "a", kWrite), Verdict::kCommand);
  EXPECT_EQ(user_.Describe(catalog_),
            "user u off ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels -@all +get)");
  ASSERT_EQ(Apply("clearselectors"), RuleError::kNone);
  EXPECT_EQ(Key("set", "b", kWrite), Verdict::kCommand);
  EXPECT_EQ(Apply("(on)"), RuleError::kSyntax);
  EXPECT_EQ(Apply("(+nosuch)"), RuleError::kUnknown);
  EXPECT_EQ(Apply("("), RuleError::kSyntax);
  for (const char* rule : {"(~a))", "(~a) ~b)", "(+select|0))"})
    EXPECT_EQ(Apply(rule), RuleError::kSyntax) << rule << ": a file would end the selector early";
}

TEST_F(UserTest, ResetLeavesNothing) {
  for (const char* rule : {"on", ">pw", "+@all", "~*", "&*", "(+get)", "skip-sanitize-payload", "", "reset"})
    ASSERT_EQ(Apply(rule), RuleError::kNone) << rule;
  EXPECT_EQ(user_.Describe(catalog_), "user u off sanitize-payload resetchannels -@all");
}

TEST_F(UserTest, WordsBetweenParenthesesAreOneRule) {
  std::vector<std::string> rules;
  absl::string_view open;
  EXPECT_TRUE(JoinSelectors({"on", "(", "+get", "~a", ")", "(+set)", "~x)", "(a", "b)"}, &rules, &open));
  EXPECT_THAT(rules, ElementsAre("on", "( +get ~a )", "(+set)", "~x)", "(a b)"));
  rules.clear();
  EXPECT_FALSE(JoinSelectors({"(+get", "~a"}, &rules, &open));
  EXPECT_EQ(open, "(+get");
}

}  // namespace
}  // namespace idemd::server::acl

// Keys have the form they claim, are distinct, and are the same in every process.
#include "bench/load/key_space.h"

#include <regex>
#include <set>
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "storage/key/tail.h"

namespace idemd::bench {
namespace {

std::string Key(KeySpace space, uint64_t number) {
  // A guard behind it: no byte more than announced is written.
  std::string key(KeyChars(space) + 1, '?');
  WriteKey(space, number, key.data());
  EXPECT_EQ(key.back(), '?');
  key.pop_back();
  return key;
}

struct Form {
  const char* name;
  KeySpace space;
  const char* pattern;
  storage::TailKind read_as;
};
const Form kForms[] = {
    {"redis", KeySpace::kRedis, "key:[0-9]{12}", storage::TailKind::kNone},
    {"uuid", KeySpace::kUuid, "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
     storage::TailKind::kUuid},
    {"token", KeySpace::kToken, "[A-Za-z0-9_-]{32}", storage::TailKind::kToken},
    {"name", KeySpace::kName, "[a-z0-5.]{36}", storage::TailKind::kNone},
};

TEST(KeySpace, EachHasTheFormThatItsNameSays) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    KeySpace space{};
    ASSERT_TRUE(ReadKeySpace(form.name, &space));
    EXPECT_EQ(space, form.space);
    const std::regex pattern(form.pattern);
    for (uint64_t number = 0; number < 2000; ++number) {
      const std::string key = Key(space, number * 999'999'937);
      ASSERT_TRUE(std::regex_match(key, pattern)) << key;
    }
  }
  KeySpace space{};
  EXPECT_FALSE(ReadKeySpace("guid", &space));
  EXPECT_FALSE(ReadKeySpace("", &space));
}

TEST(KeySpace, TheServerReadsEachAsWhatItIs) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    for (uint64_t number = 0; number < 2000; ++number) {
      ASSERT_EQ(storage::ReadTail(Key(form.space, number)).kind, form.read_as)
          << Key(form.space, number);
    }
  }
}

TEST(KeySpace, NumbersNextToEachOtherGiveDistinctKeys) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    std::set<std::string> keys;
    for (uint64_t number = 0; number < 20'000; ++number) keys.insert(Key(form.space, number));
    for (uint64_t number = 0; number < 20'000; ++number) {
      keys.insert(Key(form.space, 500'000'000'000 + number));
    }
    EXPECT_EQ(keys.size(), 40'000u);
  }
}

TEST(KeySpace, AKeyIsTheSameInEveryProcess) {
  EXPECT_EQ(Key(KeySpace::kRedis, 42), "key:000000000042");
  EXPECT_EQ(Key(KeySpace::kUuid, 42), "59e6bef2-6223-4ddb-839e-b6008b2f62bd");
  EXPECT_EQ(Key(KeySpace::kToken, 42), "AdGpSiAqbp3XMiYv626Vsm8rgAa-k0F6");
  EXPECT_EQ(Key(KeySpace::kName, 42), "vu1w4xyesz.1uj0xgaaxsx.wmctwo13ffu.p");
}

TEST(KeySpace, DigitsAreThoseOfTheNumber) {
  char digits[kDigits + 1] = {};
  WriteDigits(123'456'789'012, digits);
  EXPECT_STREQ(digits, "123456789012");
  WriteDigits(7, digits);
  EXPECT_STREQ(digits, "000000000007");
  WriteDigits(9'000'000'000'001, digits);
  EXPECT_STREQ(digits, "000000000001");
}

TEST(KeySpace, EveryHexadecimalDigitOccurs) {
  std::set<char> of_fingerprint, of_uuid;
  for (uint64_t number = 0; number < 1000; ++number) {
    char text[kFingerprintChars];
    WriteFingerprint(number, text);
    of_fingerprint.insert(text, text + sizeof(text));
    char uuid[kUuidChars];
    WriteUuid(number, uuid);
    of_uuid.insert(uuid, uuid + 8);
  }
  const std::set<char> digits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                 '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  EXPECT_EQ(of_fingerprint, digits);
  EXPECT_EQ(of_uuid, digits);
}

TEST(Random, StaysBelowAndReachesAllOfASmallRange) {
  Random random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Below(7));
  EXPECT_EQ(seen, (std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, AChanceOfNothingNeverAndOfAllAlwaysComesTrue) {
  Random random(1);
  int quarter = 0;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_FALSE(random.Chance(0));
    EXPECT_TRUE(random.Chance(1));
    if (random.Chance(0.25)) ++quarter;
  }
  EXPECT_NEAR(quarter, 25'000, 1000);
}

}  // namespace
}  // namespace idemd::bench

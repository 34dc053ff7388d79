// The record's line: its one spelling, and every way to damage it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "storage/record/record.h"
#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

ParseVerdict Parse(absl::string_view text) {
  std::string scratch;
  Record record;
  return ParseText(text, scratch, record);
}

// Text -> record -> text, or "damaged" / "no record".
std::string Again(absl::string_view text) {
  std::string scratch;
  Record record;
  switch (ParseText(text, scratch, record)) {
    case ParseVerdict::kNoRecord:
      return "no record";
    case ParseVerdict::kDamaged:
      return "damaged";
    case ParseVerdict::kRecord:
      return Text(record);
  }
  return "?";
}

std::vector<Record> Samples() {
  Record full = WithToken(Pending(), "user 7/%\n", kNow + 5);
  full.has_fingerprint = true;
  full.fingerprint = absl::string_view("\0\xff~-._ ", 7);
  full.stop = true;
  full.attempt = 3;
  Record late = Done(absl::string_view("a\0b\n", 4), -5);
  late.has_after = true;
  late.after_ms = kNow - 700;
  return {Pending(),
          full,
          WithPayload(full, "step 2\nof 3"),
          Unknown(),
          ReleasedRecord(),
          WithPayload(ReleasedRecord(), ""),
          Failed(0),
          WithToken(Failed(5'000), "", kNoDeadline),
          Done(),
          Done("", 0),
          late,
          DoneWithoutResult(),
          ConsumedBy(),
          WithToken(ConsumedBy("a b"), "", kNoDeadline)};
}

TEST(RecordText, IsTheContractsLine) {
  Record r = WithToken(Done("body", 201), "u:1", kNow + 60'000);
  r.has_fingerprint = true;
  r.fingerprint = "a b";
  r.stop = true;
  r.has_after = true;
  r.after_ms = 7;
  EXPECT_EQ(Text(r),
            "idem/1 state=done fence=1740800000000123 attempt=1 since=1699999990000 "
            "lease=1699999999500 lease-ms=30000 keep-ms=86400000 claim=me fp=a%20b onlapse=stop "
            "after=7 code=201 token=u%3A1 token-expiry=1700000060000 payload=raw\nbody");
  EXPECT_EQ(Text(ReleasedRecord()),
            "idem/1 state=pending fence=1740800000000123 attempt=1 since=1699999990000 "
            "lease=1700000020000 lease-ms=30000 keep-ms=86400000 after=0 payload=none\n");
  EXPECT_EQ(Text(ConsumedBy()),
            "idem/1 state=consumed fence=0 attempt=0 since=1699999990000 lease=0 lease-ms=0 "
            "keep-ms=0 claim=me token=1 token-expiry=1700003600000 payload=none\n");
}

TEST(RecordText, DigestIsXxh3InCanonicalOrder) {
  // XXH3-128 of the empty string, as the reference implementation prints it.
  EXPECT_NE(
      Text(DoneWithoutResult("")).find(" digest=99aa06d3014798d86001c324468d497f payload=none\n"),
      std::string::npos);
}

TEST(RecordText, ComesBackTheSame) {
  for (const Record& record : Samples()) {
    const std::string text = Text(record);
    EXPECT_EQ(Again(text), text);
    EXPECT_EQ(TextSize(record), text.size());
  }
}

TEST(RecordText, ViewsOfSeveralDecodedFieldsStayValid) {
  Record r = WithToken(Pending(), std::string(500, '/'));
  const std::string claim(64, ' ');
  const std::string fingerprint(64, '\n');
  r.claim = claim;
  r.has_fingerprint = true;
  r.fingerprint = fingerprint;
  const std::string token(500, '/');
  r.token = token;
  const std::string text = Text(r);
  std::string scratch = "left over";
  Record read;
  ASSERT_EQ(ParseText(text, scratch, read), ParseVerdict::kRecord);
  EXPECT_EQ(read.claim, claim);
  EXPECT_EQ(read.fingerprint, fingerprint);
  EXPECT_EQ(read.token, token);
}

TEST(RecordText, OrdinaryStringsAreNoRecords) {
  for (const char* text : {"", "1", "idem", "idem-1 ", "IDEM/1 state=pending", " idem/1"})
    EXPECT_EQ(Parse(text), ParseVerdict::kNoRecord) << text;
}

TEST(RecordText, CutAnywhereItIsDamaged) {
  for (const Record& record : Samples()) {
    const std::string text = Text(record);
    const size_t line = text.find('\n') + 1;
    for (size_t n = 5; n < line; ++n)
      EXPECT_EQ(Parse(absl::string_view(text).substr(0, n)), ParseVerdict::kDamaged) << n;
  }
}

// Changing one byte gives a damaged line, or another record that comes back as written.
TEST(RecordText, WithAnyByteChangedItIsDamagedOrSpelledAsWritten) {
  for (const Record& record : Samples()) {
    const std::string text = Text(record);
    for (size_t i = 5; i < text.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = text;
        changed[i] = static_cast<char>(byte);
        const std::string again = Again(changed);
        if (again != "damaged") {
          ASSERT_EQ(again, changed);
        }
      }
    }
  }
}

TEST(RecordText, WithAByteInsertedOrRemovedItIsDamagedOrSpelledAsWritten) {
  for (const Record& record : Samples()) {
    const std::string text = Text(record);
    for (size_t i = 5; i < text.size(); ++i) {
      std::string removed = text;
      removed.erase(i, 1);
      const std::string again = Again(removed);
      if (again != "damaged") {
        ASSERT_EQ(again, removed);
      }
      for (char c : {'0', '+', '-', ' ', 'a', '%', '\n', '='}) {
        std::string inserted = text;
        inserted.insert(i, 1, c);
        const std::string inserted_again = Again(inserted);
        if (inserted_again != "damaged") {
          ASSERT_EQ(inserted_again, inserted);
        }
      }
    }
  }
}

TEST(RecordText, DamagedLinesByKind) {
  const std::string head =
      "idem/1 state=pending fence=5 attempt=1 since=10 lease=20 lease-ms=10 keep-ms=0";
  ASSERT_EQ(Parse(head + " claim=a payload=none\n"), ParseVerdict::kRecord);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = head + " claim=a fp=b payload=raw\nx";
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  ASSERT_EQ(Parse(replaced("fence=5", "fence=6")), ParseVerdict::kRecord);
  const std::vector<std::string> damaged = {
      replaced("idem/1", "idem/2"),
      replaced("idem/1", "idem/01"),
      replaced("idem/1 ", "idem/1  "),
      replaced("state=pending", "state=lapsed"),
      replaced("state=pending", "state=Pending"),
      replaced("state=pending ", ""),
      replaced("fence=5", "fence=05"),
      replaced("fence=5", "fence=+5"),
      replaced("fence=5", "fence=-5"),
      replaced("fence=5", "fence=0"),
      replaced("fence=5", "fence=9007199254740992"),      // 2^53
      replaced("fence=5", "fence=18446744073709551621"),  // 2^64 + 5
      replaced("fence=5", "fence="),
      replaced("fence=5", "fence=5 fence=5"),
      replaced("fence=5 attempt=1", "attempt=1 fence=5"),
      replaced("attempt=1", "attempt=0"),
      replaced("lease-ms=10", "lease-ms=0"),
      replaced("since=10", "since=10.0"),
      replaced("since=10", "since=0x10"),
      replaced("keep-ms=0", "keep-ms=-1"),
      replaced("keep-ms=0", "keep-ms=9223372036854775808"),
      replaced(" claim=a", " claim="),
      replaced(" claim=a", " claim=" + std::string(65, 'a')),
      replaced(" claim=a", " claim=%61"),  // a letter is written as itself
      replaced(" claim=a", " claim=%2f"),  // upper-case hexadecimal only
      replaced(" claim=a", " claim=%2"),
      replaced(" claim=a", " claim=a/b"),
      replaced(" claim=a fp=b", " fp=b claim=a"),
      replaced(" claim=a", " claim=a claim=a"),
      replaced(" fp=b", " fp=b onlapse=take"),
      replaced(" fp=b", " fp=b onlapse=stop onlapse=stop"),
      replaced(" fp=b", " fp=b after=0"),  // released, and yet claimed
      replaced(" claim=a fp=b", " fp=b after=1"),
      replaced(" fp=b", " fp=b code=1"),  // only an answer has a code
      replaced(" fp=b", " fp=b token-expiry=5"),
      replaced(" fp=b", " fp=b token=t token-expiry=9223372036854775807"),
      replaced(" fp=b", " fp=b token-expiry=5 token=t"),
      replaced(" fp=b", " fp=b digest=99aa06d3014798d86001c324468d497f"),
      replaced(" fp=b", " fp=b color=red"),
      replaced("payload=raw", "payload=none"),  // but bytes follow
      replaced("payload=raw", "payload=zip"),
      replaced(" payload=raw", ""),
      replaced("payload=raw\n", "payload=raw \n"),
      replaced("payload=raw\n", "payload=raw\r\n"),
      "idem/",
      "idem/1",
      "idem/1\n",
  };
  for (const std::string& text : damaged) EXPECT_EQ(Parse(text), ParseVerdict::kDamaged) << text;
}

TEST(RecordText, FieldsThatDoNotBelongTogetherAreDamaged) {
  const std::string tail = " attempt=1 since=10 lease=20 lease-ms=10 keep-ms=0";
  const std::string digest = " digest=99aa06d3014798d86001c324468d497f";
  const std::string consumed =
      "idem/1 state=consumed fence=0 attempt=0 since=1 lease=0 lease-ms=0 keep-ms=0";
  ASSERT_EQ(Parse("idem/1 state=done fence=5" + tail + digest + " payload=none\n"),
            ParseVerdict::kRecord);
  ASSERT_EQ(Parse(consumed + " claim=a token=1 payload=none\n"), ParseVerdict::kRecord);
  const std::vector<std::string> damaged = {
      "idem/1 state=done fence=5" + tail + " payload=none\n",
      "idem/1 state=done fence=5" + tail + digest + " payload=raw\n",
      "idem/1 state=done fence=5" + tail + " code=0 payload=raw\n",
      "idem/1 state=done fence=5" + tail + " code=-0 payload=raw\n",
      "idem/1 state=done fence=5" + tail + " code=01 payload=raw\n",
      "idem/1 state=failed fence=5" + tail + " payload=none\n",
      "idem/1 state=failed fence=5" + tail + " after=1 code=2 payload=none\n",
      "idem/1 state=failed fence=0" + tail + " after=1 payload=none\n",
      "idem/1 state=done fence=5" + tail +
          " digest=99AA06D3014798D86001C324468D497F payload=none\n",
      "idem/1 state=done fence=5" + tail + " digest=99aa payload=none\n",
      consumed + " payload=none\n",
      consumed + " claim=a payload=none\n",
      consumed + " token=1 payload=none\n",
      consumed + " claim=a fp=b token=1 payload=none\n",
      consumed + " claim=a onlapse=stop token=1 payload=none\n",
      consumed + " claim=a after=5 token=1 payload=none\n",
      consumed + " claim=a token=1 payload=raw\n",
      "idem/1 state=consumed fence=5" + tail + " claim=a token=1 payload=none\n",
  };
  for (const std::string& text : damaged) EXPECT_EQ(Parse(text), ParseVerdict::kDamaged) << text;
}

TEST(RecordText, NumbersReachTheirLimits) {
  const std::string text =
      "idem/1 state=done fence=9007199254740991 attempt=9223372036854775807 "
      "since=9223372036854775807 lease=0 lease-ms=9223372036854775807 "
      "keep-ms=9223372036854775807 after=9223372036854775807 code=-9223372036854775808 "
      "token= token-expiry=9223372036854775806 payload=raw\n";
  EXPECT_EQ(Again(text), text);
}

}  // namespace
}  // namespace idemd::storage

// The packed form: what goes in comes out, for records of every shape.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "storage/record/record.h"
#include "tests/storage/record/builders.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

class Packed {
 public:
  Packed(const Record& record, int64_t deadline_ms)
      : deadline_ms_(deadline_ms), bytes_(PackedSize(record, deadline_ms) + 1, '\xff') {
    Pack(record, deadline_ms, bytes_.data());
  }
  Record Again() const { return Unpack({bytes_.data(), bytes_.size() - 1}, deadline_ms_); }
  bool end_intact() const { return bytes_.back() == '\xff'; }

 private:
  int64_t deadline_ms_;
  std::string bytes_;
};

void ExpectComesBack(const Record& record, int64_t deadline_ms) {
  const Packed packed(record, deadline_ms);
  EXPECT_TRUE(packed.end_intact());
  const Record again = packed.Again();
  EXPECT_EQ(Text(again), Text(record));
  EXPECT_EQ(again.has_digest, record.has_digest);
  EXPECT_EQ(again.digest, record.digest);
}
// With a deadline that tells `since`, with another, and with none.
void ExpectComesBack(const Record& record) {
  const auto told = static_cast<int64_t>(static_cast<uint64_t>(record.since_ms) + static_cast<uint64_t>(record.keep_ms));
  for (const int64_t deadline_ms : {told, told ^ 1, kNoDeadline}) ExpectComesBack(record, deadline_ms);
}

TEST(PackedRecord, ComesBackInEveryState) {
  for (const Record& r :
       {Pending(), Lapsed(), Unknown(), ReleasedRecord(), Failed(0), Failed(9'000), Done(),
        Done("", 0), Done("x", INT64_MIN), DoneWithoutResult(), ConsumedBy(),
        WithToken(Pending(), "", kNoDeadline), WithPayload(WithToken(Failed(1), "t", 0), "step")}) {
    ExpectComesBack(r);
  }
}

TEST(PackedRecord, AnUsualReservationIsSmall) {
  Record r = Pending();
  r.claim = "0123456789abcdef";
  r.has_fingerprint = true;
  r.fingerprint = "0123456789abcdef";
  EXPECT_LE(PackedSize(r, r.since_ms + r.keep_ms), 46u);
}

// A number of any magnitude, small and large ones alike.
int64_t AnyNumber(std::mt19937_64& random) {
  return static_cast<int64_t>(random() >> (1 + random() % 63));
}

TEST(PackedRecord, RandomRecordsComeBack) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const auto bytes = [&](size_t least, size_t most) {
    std::string s(least + random() % (most - least + 1), '\0');
    for (char& c : s) c = static_cast<char>(random());
    return s;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string claim = bytes(1, 64);
    const std::string fingerprint = bytes(1, 64);
    const std::string token = bytes(0, 300);
    const std::string payload = bytes(0, 300);
    Record r;
    r.state = static_cast<RecordState>(random() % 4);
    r.stop = random() % 2 != 0;
    r.fence = static_cast<uint64_t>(AnyNumber(random));
    r.attempt = static_cast<uint64_t>(AnyNumber(random));
    r.since_ms = AnyNumber(random);
    r.lease_end_ms = AnyNumber(random);
    r.lease_ms = AnyNumber(random);
    r.keep_ms = AnyNumber(random);
    r.has_claim = random() % 2 != 0;
    if (r.has_claim) r.claim = claim;
    r.has_fingerprint = random() % 2 != 0;
    if (r.has_fingerprint) r.fingerprint = fingerprint;
    r.has_after = random() % 2 != 0;
    if (r.has_after) r.after_ms = AnyNumber(random);
    r.has_code = random() % 2 != 0;
    if (r.has_code) r.code = AnyNumber(random) * (random() % 2 != 0 ? 1 : -1);
    r.has_token = random() % 2 != 0;
    if (r.has_token) r.token = token;
    if (r.has_token && random() % 2 != 0) r.token_expiry_ms = AnyNumber(random);
    r.has_digest = random() % 2 != 0;
    if (r.has_digest) r.digest = ResultDigest(payload);
    r.has_payload = random() % 2 != 0;
    if (r.has_payload) r.payload = payload;
    ExpectComesBack(r);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace idemd::storage

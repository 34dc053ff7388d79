// Random lives: every command is sent twice, as by a client whose first reply was lost, and what
// must never happen is watched from outside: two go-aheads at once, a fence that does not rise, a
// stored answer that is lost or changes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

uint64_t Seed() {
  const char* given = std::getenv("IDEMD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// One key, kept as other servers would hand it over: as text.
class Key {
 public:
  Subject Look(int64_t now_ms) {
    Subject s;
    if (!there_ || deadline_ms_ <= now_ms) {
      there_ = false;
      return s;
    }
    s.deadline_ms = deadline_ms_;
    s.plain = text_;
    s.kind = Subject::Kind::kPlain;
    switch (ParseText(text_, scratch_, s.record)) {
      case ParseVerdict::kNoRecord:
        break;
      case ParseVerdict::kRecord:
        s.kind = Subject::Kind::kRecord;
        break;
      case ParseVerdict::kDamaged:
        ADD_FAILURE() << "left behind: " << text_;
        break;
    }
    return s;
  }
  void Apply(const Action& action, int64_t now_ms) {
    if (action.kind == Action::Kind::kNone) return;
    // The views of the action point into what is about to be replaced.
    std::string text;
    if (action.kind == Action::Kind::kSetPlain) text = std::string(action.plain);
    if (action.kind == Action::Kind::kSetRecord) text = Text(action.record);
    there_ = action.kind != Action::Kind::kDelete;
    text_ = text;
    deadline_ms_ = action.deadline_ms;
    if (there_) {
      EXPECT_GT(deadline_ms_, now_ms);
    }
  }
  void Put(absl::string_view text, int64_t deadline_ms) {
    there_ = true;
    text_ = std::string(text);
    deadline_ms_ = deadline_ms;
  }
  std::string Bytes() const {
    return there_ ? text_ + "@" + std::to_string(deadline_ms_) : "absent";
  }

 private:
  bool there_ = false;
  std::string text_;
  std::string scratch_;
  int64_t deadline_ms_ = kNoDeadline;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  void Step() {
    now_ms_ += static_cast<int64_t>(random_() % 40);
    if (One(40)) now_ms_ += static_cast<int64_t>(random_() % 2'000);
    if (!there()) Forget();
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2:
        return DoReserve();
      case 3:
        return DoComplete();
      case 4:
        return DoFail();
      case 5:
        return DoRelease();
      case 6:
        return DoExtend();
      case 7:
        return DoCheckpoint();
      case 8:
        if (!there() && One(2)) {
          key_.Put("value", now_ms_ + 1 + static_cast<int64_t>(random_() % 500));
        } else if (One(4)) {
          DoConsume();
        }
        return;
    }
  }

 private:
  bool One(unsigned in) { return random_() % in == 0; }
  bool there() { return key_.Look(now_ms_).kind != Subject::Kind::kAbsent; }

  // The key went by its own deadline: whatever was promised about it has ended.
  void Forget() {
    answer_.clear();
    holder_ = 0;
  }
  // A fence that some caller might use: the latest, or an old one.
  uint64_t Fence() {
    return One(4) ? last_fence_ - std::min<uint64_t>(last_fence_, 1 + random_() % 3) + 1
                  : last_fence_;
  }

  void DoReserve() {
    const std::string claim = "claim" + std::to_string(++claims_);
    ReserveRequest request;
    request.claim = claim;
    request.lease_ms = 1 + static_cast<int64_t>(random_() % 200);
    request.stop = One(6);
    request.issued = One(3);
    request.lifetime = {Lifetime::Kind::kDuration, 1 + static_cast<int64_t>(random_() % 1'500)};
    const auto ask = [&] {
      return Reserve(
          key_.Look(now_ms_), request, now_ms_, Limits(), [&] { return ++last_fence_; },
          [] { return TokenOrigin::kLive; });
    };
    const uint64_t fence_before = last_fence_;
    const Subject before = key_.Look(now_ms_);
    const ReserveOutcome first = ask();
    ASSERT_EQ(first.error, LifeError::kNone);
    if (first.reply.status == ReserveStatus::kReserved) {
      EXPECT_GT(first.reply.fence, fence_before);
      EXPECT_TRUE(holder_ == 0 || lease_end_ms_ <= now_ms_) << "two go-aheads at once";
      EXPECT_TRUE(answer_.empty()) << "run again after an answer was stored";
      EXPECT_FALSE(holder_ != 0 && stop_) << "taken over blindly";
      if (before.kind != Subject::Kind::kRecord) stop_ = false;
      stop_ = stop_ || request.stop;
      holder_ = first.reply.fence;
      lease_end_ms_ = now_ms_ + request.lease_ms;
    }
    if (first.reply.status == ReserveStatus::kDone) {
      EXPECT_EQ(std::string(first.reply.payload), answer_);
    }
    const ReserveStatus status = first.reply.status;
    const uint64_t fence = first.reply.fence;
    key_.Apply(first.action, now_ms_);
    const std::string bytes = key_.Bytes();
    const ReserveOutcome second = ask();
    EXPECT_EQ(second.action.kind, Action::Kind::kNone);
    EXPECT_EQ(second.reply.status,
              status == ReserveStatus::kReserved ? ReserveStatus::kHeld : status);
    EXPECT_EQ(second.reply.fence, fence);
    EXPECT_EQ(key_.Bytes(), bytes);
  }

  // Applies a fenced command twice. `same` says whether the two outcomes are the same answer.
  template <class Ask, class Same>
  auto Twice(const Ask& ask, const Same& same) {
    auto first = ask();
    const LifeError error = first.error;
    key_.Apply(first.action, now_ms_);
    const std::string bytes = key_.Bytes();
    auto second = ask();
    EXPECT_TRUE(same(first, second)) << ErrorName(error) << " then " << ErrorName(second.error);
    key_.Apply(second.action, now_ms_);
    EXPECT_EQ(key_.Bytes(), bytes) << "a repeat had an effect";
    if (error != LifeError::kNone) {
      EXPECT_EQ(first.action.kind, Action::Kind::kNone);
    }
    return first;
  }

  void DoComplete() {
    const std::string result = "answer" + std::to_string(random_() % 3);
    CompleteRequest request;
    request.fence = Fence();
    request.result = result;
    if (One(4)) request.lifetime = {Lifetime::Kind::kDuration, 50};
    const auto o = Twice([&] { return Complete(key_.Look(now_ms_), request, now_ms_, Limits()); },
                         [](const CompleteOutcome& a, const CompleteOutcome& b) {
                           return a.error == b.error && a.status == b.status && a.late == b.late;
                         });
    if (o.error != LifeError::kNone) return;
    EXPECT_TRUE(answer_.empty() || answer_ == result) << "the first answer did not stay";
    EXPECT_NE(request.fence, released_) << "completed by somebody who had released";
    answer_ = result;
    holder_ = 0;
  }

  void DoFail() {
    const uint64_t fence = Fence();
    const int64_t after_ms = One(2) ? 0 : static_cast<int64_t>(random_() % 100);
    const auto o =
        Twice([&] { return Fail(key_.Look(now_ms_), fence, after_ms, now_ms_); },
              [](const FailOutcome& a, const FailOutcome& b) { return a.error == b.error; });
    if (o.error == LifeError::kNone) holder_ = 0;
  }

  void DoRelease() {
    const uint64_t fence = Fence();
    const auto o = Twice([&] { return Release(key_.Look(now_ms_), fence, now_ms_); },
                         [&](const ReleaseOutcome& a, const ReleaseOutcome& b) {
                           const bool gone = key_.Look(now_ms_).kind != Subject::Kind::kRecord;
                           return a.error == b.error && b.released == (gone ? 0 : a.released);
                         });
    if (o.released != 1) return;
    holder_ = 0;
    released_ = fence;
  }

  void DoExtend() {
    const uint64_t fence = Fence();
    const int64_t lease_ms = 1 + static_cast<int64_t>(random_() % 200);
    const auto o = Twice([&] { return Extend(key_.Look(now_ms_), fence, lease_ms, now_ms_); },
                         [](const ExtendOutcome& a, const ExtendOutcome& b) {
                           return a.error == b.error && a.lease_left_ms == b.lease_left_ms;
                         });
    Renewed(o.error, fence, lease_ms);
  }

  void DoCheckpoint() {
    const uint64_t fence = Fence();
    const int64_t lease_ms = 1 + static_cast<int64_t>(random_() % 200);
    const auto o = Twice(
        [&] { return Checkpoint(key_.Look(now_ms_), fence, "step", lease_ms, now_ms_, Limits()); },
        [](const FencedOutcome& a, const FencedOutcome& b) { return a.error == b.error; });
    Renewed(o.error, fence, lease_ms);
  }

  void Renewed(LifeError error, uint64_t fence, int64_t lease_ms) {
    if (error != LifeError::kNone) return;
    EXPECT_EQ(fence, holder_) << "renewed by somebody who had given up";
    EXPECT_TRUE(answer_.empty());
    lease_end_ms_ = now_ms_ + lease_ms;
  }

  void DoConsume() {
    const std::string by = "by" + std::to_string(++claims_);
    const auto ask = [&] {
      return Consume(key_.Look(now_ms_), {.by = by}, now_ms_, Limits(),
                     [] { return TokenOrigin::kLive; });
    };
    const ConsumeOutcome first = ask();
    if (first.status == ConsumeStatus::kConsumed) {
      EXPECT_EQ(holder_, 0u);
    }
    key_.Apply(first.action, now_ms_);
    const ConsumeOutcome second = ask();
    EXPECT_EQ(second.status, first.status);
    EXPECT_EQ(second.action.kind, Action::Kind::kNone);
  }

  std::mt19937_64 random_;
  Key key_;
  int64_t now_ms_ = kNow;
  uint64_t last_fence_ = kFence;
  uint64_t claims_ = 0;
  // What the outside world was told: who may be at work until when, and the answer that was
  // acknowledged.
  uint64_t holder_ = 0;
  int64_t lease_end_ms_ = 0;
  bool stop_ = false;      // somebody asked that a lapse be looked at first
  uint64_t released_ = 0;  // the claim that was last given up
  std::string answer_;
};

TEST(LifeModel, RandomLivesWithEveryCommandSentTwice) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  for (uint64_t life = 0; life < 200; ++life) {
    World world(seed + life);
    for (int step = 0; step < 500; ++step) {
      world.Step();
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "life " << life << ", step " << step;
        return;
      }
    }
  }
}

}  // namespace
}  // namespace idemd::storage

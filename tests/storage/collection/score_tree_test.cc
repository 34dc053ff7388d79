// The tree of scores against a sorted vector, through many splits and merges.
#include "storage/collection/score_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

class ScoreTreeTest : public ::testing::Test {
 protected:
  ~ScoreTreeTest() override {
    for (ScoredMember* const member : model_) ScoredMember::Free(member);
  }

  static bool Before(const ScoredMember* a, const ScoredMember* b) {
    return ScoredBefore(a->score, a->text(), b->score, b->text());
  }
  size_t ModelPlace(const ScoredMember* member) const {
    return static_cast<size_t>(std::lower_bound(model_.begin(), model_.end(), member, Before) - model_.begin());
  }
  ScoredMember* Insert(double score, const std::string& text) {
    ScoredMember* const member = ScoredMember::Make(text, score);
    tree_.Insert(member);
    model_.insert(model_.begin() + static_cast<ptrdiff_t>(ModelPlace(member)), member);
    return member;
  }
  void Erase(size_t place) {
    ScoredMember* const member = model_[place];
    tree_.Erase(member);
    model_.erase(model_.begin() + static_cast<ptrdiff_t>(place));
    ScoredMember::Free(member);
  }
  void Move(size_t place, double score) {
    ScoredMember* const member = model_[place];
    model_.erase(model_.begin() + static_cast<ptrdiff_t>(place));
    tree_.Move(member, score);
    model_.insert(model_.begin() + static_cast<ptrdiff_t>(ModelPlace(member)), member);
  }
  void ExpectSame() {
    tree_.CheckInvariants();
    ASSERT_EQ(tree_.size(), model_.size());
    size_t place = 0;
    for (ScoreTree::Place at = tree_.At(0); at; at.Next(), ++place) {
      ASSERT_EQ(&*at, model_[place]);
      ASSERT_EQ(tree_.Rank(&*at), place);
    }
    ASSERT_EQ(place, model_.size());
    if (model_.empty()) return;
    for (ScoreTree::Place at = tree_.At(model_.size() - 1); at; at.Previous()) ASSERT_EQ(&*at, model_[--place]);
    ASSERT_EQ(place, 0u);
  }
  void ExpectCounts(double score) {
    size_t below = 0, not_above = 0;
    for (const ScoredMember* const member : model_) {
      below += member->score < score;
      not_above += member->score <= score;
    }
    ASSERT_EQ(tree_.CountBelow(score, false), below);
    ASSERT_EQ(tree_.CountBelow(score, true), not_above);
  }

  ScoreTree tree_;
  std::vector<ScoredMember*> model_;
};

TEST_F(ScoreTreeTest, AnEmptyTreeCountsNothing) {
  EXPECT_EQ(tree_.CountBelow(INFINITY, true), 0u);
  EXPECT_EQ(tree_.memory_bytes(), 0u);
  EXPECT_FALSE(tree_.At(0));
  Insert(1, "a");
  EXPECT_FALSE(tree_.At(1));
  Erase(0);
  EXPECT_EQ(tree_.memory_bytes(), 0u);
  ExpectSame();
}

TEST_F(ScoreTreeTest, EntriesThatComeInOrderFillTheirLeaves) {
  for (int i = 0; i < 20'000; ++i) Insert(i, "member");
  ExpectSame();
  EXPECT_LT(tree_.memory_bytes(), 20'000u * 18);
}

TEST_F(ScoreTreeTest, EntriesThatComeInReverseOrderFillTheirLeaves) {
  for (int i = 0; i < 20'000; ++i) tree_.Insert(model_.emplace_back(ScoredMember::Make("member", -i)));
  std::reverse(model_.begin(), model_.end());
  ExpectSame();
  EXPECT_LT(tree_.memory_bytes(), 20'000u * 19);
}

TEST_F(ScoreTreeTest, WhatGoesFromOneEndGivesItsNodesBack) {
  for (int i = 0; i < 5'000; ++i) Insert(i, "member");
  const size_t full = tree_.memory_bytes();
  for (int i = 0; i < 4'900; ++i) Erase(i % 2 == 0 ? 0 : model_.size() - 1);
  ExpectSame();
  EXPECT_LT(tree_.memory_bytes(), full / 10);
}

TEST_F(ScoreTreeTest, MembersOfOneScoreStandInTheOrderOfTheirBytes) {
  for (int i = 0; i < 3'000; ++i) Insert(7, absl::StrCat("m", i * 7919 % 3000));
  Insert(7, "");
  Insert(7, std::string("m\0", 2));
  Insert(7, "\xff");
  ExpectSame();
  for (const char* text : {"", "m", "m1", "m1500", "m9", "z", "\xff", "\xff\xff"}) {
    size_t below = 0, not_above = 0;
    for (const ScoredMember* const member : model_) {
      below += member->text() < text;
      not_above += member->text() <= text;
    }
    EXPECT_EQ(tree_.CountBelow(absl::string_view(text), false), below) << text;
    EXPECT_EQ(tree_.CountBelow(absl::string_view(text), true), not_above) << text;
  }
}

TEST_F(ScoreTreeTest, DoesAsASortedVectorDoes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  // Many scores and few, growing and shrinking: all sizes come up, and all kinds of splits and merges.
  for (const uint64_t scores : {4u, 1000u, 1u << 30}) {
    for (int step = 0; step < 30'000; ++step) {
      const bool grows = step / 3000 % 2 == 0;
      const auto score = static_cast<double>(random() % scores);
      const size_t place = model_.empty() ? 0 : random() % model_.size();
      const uint64_t draw = random() % 10;
      if (model_.empty() || draw < (grows ? 6u : 1u)) {
        Insert(score, absl::StrCat(random()));
      } else if (draw < 7) {
        Erase(place);
      } else if (draw < 9) {
        const double by = static_cast<double>(random() % 5) - 2;
        if (model_[place]->score + by != model_[place]->score) Move(place, model_[place]->score + by);
      } else if (score != model_[place]->score) {
        Move(place, score);
      }
      if (step % 500 == 0) ExpectSame();
      if (step % 100 == 0) ExpectCounts(score);
      if (HasFatalFailure()) return;
    }
    ExpectSame();
    while (!model_.empty()) Erase(random() % model_.size());
    ExpectSame();
  }
}

}  // namespace
}  // namespace idemd::storage

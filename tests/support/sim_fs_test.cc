// The simulated file system: what is synced survives every crash, what is not may be lost in any
// way.
#include "tests/support/sim_fs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "tests/support/seed.h"

namespace idemd::testing {
namespace {

using storage::File;
using storage::FileSystem;
using storage::IsNoSpace;

constexpr int kDraws = 300;

class SimFsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EXPECT_TRUE(fs_.MakeDirectory("/d").ok());
    EXPECT_TRUE(fs_.SyncDirectory("/").ok());
  }
  std::unique_ptr<File> Create(FileSystem& fs, const std::string& path) {
    auto file = fs.Open(path, FileSystem::Mode::kCreate);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::move(*file);
  }
  // A file whose bytes and name are safe.
  std::unique_ptr<File> Safe(const std::string& path, const std::string& bytes) {
    auto file = Create(fs_, path);
    EXPECT_TRUE(file->Append(bytes).ok() && file->Sync().ok() && fs_.SyncDirectory("/d").ok());
    return file;
  }
  // What `path` holds after many crashes; "(absent)" without the name.
  std::set<std::string> After(const std::string& path) {
    std::set<std::string> seen;
    const uint64_t seed = TestSeed();
    for (uint64_t i = 0; i < kDraws; ++i) seen.insert(Look(*fs_.AfterCrash(seed + i), path));
    for (size_t i = 0; i < fs_.extremes(); ++i) seen.insert(Look(*fs_.AfterExtreme(i), path));
    return seen;
  }
  static std::string Look(SimFs& fs, const std::string& path) {
    return *fs.Exists(path) ? fs.Contents(path) : "(absent)";
  }

  static std::string Zeros(std::string text, size_t zeros) { return text + std::string(zeros, '\0'); }

  SimFs fs_;
};

TEST_F(SimFsTest, IsAFileSystem) {
  auto file = Create(fs_, "/d/log");
  ASSERT_TRUE(file->Append("hello ").ok());
  ASSERT_TRUE(file->Append("world").ok());
  EXPECT_EQ(*file->Size(), 11u);
  EXPECT_EQ(*file->ReadAt(6, 100), "world");
  EXPECT_EQ(*file->ReadAt(11, 1), "");
  ASSERT_TRUE(file->Truncate(4).ok());
  auto again = fs_.Open("/d/log", FileSystem::Mode::kAppend);
  ASSERT_TRUE((*again)->Append("!").ok());
  EXPECT_EQ(fs_.Contents("/d/log"), "hell!");
  EXPECT_FALSE(fs_.Open("/d/log", FileSystem::Mode::kCreate).ok());
  EXPECT_EQ(fs_.Open("/d/b", FileSystem::Mode::kRead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE((*fs_.Open("/d/log", FileSystem::Mode::kRead))->Append("x").ok());
  ASSERT_TRUE(fs_.Rename("/d/log", "/d/b").ok());
  EXPECT_TRUE(file->IsAt("/d/b"));
  EXPECT_FALSE(file->IsAt("/d/log"));
  EXPECT_EQ(*fs_.List("/d"), std::vector<std::string>{"b"});
  ASSERT_TRUE(fs_.Unlink("/d/b").ok());
  EXPECT_FALSE(*fs_.Exists("/d/b"));
  EXPECT_EQ(*file->ReadAt(0, 9), "hell!") << "an open file outlives its name";
  EXPECT_EQ(fs_.Open("/nowhere/x", FileSystem::Mode::kCreate).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SimFsTest, SyncedBytesUnderASyncedNameSurviveEveryCrash) {
  auto file = Safe("/d/log", "kept");
  EXPECT_EQ(After("/d/log"), std::set<std::string>{"kept"});
  ASSERT_TRUE(file->Append(std::string(3000, 'x')).ok());
  for (const std::string& left : After("/d/log")) EXPECT_EQ(left.substr(0, 4), "kept");
}

TEST_F(SimFsTest, UnsyncedBytesAreKeptLostCutZeroedAndGarbled) {
  auto file = Safe("/d/log", "kept");
  const std::string tail = std::string(700, 'a') + "\n" + std::string(700, 'b');
  ASSERT_TRUE(file->Append(tail).ok());
  const std::set<std::string> seen = After("/d/log");
  EXPECT_TRUE(seen.count("kept"));
  EXPECT_TRUE(seen.count("kept" + tail));
  EXPECT_TRUE(seen.count("kept" + tail.substr(0, 701))) << "cut behind a line";
  EXPECT_TRUE(seen.count("kept" + std::string(tail.size(), '\0')));
  bool hole = false, garbled = false;
  for (const std::string& left : seen) {
    EXPECT_LE(left.size(), 4 + tail.size());
    hole = hole || (absl::StrContains(left, '\0') && left.back() == 'b');
    for (const char c : left)
      garbled = garbled || !absl::StrContains(absl::string_view("kept\nab\0", 8), c);
  }
  EXPECT_TRUE(hole);
  EXPECT_TRUE(garbled);
}

TEST_F(SimFsTest, AnUnsyncedNameMayBeThereOrNot) {
  auto file = Create(fs_, "/d/new");
  ASSERT_TRUE(file->Append("x").ok() && file->Sync().ok());
  EXPECT_EQ(After("/d/new"), (std::set<std::string>{"(absent)", "x"}));
  ASSERT_TRUE(fs_.SyncDirectory("/d").ok());
  EXPECT_EQ(After("/d/new"), std::set<std::string>{"x"});
  ASSERT_TRUE(fs_.Unlink("/d/new").ok());
  EXPECT_EQ(After("/d/new"), (std::set<std::string>{"(absent)", "x"}));
}

TEST_F(SimFsTest, NamesAreLostIndependently) {
  Create(fs_, "/d/a");
  Create(fs_, "/d/b");
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto after = fs_.AfterCrash(seed);
    seen.insert(std::string(*after->Exists("/d/a") ? "a" : "") +
                (*after->Exists("/d/b") ? "b" : ""));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"", "a", "b", "ab"}));
}

TEST_F(SimFsTest, ARenameGivesTheOldOrTheNewFileNeverNeither) {
  Safe("/d/to", "old");
  Safe("/d/from", "new");
  ASSERT_TRUE(fs_.Rename("/d/from", "/d/to").ok());
  EXPECT_EQ(After("/d/to"), (std::set<std::string>{"old", "new"}));
  ASSERT_TRUE(fs_.SyncDirectory("/d").ok());
  EXPECT_EQ(After("/d/to"), std::set<std::string>{"new"});
  EXPECT_EQ(After("/d/from"), std::set<std::string>{"(absent)"});
}

TEST_F(SimFsTest, ARenamedFileThatWasNotSyncedMayBeEmpty) {
  Safe("/d/to", "old");
  auto file = Create(fs_, "/d/from");
  ASSERT_TRUE(file->Append("new").ok());
  ASSERT_TRUE(fs_.Rename("/d/from", "/d/to").ok());
  EXPECT_TRUE(After("/d/to").count(""));
}

TEST_F(SimFsTest, WhatLiesBelowALostDirectoryIsLost) {
  ASSERT_TRUE(fs_.MakeDirectory("/d/sub").ok());
  ASSERT_TRUE(Create(fs_, "/d/sub/f")->Sync().ok());
  ASSERT_TRUE(fs_.SyncDirectory("/d/sub").ok());
  EXPECT_TRUE(After("/d/sub/f").count("(absent)"));
  ASSERT_TRUE(fs_.SyncDirectory("/d").ok());
  EXPECT_EQ(After("/d/sub/f"), std::set<std::string>{""});
}

TEST_F(SimFsTest, AnUnsyncedTruncationMayBeLost) {
  auto file = Safe("/d/log", "kept and cut");
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_TRUE(After("/d/log").count("kept"));
  EXPECT_TRUE(After("/d/log").count("kept and cut"));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(After("/d/log"), std::set<std::string>{"kept"});
}

TEST_F(SimFsTest, AKilledProcessLosesNothing) {
  auto file = Create(fs_, "/d/log");
  ASSERT_TRUE(file->Append("all").ok());
  EXPECT_EQ(fs_.AfterKill()->Contents("/d/log"), "all");
}

TEST_F(SimFsTest, WhatAKilledProcessDidNotSyncCanStillBeLost) {
  auto file = Safe("/d/log", "kept");
  ASSERT_TRUE(file->Append("x").ok());
  const auto next = fs_.AfterKill();
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kDraws; ++seed)
    seen.insert(next->AfterCrash(seed)->Contents("/d/log"));
  EXPECT_TRUE(seen.count("kept") && seen.count("keptx"));
  EXPECT_EQ(next->Contents("/d/log"), "keptx");
}

TEST_F(SimFsTest, AKillInsideAnAppendLeavesABeginningOfIt) {
  auto file = Safe("/d/log", "");
  ASSERT_TRUE(file->Append("whole").ok());
  std::set<std::string> seen;
  fs_.OnCall([&](const SimCall&) {
    for (uint64_t seed = 0; seed < kDraws; ++seed)
      seen.insert(fs_.AfterKill(seed)->Contents("/d/log"));
  });
  ASSERT_TRUE(file->Append("ab").ok());
  EXPECT_EQ(seen, (std::set<std::string>{"whole", "wholea", "wholeab"}));
  EXPECT_EQ(fs_.Contents("/d/log"), "wholeab");
}

TEST_F(SimFsTest, TheHookSeesAChangeThatCanStillBeLostAndASyncThatHasNotHappened) {
  auto file = Safe("/d/log", "");
  std::vector<SimCall::Kind> kinds;
  std::set<std::string> left;
  fs_.OnCall([&](const SimCall& call) {
    kinds.push_back(call.kind);
    for (const std::string& bytes : After("/d/log")) left.insert(bytes);
  });
  ASSERT_TRUE(file->Append("x").ok() && file->Sync().ok());
  EXPECT_EQ(kinds, (std::vector<SimCall::Kind>{SimCall::Kind::kAppend, SimCall::Kind::kSync}));
  EXPECT_TRUE(left.count("") && left.count("x"));
  fs_.OnCall(nullptr);
  EXPECT_EQ(After("/d/log"), std::set<std::string>{"x"});
}

TEST_F(SimFsTest, AfterACrashEveryCallFailsAndTheNextProcessCanLockAgain) {
  auto lock = fs_.Lock("/d/lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(fs_.Lock("/d/lock").status().code(), absl::StatusCode::kFailedPrecondition);
  auto file = Create(fs_, "/d/log");
  fs_.CrashAtCall(2);
  EXPECT_TRUE(file->Append("one").ok());
  EXPECT_FALSE(file->Append("two").ok());
  EXPECT_TRUE(fs_.crashed());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_FALSE(fs_.Exists("/d").ok());
  const auto after = fs_.AfterCrash(1);
  EXPECT_TRUE(after->Lock("/d/lock").ok());
  EXPECT_EQ(fs_.AfterKill()->Contents("/d/log"), "onetwo") << "the call was in its middle";
}

TEST_F(SimFsTest, ALockIsGivenUpWhenItsHolderLetsGo) {
  fs_.Lock("/d/lock")->reset();
  EXPECT_TRUE(fs_.Lock("/d/lock").ok());
}

TEST_F(SimFsTest, TheChosenCallFailsAsAsked) {
  auto file = Safe("/d/log", "");
  fs_.FailCall(2, SimFault::kNoSpace, 2);
  EXPECT_TRUE(file->Append("a").ok());
  EXPECT_TRUE(IsNoSpace(file->Append("b")));
  EXPECT_TRUE(IsNoSpace(file->Reserve(9)));
  fs_.FailCall(1, SimFault::kShortWrite);
  EXPECT_TRUE(IsNoSpace(file->Append("1234")));
  EXPECT_EQ(fs_.Contents("/d/log"), "a12");
  fs_.FailCall(1, SimFault::kIo);
  const absl::Status failed = file->Sync();
  EXPECT_FALSE(failed.ok());
  EXPECT_FALSE(IsNoSpace(failed));
  EXPECT_TRUE(After("/d/log").count("")) << "a sync that failed made nothing safe";
}

TEST_F(SimFsTest, WhatIsAppendedOverZerosMayBeLostThoughTheSizeIsSafe) {
  auto file = Safe("/d/log", "kept");
  ASSERT_TRUE(file->Prefill(6).ok());
  EXPECT_EQ(After("/d/log"), (std::set<std::string>{"kept", Zeros("kept", 6)}));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Append("new").ok());
  EXPECT_EQ(fs_.Contents("/d/log"), Zeros("keptnew", 3));
  const std::set<std::string> left = After("/d/log");
  for (const char* cut : {"kept", "keptn", "keptne", "keptnew"})
    EXPECT_EQ(left.count(Zeros(cut, 10 - std::strlen(cut))), 1u) << cut;
  for (const std::string& one : left) EXPECT_EQ(one.size(), 10u);
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(After("/d/log"), (std::set<std::string>{Zeros("keptnew", 3)}));
  ASSERT_TRUE(file->Truncate(7).ok());
  ASSERT_TRUE(file->Append("!").ok());
  EXPECT_EQ(fs_.Contents("/d/log"), "keptnew!");
}

TEST_F(SimFsTest, ALyingDiskIsSeenToLoseWhatWasSynced) {
  fs_.LieAboutSync(true);
  Safe("/d/log", "kept");
  EXPECT_GT(After("/d/log").size(), 1u);
}

TEST_F(SimFsTest, TheSameSeedGivesTheSameState) {
  auto file = Safe("/d/log", "kept");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(file->Append(std::string(200, 'x')).ok());
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(fs_.AfterCrash(seed)->Contents("/d/log"), fs_.AfterCrash(seed)->Contents("/d/log"));
}

}  // namespace
}  // namespace idemd::testing

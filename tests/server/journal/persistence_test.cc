// Starts, stops, kills and power cuts of one node on a simulated disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/journal/log_reader.h"
#include "tests/server/journal/node.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using testing::SimFs;
using testing::SimFault;

class PersistenceTest : public ::testing::Test {
 protected:
  PersistenceTest() : fs_(std::make_unique<SimFs>()) {
    EXPECT_TRUE(fs_->MakeDirectory("/d").ok());
    EXPECT_TRUE(fs_->SyncDirectory("/").ok());
  }
  std::unique_ptr<Node> Start(PersistenceOptions options = Node::Options()) {
    return std::make_unique<Node>(*fs_, time_, options);
  }
  std::string Path(absl::string_view name) { return absl::StrCat("/d/appendonlydir/", name); }

  std::unique_ptr<SimFs> fs_;
  FakeTime time_;
};

TEST_F(PersistenceTest, WhatWasSetIsThereAfterACleanStop) {
  {
    auto node = Start();
    ASSERT_TRUE(node->status.ok()) << node->status;
    node->Set("a", "1");
    node->Set("b", "2", 1'800'000'000'000, 3);
    node->Set("gone", "x");
    EXPECT_TRUE(node->Delete("gone"));
    EXPECT_TRUE(node->released());
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  auto node = Start();
  ASSERT_TRUE(node->status.ok()) << node->status;
  EXPECT_EQ(node->Get("a"), "1");
  EXPECT_EQ(node->Get("b", 3), "2");
  EXPECT_EQ(node->Get("gone"), "(nil)");
  EXPECT_EQ(node->persistence->status().torn_bytes_cut, 0u);
}

TEST_F(PersistenceTest, UnderAlwaysAPowerCutLosesNothingThatWasReleased) {
  auto node = Start();
  for (int i = 0; i < 20; ++i) {
    node->Set(absl::StrCat("k", i), "v");
    ASSERT_TRUE(node->released());
    for (uint64_t seed = 0; seed < 5; ++seed) {
      auto after = fs_->AfterCrash(seed);
      Node next(*after, time_);
      ASSERT_TRUE(next.status.ok()) << next.status;
      for (int j = 0; j <= i; ++j) ASSERT_EQ(next.Get(absl::StrCat("k", j)), "v") << "after " << i;
    }
  }
}

TEST_F(PersistenceTest, UnderEverysecAKilledProcessLosesNothing) {
  PersistenceOptions options = Node::Options();
  options.sync = SyncPolicy::kEverySecond;
  auto node = Start(options);
  for (int i = 0; i < 50; ++i) node->Set(absl::StrCat("k", i), "v");
  auto after = fs_->AfterKill();
  Node next(*after, time_, options);
  ASSERT_TRUE(next.status.ok()) << next.status;
  EXPECT_EQ(next.Size(), 50u);
}

TEST_F(PersistenceTest, ZerosBehindTheLogOfAKilledProcessAreNoTornEnd) {
  const std::string path = Path("appendonly.aof.1.incr.aof");
  {
    auto node = Start();
    for (int i = 0; i < 50; ++i) node->Set(absl::StrCat("k", i), "v");
    auto after = fs_->AfterKill();
    fs_ = std::move(after);
  }
  const std::string left = fs_->Contents(path);
  ASSERT_TRUE(absl::EndsWith(left, std::string(100, '\0'))) << "prefilled";
  std::string verdict;
  EXPECT_EQ(CheckDirectory(*fs_, "/d", &verdict), 1);
  EXPECT_THAT(verdict, HasSubstr("not stopped cleanly"));
  // A torn batch is one still, and the copy beside has it alone.
  const size_t end = left.find_last_not_of('\0') + 1;
  std::string torn = left;
  torn.replace(end - 3, 3, 3, '\0');
  fs_->Overwrite(path, torn);
  EXPECT_EQ(CheckDirectory(*fs_, "/d", &verdict), 1);
  EXPECT_THAT(verdict, HasSubstr("a torn end (a batch is cut short)"));
  fs_->Overwrite(path, left);
  auto node = Start();
  ASSERT_TRUE(node->status.ok()) << node->status;
  EXPECT_EQ(node->Size(), 50u);
  EXPECT_EQ(node->persistence->status().torn_bytes_cut, 0u);
  EXPECT_FALSE(absl::StrContains(fs_->Contents(path), '\0')) << "a stock Redis reads it";
}

TEST_F(PersistenceTest, ALogEndsWithItsLastByteThatIsNoZero) {
  for (const size_t bytes : {0, 1, 5, 65'535, 65'536, 65'537, 200'000}) {
    for (const size_t zeros : {0, 1, 65'535, 65'536, 65'537, 150'000}) {
      std::string log(bytes, '\0');
      if (bytes != 0) log.back() = '\n';
      fs_->Overwrite("/d/log", log + std::string(zeros, '\0'));
      auto file = fs_->Open("/d/log", storage::FileSystem::Mode::kRead);
      EXPECT_EQ(*BytesBeforeZeros(**file, bytes + zeros), bytes) << zeros << " zeros";
    }
  }
}

TEST_F(PersistenceTest, ZerosBehindASealAreCutAtTheNextStart) {
  const std::string path = Path("appendonly.aof.1.incr.aof");
  {
    auto node = Start();
    node->Set("a", "1");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  const std::string sealed = fs_->Contents(path);
  ASSERT_FALSE(absl::StrContains(sealed, '\0'));
  fs_->Overwrite(path, sealed + std::string(5000, '\0'));
  auto node = Start();
  ASSERT_TRUE(node->status.ok()) << node->status;
  EXPECT_EQ(node->Get("a"), "1");
  EXPECT_EQ(fs_->Contents(path), sealed);
}

TEST_F(PersistenceTest, ARewriteReplacesTheChainAndKeepsTheKeys) {
  auto node = Start();
  for (int i = 0; i < 100; ++i) node->Set(absl::StrCat("k", i % 10), absl::StrCat(i));
  const uint64_t before = node->persistence->status().log_bytes;
  ASSERT_TRUE(node->persistence->RewriteInBackground().ok());
  EXPECT_TRUE(node->persistence->status().last_rewrite_ok) << node->persistence->status().last_error;
  EXPECT_EQ(node->persistence->status().rewrites, 1u);
  EXPECT_LT(node->persistence->status().log_bytes, before);
  node->Set("after", "1");
  auto after = fs_->AfterCrash(7);
  Node next(*after, time_);
  ASSERT_TRUE(next.status.ok()) << next.status;
  EXPECT_EQ(next.Size(), 11u);
  EXPECT_EQ(next.Get("k3"), "93");
  EXPECT_EQ(next.Get("after"), "1");
}

TEST_F(PersistenceTest, FencesRiseOverRestartsAndTheKeyOfTokensStays) {
  uint64_t fence = 0;
  std::string token(32, ' ');
  {
    auto node = Start();
    ASSERT_TRUE(node->tokens.Issue(0, "p:", 1'900'000'000'000, token.data()));
    for (int i = 0; i < 3; ++i) fence = node->store->fences().Next();
    auto after = fs_->AfterKill();
    fs_ = std::move(after);
  }
  time_.wall_ns -= 3'600'000'000'000;  // set back by an hour, with a new boot
  time_.boot = "boot-2";
  time_.boot_ns = 5;
  auto node = Start();
  ASSERT_TRUE(node->status.ok()) << node->status;
  EXPECT_GT(node->store->fences().Next(), fence);
  EXPECT_TRUE(node->tokens.Read(0, absl::StrCat("p:", token)).issued);
}

TEST_F(PersistenceTest, AFullDiskRefusesWritesAndGoesOnWhenThereIsRoom) {
  auto node = Start();
  node->Set("a", "1");
  fs_->FailCall(1, SimFault::kShortWrite);
  node->Set("b", "2");
  EXPECT_FALSE(node->released());
  EXPECT_THAT(std::string(node->persistence->log().Refusal().message()), HasSubstr("MISCONF Errors writing to the AOF file"));
  node->persistence->log().Release(node->need);
  EXPECT_TRUE(node->released());
  EXPECT_TRUE(node->persistence->log().Refusal().ok());
  auto after = fs_->AfterCrash(1);
  Node next(*after, time_);
  ASSERT_TRUE(next.status.ok()) << next.status;
  EXPECT_EQ(next.Get("b"), "2");
}

TEST_F(PersistenceTest, AFailedSyncEndsTheProcessBeforeAnythingIsReleased) {
  auto node = Start();
  node->Set("a", "1");
  fs_->FailCall(2, SimFault::kIo);  // the sync behind the write
  node->Set("b", "2");
  EXPECT_FALSE(node->released());
  EXPECT_FALSE(node->died.ok());
}

TEST_F(PersistenceTest, ADumpAloneIsTakenOverIntoALog) {
  {
    PersistenceOptions options = Node::Options();
    options.log = false;
    auto node = Start(options);
    node->Set("a", "1");
    node->Set("b", "2", 1'800'000'000'000, 2);
    ASSERT_TRUE(node->persistence->Close(true).ok());
  }
  {
    auto node = Start();
    ASSERT_TRUE(node->status.ok()) << node->status;
    EXPECT_EQ(node->Get("a"), "1");
    EXPECT_EQ(node->Get("b", 2), "2");
    node->Set("c", "3");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  auto node = Start();
  EXPECT_EQ(node->Get("a"), "1");
  EXPECT_EQ(node->Get("c"), "3");
}

TEST_F(PersistenceTest, ALogThatARedisWroteIsTakenOver) {
  ASSERT_TRUE(fs_->MakeDirectory("/d/appendonlydir").ok());
  fs_->Overwrite(Path("appendonly.aof.manifest"), "file appendonly.aof.1.incr.aof seq 1 type i\n");
  fs_->Overwrite(Path("appendonly.aof.1.incr.aof"),
                 "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
                 "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n*1\r\n$4\r\nEXEC\r\n"
                 "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\n3\r\n");
  auto node = Start();
  ASSERT_TRUE(node->status.ok()) << node->status;
  EXPECT_EQ(node->Get("a"), "1");
  EXPECT_EQ(node->Get("b"), "2");
  EXPECT_EQ(node->Get("c"), "(nil)") << "its EXEC never came";
  node->Set("d", "4");
  auto after = fs_->AfterCrash(3);
  Node next(*after, time_);
  ASSERT_TRUE(next.status.ok()) << next.status;
  EXPECT_EQ(next.Get("b"), "2");
  EXPECT_EQ(next.Get("d"), "4");
}

TEST_F(PersistenceTest, ManyRestartsDoNotMakeALongChain) {
  for (int i = 0; i < 100; ++i) {
    auto node = Start();
    ASSERT_TRUE(node->status.ok()) << node->status;
    if (i % 10 == 0) node->Set(absl::StrCat("k", i), "v");
    if (i % 3 != 0) {
      ASSERT_TRUE(node->persistence->Close(false).ok());
    }
  }
  EXPECT_LE(fs_->List("/d/appendonlydir")->size(), 35u) << fs_->Describe();
  auto node = Start();
  EXPECT_EQ(node->Size(), 10u);
}

TEST_F(PersistenceTest, AMissingFileIsRefusedWithAdvice) {
  {
    auto node = Start();
    node->Set("a", "1");
    ASSERT_TRUE(node->persistence->RewriteInBackground().ok());
    node->Set("b", "1");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  for (const char* name : {"appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"}) {
    auto copy = fs_->AfterKill();
    ASSERT_TRUE(copy->Unlink(Path(name)).ok()) << name << "\n" << copy->Describe();
    Node node(*copy, time_);
    EXPECT_FALSE(node.status.ok()) << name;
    EXPECT_THAT(std::string(node.status.message()), ::testing::AnyOf(HasSubstr("Restore"), HasSubstr("backup"))) << name;
  }
}

TEST_F(PersistenceTest, EveryFlippedBitOfACleanDirectoryIsNoticed) {
  {
    auto node = Start();
    for (int i = 0; i < 5; ++i) node->Set(absl::StrCat("key:", i), absl::StrCat("value", i));
    ASSERT_TRUE(node->persistence->RewriteInBackground().ok());
    for (int i = 0; i < 5; ++i) node->Set(absl::StrCat("more:", i), absl::StrCat("value", i), 1'800'000'000'000 + i);
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  int flips = 0;
  for (const char* name : {"appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"}) {
    const std::string sound = fs_->Contents(Path(name));
    ASSERT_FALSE(sound.empty()) << name << "\n" << fs_->Describe();
    for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
      std::string flipped = sound;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      auto copy = fs_->AfterKill();
      copy->Overwrite(Path(name), flipped);
      std::string verdict;
      const int code = CheckDirectory(*copy, "/d", &verdict);
      EXPECT_EQ(code, 2) << name << " bit " << bit << ": " << verdict;
      ++flips;
    }
  }
  EXPECT_GT(flips, 10'000);
}

// A clean directory of a base and two logs, each file in turn without its bytes, cut, or with another's.
TEST_F(PersistenceTest, EmptiedCutAndSwappedFilesAreRefusedWithAdvice) {
  {
    auto node = Start();
    for (int i = 0; i < 5; ++i) node->Set(absl::StrCat("key:", i), absl::StrCat("value", i));
    ASSERT_TRUE(node->persistence->RewriteInBackground().ok());
    node->Set("more", "1");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  {
    auto node = Start();
    node->Set("still more", "1");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  const std::vector<std::string> names = {"appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof", "appendonly.aof.3.incr.aof",
                                          "appendonly.aof.manifest"};
  const auto refused = [&](SimFs& files, const std::string& what) {
    std::string verdict;
    EXPECT_EQ(CheckDirectory(files, "/d", &verdict), 2) << what << ": " << verdict;
    Node node(files, time_);
    EXPECT_FALSE(node.status.ok()) << what;
    EXPECT_THAT(std::string(node.status.message()), ::testing::AnyOf(HasSubstr("Restore"), HasSubstr("backup"))) << what;
  };
  int cases = 0;
  for (const std::string& name : names) {
    const std::string sound = fs_->Contents(Path(name));
    ASSERT_FALSE(sound.empty()) << name << "\n" << fs_->Describe();
    for (size_t size = 0; size < sound.size(); ++size, ++cases) {
      auto copy = fs_->AfterKill();
      copy->Overwrite(Path(name), sound.substr(0, size));
      refused(*copy, absl::StrCat(name, " cut to ", size));
    }
    for (const std::string& other : names) {
      if (other == name) continue;
      auto copy = fs_->AfterKill();
      copy->Overwrite(Path(name), fs_->Contents(Path(other)));
      copy->Overwrite(Path(other), sound);
      refused(*copy, absl::StrCat(name, " and ", other, " swapped"));
      ++cases;
    }
  }
  EXPECT_GT(cases, 1000);
}

TEST_F(PersistenceTest, CheckAndRepairTellWhatTheyFind) {
  std::string verdict;
  {
    auto node = Start();
    node->Set("a", "1");
  }
  EXPECT_EQ(CheckDirectory(*fs_, "/d", &verdict), 1) << verdict;
  const std::string log = fs_->Contents(Path("appendonly.aof.1.incr.aof"));
  fs_->Overwrite(Path("appendonly.aof.1.incr.aof"), log + "*2\r\n$4\r\nECHO\r\n$50\r\ni2;3;4;");
  EXPECT_EQ(CheckDirectory(*fs_, "/d", &verdict), 1) << verdict;
  EXPECT_THAT(verdict, HasSubstr("torn"));
  EXPECT_EQ(RepairDirectory(*fs_, "/d", &verdict), 0) << verdict;
  EXPECT_EQ(CheckDirectory(*fs_, "/d", &verdict), 0) << verdict;
  auto node = Start();
  EXPECT_EQ(node->Get("a"), "1");
}

TEST_F(PersistenceTest, AHoleWithASyncedBatchBehindItIsRefused) {
  auto node = Start();
  node->Set("a", "1");
  const size_t before = fs_->Contents(Path("appendonly.aof.1.incr.aof")).find_last_not_of('\0') + 1;  // behind it: prefilled
  node->Set("b", "2");
  node->Set("c", "3");
  node.reset();
  std::string log = fs_->Contents(Path("appendonly.aof.1.incr.aof"));
  for (size_t i = before; i < before + 20; ++i) log[i] = '\0';
  fs_->Overwrite(Path("appendonly.aof.1.incr.aof"), log);
  node = Start();
  EXPECT_FALSE(node->status.ok());
  EXPECT_THAT(std::string(node->status.message()), HasSubstr("it was on disk"));
}

// Numbers and sums are right, and the batch is of another history all the same.
TEST_F(PersistenceTest, ABatchBehindAnotherThanItWasWrittenBehindIsRefused) {
  Start()->Set("first", "1");
  const auto fork = fs_->AfterKill();
  const auto go_on = [&](SimFs& files, const char* value) {
    Node node(files, time_);
    ASSERT_TRUE(node.status.ok()) << node.status;
    node.Set("a", value);
    node.Set("b", value);
  };
  go_on(*fs_, "1");
  go_on(*fork, "2");
  std::string name, mine, theirs;
  for (const char* file : {"appendonly.aof.1.incr.aof", "appendonly.aof.2.incr.aof", "appendonly.aof.3.incr.aof"}) {
    if (fs_->Contents(Path(file)) == fork->Contents(Path(file))) continue;
    name = Path(file), mine = fs_->Contents(name), theirs = fork->Contents(name);
  }
  ASSERT_EQ(mine.size(), theirs.size()) << fs_->Describe();
  const size_t second = mine.rfind("*2\r\n$4\r\nECHO\r\n");
  ASSERT_NE(second, std::string::npos);
  ASSERT_EQ(second, theirs.rfind("*2\r\n$4\r\nECHO\r\n"));
  fs_->Overwrite(name, mine.substr(0, second) + theirs.substr(second));
  const auto node = Start();
  EXPECT_FALSE(node->status.ok());
  EXPECT_THAT(std::string(node->status.message()), HasSubstr("does not follow"));
}

TEST_F(PersistenceTest, TimeGoesOnWhereTheLogEndedAndAJumpMeanwhileIsNotFollowed) {
  {
    auto node = Start();
    node->Set("a", "1");
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  const int64_t then_ms = time_.wall_ns / 1'000'000;
  time_.Advance(10'000);
  time_.wall_ns += 172'800'000'000'000;  // two days ahead
  {
    auto node = Start();
    EXPECT_NEAR(static_cast<double>(node->clock.NowMs()), static_cast<double>(then_ms + 10'000), 2);
    EXPECT_TRUE(node->clock.State().suspect);
    ASSERT_TRUE(node->persistence->Close(false).ok());
  }
  time_.wall_ns -= 2 * 172'800'000'000'000;  // and behind
  time_.boot = "boot-2";
  time_.boot_ns = 5;
  auto node = Start();
  EXPECT_GE(node->clock.NowMs(), then_ms + 10'000);
}

}  // namespace
}  // namespace idemd::server

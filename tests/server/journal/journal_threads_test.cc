// Real threads and real files: units on several threads, the committer, rewrites and dumps beside them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/journal/persistence.h"
#include "storage/clock.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::server {
namespace {

class JournalThreadsTest : public ::testing::TestWithParam<SyncPolicy> {
 protected:
  JournalThreadsTest() : directory_(::testing::TempDir() + "idemd-journal-XXXXXX") {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~JournalThreadsTest() override { std::filesystem::remove_all(directory_); }

  struct Running {
    Running(const std::string& directory, SyncPolicy sync)
        : files(storage::SystemFiles()), time(storage::SystemTime()), clock(*time, 0) {
      PersistenceOptions options;
      options.directory = directory;
      options.sync = sync;
      persistence = std::make_unique<Persistence>(options, *files, *time);
      store = std::make_unique<storage::Store>(clock, persistence->log());
      persistence->OnReleased([this] { released.fetch_add(1, std::memory_order_relaxed); });
      status = persistence->Open();
      if (status.ok()) status = persistence->Load(*store, tokens, &clock, nullptr);
    }
    ~Running() {
      if (persistence != nullptr) persistence->Close(false).IgnoreError();
      store.reset();
      persistence.reset();
    }
    // Returns once what was done may be revealed.
    void Set(absl::string_view key, absl::string_view value) {
      const storage::HashedKey hashed(key);
      storage::Lsn need = 0;
      {
        storage::Unit unit(*store);
        unit.Lock(hashed);
        unit.SetString(0, hashed, value, storage::kNoDeadline);
        unit.Commit();
        need = unit.need();
      }
      persistence->log().Release(need);
      while (persistence->log().released() < need) std::this_thread::yield();
    }
    std::string Get(absl::string_view key) {
      storage::Unit unit(*store);
      const storage::KeyView view = unit.Find(0, storage::HashedKey(key));
      return view ? std::string(view.bytes) : "(nil)";
    }

    std::unique_ptr<storage::FileSystem> files;
    std::unique_ptr<storage::TimeSource> time;
    storage::EffectiveClock clock;
    storage::TokenMint tokens{storage::TokenMint::NewKey()};
    std::unique_ptr<Persistence> persistence;
    std::unique_ptr<storage::Store> store;
    std::atomic<int> released{0};
    absl::Status status;
  };

  std::string directory_;
};

TEST_P(JournalThreadsTest, EachThreadFindsItsLastWriteAfterARestart) {
  constexpr int kThreads = 3, kWrites = 300, kKeys = 7;
  {
    Running node(directory_, GetParam());
    ASSERT_TRUE(node.status.ok()) << node.status;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&node, t] {
        for (int i = 0; i < kWrites; ++i) node.Set(absl::StrCat("t", t, ":", i % kKeys), absl::StrCat(i));
      });
    }
    for (int i = 0; i < 5; ++i) {
      node.persistence->RewriteInBackground().IgnoreError();  // one may still be under way
      node.persistence->SaveInBackground(true).IgnoreError();
      node.persistence->Tick();
      EXPECT_TRUE(node.persistence->SetSync(i % 2 == 0 ? SyncPolicy::kAlways : GetParam()).ok());
      node.Set("main", absl::StrCat(i));
    }
    for (std::thread& thread : threads) thread.join();
    std::atomic<int> synced{0};
    node.persistence->WaitSynced(node.persistence->status().last_lsn, 0, [&](bool ok) { synced.store(ok ? 1 : 2); });
    while (synced.load() == 0) std::this_thread::yield();
    EXPECT_EQ(synced.load(), 1);
  }
  Running node(directory_, GetParam());
  ASSERT_TRUE(node.status.ok()) << node.status;
  EXPECT_EQ(node.Get("main"), "4");
  for (int t = 0; t < kThreads; ++t) {
    for (int k = 0; k < kKeys; ++k) {
      const int last = (kWrites - 1 - k) / kKeys * kKeys + k;
      EXPECT_EQ(node.Get(absl::StrCat("t", t, ":", k)), absl::StrCat(last));
    }
  }
}

TEST_P(JournalThreadsTest, TheLogIsSwitchedOffAndOnWhileThreadsWrite) {
  {
    Running node(directory_, GetParam());
    ASSERT_TRUE(node.status.ok()) << node.status;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) node.Set(absl::StrCat("k", i % 50), absl::StrCat(i));
    });
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(node.persistence->SetLog(false).ok());
      EXPECT_TRUE(node.persistence->SetLog(true).ok());
    }
    stop.store(true);
    writer.join();
    node.Set("last", "1");
  }
  Running node(directory_, GetParam());
  ASSERT_TRUE(node.status.ok()) << node.status;
  EXPECT_EQ(node.Get("last"), "1");
}

INSTANTIATE_TEST_SUITE_P(Policies, JournalThreadsTest, ::testing::Values(SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNever),
                         [](const ::testing::TestParamInfo<SyncPolicy>& policy) {
                           return policy.param == SyncPolicy::kAlways ? "Always" : policy.param == SyncPolicy::kEverySecond ? "Everysec" : "No";
                         });

}  // namespace
}  // namespace idemd::server

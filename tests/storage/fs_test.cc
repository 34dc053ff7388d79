// The file interface over the system's calls.
#include "storage/fs.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

namespace idemd::storage {
namespace {

class FileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "idemd-fs-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    fs_ = SystemFiles();
  }
  void TearDown() override {
    auto names = fs_->List(dir_);
    if (names.ok())
      for (const std::string& name : *names) (void)fs_->Unlink(dir_ + "/" + name);
    (void)::remove(dir_.c_str());
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  std::string dir_;
  std::unique_ptr<FileSystem> fs_;
};

TEST_F(FileSystemTest, AppendedBytesAreReadBack) {
  auto file = fs_->Open(Path("log"), FileSystem::Mode::kCreate);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("hello ").ok());
  ASSERT_TRUE((*file)->Append("world").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(*(*file)->Size(), 11u);
  EXPECT_EQ(*(*file)->ReadAt(6, 100), "world");
  EXPECT_EQ(*(*file)->ReadAt(11, 1), "");
}

TEST_F(FileSystemTest, AnAppendedFileGoesOnBehindItsEnd) {
  { ASSERT_TRUE((*fs_->Open(Path("log"), FileSystem::Mode::kCreate))->Append("one").ok()); }
  auto file = fs_->Open(Path("log"), FileSystem::Mode::kAppend);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("two").ok());
  EXPECT_EQ(*(*file)->ReadAt(0, 100), "onetwo");
}

TEST_F(FileSystemTest, CreateRefusesAFileThatExistsAndReadOneThatDoesNot) {
  ASSERT_TRUE(fs_->Open(Path("a"), FileSystem::Mode::kCreate).ok());
  EXPECT_FALSE(fs_->Open(Path("a"), FileSystem::Mode::kCreate).ok());
  EXPECT_EQ(fs_->Open(Path("b"), FileSystem::Mode::kRead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_->Open(Path("b"), FileSystem::Mode::kAppend).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FileSystemTest, FilesAreForTheirOwnerAlone) {
  ASSERT_TRUE(fs_->Open(Path("a"), FileSystem::Mode::kCreate).ok());
  struct stat s {};
  ASSERT_EQ(stat(Path("a").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

TEST_F(FileSystemTest, ReservedSpaceDoesNotChangeTheSize) {
  auto file = fs_->Open(Path("log"), FileSystem::Mode::kCreate);
  ASSERT_TRUE((*file)->Append("x").ok());
  ASSERT_TRUE((*file)->Reserve(1 << 20).ok());
  EXPECT_EQ(*(*file)->Size(), 1u);
  ASSERT_TRUE((*file)->Append("y").ok());
  EXPECT_EQ(*(*file)->ReadAt(0, 10), "xy");
}

TEST_F(FileSystemTest, APrefilledFileIsLongerAndIsAppendedToWhereItsContentsEnd) {
  auto file = fs_->Open(Path("log"), FileSystem::Mode::kCreate);
  ASSERT_TRUE((*file)->Append("x").ok());
  ASSERT_TRUE((*file)->Prefill(100'000).ok());
  EXPECT_EQ(*(*file)->Size(), 100'001u);
  ASSERT_TRUE((*file)->Append("y").ok());
  EXPECT_EQ(*(*file)->Size(), 100'001u);
  EXPECT_EQ(*(*file)->ReadAt(0, 4), std::string("xy\0\0", 4));
  ASSERT_TRUE((*file)->Prefill(100'000).ok()) << "a byte more than there is";
  EXPECT_EQ(*(*file)->Size(), 100'002u);
  EXPECT_EQ(*(*file)->ReadAt(0, 200'000), "xy" + std::string(100'000, '\0'));
  ASSERT_TRUE((*file)->Truncate(2).ok());
  ASSERT_TRUE((*file)->Append("z").ok());
  EXPECT_EQ(*(*file)->ReadAt(0, 10), "xyz");
}

TEST_F(FileSystemTest, ARenamedFileIsNoLongerAtItsOldPath) {
  auto file = fs_->Open(Path("old"), FileSystem::Mode::kCreate);
  EXPECT_TRUE((*file)->IsAt(Path("old")));
  ASSERT_TRUE(fs_->Rename(Path("old"), Path("new")).ok());
  ASSERT_TRUE(fs_->SyncDirectory(dir_).ok());
  EXPECT_FALSE((*file)->IsAt(Path("old")));
  EXPECT_TRUE((*file)->IsAt(Path("new")));
  EXPECT_FALSE(*fs_->Exists(Path("old")));
  EXPECT_TRUE(*fs_->Exists(Path("new")));
  EXPECT_EQ(*fs_->List(dir_), std::vector<std::string>{"new"});
}

TEST_F(FileSystemTest, ADirectoryIsLockedByOneAtATime) {
  auto first = fs_->Lock(Path("lock"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(fs_->Lock(Path("lock")).status().code(), absl::StatusCode::kFailedPrecondition);
  first->reset();
  EXPECT_TRUE(fs_->Lock(Path("lock")).ok());
}

TEST_F(FileSystemTest, ErrorsNameThePathAndTellAFullDiskApart) {
  const absl::Status missing = fs_->Unlink(Path("nothing"));
  EXPECT_NE(missing.message().find(Path("nothing")), absl::string_view::npos);
  EXPECT_FALSE(IsNoSpace(missing));
  auto full = fs_->Open("/dev/full", FileSystem::Mode::kAppend);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_TRUE(IsNoSpace((*full)->Append("x")));
}

TEST_F(FileSystemTest, TruncateCutsBackToTheStartOfABatch) {
  auto file = fs_->Open(Path("log"), FileSystem::Mode::kCreate);
  ASSERT_TRUE((*file)->Append("whole|torn").ok());
  ASSERT_TRUE((*file)->Truncate(6).ok());
  ASSERT_TRUE((*file)->Append("next").ok());
  EXPECT_EQ(*(*file)->ReadAt(0, 100), "whole|next");
}

}  // namespace
}  // namespace idemd::storage

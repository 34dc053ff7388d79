// An entry gives back what it was made of, in every form and with every kind of key, and takes the bytes that it says.
#include "storage/table/entry.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

class EntryTest : public testing::Test {
 protected:
  // Every property at once.
  void ExpectIs(const Entry& entry, const std::string& key, const std::string& value, int64_t deadline_ms) {
    KeyText room;
    EXPECT_EQ(entry.Text(room), key);
    EXPECT_TRUE(entry.Is(HashedKey(key)));
    EXPECT_FALSE(entry.Is(HashedKey(key + "x")));
    EXPECT_FALSE(entry.Is(HashedKey("x" + key)));
    EXPECT_EQ(entry.hash(), HashedKey(key).hash);
    EXPECT_EQ(entry.value(), value);
    EXPECT_EQ(entry.deadline_ms(), deadline_ms);
    EXPECT_EQ(entry.memory_bytes(), Heap::ClassBytes(entry.size_bytes()));
  }
  Entry* Make(const std::string& key, EntryForm form, const std::string& value, int64_t deadline_ms) {
    Entry* entry = Entry::Make(*heap_, HashedKey(key), form, value.size(), deadline_ms);
    value.copy(entry->value_data(), value.size());
    return entry;
  }

  HeapPtr heap_{Heap::Make()};
};

const std::string kUuid = "0190f3a2-7c1e-7b3a-9c55-0242ac120002";
const std::string kToken = "AZzlkLngAAAAAAAAAAAAAAAAAAAAAAAA";
constexpr int64_t kWide = int64_t{1} << 50;

TEST_F(EntryTest, GivesBackWhatItWasMadeOf) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> tails = {"", "name", kUuid, kToken, "0123456789abcdef0123456789abcdef",
                                          "AAAAAAAAAAAAAAAAAAAAAA", std::string(300, 'k')};
  for (int i = 0; i < 20'000; ++i) {
    const std::string prefix = random() % 2 == 0 ? "" : std::string(random() % 70, 'p') + ":";
    const std::string key = prefix + tails[random() % tails.size()];
    const std::string value(random() % (random() % 16 == 0 ? 20'000 : 200), static_cast<char>(random()));
    const auto form = static_cast<EntryForm>(random() % 3 == 0 ? 0 : 2 + random() % 2);
    const int64_t deadline_ms = random() % 4 == 0   ? kNoDeadline
                                : random() % 8 == 0 ? kWide + static_cast<int64_t>(random() % 1000)
                                                    : static_cast<int64_t>(random() >> 17);
    Entry* entry = Make(key, form, value, deadline_ms);
    EXPECT_EQ(entry->form(), form);
    ExpectIs(*entry, key, value, deadline_ms);
    Entry* copy = Entry::MakeCopy(*heap_, *entry);
    Entry::Destroy(entry);
    ExpectIs(*copy, key, value, deadline_ms);
    Entry::Destroy(copy);
    if (HasFailure()) return;
  }
}

TEST_F(EntryTest, AShapedOneIsItsTailAndAWord) {
  for (const auto& [kind, key] : {std::pair{TailKind::kUuid, kUuid}, std::pair{TailKind::kToken, "login:" + kToken}}) {
    const HashedKey hashed(key);
    ASSERT_EQ(hashed.tail.kind, kind);
    uint32_t shape = 0;
    for (int i = 0; i < 100; ++i) shape = Shapes::Instance().Id(hashed.prefix(), kind, "yes");
    ASSERT_NE(shape, 0u);
    ASSERT_TRUE(Entry::CanBeShaped(hashed, 3, 1000));
    EXPECT_FALSE(Entry::CanBeShaped(hashed, 3, kWide));
    Entry* entry = Entry::MakeShaped(*heap_, hashed, shape, 1000);
    ExpectIs(*entry, key, "yes", 1000);
    EXPECT_EQ(entry->size_bytes(), 8 + TailBytes(kind));
    EXPECT_TRUE(entry->set_deadline_ms(kNoDeadline));
    entry->touch(5);
    EXPECT_EQ(entry->access(), 0u);
    Entry* copy = Entry::MakeCopy(*heap_, *entry);
    ExpectIs(*copy, key, "yes", kNoDeadline);
    Entry::Destroy(entry);
    Entry::Destroy(copy);
  }
}

TEST_F(EntryTest, ADeadlineChangesInPlaceWhereItFits) {
  Entry* near = Make("k", EntryForm::kString, "v", 1000);
  EXPECT_TRUE(near->set_deadline_ms(2000));
  EXPECT_EQ(near->deadline_ms(), 2000);
  EXPECT_FALSE(near->set_deadline_ms(kWide)) << "takes an entry with a word for it";
  EXPECT_EQ(near->deadline_ms(), 2000);
  Entry* far = Make("k", EntryForm::kString, "v", kWide);
  EXPECT_TRUE(far->set_deadline_ms(kWide + 1));
  EXPECT_EQ(far->deadline_ms(), kWide + 1);
  EXPECT_TRUE(far->set_deadline_ms(7));
  EXPECT_EQ(far->deadline_ms(), 7);
  Entry* record = Make("k", EntryForm::kRecord, "v", 1000);
  EXPECT_FALSE(record->set_deadline_ms(2000)) << "its packed form leans on the deadline [E3]";
  for (Entry* entry : {near, far, record}) Entry::Destroy(entry);
}

TEST_F(EntryTest, KeepsUseOfStringsAndReplaysOfAnswers) {
  Entry* string = Make("k", EntryForm::kString, "v", 1000);
  string->touch(77);
  EXPECT_EQ(string->access(), 77u);
  EXPECT_EQ(string->replays(), nullptr);
  Entry* done = Make("k", EntryForm::kDone, "v", 1000);
  done->touch(77);
  done->replays()->fetch_add(3);
  EXPECT_EQ(done->access(), 0u);
  EXPECT_EQ(done->replays()->load(), 3u);
  Entry* copy = Entry::MakeCopy(*heap_, *done);
  EXPECT_EQ(copy->replays()->load(), 3u);
  Entry* pending = Make("k", EntryForm::kRecord, "v", 1000);
  EXPECT_EQ(pending->replays(), nullptr);
  for (Entry* entry : {string, done, copy, pending}) Entry::Destroy(entry);
}

TEST_F(EntryTest, ABufferGrowsWithZerosAndCountsItsData) {
  Entry* entry = Entry::MakeBuffer(*heap_, HashedKey("order:" + kUuid), 3, 8, kNoDeadline);
  std::memcpy(entry->buffer().data, "abc", 3);
  entry->ResizeBuffer(100);
  EXPECT_EQ(entry->value(), "abc" + std::string(97, '\0'));
  EXPECT_GE(entry->memory_bytes(), entry->size_bytes() + 100);
  KeyText room;
  EXPECT_EQ(entry->Text(room), "order:" + kUuid);
  Entry::Destroy(entry);
}

}  // namespace
}  // namespace idemd::storage

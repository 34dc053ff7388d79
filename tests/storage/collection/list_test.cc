// Lists against a deque of strings, across all node borders, and their RDB forms.
#include "storage/collection/list.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using End = List::End;
using Model = std::deque<std::string>;

constexpr List::Limits kUsual{SIZE_MAX, 8192};

std::vector<std::string> All(const List& list, End from = End::kHead) {
  std::vector<std::string> all;
  list.Walk(from, 0, list.size(), [&](absl::string_view text) { all.emplace_back(text); });
  return all;
}

std::vector<std::string> Of(const Model& model) { return {model.begin(), model.end()}; }

std::unique_ptr<List> Reread(const List& list) {
  std::unique_ptr<Collection> read;
  EXPECT_TRUE(ReadDumpPayload(DumpPayload(list), &read).ok());
  return std::unique_ptr<List>(static_cast<List*>(read.release()));
}

TEST(ListTest, LimitsAreWhatTheSettingSays) {
  EXPECT_EQ(List::Limits::Of(-1).bytes, 4096u);
  EXPECT_EQ(List::Limits::Of(-2).bytes, 8192u);
  EXPECT_EQ(List::Limits::Of(-5).bytes, 65536u);
  EXPECT_EQ(List::Limits::Of(-7).bytes, 65536u);
  EXPECT_EQ(List::Limits::Of(-2).elements, SIZE_MAX);
  EXPECT_EQ(List::Limits::Of(3).elements, 3u);
  EXPECT_EQ(List::Limits::Of(3).bytes, 8192u);
  EXPECT_EQ(List::Limits::Of(0).elements, 1u);
  EXPECT_EQ(List::Limits::Of(INT32_MAX).elements, 32767u);
}

TEST(ListTest, ManySmallElementsTakeLittleMoreThanTheirBytes) {
  List list;
  for (int i = 0; i < 100'000; ++i) list.Push(End::kTail, "element", kUsual);
  // Nine bytes each in a listpack: a byte in front, one behind.
  EXPECT_LT(list.memory_bytes(), 100'000u * 9 * 115 / 100);
  EXPECT_TRUE(list.Sound());
}

TEST(ListTest, AnEmptyListHoldsNoNodes) {
  List list;
  const size_t empty = list.memory_bytes();
  for (int i = 0; i < 1000; ++i) list.Push(i % 2 == 0 ? End::kHead : End::kTail, std::string(100, 'x'), kUsual);
  EXPECT_EQ(list.Remove(End::kTail, 600, std::string(100, 'x')), 600u);
  list.Drop(End::kHead, 400);
  EXPECT_TRUE(list.gone());
  EXPECT_TRUE(list.Sound());
  EXPECT_LT(list.memory_bytes(), empty + 8 * 32);
}

TEST(ListTest, FindTellsIndexesFromTheHeadOnEitherWay) {
  List list;
  for (const char* text : {"a", "b", "7", "b", "c", "7"}) list.Push(End::kTail, text, {2, 8192});
  const auto found = [&](End from, absl::string_view text, size_t most, size_t matches) {
    std::vector<size_t> at;
    list.Find(from, text, most, [&](size_t index) {
      at.push_back(index);
      return at.size() < matches;
    });
    return at;
  };
  EXPECT_EQ(found(End::kHead, "b", SIZE_MAX, SIZE_MAX), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(found(End::kTail, "b", SIZE_MAX, SIZE_MAX), (std::vector<size_t>{3, 1}));
  EXPECT_EQ(found(End::kTail, "7", SIZE_MAX, 1), (std::vector<size_t>{5}));
  EXPECT_EQ(found(End::kHead, "b", 3, SIZE_MAX), (std::vector<size_t>{1}));
  EXPECT_EQ(found(End::kTail, "b", 3, SIZE_MAX), (std::vector<size_t>{3}));
  EXPECT_EQ(found(End::kHead, "07", SIZE_MAX, SIZE_MAX), (std::vector<size_t>{}));
}

class ListModelTest : public ::testing::TestWithParam<int> {};

TEST_P(ListModelTest, DoesWhatADequeDoes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 rng(seed);
  const List::Limits limits = List::Limits::Of(GetParam());
  const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  const auto text = [&]() -> std::string {
    switch (below(8)) {
      case 0:
        return std::string(below(20'000), static_cast<char>('a' + below(3)));
      case 1:
        return std::string(below(300), static_cast<char>('a' + below(3)));
      case 2:
        return std::to_string(static_cast<int64_t>(rng()));
      default:
        return std::to_string(below(12));
    }
  };
  auto list = std::make_unique<List>();
  Model model;
  for (int step = 0; step < 6000; ++step) {
    const End end = below(2) == 0 ? End::kHead : End::kTail;
    const bool head = end == End::kHead;
    switch (below(model.size() > 400 ? 9 : 7)) {
      case 0:
      case 1: {
        const std::string element = text();
        list->Push(end, element, limits);
        head ? model.push_front(element) : model.push_back(element);
        break;
      }
      case 2:
      case 3: {
        const size_t at = below(model.size() + 1);
        const std::string element = text();
        list->Insert(at, element, limits);
        model.insert(model.begin() + static_cast<ptrdiff_t>(at), element);
        break;
      }
      case 4:
        if (!model.empty()) {
          const size_t at = below(model.size());
          const std::string element = text();
          list->Set(at, element, limits);
          model[at] = element;
        }
        break;
      case 5: {
        const std::string element = text();
        const size_t most = 1 + below(3);
        size_t removed = 0;
        for (size_t i = 0; i < model.size() && removed < most;) {
          const auto at = model.begin() + static_cast<ptrdiff_t>(head ? i : model.size() - 1 - i);
          if (*at != element) {
            ++i;
            continue;
          }
          model.erase(at);
          ++removed;
        }
        ASSERT_EQ(list->Remove(end, most, element), removed);
        break;
      }
      case 6: {
        const size_t skip = below(model.size() + 2), n = below(50);
        std::vector<std::string> expected, seen;
        for (size_t i = skip; i < model.size() && i < skip + n; ++i)
          expected.push_back(head ? model[i] : model[model.size() - 1 - i]);
        list->Walk(end, skip, n, [&](absl::string_view element) { seen.emplace_back(element); });
        ASSERT_EQ(seen, expected);
        break;
      }
      default: {
        const size_t n = below(model.size() + 1);
        list->Drop(end, n);
        model.erase(head ? model.begin() : model.end() - static_cast<ptrdiff_t>(n),
                    head ? model.begin() + static_cast<ptrdiff_t>(n) : model.end());
        break;
      }
    }
    ASSERT_EQ(list->size(), model.size());
    ASSERT_TRUE(list->Sound()) << step;
    if (step % 97 == 0) {
      ASSERT_EQ(All(*list), Of(model));
      auto other = step % 2 == 0 ? std::unique_ptr<List>(static_cast<List*>(list->Clone().release()))
                   : model.empty() ? std::make_unique<List>() : Reread(*list);
      ASSERT_EQ(All(*other, End::kTail), All(*list, End::kTail));
      ASSERT_TRUE(other->Sound());
      list = std::move(other);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Settings, ListModelTest, ::testing::Values(-5, -2, -1, 0, 1, 3, 128));

// --- files

std::unique_ptr<Collection> ReadBody(uint8_t type, std::string body) {
  absl::string_view rest = body;
  RdbScanner scan([&rest](size_t) { return std::exchange(rest, absl::string_view()); });
  std::unique_ptr<Collection> list = ReadRdbList(type, scan);
  EXPECT_EQ(list == nullptr, !scan.failure().ok());
  return list != nullptr && scan.input().AtEnd() ? std::move(list) : nullptr;
}

std::vector<std::string> ElementsOf(const std::unique_ptr<Collection>& list) {
  if (list == nullptr) return {"nothing"};
  return All(static_cast<const List&>(*list));
}

std::string Text(absl::string_view text) {
  std::string out;
  AppendRdbString(text, RdbStrings::kPlain, out);
  return out;
}

// The ziplist of "x" and 300.
const std::string kZiplist("\x12\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01x\x03\xc0\x2c\x01\xff", 18);

TEST(ListRdbTest, ReadsWhatOlderVersionsWrote) {
  const std::vector<std::string> expected = {"x", "300"};
  EXPECT_EQ(ElementsOf(ReadBody(1, "\x02" + Text("x") + Text("300"))), expected);
  EXPECT_EQ(ElementsOf(ReadBody(10, Text(kZiplist))), expected);
  EXPECT_EQ(ElementsOf(ReadBody(14, "\x02" + Text(kZiplist) + Text(kZiplist))),
            (std::vector<std::string>{"x", "300", "x", "300"}));
}

TEST(ListRdbTest, ReadsPlainAndPackedNodes) {
  Listpack pack;
  pack.Append("p");
  EXPECT_EQ(ElementsOf(ReadBody(18, std::string("\x03\x01") + Text("plain") + "\x02" + Text(pack.view()) + "\x02" +
                                        Text(Listpack().view()))),
            (std::vector<std::string>{"plain", "p"}));
  EXPECT_EQ(ElementsOf(ReadBody(18, std::string("\x01\x03") + Text("plain"))), ElementsOf(nullptr));
}

TEST(ListRdbTest, DamagedBytesAreRefusedOrAListAllTheSame) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 rng(seed);
  List list;
  for (int i = 0; i < 40; ++i)
    list.Push(End::kTail, i % 5 == 0 ? std::string(5000, 'l') : std::to_string(i * i * i - 100), List::Limits::Of(-1));
  std::string body;
  list.AppendRdb(RdbStrings::kPlain, body);
  const std::vector<std::pair<uint8_t, std::string>> samples = {
      {18, body}, {14, "\x01" + Text(kZiplist)}, {10, Text(kZiplist)}, {1, "\x02" + Text("a") + Text("b")}};
  for (const auto& [type, whole] : samples) {
    ASSERT_NE(ReadBody(type, whole), nullptr) << int{type};
    for (size_t size = 0; size < whole.size(); size += 1 + size / 300)
      EXPECT_EQ(ReadBody(type, whole.substr(0, size)), nullptr) << int{type} << " cut at " << size;
    for (int i = 0; i < 4000; ++i) {
      std::string flipped = whole;
      for (size_t flips = 1 + rng() % 3; flips != 0; --flips)
        flipped[rng() % std::min<size_t>(flipped.size(), 200)] ^= static_cast<char>(1 << rng() % 8);
      const std::unique_ptr<Collection> read = ReadBody(type, flipped);
      if (read == nullptr) continue;
      const List& other = static_cast<const List&>(*read);
      EXPECT_TRUE(other.Sound());
      EXPECT_EQ(All(other).size(), other.size());
    }
  }
}

}  // namespace
}  // namespace idemd::storage

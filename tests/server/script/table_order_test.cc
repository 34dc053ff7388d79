// The order of names in tables of Lua 5.1; what is expected here was read off a Redis.
#include "server/script/table_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace idemd::server {
namespace {

std::string Order(const std::vector<absl::string_view>& names) {
  std::string order;
  for (uint32_t i : WalkOrder(names)) order += std::string(order.empty() ? "" : " ") + std::string(names[i]);
  return order;
}

TEST(TableOrder, NamesThatDoNotCollideStandWhereTheirHashesSay) {
  EXPECT_EQ(Order({"x", "y"}), "y x");
  EXPECT_EQ(Order({"y", "x"}), "y x");
  EXPECT_EQ(Order({"only"}), "only");
  EXPECT_EQ(Order({}), "");
}

TEST(TableOrder, ThoseThatCollideMakeRoomInTheOrderInWhichTheyCame) {
  EXPECT_EQ(Order({"a", "b", "c"}), "a c b");
  EXPECT_EQ(Order({"name", "value", "id", "kind"}), "value kind name id");
  EXPECT_EQ(Order({"alpha", "beta", "gamma", "delta", "epsilon"}), "beta epsilon delta alpha gamma");
}

TEST(TableOrder, EveryNameIsThereOnceHoweverManyCollide) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back("name:" + std::to_string(i * 7919));
  for (size_t n = 0; n <= texts.size(); n = n * 2 + 1) {
    const std::vector<absl::string_view> names(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<uint32_t> order = WalkOrder(names);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i);
  }
}

}  // namespace
}  // namespace idemd::server

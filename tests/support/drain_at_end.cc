// What was retired in a program's last tests is freed when all have run: it may hold threads that are still to be joined, which
// ThreadSanitizer would take for lost.
#include "gtest/gtest.h"
#include "storage/sync/epoch.h"

namespace idemd::storage {
namespace {

class DrainAtEnd final : public ::testing::Environment {
 public:
  void TearDown() override { DrainForTest(); }
};

[[maybe_unused]] ::testing::Environment* const drain_at_end = ::testing::AddGlobalTestEnvironment(new DrainAtEnd);

}  // namespace
}  // namespace idemd::storage

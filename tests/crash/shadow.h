// The collections that effects amount to: each is done again, in order, by the handlers that a start
// uses, on a store of its own in which no time passes.
//
// Threads   one.
#pragma once

#include <optional>
#include <string>

#include "storage/clock.h"
#include "storage/effect.h"
#include "storage/effect_log.h"
#include "storage/store.h"
#include "tests/crash/sim_services.h"

namespace idemd::testing {

class Shadow {
 public:
  Shadow();
  // Holds the collections of that store, and nothing else.
  void BeLike(storage::Store& store);
  void Do(const storage::Effect& effect);
  // The collection at a key, as Shown(); or what is wrong.
  std::optional<std::string> Value(storage::DbIndex db, absl::string_view key);

 private:
  void RunCommand(const storage::Effect& effect);
  void Restore(const storage::Effect& effect);

  // Behind the time of any server under test, so that an effect that asks for the time is found out. A recovery's clock is
  // before all of them.
  storage::FakeClock clock_{4'000'000'000'000};
  storage::NullLog log_;
  storage::Store store_;
  storage::TokenMint tokens_{storage::TokenKey{}};
  SimReplay replay_;
  std::string problem_;
};

}  // namespace idemd::testing

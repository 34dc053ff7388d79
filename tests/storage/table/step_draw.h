// What the scenarios of a StepTable draw from their seed.
#pragma once

#include <random>

#include "tests/storage/table/step_table.h"

namespace idemd::storage {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  uint32_t operator()(uint32_t from, uint32_t to) {
    return from + static_cast<uint32_t>(random_() % (to - from));
  }
  // Something done to one of the first `keys` keys; those below `stable` stay.
  Change AnyChange(uint32_t stable, uint32_t keys, uint32_t puts_of_8) {
    Change change;
    change.key = (*this)(0, keys);
    if ((*this)(0, 8) < puts_of_8) {
      change.what = (*this)(0, 3) == 0 ? Do::kPut : Do::kPutInline;
    } else {
      constexpr Do kOther[] = {Do::kTake,        Do::kTake,  Do::kTake,    Do::kPutExpired,
                               Do::kSetDeadline, Do::kSweep, Do::kRelocate};
      change.what = kOther[(*this)(0, 7)];
    }
    if (change.key < stable && (change.what == Do::kTake || change.what == Do::kPutExpired))
      change.what = Do::kSetDeadline;
    if (!StepKey::CanBeInline(change.key) &&
        (change.what == Do::kPutInline || change.what == Do::kPutExpired))
      change.what = Do::kPut;
    return change;
  }

 private:
  std::mt19937_64 random_;
};

template <class Sync, class Shape>
void Finish(StepTable<Sync, Shape>& step, Schedule& schedule) {
  schedule.Run();
  if (Sync::kFault == Fault::kNone && schedule.failure().empty()) step.CheckInvariants();
}

}  // namespace idemd::storage

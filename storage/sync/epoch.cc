// The process-wide epoch domain, and each thread's place in it.
#include "storage/sync/epoch.h"

namespace idemd::storage {

EpochDomain& ProcessEpochs() {
  // Never destroyed: threads may end after static destructors have begun.
  static EpochDomain& domain = *new EpochDomain();
  return domain;
}

constinit thread_local EpochDomain::Participant* ThisThread<RealSync>::participant = nullptr;

// Its destructor runs when the thread ends. Apart from the pointer above, so that the fast path
// needs no initialization check.
struct ThreadEnd {
  ~ThreadEnd() {
    EpochDomain::Participant* const mine =
        std::exchange(ThisThread<RealSync>::participant, nullptr);
    if (mine != nullptr && !mine->inside()) ProcessEpochs().Part(*mine);
  }
  void Arm() {}
};

EpochDomain::Participant& ThisThread<RealSync>::Join() {
  static thread_local ThreadEnd end;
  end.Arm();
  participant = &ProcessEpochs().Join();
  return *participant;
}

size_t CollectGarbage(size_t max) {
  for (uint64_t step = 0; step < EpochDomain::kGrace; ++step)
    if (!ProcessEpochs().TryAdvance()) break;
  return ProcessEpochs().Collect(ThisThread<RealSync>::Participant(), max);
}

void DrainForTest() { ProcessEpochs().DrainForTest(ThisThread<RealSync>::Participant()); }

}  // namespace idemd::storage

// The bytes and names of a SimFs: a value that can be copied, and what a crash may make of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace idemd::testing {

using SimRandom = std::mt19937_64;

// One change of a file since its last sync.
struct SimWrite {
  bool truncate = false;
  uint64_t offset = 0;  // truncate: the new size, which may be a greater one
  std::string bytes;
};

struct SimInode {
  bool directory = false;
  std::string durable;  // as of the last sync
  std::string now;
  std::vector<SimWrite> unsynced;

  void Do(SimWrite write);
  void Sync(size_t writes);  // the oldest ones
  void CutLast(
      size_t kept);  // of the last write, which is under way, only so many bytes were written
};

// One change of the names since the last sync of `directory`.
struct SimNameChange {
  std::string directory;
  std::string gone;    // this name goes
  std::string placed;  // and this one becomes `inode`; either may be empty
  std::shared_ptr<SimInode> inode;
};

using SimNames = std::map<std::string, std::shared_ptr<SimInode>>;

// How one file's unsynced writes end.
enum class SimTear : uint8_t {
  kNothing,  // none of them
  kAll,
  kCut,         // in order, up to a byte
  kSectors,     // each sector kept or not; holes are zero or garbled
  kZeroed,      // the size is there, the bytes are not
  kGarbled,     // the size is there, the bytes are random
  kLastZeroed,  // all but the last write, which is zeros
};

// A crash, decided: same plan and disk, same state.
struct SimPlan {
  bool random = false;  // everything below is drawn anew for each file and name
  uint64_t seed = 0;
  SimTear tear = SimTear::kAll;
  uint64_t last_write_kept = 0;  // kCut: bytes of each file's last write; all before it is kept
  bool names_kept = true;
  int other_name = -1;  // the one change of names that is the other way round
};

struct SimDiskState {
  SimNames names;  // as processes see them
  SimNames durable_names;
  std::vector<SimNameChange> unsynced_names;

  void Place(absl::string_view path, std::shared_ptr<SimInode> inode);
  void Remove(absl::string_view path);
  void Move(absl::string_view from, absl::string_view to);
  void SyncDirectory(absl::string_view directory);
  // A copy of its own, in which the same is unsynced. `copy_of`, where given, becomes the copy's.
  SimDiskState Copy(std::shared_ptr<SimInode>* copy_of = nullptr) const;
  SimDiskState AfterCrash(const SimPlan& plan) const;
  std::vector<SimPlan> Extremes() const;
};

absl::string_view SimParent(absl::string_view path);

}  // namespace idemd::testing

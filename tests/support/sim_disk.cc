// Changes of a simulated disk, and the states that a crash may leave of it.
#include "tests/support/sim_disk.h"

#include <algorithm>
#include <set>

namespace idemd::testing {
namespace {

constexpr size_t kSector = 512;

void Apply(const SimWrite& write, absl::string_view bytes, std::string* file) {
  if (write.truncate) {
    file->resize(write.offset);
    return;
  }
  if (file->size() < write.offset + bytes.size()) file->resize(write.offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), file->begin() + static_cast<std::ptrdiff_t>(write.offset));
}

void Garble(SimRandom& random, char* begin, size_t size) {
  for (size_t i = 0; i < size; ++i) begin[i] = static_cast<char>(random());
}

size_t Below(SimRandom& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

// Writes in order up to the first `kept` bytes of number `last`.
std::string Cut(const SimInode& inode, size_t last, size_t kept) {
  std::string file = inode.durable;
  for (size_t i = 0; i < last; ++i) Apply(inode.unsynced[i], inode.unsynced[i].bytes, &file);
  const SimWrite& write = inode.unsynced[last];
  if (!write.truncate || kept != 0)
    Apply(write, absl::string_view(write.bytes).substr(0, kept), &file);
  return file;
}

// Each sector of each write on its own. What is missing below the end is zero or random.
std::string Sectors(const SimInode& inode, SimRandom& random) {
  std::string file = inode.durable;
  const size_t size = size_t{kSector} << (3 * (random() % 2));  // a disk's sector or a page
  const int kept_percent = static_cast<int>(Below(random, 101));
  const bool garble = random() % 2 != 0;
  const bool full_size = random() % 2 != 0;
  for (const SimWrite& write : inode.unsynced) {
    if (write.truncate) {
      if (random() % 2 != 0) file.resize(write.offset);
      continue;
    }
    for (size_t at = 0; at < write.bytes.size();) {
      const size_t end = std::min<size_t>(write.bytes.size(),
                                          ((write.offset + at) / size + 1) * size - write.offset);
      SimWrite piece{false, write.offset + at, write.bytes.substr(at, end - at)};
      if (static_cast<int>(random() % 100) < kept_percent) {
        Apply(piece, piece.bytes, &file);
      } else if (garble && random() % 2 != 0) {
        // A single wrong byte is harder to see than a wrong sector.
        if (random() % 4 == 0) {
          piece.bytes[Below(random, piece.bytes.size())] ^=
              static_cast<char>(1 << Below(random, 8));
        } else {
          Garble(random, piece.bytes.data(), piece.bytes.size());
        }
        Apply(piece, piece.bytes, &file);
      }
      at = end;
    }
  }
  if (full_size && file.size() < inode.now.size()) file.resize(inode.now.size());
  return file;
}

// The size is there already, of the bytes that were written nothing but noise.
std::string Noise(const SimInode& inode, SimRandom* random) {
  std::string file = inode.durable;
  file.resize(inode.now.size());
  for (const SimWrite& write : inode.unsynced) {
    if (write.truncate || write.offset >= file.size()) continue;
    const size_t size = std::min<size_t>(write.bytes.size(), file.size() - write.offset);
    if (random != nullptr)
      Garble(*random, file.data() + write.offset, size);
    else
      std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(write.offset), size, '\0');
  }
  return file;
}

std::string Draw(const SimInode& inode, SimTear tear, size_t last_kept, SimRandom& random) {
  if (inode.unsynced.empty()) return inode.durable;
  switch (tear) {
    case SimTear::kNothing:
      return inode.durable;
    case SimTear::kAll:
      return inode.now;
    case SimTear::kCut: {
      const size_t last = inode.unsynced.size() - 1;
      return Cut(inode, last, std::min<size_t>(last_kept, inode.unsynced[last].bytes.size()));
    }
    case SimTear::kSectors:
      return Sectors(inode, random);
    case SimTear::kZeroed:
      return Noise(inode, nullptr);
    case SimTear::kGarbled:
      return Noise(inode, &random);
    case SimTear::kLastZeroed: {
      std::string file = Cut(inode, inode.unsynced.size() - 1, 0);
      if (file.size() < inode.now.size()) file.resize(inode.now.size());
      return file;
    }
  }
  return inode.now;
}

std::string DrawAny(const SimInode& inode, SimRandom& random) {
  if (inode.unsynced.empty()) return inode.durable;
  switch (random() % 10) {
    case 0:
      return inode.durable;
    case 1:
      return inode.now;
    case 2:
      return Noise(inode, nullptr);
    case 3:
      return Noise(inode, &random);
    case 4:
    case 5:
    case 6: {
      const size_t last = Below(random, inode.unsynced.size());
      return Cut(inode, last, Below(random, inode.unsynced[last].bytes.size() + 1));
    }
    default:
      return Sectors(inode, random);
  }
}

void Change(const SimNameChange& change, bool leave_old_name, SimNames* names) {
  if (!change.gone.empty() && !leave_old_name) names->erase(change.gone);
  if (!change.placed.empty()) (*names)[change.placed] = change.inode;
}

}  // namespace

absl::string_view SimParent(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void SimInode::Do(SimWrite write) {
  Apply(write, write.bytes, &now);
  unsynced.push_back(std::move(write));
}

void SimInode::Sync(size_t writes) {
  for (size_t i = 0; i < writes; ++i) Apply(unsynced[i], unsynced[i].bytes, &durable);
  unsynced.erase(unsynced.begin(), unsynced.begin() + static_cast<std::ptrdiff_t>(writes));
}

void SimInode::CutLast(size_t kept) {
  SimWrite& last = unsynced.back();
  if (last.truncate || kept >= last.bytes.size()) return;
  // Behind it is what was there: nothing, or the zeros of a prefill.
  const uint64_t written_to = last.offset + last.bytes.size();
  if (now.size() == written_to)
    now.resize(last.offset + kept);
  else
    std::fill(now.begin() + static_cast<std::ptrdiff_t>(last.offset + kept),
              now.begin() + static_cast<std::ptrdiff_t>(written_to), '\0');
  last.bytes.resize(kept);
}

void SimDiskState::Place(absl::string_view path, std::shared_ptr<SimInode> inode) {
  names[std::string(path)] = inode;
  unsynced_names.push_back({std::string(SimParent(path)), "", std::string(path), std::move(inode)});
}

void SimDiskState::Remove(absl::string_view path) {
  names.erase(std::string(path));
  unsynced_names.push_back({std::string(SimParent(path)), std::string(path), "", nullptr});
}

void SimDiskState::Move(absl::string_view from, absl::string_view to) {
  if (from == to) return;
  std::shared_ptr<SimInode> inode = names[std::string(from)];
  names.erase(std::string(from));
  names[std::string(to)] = inode;
  unsynced_names.push_back(
      {std::string(SimParent(to)), std::string(from), std::string(to), std::move(inode)});
}

void SimDiskState::SyncDirectory(absl::string_view directory) {
  for (const SimNameChange& change : unsynced_names)
    if (change.directory == directory) Change(change, false, &durable_names);
  std::erase_if(unsynced_names,
                [&](const SimNameChange& change) { return change.directory == directory; });
}

SimDiskState SimDiskState::Copy(std::shared_ptr<SimInode>* copy_of) const {
  std::map<const SimInode*, std::shared_ptr<SimInode>> copies;
  const auto copied = [&](const std::shared_ptr<SimInode>& inode) {
    if (inode == nullptr) return inode;
    std::shared_ptr<SimInode>& copy = copies[inode.get()];
    if (copy == nullptr) copy = std::make_shared<SimInode>(*inode);
    return copy;
  };
  SimDiskState copy;
  for (const auto& [path, inode] : names) copy.names[path] = copied(inode);
  for (const auto& [path, inode] : durable_names) copy.durable_names[path] = copied(inode);
  copy.unsynced_names = unsynced_names;
  for (SimNameChange& change : copy.unsynced_names) change.inode = copied(change.inode);
  if (copy_of != nullptr) *copy_of = copied(*copy_of);
  return copy;
}

SimDiskState SimDiskState::AfterCrash(const SimPlan& plan) const {
  SimRandom random(plan.seed);
  SimNames left = durable_names;
  const int percent = static_cast<int>(random() % 3) * 50;  // none, each at random, all
  for (size_t i = 0; i < unsynced_names.size(); ++i) {
    bool kept = static_cast<int>(i) == plan.other_name ? !plan.names_kept : plan.names_kept;
    if (plan.random) kept = static_cast<int>(random() % 100) < percent;
    // rename() may leave both names for a moment: rename(2).
    const bool both = plan.random && !unsynced_names[i].placed.empty() && random() % 16 == 0;
    if (kept) Change(unsynced_names[i], both, &left);
  }
  SimDiskState after;
  std::map<const SimInode*, std::shared_ptr<SimInode>> drawn;
  for (const auto& [path, inode] : left) {
    // Below a directory that was lost there is nothing.
    bool reachable = true;
    for (absl::string_view up = SimParent(path); reachable && up != "/" && up != ".";
         up = SimParent(up))
      reachable = left.count(std::string(up)) != 0;
    if (!reachable) continue;
    std::shared_ptr<SimInode>& copy = drawn[inode.get()];
    if (copy == nullptr) {
      copy = std::make_shared<SimInode>();
      copy->directory = inode->directory;
      copy->now = plan.random ? DrawAny(*inode, random)
                              : Draw(*inode, plan.tear, plan.last_write_kept, random);
      copy->durable = copy->now;
    }
    after.names[path] = copy;
  }
  after.durable_names = after.names;
  return after;
}

std::vector<SimPlan> SimDiskState::Extremes() const {
  std::vector<SimPlan> plans;
  bool torn = false;
  std::set<uint64_t> cuts;
  for (const auto& [path, inode] : names) {
    if (inode->unsynced.empty()) continue;
    torn = true;
    const std::string& bytes = inode->unsynced.back().bytes;
    if (bytes.empty()) continue;
    const uint64_t size = bytes.size();
    for (const uint64_t cut : {uint64_t{0}, uint64_t{1}, size / 2, size - 1}) cuts.insert(cut);
    // A log of lines is most easily fooled at their ends.
    size_t line_end = bytes.find('\n');
    for (int i = 0; i < 4 && line_end != std::string::npos;
         ++i, line_end = bytes.find('\n', line_end + 1))
      cuts.insert(line_end + 1);
    const uint64_t begin = inode->unsynced.back().offset;
    const uint64_t sector = (begin / kSector + 1) * kSector - begin;
    if (sector < size) cuts.insert(sector);
  }
  for (const bool names_kept : {false, true}) {
    if (unsynced_names.empty() && !names_kept) continue;
    plans.push_back({.tear = SimTear::kAll, .names_kept = names_kept});
    if (!torn) continue;
    for (const SimTear tear :
         {SimTear::kNothing, SimTear::kZeroed, SimTear::kGarbled, SimTear::kLastZeroed})
      plans.push_back({.seed = plans.size(), .tear = tear, .names_kept = names_kept});
  }
  for (const uint64_t cut : cuts) plans.push_back({.tear = SimTear::kCut, .last_write_kept = cut});
  for (size_t i = 0; i < unsynced_names.size() && unsynced_names.size() > 1; ++i) {
    for (const bool names_kept : {false, true})
      plans.push_back(
          {.tear = SimTear::kAll, .names_kept = names_kept, .other_name = static_cast<int>(i)});
  }
  return plans;
}

}  // namespace idemd::testing

// Registers, runs and the estimate.
#include "storage/value/hyperloglog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace idemd::storage::hll {
namespace {

constexpr absl::string_view kMagic = "HYLL";
constexpr size_t kFormAt = 4, kCountAt = 8;
constexpr char kDense = 0, kSparse = 1;
constexpr uint32_t kIndexBits = 14, kNumberBits = 64 - kIndexBits;
constexpr uint8_t kUnknownCount = 0x80;  // in the count's last byte

uint8_t ByteAt(absl::string_view value, size_t at) { return static_cast<uint8_t>(value[at]); }

// --- hashing

uint64_t MurmurHash64A(absl::string_view text, uint64_t seed) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = seed ^ (text.size() * kMul);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));  // the machines that idemd runs on are little-endian
    word *= kMul;
    word ^= word >> kShift;
    hash = (hash ^ word * kMul) * kMul;
  }
  if (at != text.size()) {
    uint64_t tail = 0;
    std::memcpy(&tail, text.data() + at, text.size() - at);
    hash = (hash ^ tail) * kMul;
  }
  hash = (hash ^ hash >> kShift) * kMul;
  return hash ^ hash >> kShift;
}

struct Place {
  uint32_t index;
  uint8_t number;
};

Place PlaceOf(absl::string_view element) {
  constexpr uint64_t kSeed = 0xadc83b19;
  const uint64_t hash = MurmurHash64A(element, kSeed);
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kNumberBits;  // a last 1, whatever the hash
  return {static_cast<uint32_t>(hash & (kRegisters - 1)), static_cast<uint8_t>(std::countr_zero(rest) + 1)};
}

// --- dense

// Four registers lie in three bytes.
uint8_t DenseAt(absl::string_view value, uint32_t index) {
  const uint32_t bit = index * 6;
  const size_t at = kHeaderBytes + bit / 8;
  uint32_t bits = ByteAt(value, at);
  if (bit % 8 > 2) bits |= uint32_t{ByteAt(value, at + 1)} << 8;
  return static_cast<uint8_t>(bits >> bit % 8 & 63);
}

void SetDense(std::string& value, uint32_t index, uint8_t number) {
  const uint32_t bit = index * 6, shift = bit % 8;
  const size_t at = kHeaderBytes + bit / 8;
  const uint32_t keep = ~(63u << shift), put = uint32_t{number} << shift;
  value[at] = static_cast<char>((ByteAt(value, at) & keep) | put);
  if (shift > 2) value[at + 1] = static_cast<char>((ByteAt(value, at + 1) & keep >> 8) | put >> 8);
}

// --- sparse

constexpr uint32_t kValueRunMax = 4, kShortZerosMax = 64;
constexpr uint8_t kSparseNumberMax = 32;

struct Run {
  uint32_t length = 0;
  uint8_t number = 0;
  uint8_t bytes = 1;
};

bool IsValue(uint8_t byte) { return (byte & 0x80) != 0; }
Run ValueRun(uint8_t byte) { return {(byte & 3u) + 1, static_cast<uint8_t>((byte >> 2 & 31) + 1), 1}; }

// What stands at `at`, which is inside. False: it is cut off.
bool ReadRun(absl::string_view value, size_t at, Run* run) {
  const uint8_t byte = ByteAt(value, at);
  if (IsValue(byte)) {
    *run = ValueRun(byte);
  } else if ((byte & 0x40) == 0) {
    *run = {byte + 1u, 0, 1};
  } else {
    if (at + 1 == value.size()) return false;
    *run = {((byte & 63u) << 8 | ByteAt(value, at + 1)) + 1, 0, 2};
  }
  return true;
}

// Calls each(first, run) for every run. False: they do not cover the registers.
template <class Each>
bool ForEachRun(absl::string_view value, Each each) {
  uint32_t first = 0;
  for (size_t at = kHeaderBytes; at < value.size();) {
    Run run;
    if (!ReadRun(value, at, &run) || run.length > kRegisters - first) return false;
    each(first, run);
    first += run.length;
    at += run.bytes;
  }
  return first == kRegisters;
}

char ValueByte(uint8_t number, uint32_t length) { return static_cast<char>(0x80 | (number - 1) << 2 | (length - 1)); }

// At most five bytes.
class RunBytes {
 public:
  void Zeros(uint32_t length) {
    if (length == 0) return;
    if (length > kShortZerosMax) bytes_[size_++] = static_cast<char>(0x40 | (length - 1) >> 8);
    bytes_[size_++] = static_cast<char>((length - 1) & 0xff);
  }
  void Value(uint8_t number, uint32_t length) {
    if (length != 0) bytes_[size_++] = ValueByte(number, length);
  }
  absl::string_view view() const { return {bytes_, size_}; }

 private:
  char bytes_[5];
  size_t size_ = 0;
};

// Joins neighbours of one number, over the next few runs from `at` on.
void JoinRuns(size_t at, std::string& value) {
  constexpr int kRunsLookedAt = 5;
  for (int i = 0; i < kRunsLookedAt && at < value.size(); ++i) {
    const uint8_t byte = ByteAt(value, at);
    if (!IsValue(byte)) {
      at += (byte & 0x40) != 0 ? 2 : 1;
      continue;
    }
    if (at + 1 < value.size() && IsValue(ByteAt(value, at + 1))) {
      const Run left = ValueRun(byte), right = ValueRun(ByteAt(value, at + 1));
      if (left.number == right.number && left.length + right.length <= kValueRunMax) {
        value[at] = ValueByte(left.number, left.length + right.length);
        value.erase(at + 1, 1);
        continue;  // it may join what follows
      }
    }
    ++at;
  }
}

Status Promote(uint32_t index, uint8_t number, std::string& value) {
  if (MakeDense(value) == Status::kDamaged) return Status::kDamaged;
  SetDense(value, index, number);
  return Status::kChanged;
}

Status RaiseSparse(uint32_t index, uint8_t number, size_t sparse_max, std::string& value) {
  if (number > kSparseNumberMax) {
    if (MakeDense(value) == Status::kDamaged) return Status::kDamaged;
    return Raise(index, number, sparse_max, value);
  }
  // The run that covers the register, and the one before it.
  size_t at = kHeaderBytes, before = kHeaderBytes;
  uint32_t first = 0;
  Run run;
  while (true) {
    if (at >= value.size() || !ReadRun(value, at, &run)) return Status::kDamaged;
    if (index < first + run.length) break;
    before = at;
    at += run.bytes;
    first += run.length;
  }
  if (run.number >= number) return Status::kSame;
  RunBytes bytes;
  const uint32_t left = index - first, right = first + run.length - 1 - index;
  if (run.number == 0) {
    bytes.Zeros(left);
    bytes.Value(number, 1);
    bytes.Zeros(right);
  } else {
    bytes.Value(run.number, left);
    bytes.Value(number, 1);
    bytes.Value(run.number, right);
  }
  const size_t size = bytes.view().size();
  if (size > run.bytes && value.size() + size - run.bytes > sparse_max) return Promote(index, number, value);
  value.replace(at, run.bytes, bytes.view().data(), size);
  JoinRuns(before, value);
  ForgetCount(value);
  return Status::kChanged;
}

// --- the estimate

double Sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1, z = x, last = 0;
  do {
    x *= x;
    last = z;
    z += x * y;
    y += y;
  } while (last != z);
  return z;
}

double Tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1, z = 1 - x, last = 0;
  do {
    x = std::sqrt(x);
    last = z;
    y *= 0.5;
    z -= std::pow(1 - x, 2) * y;
  } while (last != z);
  return z / 3;
}

// How many registers have which number.
using Histogram = std::array<uint32_t, 64>;

uint64_t Estimate(const Histogram& histogram) {
  constexpr double kAlpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  constexpr double kM = kRegisters;
  double z = kM * Tau((kM - histogram[kNumberBits + 1]) / kM);
  for (uint32_t number = kNumberBits; number >= 1; --number) z = (z + histogram[number]) * 0.5;
  z += kM * Sigma(histogram[0] / kM);
  return static_cast<uint64_t>(std::llround(kAlpha * kM * kM / z));
}

}  // namespace

bool Looks(absl::string_view value) {
  if (value.size() < kHeaderBytes || value.substr(0, kMagic.size()) != kMagic) return false;
  return value[kFormAt] == kSparse || (value[kFormAt] == kDense && value.size() == kDenseBytes);
}

std::string Empty() {
  std::string value(kHeaderBytes, '\0');
  value.replace(0, kMagic.size(), kMagic.data(), kMagic.size());
  value[kFormAt] = kSparse;
  RunBytes zeros;
  zeros.Zeros(kRegisters);
  return value.append(zeros.view().data(), zeros.view().size());
}

bool IsDense(absl::string_view value) { return value[kFormAt] == kDense; }

bool KnownCount(absl::string_view value, uint64_t* count) {
  std::memcpy(count, value.data() + kCountAt, sizeof(*count));
  return *count >> 63 == 0;
}

void KeepCount(uint64_t count, std::string& value) { std::memcpy(value.data() + kCountAt, &count, sizeof(count)); }

void ForgetCount(std::string& value) {
  char& last = value[kCountAt + 7];
  last = static_cast<char>(static_cast<uint8_t>(last) | kUnknownCount);
}

Status Raise(uint32_t index, uint8_t number, size_t sparse_max, std::string& value) {
  if (!IsDense(value)) return RaiseSparse(index, number, sparse_max, value);
  if (DenseAt(value, index) >= number) return Status::kSame;
  SetDense(value, index, number);
  return Status::kChanged;
}

Status Add(absl::string_view element, size_t sparse_max, std::string& value) {
  const Place place = PlaceOf(element);
  return Raise(place.index, place.number, sparse_max, value);
}

Status MakeDense(std::string& value) {
  if (IsDense(value)) return Status::kSame;
  std::string dense(kDenseBytes, '\0');
  dense.replace(0, kHeaderBytes, value, 0, kHeaderBytes);
  dense[kFormAt] = kDense;
  const bool good = ForEachRun(value, [&](uint32_t first, const Run& run) {
    if (run.number == 0) return;
    for (uint32_t i = 0; i < run.length; ++i) SetDense(dense, first + i, run.number);
  });
  if (!good) return Status::kDamaged;
  value = std::move(dense);
  return Status::kChanged;
}

bool Merge(absl::string_view value, Registers& registers) {
  if (IsDense(value)) {
    for (uint32_t i = 0; i < kRegisters; ++i) registers[i] = std::max(registers[i], DenseAt(value, i));
    return true;
  }
  return ForEachRun(value, [&](uint32_t first, const Run& run) {
    for (uint32_t i = first; run.number != 0 && i < first + run.length; ++i) registers[i] = std::max(registers[i], run.number);
  });
}

uint64_t Count(const Registers& registers) {
  Histogram histogram{};
  for (const uint8_t number : registers) ++histogram[number];
  return Estimate(histogram);
}

bool Count(absl::string_view value, uint64_t* count) {
  Histogram histogram{};
  if (IsDense(value)) {
    for (uint32_t i = 0; i < kRegisters; ++i) ++histogram[DenseAt(value, i)];
  } else if (!ForEachRun(value, [&](uint32_t, const Run& run) { histogram[run.number] += run.length; })) {
    return false;
  }
  *count = Estimate(histogram);
  return true;
}

std::string Runs(absl::string_view value) {
  std::string text;
  for (size_t at = kHeaderBytes; at < value.size();) {
    Run run;
    if (!ReadRun(value, at, &run)) break;
    if (run.number != 0)
      absl::StrAppend(&text, at == kHeaderBytes ? "" : " ", "v:", run.number, ",", run.length);
    else
      absl::StrAppend(&text, at == kHeaderBytes ? "" : " ", run.bytes == 2 ? "Z:" : "z:", run.length);
    at += run.bytes;
  }
  return text;
}

}  // namespace idemd::storage::hll

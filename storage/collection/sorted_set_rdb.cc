// A sorted set as RDB has it: its small form as it stands, or members with scores from the highest down.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "storage/collection/packed_formats.h"
#include "storage/collection/sorted_set.h"
#include "storage/key/hashed_key.h"

namespace idemd::storage {
namespace {

bool ReadScore(absl::string_view text, double* score) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *score);
  return read.ec == std::errc() && read.ptr == end && !std::isnan(*score);
}

// A length byte, of which the three highest stand for what is no number of digits.
bool ReadTextScore(RdbScanner& scan, std::string& hold, double* score) {
  const uint64_t at = scan.input().offset();
  uint8_t size = 0;
  absl::string_view text;
  if (!scan.Byte(&size)) return false;
  if (size == 255 || size == 254) {
    *score = size == 255 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return true;
  }
  if (size == 253) return scan.Damaged(at, "a score that is no number");
  return scan.Bytes(size, &text, hold) && (ReadScore(text, score) || scan.Damaged(at, "a score that is no number"));
}

bool ReadBinaryScore(RdbScanner& scan, double* score) {
  const uint64_t at = scan.input().offset();
  return scan.Little(score) && (!std::isnan(*score) || scan.Damaged(at, "a score that is no number"));
}

}  // namespace

uint8_t SortedSet::rdb_type() const { return large_ != nullptr ? kRdbDoubles : kRdbListpack; }

void SortedSet::AppendRdb(RdbStrings strings, std::string& out) const {
  if (large_ == nullptr) return AppendRdbString(small_.view(), strings, out);
  AppendRdbLength(size(), out);
  // So Redis has it, since a skip list is filled faster from its end.
  ForRange(0, size(), /*reverse=*/true, [&](absl::string_view member, double score) {
    AppendRdbString(member, strings, out);
    AppendRdbDouble(score, out);
  });
}

// False: these are no members with scores, or a member is there twice. What is in order and small enough is taken as it stands.
bool SortedSet::TakeSmall(absl::string_view bytes) {
  std::optional<Listpack> pack = Listpack::FromBytes(bytes);
  if (!pack || pack->count() % 2 != 0) return false;
  absl::InlinedVector<uint64_t, 128> hashes;
  bool in_order = true;
  double score_before = 0;
  std::string member_before;
  Listpack::Digits digits;
  for (Listpack::At at = pack->First(); at != Listpack::kNone;) {
    const absl::string_view member = pack->Text(at, digits);
    const Listpack::At score_at = pack->Next(at);
    const Listpack::Value value = pack->Get(score_at);
    double score = static_cast<double>(value.number);
    if (!value.is_number && !ReadScore(value.text, &score)) return false;
    in_order = in_order && (hashes.empty() || ScoredBefore(score_before, member_before, score, member));
    hashes.push_back(TextHash(member));
    score_before = score;
    member_before.assign(member.data(), member.size());
    at = pack->Next(score_at);
  }
  std::sort(hashes.begin(), hashes.end());
  const bool all_differ = std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end();
  if (in_order && all_differ && FitsSmall(hashes.size(), 0)) {
    small_ = *std::move(pack);
    return true;
  }
  bool good = true;
  for (Listpack::At at = pack->First(); at != Listpack::kNone && good;) {
    const Listpack::At score_at = pack->Next(at);
    const Listpack::Value value = pack->Get(score_at);
    double score = static_cast<double>(value.number);
    if (!value.is_number) good = ReadScore(value.text, &score);
    good = good && Set(pack->Text(at, digits), score).outcome == Outcome::kAdded;
    at = pack->Next(score_at);
  }
  return good;
}

// The same of what older versions have.
bool SortedSet::TakeZiplist(absl::string_view bytes) {
  std::string member;
  bool has_member = false, good = true;
  const bool whole = ReadZiplist(bytes, [&](absl::string_view element) {
    double score = 0;
    if (!has_member) {
      member.assign(element.data(), element.size());
    } else {
      good = good && ReadScore(element, &score) && Set(member, score).outcome == Outcome::kAdded;
    }
    has_member = !has_member;
  });
  return whole && good && !has_member;
}

std::unique_ptr<Collection> SortedSet::ReadRdb(uint8_t type, RdbScanner& scan) {
  auto set = std::make_unique<SortedSet>();
  const uint64_t at = scan.input().offset();
  RdbHold hold;
  absl::string_view text;
  if (type == kRdbListpack || type == kRdbZiplist) {
    if (!scan.String(hold, &text)) return nullptr;
    const bool good = type == kRdbListpack ? set->TakeSmall(text) : set->TakeZiplist(text);
    if (!good) scan.Damaged(at, "no members with scores in a packed form");
    return good ? std::move(set) : nullptr;
  }
  uint64_t count = 0;
  if (!scan.Length(&count)) return nullptr;
  std::string score_hold, member;
  size_t longest = 0;
  set->large_ = std::make_unique<Large>();
  for (; count > 0; --count) {
    double score = 0;
    if (!scan.String(hold, &text)) return nullptr;
    if (text.size() > ScoredMember::kBytesMax) {
      scan.Damaged(at, "a member that is too long");
      return nullptr;
    }
    member.assign(text.data(), text.size());  // the score may lie in the next chunk, and then the text is gone
    const bool read = type == kRdbTexts ? ReadTextScore(scan, score_hold, &score) : ReadBinaryScore(scan, &score);
    if (!read) return nullptr;
    longest = std::max(longest, member.size());
    if (set->Set(member, score).outcome == Outcome::kAdded) continue;
    scan.Damaged(at, "a member is there twice");
    return nullptr;
  }
  if (set->FitsSmall(set->size(), longest)) set->BecomeSmall();
  return set;
}

}  // namespace idemd::storage

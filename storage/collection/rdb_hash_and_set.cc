// Hashes and sets in RDB: written as Redis 7.0 does, read in all encodings of versions 6 to 12.
#include <optional>
#include <string>
#include <utility>

#include "storage/collection/hash.h"
#include "storage/collection/packed_formats.h"
#include "storage/collection/set.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {
namespace {

enum : uint8_t {
  kSetOfMembers = 2,
  kHashOfPairs = 4,
  kHashZipmap = 9,
  kSetIntset = 11,
  kHashZiplist = 13,
  kHashListpack = 16,
  kSetListpack = 20,
  kHashWithLifetimes = 24,
  kHashListpackWithLifetimes = 25,
};

std::nullptr_t Bad(RdbScanner& scan, absl::string_view why) {
  static_cast<void>(scan.Damaged(scan.input().offset(), why));
  return nullptr;
}

std::nullptr_t Expiring(RdbScanner& scan) {
  static_cast<void>(scan.Refused(scan.input().offset(), "a hash whose fields have lifetimes"));
  return nullptr;
}

constexpr absl::string_view kFieldTwice = "a field comes twice";
constexpr absl::string_view kMemberTwice = "a member comes twice";

std::unique_ptr<Collection> ReadPairs(RdbScanner& scan, bool lifetimes) {
  scan.Reading("a hash");
  int64_t earliest_ms = 0;
  if (lifetimes && !scan.Little(&earliest_ms)) return nullptr;
  uint64_t count = 0;
  if (!scan.Length(&count)) return nullptr;
  auto hash = std::make_unique<Hash>();
  RdbHold field_hold, value_hold;
  std::string kept;
  for (; count != 0; --count) {
    absl::string_view field, value;
    uint64_t lifetime = 0;
    if (lifetimes && !scan.Length(&lifetime)) return nullptr;
    if (lifetime != 0) return Expiring(scan);
    if (!scan.String(field_hold, &field)) return nullptr;
    kept.assign(field.data(), field.size());  // the next read may need another chunk of the file
    if (!scan.String(value_hold, &value)) return nullptr;
    if (!hash->Set(kept, value)) return Bad(scan, kFieldTwice);
  }
  return hash;
}

// Texts by turns: a field, a value, and with lifetimes a number.
class PairsOfTexts {
 public:
  PairsOfTexts(Hash& hash, bool lifetimes) : hash_(hash), turns_(lifetimes ? 3 : 2) {}
  void Take(absl::string_view text) {
    switch (taken_++ % turns_) {
      case 0:
        field_.assign(text.data(), text.size());
        return;
      case 1:
        twice_ |= !hash_.Set(field_, text);
        return;
      default:
        expiring_ |= text != "0";
        return;
    }
  }
  bool whole() const { return taken_ % turns_ == 0; }
  bool twice() const { return twice_; }
  bool expiring() const { return expiring_; }

 private:
  Hash& hash_;
  const size_t turns_;
  size_t taken_ = 0;
  std::string field_;
  bool twice_ = false, expiring_ = false;
};

constexpr absl::string_view kBadPairs = "the packed fields and values are no such thing";

std::unique_ptr<Collection> ReadListpackHash(RdbScanner& scan) {
  scan.Reading("a hash");
  RdbHold hold;
  absl::string_view bytes;
  if (!scan.String(hold, &bytes)) return nullptr;
  std::optional<Listpack> pack = Listpack::FromBytes(bytes);
  auto hash = std::make_unique<Hash>();
  if (!pack.has_value() || !hash->TakePack(*std::move(pack))) return Bad(scan, kBadPairs);
  return hash;
}

std::unique_ptr<Collection> ReadPackedHash(uint8_t type, RdbScanner& scan) {
  scan.Reading("a hash");
  const bool lifetimes = type == kHashListpackWithLifetimes;
  int64_t earliest_ms = 0;
  if (lifetimes && !scan.Little(&earliest_ms)) return nullptr;
  RdbHold hold;
  absl::string_view bytes;
  if (!scan.String(hold, &bytes)) return nullptr;
  auto hash = std::make_unique<Hash>();
  PairsOfTexts pairs(*hash, lifetimes);
  const auto each = [&](absl::string_view text) { pairs.Take(text); };
  const bool good = type == kHashZipmap    ? ReadZipmap(bytes, each)
                    : type == kHashZiplist ? ReadZiplist(bytes, each)
                                           : ReadListpack(bytes, each);
  if (!good || !pairs.whole()) return Bad(scan, kBadPairs);
  if (pairs.twice()) return Bad(scan, kFieldTwice);
  if (pairs.expiring()) return Expiring(scan);
  return hash;
}

std::unique_ptr<Collection> ReadMembers(RdbScanner& scan) {
  scan.Reading("a set");
  uint64_t count = 0;
  if (!scan.Length(&count)) return nullptr;
  auto set = std::make_unique<Set>();
  RdbHold hold;
  for (; count != 0; --count) {
    absl::string_view member;
    if (!scan.String(hold, &member)) return nullptr;
    if (!set->Add(member)) return Bad(scan, kMemberTwice);
  }
  return set;
}

constexpr absl::string_view kBadMembers = "the packed members are no such thing";

std::unique_ptr<Collection> ReadPackedSet(uint8_t type, RdbScanner& scan) {
  scan.Reading("a set");
  RdbHold hold;
  absl::string_view bytes;
  if (!scan.String(hold, &bytes)) return nullptr;
  auto set = std::make_unique<Set>();
  if (type == kSetIntset) {
    std::optional<Intset> ints = Intset::FromBytes(bytes);
    if (!ints.has_value()) return Bad(scan, kBadMembers);
    set->TakeInts(*std::move(ints));
    return set;
  }
  bool twice = false;
  if (!ReadListpack(bytes, [&](absl::string_view text) { twice |= !set->Add(text); })) return Bad(scan, kBadMembers);
  if (twice) return Bad(scan, kMemberTwice);
  return set;
}

}  // namespace

uint8_t Hash::rdb_type() const { return table_ == nullptr ? kHashListpack : kHashOfPairs; }

void Hash::AppendRdb(RdbStrings strings, std::string& out) const {
  if (table_ == nullptr) return AppendRdbString(pack_.view(), strings, out);
  AppendRdbLength(size(), out);
  ForEachPair([&](absl::string_view field, absl::string_view value) {
    AppendRdbString(field, strings, out);
    AppendRdbString(value, strings, out);
  });
}

std::unique_ptr<Collection> ReadRdbHash(uint8_t type, RdbScanner& scan) {
  if (type == kHashOfPairs || type == kHashWithLifetimes) return ReadPairs(scan, type == kHashWithLifetimes);
  if (type == kHashListpack) return ReadListpackHash(scan);
  return ReadPackedHash(type, scan);
}

uint8_t Set::rdb_type() const { return table_ == nullptr ? kSetIntset : kSetOfMembers; }

void Set::AppendRdb(RdbStrings strings, std::string& out) const {
  if (table_ == nullptr) return AppendRdbString(ints_.view(), strings, out);
  AppendRdbLength(size(), out);
  ForEach([&](absl::string_view member) { AppendRdbString(member, strings, out); });
}

std::unique_ptr<Collection> ReadRdbSet(uint8_t type, RdbScanner& scan) {
  return type == kSetOfMembers ? ReadMembers(scan) : ReadPackedSet(type, scan);
}

}  // namespace idemd::storage

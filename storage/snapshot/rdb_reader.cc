// An RDB file as a sequence of items.
#include "storage/snapshot/rdb_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/collection/rdb_collection.h"
#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_format.h"
#include "storage/snapshot/rdb_scanner.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

constexpr size_t kMagicBytes = 9;        // "REDIS" and four digits
constexpr size_t kDumpFooterBytes = 10;  // two of version, eight of sum

// As Redis reads it: this one deadline says that there is none.
constexpr int64_t kRedisNoDeadline = -1;

int64_t DeadlineFrom(int64_t ms) {
  if (ms == kRedisNoDeadline) return kNoDeadline;
  return ms == kNoDeadline ? ms - 1 : ms;  // the last millisecond of time is the mark for "never"
}

}  // namespace

struct RdbReader::Impl {
  explicit Impl(Source source) : scan(std::move(source)) {}

  bool Header();
  bool Item(RdbItem& item);
  bool Entry(uint64_t at, uint8_t type, RdbItem& item);
  bool Aux(RdbItem& item);
  bool Select(RdbItem& item);
  bool Sizes(RdbItem& item);
  bool End();
  bool Functions(RdbItem& item);
  bool RefuseModuleAux(uint64_t at);

  RdbScanner scan;
  RdbHold name, value;
  DbIndex db = 0;
  uint32_t version = 0;
  bool begun = false, ended = false, has_sum = false;
};

bool RdbReader::Impl::Header() {
  scan.Reading("REDIS and a version");
  absl::string_view magic;
  if (!scan.Bytes(kMagicBytes, &magic, name.bytes)) return false;
  if (magic.substr(0, 6) == "VALKEY") return scan.Refused(0, "a file of Valkey 9 or newer");
  if (magic.substr(0, 5) != "REDIS") return scan.Damaged(0, "this is no RDB file");
  for (const char c : magic.substr(5)) {
    if (c < '0' || c > '9') return scan.Damaged(5, "four digits were expected");
    version = version * 10 + static_cast<uint32_t>(c - '0');
  }
  if (version == 0) return scan.Damaged(5, "there is no version 0");
  if (version > kRdbVersionMax)
    return scan.Refused(5, absl::StrCat("RDB version ", version, " is newer than ", kRdbVersionMax,
                                        ", the last one that this server reads"));
  begun = true;
  return true;
}

bool RdbReader::Impl::Item(RdbItem& item) {
  item.db = db;
  bool of_entry = false;  // something came that only a key may follow
  while (true) {
    scan.Reading("an opcode or a type");
    const uint64_t at = scan.input().offset();
    uint8_t op = 0;
    if (!scan.Byte(&op)) return false;
    if (op < kRdbSlotInfo) return Entry(at, op, item);
    switch (op) {
      case kRdbDeadlineMs: {
        scan.Reading("a deadline");
        int64_t ms = 0;
        if (!scan.Little(&ms)) return false;
        item.deadline_ms = DeadlineFrom(ms);
        of_entry = true;
        continue;
      }
      case kRdbDeadlineS: {
        scan.Reading("a deadline");
        int32_t seconds = 0;
        if (!scan.Little(&seconds)) return false;
        item.deadline_ms = seconds == kRedisNoDeadline ? kNoDeadline : int64_t{seconds} * 1000;
        of_entry = true;
        continue;
      }
      case kRdbFreq: {
        scan.Reading("a use count");
        uint8_t uses = 0;
        if (!scan.Byte(&uses)) return false;
        of_entry = true;
        continue;
      }
      case kRdbIdle: {
        scan.Reading("an idle time");
        uint64_t seconds = 0;
        if (!scan.Length(&seconds)) return false;
        of_entry = true;
        continue;
      }
      default:
        break;
    }
    if (of_entry) return scan.Damaged(at, absl::StrCat("a key was expected, not opcode ", int{op}));
    switch (op) {
      case kRdbAux:
        return Aux(item);
      case kRdbSelect:
        return Select(item);
      case kRdbSizes:
        return Sizes(item);
      case kRdbSlotInfo: {  // hints about a cluster's slots: number, keys, deadlines
        scan.Reading("a slot's sizes");
        uint64_t hint = 0;
        if (!scan.Length(&hint) || !scan.Length(&hint) || !scan.Length(&hint)) return false;
        continue;
      }
      case kRdbFunction:
        return Functions(item);
      case kRdbFunctionOfCandidate:
        return scan.Refused(at, "a function (of a candidate of Redis 7.0)");
      case kRdbModuleAux:
        return RefuseModuleAux(at);
      default:  // kRdbEnd; all opcodes above are told apart
        item.kind = RdbItem::Kind::kEnd;
        return End();
    }
  }
}

bool RdbReader::Impl::Entry(uint64_t at, uint8_t type, RdbItem& item) {
  const char* type_name = RdbTypeName(type);
  if (type != kRdbString && type_name == nullptr)
    return scan.Damaged(at, absl::StrCat("there is no type ", int{type}));
  scan.Reading("a key");
  if (!scan.String(name, &item.name)) return false;
  const ReadRdbCollection read = type == kRdbString ? nullptr : RdbCollectionReader(type);
  if (type != kRdbString && read == nullptr)
    return scan.Refused(at, absl::StrCat("key ", QuotedRdbKey(item.name), " of database ", db,
                                         " is ", type_name, ", which this version does not have"));
  scan.input().Keep(&item.name, &name.bytes);
  scan.Reading("the value");
  scan.OfKey(&item.name);
  if (read != nullptr) {
    item.collection = read(type, scan);
    if (item.collection == nullptr) return false;
  } else if (!scan.String(value, &item.value)) {
    return false;
  }
  scan.OfKey(nullptr);
  scan.input().Keep(nullptr, nullptr);
  item.kind = RdbItem::Kind::kEntry;
  return true;
}

bool RdbReader::Impl::Aux(RdbItem& item) {
  item.kind = RdbItem::Kind::kAux;
  scan.Reading("the name of an auxiliary field");
  if (!scan.String(name, &item.name)) return false;
  scan.input().Keep(&item.name, &name.bytes);
  scan.Reading("an auxiliary field");
  if (!scan.String(value, &item.value)) return false;
  scan.input().Keep(nullptr, nullptr);
  return true;
}

bool RdbReader::Impl::Select(RdbItem& item) {
  item.kind = RdbItem::Kind::kDatabase;
  scan.Reading("the number of a database");
  const uint64_t at = scan.input().offset();
  uint64_t number = 0;
  if (!scan.Length(&number)) return false;
  if (number >= kDatabases)
    return scan.Refused(
        at, absl::StrCat("database ", number, "; this version has ", kDatabases, ", from 0 on"));
  item.db = db = static_cast<DbIndex>(number);
  return true;
}

bool RdbReader::Impl::Sizes(RdbItem& item) {
  item.kind = RdbItem::Kind::kSizes;
  scan.Reading("a database's sizes");
  return scan.Length(&item.keys) && scan.Length(&item.with_deadline);
}

bool RdbReader::Impl::End() {
  scan.Reading("the sum at the end");
  const uint64_t at = scan.input().offset();
  const uint64_t sum = scan.input().Sum();
  uint64_t expected = 0;
  if (version >= kRdbVersionSummed && !scan.Little(&expected)) return false;
  has_sum = expected != 0;
  if (has_sum) {
    return sum == expected ||
           scan.Damaged(at, absl::StrCat("the sum says ", absl::Hex(expected),
                                         ", the bytes before it give ", absl::Hex(sum)));
  }
  // Without a sum nothing but the end of the file shows that this was its end: a damaged opcode may
  // look like it, and zeros behind it like a sum that is switched off.
  if (!scan.input().AtEnd())
    return scan.Damaged(at, "where there is no sum, nothing follows the end");
  return scan.input().status().ok() || scan.Cut();
}

bool RdbReader::Impl::Functions(RdbItem& item) {
  scan.Reading("a function library");
  item.kind = RdbItem::Kind::kFunctions;
  return scan.String(value, &item.value);
}

bool RdbReader::Impl::RefuseModuleAux(uint64_t at) {
  scan.Reading("a module's name");
  uint64_t id = 0;
  if (!scan.Length(&id)) return false;
  return scan.Refused(at, absl::StrCat("data of the module ", RdbModuleName(id),
                                       ", which this version does not have"));
}

RdbReader::RdbReader(Source source) : impl_(std::make_unique<Impl>(std::move(source))) {}
RdbReader::~RdbReader() = default;

absl::StatusOr<RdbItem> RdbReader::Next() {
  Impl& impl = *impl_;
  absl::StatusOr<RdbItem> item{RdbItem()};
  if (impl.ended) return item;
  if (impl.scan.failure().ok() && (impl.begun || impl.Header()) && impl.Item(*item)) {
    impl.ended = item->kind == RdbItem::Kind::kEnd;
    return item;
  }
  return impl.scan.failure();
}

uint32_t RdbReader::version() const { return impl_->version; }
uint64_t RdbReader::offset() const { return impl_->scan.input().offset(); }
bool RdbReader::has_sum() const { return impl_->has_sum; }

absl::StatusOr<std::string> ReadDumpPayload(absl::string_view payload, std::unique_ptr<Collection>* collection) {
  if (payload.size() < kDumpFooterBytes) return absl::InvalidArgumentError("no version and sum");
  const absl::string_view summed = payload.substr(0, payload.size() - sizeof(uint64_t));
  absl::string_view body = payload.substr(0, payload.size() - kDumpFooterBytes);
  uint16_t version = 0;
  uint64_t sum = 0;
  std::memcpy(&version, body.data() + body.size(), sizeof(version));
  std::memcpy(&sum, summed.data() + summed.size(), sizeof(sum));
  if (version > kRdbVersionMax)
    return absl::InvalidArgumentError(absl::StrCat("RDB version ", version));
  if (sum != Crc64(0, summed)) return absl::InvalidArgumentError("the sum is wrong");

  RdbScanner scan([&body](size_t) { return std::exchange(body, absl::string_view()); });
  RdbHold hold;
  uint8_t type = 0;
  scan.Reading("a type");
  if (!scan.Byte(&type)) return scan.failure();
  const char* type_name = RdbTypeName(type);
  if (type_name == nullptr) return absl::DataLossError(absl::StrCat("there is no type ", type));
  const ReadRdbCollection read = collection == nullptr ? nullptr : RdbCollectionReader(type);
  if (type != kRdbString && read == nullptr) return absl::UnimplementedError(type_name);
  scan.Reading("the value");
  absl::string_view value;
  if (read != nullptr) {
    *collection = read(type, scan);
    if (*collection == nullptr) return scan.failure();
    if ((*collection)->gone()) return absl::DataLossError("an empty collection");
  } else if (!scan.String(hold, &value)) {
    return scan.failure();
  }
  if (!scan.input().AtEnd()) return absl::DataLossError("more than one value");
  return std::string(value);
}

}  // namespace idemd::storage

// Value replies and edit checks of the string commands.
#include "server/commands/string_reply.h"

#include "protocol/errors.h"
#include "server/admin/settings.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::KeyView;
using storage::ValueType;

// Out of line: the usual value is a plain string.
[[gnu::cold, gnu::noinline]] void ReplyRecord(Context& c, const KeyView& view) {
  std::string text;
  c.reply.Bulk(storage::StringValue(view, text));
}

}  // namespace

void ReplyValue(Context& c, const KeyView& view) {
  if (view.type == ValueType::kString) {
    c.reply.Bulk(view.bytes);
  } else if (!view) {
    c.reply.Null();
  } else if (CheckString(c, view)) {
    ReplyRecord(c, view);
  }
}

void CountRead(Context& c, const KeyView& view) {
  c.services.store.stats().Add(view ? storage::StorageStats::kHits
                                    : storage::StorageStats::kMisses);
}

bool CheckPlain(Context& c, const KeyView& view) {
  if (!view || view.type == ValueType::kString) return true;
  c.reply.Error(errors::kWrongType);
  return false;
}

bool CheckSize(Context& c, uint64_t size, uint64_t more) {
  const auto most = static_cast<uint64_t>(
      c.services.settings.proto_max_bulk_bytes.load(std::memory_order_relaxed));
  if (size <= most && more <= most - size) return true;
  c.reply.Error(errors::kStringTooLong);
  return false;
}

void SettleEdit(Context& c, const storage::HashedKey& key, absl::Span<const char> bytes,
                int64_t deadline_ms) {
  const absl::string_view value(bytes.data(), bytes.size());
  if (storage::LooksLikeRecord(value)) c.unit.SetString(c.db(), key, value, deadline_ms);
}

}  // namespace idemd::server

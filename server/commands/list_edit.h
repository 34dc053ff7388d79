// What commands, and callers whose turn has come, do to a list at a key: push, pop, move.
//
// Each changes the list, writes what goes to the log, and tells the events. The keys' locks are held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/resp/writer.h"
#include "server/admin/settings.h"
#include "server/commands/context.h"
#include "storage/collection/list.h"
#include "storage/store.h"

namespace idemd::server {

using ListEnd = storage::List::End;

inline storage::List::Limits ListLimits(const Services& services) {
  return storage::List::Limits::Of(services.settings.list_max_listpack_size.load(std::memory_order_relaxed));
}

// The list that the view shows; null when nothing, or something else, is there.
inline const storage::List* ListOf(const storage::KeyView& view) {
  return view.type == storage::ValueType::kList ? static_cast<const storage::List*>(view.collection) : nullptr;
}
// False, with WRONGTYPE written: something else is there.
[[nodiscard]] inline bool CheckList(protocol::Writer& reply, const storage::KeyView& view) {
  if (!view || view.type == storage::ValueType::kList) return true;
  reply.Error(protocol::errors::kWrongType);
  return false;
}

// LEFT or RIGHT.
[[nodiscard]] inline bool ReadListEnd(absl::string_view word, ListEnd* end) {
  *end = absl::EqualsIgnoreCase(word, "left") ? ListEnd::kHead : ListEnd::kTail;
  return *end == ListEnd::kHead || absl::EqualsIgnoreCase(word, "right");
}

// Makes, or opens, the list at a key that holds a list or nothing, as `view` shows.
storage::List& OpenList(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& key,
                        const storage::KeyView& view);

// Removes `n` elements, which are there.
void DropFromList(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& key, ListEnd end, size_t n);

// [key, element].
void PopWithKey(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& key, ListEnd end,
                protocol::Writer& reply);
// [key, [element, ...]], up to `count` of them.
void PopSomeWithKey(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& key, ListEnd end, size_t count,
                    protocol::Writer& reply);

struct ListMove {
  ListEnd from = ListEnd::kTail;
  ListEnd to = ListEnd::kHead;
};
// Takes an element of `source`, a list, to `destination`, which holds a list or nothing, and replies with it.
void MoveElement(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& source,
                 const storage::HashedKey& destination, ListMove move, const storage::List::Limits& limits,
                 protocol::Writer& reply);

}  // namespace idemd::server

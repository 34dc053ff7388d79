// The log gets plain pushes and pops, whichever command they come from.
#include "server/commands/list_edit.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace idemd::server {

using storage::DbIndex;
using storage::EventClass;
using storage::HashedKey;
using storage::KeyView;
using storage::List;
using storage::Unit;

storage::List& OpenList(Unit& unit, DbIndex db, const HashedKey& key, const KeyView& view) {
  return static_cast<List&>(view ? unit.EditCollection(db, key)
                                 : unit.CreateCollection(db, key, std::make_unique<List>()));
}

void DropFromList(Unit& unit, DbIndex db, const HashedKey& key, ListEnd end, size_t n) {
  const bool head = end == ListEnd::kHead;
  static_cast<List&>(unit.EditCollection(db, key)).Drop(end, n);
  const absl::AlphaNum count(n);
  const bool gone = unit.CollectionChanged(db, key, {head ? "LPOP" : "RPOP", key.bytes, count.Piece()});
  unit.Notify(EventClass::kList, head ? "lpop" : "rpop", db, key.bytes);
  if (gone) unit.Notify(EventClass::kGeneric, "del", db, key.bytes);
}

void PopWithKey(Unit& unit, DbIndex db, const HashedKey& key, ListEnd end, protocol::Writer& reply) {
  reply.Array(2);
  reply.Bulk(key.bytes);
  ListOf(unit.Find(db, key))->Walk(end, 0, 1, [&](absl::string_view text) { reply.Bulk(text); });
  DropFromList(unit, db, key, end, 1);
}

void PopSomeWithKey(Unit& unit, DbIndex db, const HashedKey& key, ListEnd end, size_t count, protocol::Writer& reply) {
  const List& list = *ListOf(unit.Find(db, key));
  const size_t n = std::min(count, list.size());
  reply.Array(2);
  reply.Bulk(key.bytes);
  reply.Array(n);
  list.Walk(end, 0, n, [&](absl::string_view text) { reply.Bulk(text); });
  DropFromList(unit, db, key, end, n);
}

void MoveElement(Unit& unit, DbIndex db, const HashedKey& source, const HashedKey& destination, ListMove move,
                 const List::Limits& limits, protocol::Writer& reply) {
  std::string element;
  const List& from = *ListOf(unit.Find(db, source));
  from.Walk(move.from, 0, 1, [&](absl::string_view text) { element.assign(text.data(), text.size()); });
  const bool pops_head = move.from == ListEnd::kHead, pushes_head = move.to == ListEnd::kHead;
  const char* const pushed = pushes_head ? "lpush" : "rpush";
  if (source.bytes == destination.bytes && from.size() == 1) {
    // It stays, and so does its key; whoever watches it sees a write, as in Redis.
    unit.EditCollection(db, source);
    unit.CollectionChanged(db, source, {"LSET", source.bytes, "0", element});
    unit.Notify(EventClass::kList, pushed, db, destination.bytes);
    unit.Notify(EventClass::kList, pops_head ? "lpop" : "rpop", db, source.bytes);
    return reply.Bulk(element);
  }
  static_cast<List&>(unit.EditCollection(db, source)).Drop(move.from, 1);
  const bool gone = unit.CollectionChanged(db, source, {pops_head ? "LPOP" : "RPOP", source.bytes, "1"});
  OpenList(unit, db, destination, unit.Find(db, destination)).Push(move.to, element, limits);
  unit.CollectionChanged(db, destination, {pushes_head ? "LPUSH" : "RPUSH", destination.bytes, element});
  unit.Notify(EventClass::kList, pushed, db, destination.bytes);
  unit.Notify(EventClass::kList, pops_head ? "lpop" : "rpop", db, source.bytes);
  if (gone) unit.Notify(EventClass::kGeneric, "del", db, source.bytes);
  reply.Bulk(element);
}

}  // namespace idemd::server

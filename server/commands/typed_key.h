// Collections of one type at keys: looked at, and changed.
//
//   const storage::Set* set = nullptr;                            // null: there is no such key
//   if (!LookAs(c, c.unit.Find(c.db(), c.Key(1)), &set)) return;  // WRONGTYPE is written
//
// Lifetime  as in storage/store.h: good until the unit's next Find or Lock, or, of a key that the unit holds, until it is changed.
#pragma once

#include <memory>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "storage/collection/collection.h"

namespace idemd::server {

template <class Type>
[[nodiscard]] bool LookAs(Context& c, const storage::KeyView& view, const Type** value) {
  *value = nullptr;
  if (!view) return true;
  if (view.type != Type::kType) {
    c.reply.Error(protocol::errors::kWrongType);
    return false;
  }
  *value = static_cast<const Type*>(view.collection);
  return true;
}

// The key's collection, about to be changed; an empty one is put there when there is none. The key's lock is held, and its type was
// looked at. Unit::CollectionChanged() follows.
template <class Type>
Type& EditOrCreate(Context& c, const storage::HashedKey& key, const Type* there) {
  if (there != nullptr) return static_cast<Type&>(c.unit.EditCollection(c.db(), key));
  return static_cast<Type&>(c.unit.CreateCollection(c.db(), key, std::make_unique<Type>()));
}

}  // namespace idemd::server

// What hashes, lists, sets, sorted sets and streams are to the rest of storage: one value that is changed where it is.
//
// Threads     the holder of its key's shard lock, for everything; a const method may run beside other const methods.
// Lifetime    owned by its entry, or by whoever has it before it is put at a key. A key never holds an empty one, but for streams.
// Errors      none. What is read from files is checked by rdb_collection.h before it becomes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/snapshot/rdb_strings.h"
#include "storage/value_type.h"

namespace idemd::storage {

class Collection {
 public:
  Collection() = default;
  virtual ~Collection() = default;
  Collection& operator=(const Collection&) = delete;

  virtual ValueType type() const = 0;
  // Elements, fields or entries.
  virtual size_t size() const = 0;
  // Whether the key goes when this is so; an empty stream stays.
  virtual bool gone() const { return size() == 0; }
  // Bytes of memory, this object included. Constant time: it is asked for after every change.
  virtual size_t memory_bytes() const = 0;
  // As OBJECT ENCODING names it.
  virtual const char* encoding() const = 0;
  virtual std::unique_ptr<Collection> Clone() const = 0;
  // As a value in RDB version 10: the number of its type, and what follows the key.
  virtual uint8_t rdb_type() const = 0;
  virtual void AppendRdb(RdbStrings strings, std::string& out) const = 0;
  // Every element in the collection's order, good during the call: a list's from its head, a sorted set's members by ascending score, a
  // set's members, a hash's fields; nothing of a stream.
  virtual void ForEach(absl::FunctionRef<void(absl::string_view element)> each) const = 0;

 protected:
  Collection(const Collection&) = default;  // for Clone()
};

}  // namespace idemd::storage

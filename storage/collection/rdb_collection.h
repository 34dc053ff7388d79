// Which types of values, beside strings, can be read from RDB files and DUMP payloads.
//
// Each collection's own file reads all the encodings that versions 6 to 12 have for it.
//
// Threads   any.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/collection/collection.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

// Reads what follows the key. Null: `scan` says what is wrong. An empty collection is for the caller to drop.
using ReadRdbCollection = std::unique_ptr<Collection> (*)(uint8_t type, RdbScanner& scan);

// Null: there is no such type here.
ReadRdbCollection RdbCollectionReader(uint8_t type);

}  // namespace idemd::storage

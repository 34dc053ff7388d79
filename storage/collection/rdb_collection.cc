// One line for each type.
#include "storage/collection/rdb_collection.h"

#include "storage/collection/stream.h"

namespace idemd::storage {

ReadRdbCollection RdbCollectionReader(uint8_t type) {
  switch (type) {
    case 15:
    case 19:
    case 21:
      return &Stream::ReadRdb;
    default:
      return nullptr;
  }
}

}  // namespace idemd::storage

// One line for each type.
#include "storage/collection/rdb_collection.h"

#include "storage/collection/list.h"

namespace idemd::storage {

ReadRdbCollection RdbCollectionReader(uint8_t type) {
  switch (type) {
    case 1:
    case 10:
    case 14:
    case 18:
      return &ReadRdbList;
    default:
      return nullptr;
  }
}

}  // namespace idemd::storage

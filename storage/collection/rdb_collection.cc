// One line for each type.
#include "storage/collection/rdb_collection.h"

namespace idemd::storage {

ReadRdbCollection RdbCollectionReader(uint8_t type) {
  switch (type) {
    default:
      return nullptr;
  }
}

}  // namespace idemd::storage

// One line for each type.
#include "storage/collection/rdb_collection.h"

#include "storage/collection/sorted_set.h"

namespace idemd::storage {

ReadRdbCollection RdbCollectionReader(uint8_t type) {
  switch (type) {
    case SortedSet::kRdbTexts:
    case SortedSet::kRdbDoubles:
    case SortedSet::kRdbZiplist:
    case SortedSet::kRdbListpack:
      return &SortedSet::ReadRdb;
    default:
      return nullptr;
  }
}

}  // namespace idemd::storage

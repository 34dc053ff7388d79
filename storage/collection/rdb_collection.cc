// One line for each type.
#include "storage/collection/rdb_collection.h"

#include "storage/collection/hash.h"
#include "storage/collection/list.h"
#include "storage/collection/set.h"
#include "storage/collection/stream.h"
#include "storage/collection/sorted_set.h"

namespace idemd::storage {

ReadRdbCollection RdbCollectionReader(uint8_t type) {
  switch (type) {
    case 1:
    case 10:
    case 14:
    case 18:
      return &ReadRdbList;
    case 2:
    case 11:
    case 20:
      return &ReadRdbSet;
    case 4:
    case 9:
    case 13:
    case 16:
    case 24:
    case 25:
      return &ReadRdbHash;
    case 15:
    case 19:
    case 21:
      return &Stream::ReadRdb;
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

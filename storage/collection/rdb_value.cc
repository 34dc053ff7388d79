// Through the reader that the type has.
#include "storage/collection/rdb_value.h"

#include <utility>

#include "storage/collection/rdb_collection.h"

namespace idemd::storage {

RdbListText::RdbListText(size_t elements) { AppendRdbLength(elements, bytes_); }

void RdbListText::Append(absl::string_view element) { AppendRdbString(element, RdbStrings::kPlain, bytes_); }

std::unique_ptr<Collection> RdbListText::Make() {
  constexpr uint8_t kListOfElements = 1;
  const ReadRdbCollection read = RdbCollectionReader(kListOfElements);
  if (read == nullptr) return nullptr;
  absl::string_view left = bytes_;
  RdbScanner scan([&left](size_t) { return std::exchange(left, absl::string_view()); });
  return read(kListOfElements, scan);
}

}  // namespace idemd::storage

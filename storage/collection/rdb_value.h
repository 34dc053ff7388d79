// A list put together without knowing how lists are kept: as RDB has it, then read as from a file.
//
// Threads   one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"

namespace idemd::storage {

class RdbListText {
 public:
  explicit RdbListText(size_t elements);
  void Append(absl::string_view element);
  // After as many elements as were promised. Null: there are no lists here.
  std::unique_ptr<Collection> Make();

 private:
  std::string bytes_;
};

}  // namespace idemd::storage

// The lines of one section of INFO.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/admin/process.h"

namespace idemd::server {

class InfoLines {
 public:
  explicit InfoLines(std::string& out) : out_(out) {}
  template <typename T>
  InfoLines& Add(absl::string_view field, const T& value) {
    absl::StrAppend(&out_, field, ":", value, "\r\n");
    return *this;
  }
  InfoLines& Fixed(absl::string_view field, double value, int digits = 2) {
    return Add(field, absl::StrFormat("%.*f", digits, value));
  }
  InfoLines& Bytes(absl::string_view field, uint64_t bytes) {
    Add(field, bytes);
    return Add(absl::StrCat(field, "_human"), HumanBytes(bytes));
  }
  InfoLines& Zeros(std::initializer_list<absl::string_view> fields) {
    for (absl::string_view field : fields) Add(field, 0);
    return *this;
  }

 private:
  std::string& out_;
};

}  // namespace idemd::server

// Compiles words with names in them to bytes with holes.
#include "bench/load/request_template.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace idemd::bench {
namespace {

// Claims that are new must not be those that belong to a number.
constexpr uint64_t kOfClaim = 0xd6e8feb86659fd93;

}  // namespace

absl::StatusOr<RequestTemplate> RequestTemplate::Compile(
    const std::vector<std::string>& words, KeySpace space,
    const std::map<std::string, std::string, std::less<>>& constants) {
  RequestTemplate made;
  made.space_ = space;
  made.bytes_ = absl::StrCat("*", words.size(), "\r\n");
  for (const std::string& word : words) {
    // A word's length stands before it, and its holes move by that line.
    std::string text;
    std::vector<Hole> holes;
    if (absl::Status status = made.Expand(word, constants, &text, &holes); !status.ok()) {
      return status;
    }
    absl::StrAppend(&made.bytes_, "$", text.size(), "\r\n");
    for (const Hole& hole : holes) made.holes_.push_back({made.bytes_.size() + hole.at, hole.what});
    absl::StrAppend(&made.bytes_, text, "\r\n");
  }
  return made;
}

absl::StatusOr<RequestTemplate> RequestTemplate::CompileRaw(
    absl::string_view bytes, KeySpace space,
    const std::map<std::string, std::string, std::less<>>& constants) {
  RequestTemplate made;
  made.space_ = space;
  if (absl::Status status = made.Expand(bytes, constants, &made.bytes_, &made.holes_);
      !status.ok()) {
    return status;
  }
  return made;
}

size_t RequestTemplate::HoleChars(absl::string_view name, KeySpace space, What* what) {
  struct Named {
    absl::string_view name;
    What what;
    size_t chars;
  };
  const Named all[] = {{"key", What::kKey, KeyChars(space)},
                       {"rand_int", What::kRandInt, kDigits},
                       {"claim", What::kClaim, kUuidChars},
                       {"new_claim", What::kNewClaim, kUuidChars},
                       {"fingerprint", What::kFingerprint, kFingerprintChars},
                       {"fence", What::kFence, kFenceChars},
                       {"token", What::kToken, kTokenChars}};
  for (const Named& one : all) {
    if (one.name != name) continue;
    *what = one.what;
    return one.chars;
  }
  return 0;
}

absl::Status RequestTemplate::Expand(
    absl::string_view text, const std::map<std::string, std::string, std::less<>>& constants,
    std::string* bytes, std::vector<Hole>* holes) {
  while (!text.empty()) {
    const size_t begin = text.find("__");
    bytes->append(text.data(), begin == text.npos ? text.size() : begin);
    if (begin == text.npos) break;
    text.remove_prefix(begin + 2);
    const size_t end = text.find("__");
    if (end == text.npos) return absl::InvalidArgumentError("a name between __ has no end");
    const std::string name(text.substr(0, end));
    text.remove_prefix(end + 2);
    const auto constant = constants.find(name);
    What what{};
    if (const size_t chars = HoleChars(name, space_, &what); chars != 0) {
      const auto prefix = constants.find("prefix");
      if (what == What::kKey && prefix != constants.end()) *bytes += prefix->second;
      if (what == What::kFence || what == What::kToken) needs_capture_ = true;
      holes->push_back({bytes->size(), what});
      bytes->append(chars, '0');
    } else if (constant != constants.end()) {
      *bytes += constant->second;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("there is no __", name, "__"));
    }
  }
  return absl::OkStatus();
}

void RequestTemplate::Fill(const Hole& hole, const RequestValues& values, char* out) const {
  switch (hole.what) {
    case What::kKey:
      WriteKey(space_, values.number, out);
      return;
    case What::kRandInt:
      WriteDigits(values.number, out);
      return;
    case What::kClaim:
      WriteUuid(values.number ^ kOfClaim, out);
      return;
    case What::kNewClaim:
      WriteUuid(values.random, out);
      return;
    case What::kFingerprint:
      WriteFingerprint(values.number, out);
      return;
    case What::kFence:
      std::memcpy(out, values.captured, kFenceChars);
      return;
    case What::kToken:
      std::memcpy(out, values.captured, kTokenChars);
      return;
  }
}

}  // namespace idemd::bench

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
    if (absl::Status status = made.AppendWord(word, constants); !status.ok()) return status;
  }
  return made;
}

RequestTemplate RequestTemplate::Raw(absl::string_view bytes) {
  RequestTemplate made;
  made.bytes_ = std::string(bytes);
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

absl::Status RequestTemplate::AppendWord(
    absl::string_view word, const std::map<std::string, std::string, std::less<>>& constants) {
  // The word's length is known only at its end, so its holes move by the length line.
  std::string text;
  std::vector<Hole> holes;
  while (!word.empty()) {
    const size_t begin = word.find("__");
    text.append(word.data(), begin == word.npos ? word.size() : begin);
    if (begin == word.npos) break;
    word.remove_prefix(begin + 2);
    const size_t end = word.find("__");
    if (end == word.npos) return absl::InvalidArgumentError("a name between __ has no end");
    const absl::string_view name = word.substr(0, end);
    word.remove_prefix(end + 2);
    What what{};
    if (const size_t chars = HoleChars(name, space_, &what); chars != 0) {
      if (what == What::kKey) {
        if (const auto prefix = constants.find("prefix"); prefix != constants.end()) {
          text += prefix->second;
        }
      }
      if (what == What::kFence || what == What::kToken) needs_capture_ = true;
      holes.push_back({text.size(), what});
      text.append(chars, '0');
    } else if (const auto constant = constants.find(std::string(name));
               constant != constants.end()) {
      text += constant->second;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("there is no __", name, "__"));
    }
  }
  absl::StrAppend(&bytes_, "$", text.size(), "\r\n");
  for (const Hole& hole : holes) holes_.push_back({bytes_.size() + hole.at, hole.what});
  absl::StrAppend(&bytes_, text, "\r\n");
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

// A request as bytes with holes of fixed width: to make one is a copy and a few digits, whatever
// the command.
//
//   words in which  __key__          the key of this request's number, behind the prefix
//                   __rand_int__     the number as 12 digits, as redis-benchmark's
//                   __claim__        a UUID that belongs to the number: the same in each request
//                   about it
//                   __new_claim__    a UUID that no other request has
//                   __fingerprint__  16 hexadecimal digits that belong to the number
//                   __fence__        16 digits, and
//                   __token__        32 characters, kept from the reply of an earlier step about
//                   the number
//   and constants   __prefix__, __data__, __ttl__ and the digests of scripts, by name
//
// Threads   a compiled template is not changed; it can be shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/load/key_space.h"

namespace idemd::bench {

inline constexpr size_t kFenceChars =
    16;  // unix milliseconds x 1024: until the year 2248 it has 16 digits
inline constexpr size_t kCaptureChars = 32;
static_assert(kCaptureChars >= kFenceChars && kCaptureChars >= kTokenChars);

// What fills the holes of one request.
struct RequestValues {
  uint64_t number = 0;             // names the key
  uint64_t random = 0;             // for what must be new
  const char* captured = nullptr;  // kCaptureChars, where the template needs them
};

class RequestTemplate {
 public:
  // `constants` are names without the underscores. InvalidArgument for an unknown name between
  // them.
  static absl::StatusOr<RequestTemplate> Compile(
      const std::vector<std::string>& words, KeySpace space,
      const std::map<std::string, std::string, std::less<>>& constants);
  // The same for bytes that are sent as they are: a command in a line, or memcached's.
  static absl::StatusOr<RequestTemplate> CompileRaw(
      absl::string_view bytes, KeySpace space,
      const std::map<std::string, std::string, std::less<>>& constants);

  size_t size() const { return bytes_.size(); }
  bool needs_capture() const { return needs_capture_; }
  // Writes size() bytes.
  void Write(const RequestValues& values, char* out) const {
    std::memcpy(out, bytes_.data(), bytes_.size());
    for (const Hole& hole : holes_) Fill(hole, values, out + hole.at);
  }

 private:
  enum class What : uint8_t { kKey, kRandInt, kClaim, kNewClaim, kFingerprint, kFence, kToken };
  struct Hole {
    size_t at;
    What what;
  };
  // How many characters a name stands for; 0 when it is none of ours.
  static size_t HoleChars(absl::string_view name, KeySpace space, What* what);
  void Fill(const Hole& hole, const RequestValues& values, char* out) const;
  // Writes `text` with its names expanded, and where the holes in it are.
  absl::Status Expand(absl::string_view text,
                      const std::map<std::string, std::string, std::less<>>& constants,
                      std::string* bytes, std::vector<Hole>* holes);

  KeySpace space_ = KeySpace::kRedis;
  std::string bytes_;
  std::vector<Hole> holes_;
  bool needs_capture_ = false;
};

}  // namespace idemd::bench

// What HSCAN, SSCAN and ZSCAN share: the cursor, MATCH and COUNT, and the form of the reply.
//
//   uint64_t cursor = 0;
//   if (!ReadCursor(c, 2, &cursor)) return;                       // errors are written, in Redis' order
//   const storage::Set* set = nullptr;
//   if (!LookAs(c, c.unit.Find(c.db(), c.Key(1)), &set)) return;
//   if (set == nullptr) return ReplyNoScan(c);
//   ElementScan scan(c);
//   if (!scan.ReadOptions(3)) return;
//   scan.Reply(set->Scan(cursor, scan.count(), [&](absl::string_view member) { if (scan.Shows(member)) scan.Element(member); }));
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/commands/context.h"

namespace idemd::server {

// The cursor at words[i], as strtoul() reads it. False: the error was written.
[[nodiscard]] bool ReadCursor(Context& c, size_t i, uint64_t* cursor);
// The reply for a key that is not there.
void ReplyNoScan(Context& c);

class ElementScan {
 public:
  explicit ElementScan(Context& c) : c_(c) {}
  // MATCH and COUNT, from words[i] on. False: the error was written.
  [[nodiscard]] bool ReadOptions(size_t i);

  uint64_t count() const { return static_cast<uint64_t>(count_); }
  bool Shows(absl::string_view name) const;
  void Element(absl::string_view text) {
    c_.reply.Bulk(text);
    ++elements_;
  }
  // Puts the cursor and the number of elements in front of them.
  void Reply(uint64_t cursor);

 private:
  Context& c_;
  int64_t count_ = 10;  // COUNT's default, as Redis
  bool has_match_ = false;
  absl::string_view match_;
  size_t mark_ = 0;
  size_t elements_ = 0;
};

}  // namespace idemd::server

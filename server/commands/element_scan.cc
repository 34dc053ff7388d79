// Options and replies of scans over a collection.
#include "server/commands/element_scan.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/glob.h"

namespace idemd::server {

bool ReadCursor(Context& c, size_t i, uint64_t* cursor) {
  const std::string text(c.words[i]);
  char* end = nullptr;
  errno = 0;
  *cursor = std::strtoul(text.c_str(), &end, 10);
  // An empty text is 0, as it is for Redis.
  const bool good = errno != ERANGE && (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) == 0) && *end == '\0';
  if (!good) c.reply.Error("ERR invalid cursor");
  return good;
}

void ReplyNoScan(Context& c) {
  c.reply.Array(2);
  c.reply.Bulk("0");
  c.reply.Array(0);
}

bool ElementScan::ReadOptions(size_t i) {
  for (; i < c_.words.size(); i += 2) {
    const bool more = i + 1 < c_.words.size();
    if (more && absl::EqualsIgnoreCase(c_.words[i], "count")) {
      if (!c_.Int(i + 1, &count_)) return false;
      if (count_ < 1) {
        c_.Syntax();
        return false;
      }
    } else if (more && absl::EqualsIgnoreCase(c_.words[i], "match")) {
      match_ = c_.words[i + 1];
      has_match_ = match_ != "*";
    } else {
      c_.Syntax();
      return false;
    }
  }
  mark_ = c_.reply.Mark();
  return true;
}

bool ElementScan::Shows(absl::string_view name) const { return !has_match_ || protocol::GlobMatch(match_, name); }

void ElementScan::Reply(uint64_t cursor) {
  std::string head;
  protocol::Writer heads(head, c_.reply.resp());
  heads.Array(2);
  heads.Bulk(absl::StrCat(cursor));
  heads.Array(elements_);
  c_.reply.buffer().insert(mark_, head);
}

}  // namespace idemd::server

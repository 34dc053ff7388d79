// Reading what follows the key of a SORT.
#include "server/commands/sort_options.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/acl_check.h"

namespace idemd::server {
namespace {

bool HasStar(absl::string_view pattern) { return pattern.find('*') != absl::string_view::npos; }

// Which keys a pattern leads to is known only when they are read.
bool Deny(Context& c, absl::string_view option) {
  c.reply.Error(absl::StrCat("ERR ", option, " option of SORT denied due to insufficient ACL permissions."));
  return false;
}

}  // namespace

bool SortOptions::follows_patterns() const {
  return (has_by && sorts) || std::any_of(gets.begin(), gets.end(), HasStar);
}

bool ReadSortOptions(Context& c, bool may_store, SortOptions* options) {
  for (size_t i = 2; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const size_t more = c.words.size() - i - 1;
    if (absl::EqualsIgnoreCase(word, "asc")) {
      options->descending = false;
    } else if (absl::EqualsIgnoreCase(word, "desc")) {
      options->descending = true;
    } else if (absl::EqualsIgnoreCase(word, "alpha")) {
      options->alpha = true;
    } else if (absl::EqualsIgnoreCase(word, "limit") && more >= 2) {
      if (!c.Int(i + 1, &options->limit_start) || !c.Int(i + 2, &options->limit_count)) return false;
      i += 2;
    } else if (may_store && absl::EqualsIgnoreCase(word, "store") && more >= 1) {
      options->store = ++i;
    } else if (absl::EqualsIgnoreCase(word, "by") && more >= 1) {
      options->has_by = true;
      options->by = c.words[++i];
      if (!HasStar(options->by)) options->sorts = false;
      if (options->sorts && !MayReadAllKeys(c.services, c.session, *c.spec, c.words)) return Deny(c, "BY");
    } else if (absl::EqualsIgnoreCase(word, "get") && more >= 1) {
      if (!MayReadAllKeys(c.services, c.session, *c.spec, c.words)) return Deny(c, "GET");
      options->gets.push_back(c.words[++i]);
    } else {
      c.Syntax();
      return false;
    }
  }
  return true;
}

// Whatever the words mean, as Redis does: the last STORE counts.
bool FindSortKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  if (words.size() < 2) return false;
  positions.push_back(1);
  size_t store = 0;
  for (size_t i = 2; i < words.size(); ++i) {
    if (absl::EqualsIgnoreCase(words[i], "limit")) {
      i += 2;
    } else if (absl::EqualsIgnoreCase(words[i], "get") || absl::EqualsIgnoreCase(words[i], "by")) {
      ++i;
    } else if (absl::EqualsIgnoreCase(words[i], "store") && i + 1 < words.size()) {
      store = ++i;
    }
  }
  if (store != 0) positions.push_back(static_cast<int>(store));
  return true;
}

}  // namespace idemd::server

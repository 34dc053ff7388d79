// Reading the words in Redis' order, since that decides which of several errors is told.
#include "server/commands/stream_args.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "server/admin/settings.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::StreamId;
using storage::StreamTrim;

constexpr absl::string_view kInvalidId = "ERR Invalid stream ID specified as stream command argument";
constexpr size_t kIdCharsMax = 127;

// A part of an ID. Redis reads what is no plain number the C library's way, and so do we: "007" and "+7" are 7.
bool ParsePart(const char* text, uint64_t* value) {
  const absl::string_view view(text);
  int64_t number = 0;
  if (protocol::ParseInt64(view, &number)) {
    *value = static_cast<uint64_t>(number);
    return number >= 0;
  }
  char* end = nullptr;
  errno = 0;
  *value = std::strtoull(text, &end, 10);
  return errno == 0 && *text != '\0' && *end == '\0';
}

bool Refuse(Context& c, absl::string_view error) {
  c.reply.Error(error);
  return false;
}

// "(id": what follows the bracket.
bool Excluded(absl::string_view* text) {
  if (text->size() < 2 || (*text)[0] != '(') return false;
  text->remove_prefix(1);
  return true;
}

bool ReadRangeIdEnd(Context& c, size_t i, uint64_t missing_seq, bool* excluded, StreamId* id) {
  absl::string_view text = c.words[i];
  *excluded = Excluded(&text);
  return ParseStreamId(text, *excluded ? IdForm::kPlain : IdForm::kOrEnds, missing_seq, id) || Refuse(c, kInvalidId);
}

bool ReadCount(Context& c, size_t i, absl::string_view negative, int64_t* count) {
  if (!c.Int(i, count)) return false;
  return *count >= 0 || Refuse(c, negative);
}

// MAXLEN or MINID at words[i], with what follows. `i` goes to the last word that was taken.
bool ReadThreshold(Context& c, bool by_length, size_t* i, StreamTrim* trim) {
  if (trim->keep != StreamTrim::Keep::kAll)
    return Refuse(c, "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  trim->whole_nodes = false;
  if (c.words.size() - *i > 2 && (c.words[*i + 1] == "~" || c.words[*i + 1] == "=")) trim->whole_nodes = c.words[++*i] == "~";
  ++*i;
  if (!by_length) {
    trim->keep = StreamTrim::Keep::kFromId;
    return ReadStreamId(c, *i, IdForm::kPlain, 0, &trim->from);
  }
  int64_t newest = 0;
  if (!ReadCount(c, *i, "ERR The MAXLEN argument must be >= 0.", &newest)) return false;
  trim->keep = StreamTrim::Keep::kNewest;
  trim->newest = static_cast<uint64_t>(newest);
  return true;
}

// How much ~ may remove where LIMIT does not say so: what a hundred nodes hold.
int64_t UsualLimit(const Context& c) {
  constexpr int64_t kNodes = 100, kMost = 1'000'000, kWithoutNodeLimit = 10'000;
  const auto entries = static_cast<int64_t>(NodeLimitsNow(c).entries);
  if (entries <= 0) return kWithoutNodeLimit;
  return entries > kMost / kNodes ? kMost : entries * kNodes;
}

}  // namespace

bool ParseStreamId(absl::string_view text, IdForm form, uint64_t missing_seq, StreamId* id, bool* auto_seq) {
  if (text.size() > kIdCharsMax) return false;
  char chars[kIdCharsMax + 1];
  if (!text.empty()) std::memcpy(chars, text.data(), text.size());
  chars[text.size()] = '\0';
  if ((chars[0] == '-' || chars[0] == '+') && chars[1] == '\0') {
    *id = chars[0] == '-' ? StreamId::Min() : StreamId::Max();
    return form == IdForm::kOrEnds;
  }
  char* const dash = std::strchr(chars, '-');
  if (dash != nullptr) *dash = '\0';
  if (!ParsePart(chars, &id->ms)) return false;
  if (dash == nullptr) {
    id->seq = missing_seq;
    return true;
  }
  if (form == IdForm::kOrAuto && dash[1] == '*' && dash[2] == '\0') {
    id->seq = 0;
    *auto_seq = true;
    return true;
  }
  return ParsePart(dash + 1, &id->seq);
}

bool ReadStreamId(Context& c, size_t i, IdForm form, uint64_t missing_seq, StreamId* id, bool* auto_seq) {
  return ParseStreamId(c.words[i], form, missing_seq, id, auto_seq) || Refuse(c, kInvalidId);
}

bool ReadStreamIds(Context& c, size_t first, StreamIds* ids) {
  ids->resize(c.words.size() - first);
  for (size_t i = 0; i < ids->size(); ++i)
    if (!ReadStreamId(c, first + i, IdForm::kPlain, 0, &(*ids)[i])) return false;
  return true;
}

bool ReadRangeStart(Context& c, size_t i, StreamId* id) {
  bool excluded = false;
  if (!ReadRangeIdEnd(c, i, 0, &excluded, id)) return false;
  return !excluded || id->Increment() || Refuse(c, "ERR invalid start ID for the interval");
}

bool ReadRangeEnd(Context& c, size_t i, StreamId* id) {
  bool excluded = false;
  if (!ReadRangeIdEnd(c, i, UINT64_MAX, &excluded, id)) return false;
  return !excluded || id->Decrement() || Refuse(c, "ERR invalid end ID for the interval");
}

bool ReadTrimWords(Context& c, bool of_xadd, TrimWords* words) {
  StreamTrim& trim = words->trim;
  bool limited = false;
  size_t i = 2;
  for (; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const bool more = i + 1 < c.words.size();
    if (of_xadd && word == "*") {
      words->auto_id = true;
      break;
    }
    if (more && absl::EqualsIgnoreCase(word, "maxlen")) {
      if (!ReadThreshold(c, true, &i, &trim)) return false;
    } else if (more && absl::EqualsIgnoreCase(word, "minid")) {
      if (!ReadThreshold(c, false, &i, &trim)) return false;
    } else if (more && absl::EqualsIgnoreCase(word, "limit")) {
      if (!ReadCount(c, ++i, "ERR The LIMIT argument must be >= 0.", &trim.most)) return false;
      limited = true;
    } else if (of_xadd && absl::EqualsIgnoreCase(word, "nomkstream")) {
      words->no_mkstream = true;
    } else if (of_xadd) {
      if (!ReadStreamId(c, i, IdForm::kOrAuto, 0, &words->id, &words->auto_seq)) return false;
      break;
    } else {
      return Refuse(c, errors::kSyntax);
    }
  }
  words->id_at = i;
  const bool trims = trim.keep != StreamTrim::Keep::kAll;
  if (trim.most != 0 && !trims)
    return Refuse(c, "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  if (!of_xadd && !trims) return Refuse(c, "ERR syntax error, XTRIM must be called with a trimming strategy");
  if (limited && !trim.whole_nodes)
    return Refuse(c, "ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (!limited) trim.most = trim.whole_nodes ? UsualLimit(c) : 0;
  return true;
}

storage::Stream::NodeLimits NodeLimitsNow(const Context& c) {
  storage::Stream::NodeLimits limits;
  limits.bytes = static_cast<size_t>(c.services.settings.stream_node_max_bytes.load(std::memory_order_relaxed));
  limits.entries = static_cast<size_t>(c.services.settings.stream_node_max_entries.load(std::memory_order_relaxed));
  return limits;
}

}  // namespace idemd::server

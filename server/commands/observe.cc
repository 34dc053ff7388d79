// Shows commands to monitors and to the slow log, without the secrets in them.
#include "server/commands/observe.h"

#include <chrono>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/admin/latency.h"
#include "server/admin/slowlog.h"
#include "server/clients.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kRedacted = "(redacted)";
// Settings that are secrets.
constexpr absl::string_view kSecretSettings[] = {"requirepass", "masterauth", "masteruser",
                                                 "tls-key-file-pass", "tls-client-key-file-pass"};

bool IsSecretSetting(absl::string_view name) {
  for (absl::string_view secret : kSecretSettings) {
    if (absl::EqualsIgnoreCase(name, secret)) return true;
  }
  return false;
}

void HideFrom(std::vector<absl::string_view>& words, size_t first, size_t count = SIZE_MAX) {
  for (size_t i = first; i < words.size() && count > 0; ++i, --count) words[i] = kRedacted;
}

// The `count` words after each `option` that has so many behind it.
void HideAfter(std::vector<absl::string_view>& words, size_t first, absl::string_view option,
               size_t count) {
  for (size_t i = first; i + count < words.size(); ++i) {
    if (absl::EqualsIgnoreCase(words[i], option)) HideFrom(words, i + 1, count);
  }
}

// As Redis' sdscatrepr: in quotes, with what cannot be printed as \n or \x1b.
void AppendQuoted(std::string& out, absl::string_view word) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char byte : word) {
    const unsigned char u = static_cast<unsigned char>(byte);
    switch (byte) {
      case '\\':
      case '"':
        out += '\\';
        out += byte;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (u >= 0x20 && u < 0x7f) {
          out += byte;
        } else {
          out += "\\x";
          out += kHex[u >> 4];
          out += kHex[u & 15];
        }
    }
  }
  out += '"';
}

int64_t WallUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::vector<absl::string_view> RedactedWords(absl::Span<const absl::string_view> words) {
  std::vector<absl::string_view> shown(words.begin(), words.end());
  if (shown.size() < 2) return shown;
  const absl::string_view name = words[0];
  if (absl::EqualsIgnoreCase(name, "AUTH")) {
    HideFrom(shown, 1);
  } else if (absl::EqualsIgnoreCase(name, "HELLO")) {
    HideAfter(shown, 2, "AUTH", 2);
  } else if (absl::EqualsIgnoreCase(name, "MIGRATE")) {
    HideAfter(shown, 6, "AUTH", 1);
    HideAfter(shown, 6, "AUTH2", 2);
  } else if (absl::EqualsIgnoreCase(name, "CONFIG") && absl::EqualsIgnoreCase(words[1], "SET")) {
    for (size_t i = 2; i + 1 < words.size(); i += 2) {
      if (IsSecretSetting(words[i])) HideFrom(shown, i + 1, 1);
    }
  } else if (absl::EqualsIgnoreCase(name, "ACL") && (absl::EqualsIgnoreCase(words[1], "SETUSER") ||
                                                     absl::EqualsIgnoreCase(words[1], "DELUSER") ||
                                                     absl::EqualsIgnoreCase(words[1], "GETUSER"))) {
    HideFrom(shown, 2);
  }
  return shown;
}

std::string MonitorLine(const Session& session, absl::Span<const absl::string_view> words) {
  const ClientInfo& info = session.peer->info();
  const int64_t us = WallUs();
  std::string line = absl::StrFormat("+%d.%06d [%d ", us / 1'000'000, us % 1'000'000, session.db);
  if (session.in_script) {
    line += "lua";
  } else if (info.unix_socket) {
    // The peer's name is the socket's path and ":0".
    absl::StrAppend(&line,
                    "unix:", absl::string_view(info.address).substr(0, info.address.rfind(':')));
  } else {
    line += info.address;
  }
  line += ']';
  for (absl::string_view word : RedactedWords(words)) {
    line += ' ';
    AppendQuoted(line, word);
  }
  line += "\r\n";
  return line;
}

void NoteForMonitors(Session& session, const CommandSpec& spec,
                    absl::Span<const absl::string_view> words) {
  if ((spec.flags & (kSkipMonitor | kAdmin)) != 0) return;
  session.shown.push_back(std::make_shared<const std::string>(MonitorLine(session, words)));
}

void NoteDuration(Services& services, const Session& session, const CommandSpec& spec,
                  absl::Span<const absl::string_view> words, int64_t usec) {
  services.latency.Add((spec.flags & kFast) != 0 ? "fast-command" : "command", usec / 1000);
  if (!services.slowlog.IsSlow(usec) || (spec.flags & kSkipSlowlog) != 0) return;
  services.slowlog.Add(usec, WallUs() / 1'000'000, RedactedWords(words),
                       session.peer->info().address, session.name);
}

}  // namespace idemd::server

// Runs requests through the dispatcher, and reads replies.
#include "tests/support/harness.h"

#include <cstdlib>
#include <utility>

#include "gtest/gtest.h"
#include "protocol/resp/parser.h"

namespace idemd::testing {
namespace {

class Reading {
 public:
  explicit Reading(absl::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  std::string One() {
    const char kind = rest_.empty() ? '\0' : rest_[0];
    const std::string line = Line();
    switch (kind) {
      case '+':
        return line;
      case '-':
        return "-" + line;
      case ':':
      case ',':
      case '#':
      case '(':
        return line;
      case '_':
        return "nil";
      case '$':
        return line == "-1" ? "nil" : "\"" + Bulk(Count(line)) + "\"";
      case '=':
        return "\"" + Bulk(Count(line)).substr(4) + "\"";
      case '*':
      case '~':
      case '>':
        return line == "-1" ? "nil" : "[" + Several(Count(line), " ", " ") + "]";
      case '%':
        return "{" + Several(Count(line) * 2, ": ", ", ") + "}";
      default:
        ADD_FAILURE() << "no reply: " << rest_;
        rest_ = {};
        return "?";
    }
  }

 private:
  static size_t Count(const std::string& line) { return std::strtoull(line.c_str(), nullptr, 10); }
  std::string Line() {
    const size_t end = rest_.find("\r\n");
    if (end == absl::string_view::npos || end == 0) {
      ADD_FAILURE() << "a line does not end: " << rest_;
      rest_ = {};
      return "";
    }
    const std::string line(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 2);
    return line;
  }
  std::string Bulk(size_t bytes) {
    if (rest_.size() < bytes + 2) {
      ADD_FAILURE() << "a bulk string is cut: " << rest_;
      rest_ = {};
      return "";
    }
    const std::string bulk(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes + 2);
    return bulk;
  }
  std::string Several(size_t n, absl::string_view odd, absl::string_view even) {
    std::string text;
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) text += std::string(i % 2 == 1 ? odd : even);
      text += One();
    }
    return text;
  }

  absl::string_view rest_;
};

std::string Encoded(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return request;
}

}  // namespace

std::string Readable(absl::string_view resp) {
  Reading reading(resp);
  std::string text;
  while (!reading.done()) text += (text.empty() ? "" : " ") + reading.One();
  return text;
}

std::unique_ptr<TestClient> Harness::Connect() {
  auto client = std::make_unique<TestClient>();
  server::ClientInfo& info = client->peer->info();
  info.id = clients.NextId();
  info.address = "127.0.0.1:5000";
  client->session.peer = client->peer;
  clients.Add(client->peer);
  return client;
}

std::string Harness::Do(TestClient& client, absl::string_view line) {
  std::vector<std::string> words;
  EXPECT_TRUE(protocol::SplitWords(line, words)) << line;
  return DoWords(client, words);
}

std::string Harness::DoWords(TestClient& client, const std::vector<std::string>& words) {
  const std::string request = Encoded(words);
  protocol::Parser parser;
  protocol::Batch batch;
  EXPECT_EQ(parser.Parse(request, protocol::ParserLimits(), 16, batch),
            protocol::ParseStatus::kNeedMore);
  std::string out;
  EXPECT_EQ(dispatcher.Run(client.session, batch, 0, SIZE_MAX, out), 1u);
  return Readable(out);
}

bool Harness::Waits(TestClient& client, absl::string_view line) {
  std::vector<std::string> words;
  EXPECT_TRUE(protocol::SplitWords(line, words)) << line;
  const std::string request = Encoded(words);
  protocol::Parser parser;
  protocol::Batch batch;
  parser.Parse(request, protocol::ParserLimits(), 16, batch);
  std::string out;
  return dispatcher.Run(client.session, batch, 0, SIZE_MAX, out) == 0 && out.empty() && client.waits();
}

std::string Harness::Posted(TestClient& client) {
  std::string out;
  for (auto& done : std::exchange(client.peer->posted, {})) done(client.session, out);
  return Readable(out);
}

void Harness::Pass(int64_t ms) {
  clock.AdvanceMs(ms);
  store.Tick();
}

std::vector<std::string> Harness::NewEffects() {
  std::vector<std::string> effects;
  const auto units = log.Units();
  for (; units_seen_ < units.size(); ++units_seen_)
    effects.insert(effects.end(), units[units_seen_].begin(), units[units_seen_].end());
  return effects;
}

}  // namespace idemd::testing

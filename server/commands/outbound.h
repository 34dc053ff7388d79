// What commands ask of other servers: one conversation at a time, bytes out and lines back. Implemented by server/net.
//
// Threads   Begin(): any. `done` runs on a thread of the implementation, which may lock shards and wait for them, or on the
//           caller's when nothing was begun.
// Bounds    so many conversations at a time as the implementation has threads; others wait for their turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace idemd::server {

struct Conversation {
  std::string host;
  int port = 0;
  int64_t timeout_ms = 0;  // of connecting, and of each further step
  std::string requests;    // all of them, sent at once
  size_t replies = 0;      // so many lines are read
};

enum class LinkFailure : uint8_t { kNone, kConnecting, kWriting, kReading };

struct ConversationResult {
  LinkFailure failure = LinkFailure::kNone;
  std::vector<std::string> lines;  // those that came, without their ends; fewer than asked for after a failure
};

class Outbound {
 public:
  virtual ~Outbound() = default;
  virtual void Begin(Conversation conversation, std::function<void(const ConversationResult&)> done) = 0;
};

}  // namespace idemd::server

// Draws requests; what they amount to is the server's business, and the history hears of it from
// the log.
#include "tests/crash/workload.h"

#include <algorithm>

namespace idemd::testing {

std::string Workload::Value() {
  switch (Below(12)) {
    case 0:
      return std::string(1500 + Below(9000), static_cast<char>('a' + Below(26)));
    case 1:
      return "line\r\n*2\r\n$4\r\nECHO\r\n$2\r\ni2\r\n";  // what looks like the log itself
    case 2:
      return std::string(Below(40), '\0');
    default:
      return "v" + std::to_string(Below(1000));
  }
}

void Workload::Step() {
  const uint64_t draw = Below(36);
  if (draw < 3) return Token();
  if (draw < 6) return Consume();
  if (draw < 10) return Reserve();
  if (draw < 14) return Fenced();
  if (draw < 16) return Several();
  if (draw < 17) return Whole();
  if (draw < 21) return Plain();
  Collection();
}

void Workload::Token() {
  const std::string reply = Run({"IDEM.TOKEN", "t:", "PX", std::to_string(200 + Below(5000)),
                                 "VALUE", "u" + std::to_string(Below(3))});
  const size_t begin = reply.find("\r\n");
  if (begin == std::string::npos || reply[0] != '$') return;
  token_ = "t:" + reply.substr(begin + 2, 32);
  tokens_.push_back(token_);
  if (tokens_.size() > 6) tokens_.erase(tokens_.begin());
}

void Workload::Consume() {
  if (tokens_.empty()) return;
  const std::string& key = tokens_[Below(tokens_.size())];
  switch (Below(3)) {
    case 0:
      Run({"IDEM.CONSUME", key, "BY", "me" + std::to_string(Below(2))});
      break;
    case 1:
      Run({"IDEM.RESERVE", key, "ISSUED", "LEASE", "100"});
      break;
    default:
      Run({"IDEM.CONSUME", key, "REASON"});
  }
}

void Workload::Reserve() {
  Words words;
  if (Below(5) == 0) {
    words = {"IDEM.MRESERVE", "2", "r0", "r" + std::to_string(1 + Below(5))};
  } else {
    words = {"IDEM.RESERVE", Key("r")};
  }
  for (const char* word : {"CLAIM", "LEASE"}) {
    words.push_back(word);
    words.push_back(word[0] == 'C' ? "c" + std::to_string(Below(3))
                                   : std::to_string(1 + Below(400)));
  }
  if (Below(3) == 0) words.insert(words.end(), {"PX", std::to_string(400 + Below(3000))});
  if (Below(4) == 0) words.insert(words.end(), {"FINGERPRINT", "f"});
  const std::string reply = Run(words);
  const size_t fence = reply.find("RESERVED\r\n:");
  if (fence == std::string::npos) return;
  const size_t begin = fence + 11;
  fences_.push_back(reply.substr(begin, reply.find("\r\n", begin) - begin));
  if (fences_.size() > 8) fences_.erase(fences_.begin());
}

void Workload::Fenced() {
  const std::string& fence =
      fences_[fences_.size() - 1 - Below(std::min<size_t>(fences_.size(), 4))];
  const std::string key = Key("r");
  switch (Below(6)) {
    case 0:
      Run({"IDEM.FAIL", key, fence});
      break;
    case 1:
      Run({"IDEM.RELEASE", key, fence});
      break;
    case 2:
      Run({"IDEM.CHECKPOINT", key, fence, Value()});
      break;
    case 3:
      Run({"IDEM.EXTEND", key, fence, std::to_string(1 + Below(500))});
      break;
    default:
      Run({"IDEM.COMPLETE", key, fence, Value(), "CODE", std::to_string(Below(500))});
  }
}

void Workload::Plain() {
  switch (Below(9)) {
    case 0:
      Run({"DEL", Key("p"), Key("r")});
      break;
    case 1:
      Run({"PEXPIRE", Key("p"), std::to_string(1 + Below(1000))});
      break;
    case 2:
      Run({"PERSIST", Key("p")});
      break;
    case 3:
      Run({"APPEND", Key("p"), "x"});
      break;
    case 4:
      Run({"IDEM.TRANSITION", Key("s"), "a" + std::to_string(Below(3)), "FROM", "2", "a0", "a1",
           "INIT"});
      break;
    case 5:
      Run({"IDEM.THROTTLE", Key("l"), "5", "10", "1000"});
      break;
    case 6:
      Run({"RENAME", Key("p"), Key("p")});
      break;
    case 7:
      Run({"SET", Key("p"), Value(), "PX", std::to_string(1 + Below(2000))});
      break;
    default:
      Run({"SET", Key("p"), Value()});
  }
}

void Workload::Several() {
  Run({"MULTI"});
  for (uint64_t i = 0, commands = 1 + Below(4); i < commands; ++i)
    Below(6) == 0 ? Whole() : Below(2) == 0 ? Plain() : Collection();
  Run({"EXEC"});
}

void Workload::Whole() {
  switch (Below(6)) {
    case 0:
      Run({"FLUSHDB"});
      break;
    case 1:
      Run({"SWAPDB", "0", "1"});
      break;
    case 2:
      Run({"COPY", Key("p"), Key("p"), "DB", "1", "REPLACE"});
      break;
    default:
      db_ = static_cast<storage::DbIndex>(Below(2));
      Run({"SELECT", std::to_string(db_)});
  }
}

}  // namespace idemd::testing

// Many connections race for the same keys; every key must have one winner, and every loser must be
// told why.
//
// usage: race PORT [KEYS [CONNECTIONS [SEED]]]
// Rounds: all connections send the same batch of keys (each in its own order), then all replies are
// read, so a fence of one round must be larger than every fence of the rounds before. Every read is
// bounded by a timeout.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kBatchKeys = 100;
constexpr int kPatienceMs = 30'000;  // for the next bytes of a round

[[noreturn]] void Die(const std::string& what) {
  std::printf("race: %s\n", what.c_str());
  std::exit(2);
}

// One element of a reply; an array is followed by its elements.
struct Element {
  char type = 0;
  int64_t number = 0;  // integers, and the length of arrays and bulk strings (-1: nil)
  std::string text;    // strings and errors
};

// Reads one value at `at`; false: more bytes are needed.
bool ReadValue(const std::string& in, size_t& at, std::vector<Element>& out) {
  size_t end = in.find("\r\n", at);
  if (end == std::string::npos) return false;
  Element element;
  element.type = in[at];
  if (element.type == '+' || element.type == '-') {
    element.text = in.substr(at + 1, end - at - 1);
  } else {
    std::from_chars(in.data() + at + 1, in.data() + end, element.number);
  }
  at = end + 2;
  if (element.type == '$' && element.number >= 0) {
    const size_t size = static_cast<size_t>(element.number);
    if (in.size() < at + size + 2) return false;
    element.text = in.substr(at, size);
    at += size + 2;
  }
  const int64_t children = element.type == '*' ? element.number : 0;
  out.push_back(std::move(element));
  for (int64_t i = 0; i < children; ++i) {
    if (!ReadValue(in, at, out)) return false;
  }
  return true;
}

std::string Command(std::initializer_list<std::string> words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

class Connection {
 public:
  explicit Connection(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      Die(std::string("connect: ") + std::strerror(errno));
    }
    int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  bool wants_write() const { return sent_ < out_.size(); }
  bool wants_read() const { return missing_ > 0; }

  void Queue(const std::string& bytes) {
    out_ += bytes;
    ++missing_;
  }
  void Write() {
    const ssize_t n =
        ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) Die(std::string("send: ") + std::strerror(errno));
    if (n > 0) sent_ += static_cast<size_t>(n);
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
    }
  }
  // Reads what is there and hands each whole reply to `each`.
  void Read(const std::function<void(const std::vector<Element>&)>& each) {
    char buffer[65536];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0) Die("the server closed a connection");
    if (n < 0) {
      if (errno == EAGAIN) return;
      Die(std::string("recv: ") + std::strerror(errno));
    }
    in_.append(buffer, static_cast<size_t>(n));
    size_t done = 0;
    while (true) {
      size_t at = done;
      reply_.clear();
      if (at >= in_.size() || !ReadValue(in_, at, reply_)) break;
      done = at;
      --missing_;
      each(reply_);
    }
    in_.erase(0, done);
  }

 private:
  int fd_;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;
  size_t missing_ = 0;
  std::vector<Element> reply_;
};

// What became of one key.
struct Outcome {
  size_t answers = 0;
  int winner = -1;
  std::string losers_word;  // what the losers were told, beyond the status
  uint64_t fence = 0;
};

class Race {
 public:
  Race(uint16_t port, size_t connections, uint64_t seed) : random_(seed) {
    for (size_t i = 0; i < connections; ++i) all_.push_back(std::make_unique<Connection>(port));
  }

  size_t connections() const { return all_.size(); }
  size_t problems() const { return problems_; }
  size_t checks() const { return checks_; }
  uint64_t highest_fence() const { return highest_fence_; }
  void set_highest_fence(uint64_t fence) { highest_fence_ = std::max(highest_fence_, fence); }

  void Check(bool good, const std::string& what) {
    ++checks_;
    if (good) return;
    if (++problems_ <= 20) std::printf("WRONG  %s\n", what.c_str());
  }

  using Make = std::function<std::string(size_t key, size_t connection)>;
  using Take =
      std::function<void(size_t key, size_t connection, const std::vector<Element>& reply)>;

  // Every connection sends `make` for keys first..last-1, each in its own order; `take` gets the
  // replies.
  void Round(size_t first, size_t last, const Make& make, const Take& take) {
    std::vector<std::vector<size_t>> orders(all_.size());
    std::vector<size_t> next(all_.size(), 0);
    for (size_t c = 0; c < all_.size(); ++c) {
      orders[c].resize(last - first);
      std::iota(orders[c].begin(), orders[c].end(), first);
      std::shuffle(orders[c].begin(), orders[c].end(), random_);
      for (size_t key : orders[c]) all_[c]->Queue(make(key, c));
    }
    Exchange(
        [&](size_t c, const std::vector<Element>& reply) { take(orders[c][next[c]++], c, reply); });
  }

  // One command on the first connection.
  std::vector<Element> Ask(const std::string& command) {
    std::vector<Element> answer;
    all_[0]->Queue(command);
    Exchange([&](size_t, const std::vector<Element>& reply) { answer = reply; });
    return answer;
  }

 private:
  void Exchange(const std::function<void(size_t, const std::vector<Element>&)>& take) {
    std::vector<pollfd> polled;
    std::vector<size_t> who;
    while (true) {
      polled.clear();
      who.clear();
      for (size_t c = 0; c < all_.size(); ++c) {
        const int events =
            (all_[c]->wants_write() ? POLLOUT : 0) | (all_[c]->wants_read() ? POLLIN : 0);
        if (events == 0) continue;
        polled.push_back({all_[c]->fd(), static_cast<short>(events), 0});
        who.push_back(c);
      }
      if (polled.empty()) return;
      if (::poll(polled.data(), polled.size(), kPatienceMs) <= 0) Die("no answer in time");
      for (size_t i = 0; i < polled.size(); ++i) {
        const size_t c = who[i];
        if (polled[i].revents & POLLOUT) all_[c]->Write();
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) {
          all_[c]->Read([&](const std::vector<Element>& reply) { take(c, reply); });
        }
      }
    }
  }

  std::vector<std::unique_ptr<Connection>> all_;
  std::mt19937_64 random_;
  size_t problems_ = 0;
  size_t checks_ = 0;
  uint64_t highest_fence_ = 0;
};

std::string Show(const std::vector<Element>& reply) {
  std::string out;
  for (const Element& e : reply) {
    out += ' ';
    out += e.type;
    out += e.text.empty() ? std::to_string(e.number) : e.text;
  }
  return out;
}

void Win(Race& race, Outcome& outcome, const std::string& key, size_t connection) {
  race.Check(outcome.winner < 0, key + " has two winners");
  outcome.winner = static_cast<int>(connection);
}

void OneWinnerEach(Race& race, const std::vector<Outcome>& outcomes, const char* what) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    race.Check(outcomes[i].winner >= 0,
               std::string(what) + " key " + std::to_string(i) + " has no winner");
    race.Check(outcomes[i].answers == race.connections(),
               std::string(what) + " answers are missing");
  }
}

// Tokens: one CONSUMED each, everybody else DUPLICATE.
void Consume(Race& race, size_t keys, const std::string& run) {
  const std::string prefix = run + "token:";
  std::vector<std::string> tokens;
  while (tokens.size() < keys) {
    const size_t count = std::min<size_t>(1000, keys - tokens.size());
    const auto reply =
        race.Ask(Command({"IDEM.TOKEN", prefix, "COUNT", std::to_string(count), "EX", "3600"}));
    race.Check(reply.size() == count + 1,
               "IDEM.TOKEN gave another number of tokens:" + Show(reply).substr(0, 200));
    if (reply.size() != count + 1) return;
    for (size_t i = 1; i <= count; ++i) tokens.push_back(prefix + reply[i].text);
  }
  std::vector<Outcome> outcomes(keys);
  for (size_t first = 0; first < keys; first += kBatchKeys) {
    race.Round(
        first, std::min(keys, first + kBatchKeys),
        [&](size_t key, size_t) {
          return Command({"IDEM.CONSUME", tokens[key], "REASON"});
        },
        [&](size_t key, size_t c, const std::vector<Element>& reply) {
          ++outcomes[key].answers;
          if (reply[0].type == '+' && reply[0].text == "CONSUMED")
            return Win(race, outcomes[key], tokens[key], c);
          race.Check(reply[0].type == '+' && reply[0].text == "DUPLICATE",
                     "a loser of CONSUME was told" + Show(reply));
        });
  }
  OneWinnerEach(race, outcomes, "CONSUME");
}

// Reservations: one RESERVED each with a fence above all fences of earlier rounds, everybody else
// PENDING; then the winner's answer for all.
void Reserve(Race& race, size_t keys, const std::string& run) {
  std::vector<Outcome> outcomes(keys);
  const auto name = [&](size_t key) { return run + "job:" + std::to_string(key); };
  for (size_t first = 0; first < keys; first += kBatchKeys) {
    const size_t last = std::min(keys, first + kBatchKeys);
    const uint64_t before = race.highest_fence();
    std::vector<uint64_t> last_of(race.connections(), 0);
    race.Round(
        first, last,
        [&](size_t key, size_t c) {
          return Command(
              {"IDEM.RESERVE", name(key), "CLAIM", "c" + std::to_string(c), "LEASE", "600000"});
        },
        [&](size_t key, size_t c, const std::vector<Element>& reply) {
          ++outcomes[key].answers;
          if (reply.size() != 7) return race.Check(false, "RESERVE replied" + Show(reply));
          const uint64_t fence = static_cast<uint64_t>(reply[2].number);
          race.Check(reply[3].number == 1, "another attempt than the first:" + Show(reply));
          if (reply[1].text == "RESERVED") {
            Win(race, outcomes[key], name(key), c);
            race.Check(fence > before,
                       "a fence is not above those of earlier rounds:" + Show(reply));
            race.Check(fence > last_of[c], "a connection's fences do not rise:" + Show(reply));
            last_of[c] = fence;
            outcomes[key].fence = fence;
            race.set_highest_fence(fence);
          } else {
            race.Check(reply[1].text == "PENDING" && fence == 0,
                       "a loser of RESERVE was told" + Show(reply));
          }
        });
  }
  OneWinnerEach(race, outcomes, "RESERVE");
  std::vector<uint64_t> fences;
  for (const Outcome& outcome : outcomes) fences.push_back(outcome.fence);
  std::sort(fences.begin(), fences.end());
  race.Check(std::adjacent_find(fences.begin(), fences.end()) == fences.end(),
             "one fence was given out twice");

  // All try to complete with the winner's fence, each with an answer of its own: one OK, the others
  // CONFLICT.
  const size_t some = std::min<size_t>(keys, 2000);
  std::vector<Outcome> completed(some);
  for (size_t first = 0; first < some; first += kBatchKeys) {
    race.Round(
        first, std::min(some, first + kBatchKeys),
        [&](size_t key, size_t c) {
          return Command({"IDEM.COMPLETE", name(key), std::to_string(outcomes[key].fence),
                          "by" + std::to_string(c)});
        },
        [&](size_t key, size_t c, const std::vector<Element>& reply) {
          ++completed[key].answers;
          if (reply[0].type == '+' && reply[0].text == "OK")
            return Win(race, completed[key], name(key), c);
          race.Check(reply[0].type == '-' && reply[0].text.rfind("CONFLICT", 0) == 0,
                     "a loser of COMPLETE was told" + Show(reply));
        });
  }
  OneWinnerEach(race, completed, "COMPLETE");
  for (size_t first = 0; first < some; first += kBatchKeys) {
    race.Round(
        first, std::min(some, first + kBatchKeys),
        [&](size_t key, size_t c) {
          return Command({"IDEM.RESERVE", name(key), "CLAIM", "late" + std::to_string(c)});
        },
        [&](size_t key, size_t, const std::vector<Element>& reply) {
          race.Check(reply.size() == 7 && reply[1].text == "DONE" &&
                         reply[6].text == "by" + std::to_string(completed[key].winner),
                     "the stored answer is another one:" + Show(reply));
        });
  }
}

// States: one MOVED each, everybody else REFUSED with the winner's state.
void Transition(Race& race, size_t keys, const std::string& run) {
  std::vector<Outcome> outcomes(keys);
  const auto name = [&](size_t key) { return run + "state:" + std::to_string(key); };
  for (size_t first = 0; first < keys; first += kBatchKeys) {
    race.Round(
        first, std::min(keys, first + kBatchKeys),
        [&](size_t key, size_t c) {
          return Command({"IDEM.TRANSITION", name(key), "by" + std::to_string(c), "FROM", "0",
                          "INIT", "EX", "3600"});
        },
        [&](size_t key, size_t c, const std::vector<Element>& reply) {
          Outcome& outcome = outcomes[key];
          ++outcome.answers;
          if (reply.size() != 3) return race.Check(false, "TRANSITION replied" + Show(reply));
          if (reply[1].text == "MOVED") {
            Win(race, outcome, name(key), c);
            race.Check(reply[2].number == -1,
                       "MOVED from a state where there was none:" + Show(reply));
            return;
          }
          race.Check(reply[1].text == "REFUSED", "a loser of TRANSITION was told" + Show(reply));
          race.Check(outcome.losers_word.empty() || outcome.losers_word == reply[2].text,
                     "losers saw two states of " + name(key));
          outcome.losers_word = reply[2].text;
        });
  }
  OneWinnerEach(race, outcomes, "TRANSITION");
  for (size_t i = 0; i < keys; ++i) {
    race.Check(race.connections() < 2 ||
                   outcomes[i].losers_word == "by" + std::to_string(outcomes[i].winner),
               "the losers were told another state than the winner's");
  }
}

size_t Number(int argc, char** argv, int i, size_t otherwise) {
  return argc > i ? static_cast<size_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: race PORT [KEYS [CONNECTIONS [SEED]]]");
  const uint16_t port = static_cast<uint16_t>(Number(argc, argv, 1, 0));
  const size_t keys = Number(argc, argv, 2, 100'000);
  const size_t connections = Number(argc, argv, 3, 64);
  const char* seed_text = std::getenv("IDEMD_SEED");
  const uint64_t seed = Number(
      argc, argv, 4, seed_text ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}());
  std::printf("seed %llu: %zu keys, %zu connections\n", static_cast<unsigned long long>(seed), keys,
              connections);
  Race race(port, connections, seed);
  const std::string run = "race" + std::to_string(seed) + ":";
  Consume(race, keys / 3, run);
  Reserve(race, keys / 3, run);
  Transition(race, keys - 2 * (keys / 3), run);
  std::printf("%zu checks, %zu wrong\n", race.checks(), race.problems());
  return race.problems() == 0 ? 0 : 1;
}

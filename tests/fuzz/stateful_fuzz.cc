// A server in one process, over a simulated disk and time, against a model: strings, counters,
// deadlines, tokens, reservations, also in transactions. Every reply is the model's, whatever else
// happens meanwhile: time, sweeps, rewrites of the log, dumps, kills and clean stops with a new
// start behind them. In the end the keys are the model's, byte for byte and with their deadlines:
// in memory, after the log was replayed, after the snapshot of a rewrite was loaded, and from the
// dump alone; and fences go on above all that were given out.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/services.h"
#include "server/journal/persistence.h"
#include "tests/crash/sim_server.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/key_model.h"
#include "tests/support/sim_fs.h"

using namespace idemd::testing;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::KeyModel;
using idemd::fuzz::Require;

namespace {

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr size_t kStepsMax = 100;
constexpr size_t kTokensMax = 4;
constexpr size_t kFencesMax = 4;
using Words = std::vector<std::string>;

std::unique_ptr<SimFs> NewDisk() {
  auto fs = std::make_unique<SimFs>();
  Require(fs->MakeDirectory("/data").ok() && fs->SyncDirectory("/").ok());
  return fs;
}

class Run {
 public:
  explicit Run(Input input) : input_(input), fs_(NewDisk()) {
    options_.sync = input_.Flag() ? idemd::server::SyncPolicy::kAlways
                                  : idemd::server::SyncPolicy::kEverySecond;
    Start();
  }
  void Go() {
    for (size_t step = 0; step < kStepsMax && !input_.empty(); ++step) Step();
    const size_t end = input_.Below(4);
    RequireContents();
    if (end == 0) SaveAndLoadDump();
    if (end == 1) Require(data_->persistence().RewriteInBackground().ok());
    Restart(/*clean=*/end == 2);
  }

 private:
  void Start() {
    // What is in the log has nothing to do with what is looked at here.
    history_ = std::make_unique<History>();
    auto data = SimData::Recover(*fs_, time_, clock_, *history_, options_);
    Require(data.ok());
    data_ = *std::move(data);
    server_ = std::make_unique<SimServer>(*data_, kStartMs);
    const uint64_t last = data_->store().fences().last();
    Require(last >= model_.fence());
    model_.set_fence(last);
    RequireContents();
  }
  void Restart(bool clean) {
    data_->log().Release(server_->need());
    Require(data_->log().released() >= server_->need() && data_->died().empty());
    if (clean) Require(data_->persistence().Close(input_.Flag()).ok());
    server_ = nullptr;
    auto left = fs_->AfterKill();
    data_ = nullptr;
    fs_ = std::move(left);
    Start();
  }
  void SaveAndLoadDump() {
    absl::Status saved = absl::UnknownError("not told");
    data_->persistence().SaveNow([&](const absl::Status& status) { saved = status; });
    Require(saved.ok());
    const auto disk = NewDisk();
    disk->Overwrite("/data/dump.rdb", fs_->Contents("/data/dump.rdb"));
    History none;
    const auto data = SimData::Recover(*disk, time_, clock_, none, options_);
    Require(data.ok());
    RequireSame((*data)->store());
  }
  void RequireContents() { RequireSame(data_->store()); }
  void RequireSame(idemd::storage::Store& store) {
    const Keys found = KeysOf(store);
    const auto expected = model_.Contents();
    Require(found.size() == expected.size());
    for (const auto& [key, shown] : expected) {
      const auto at = found.find(NameOf(0, key));
      Require(at != found.end() && at->second.value == shown.value &&
              at->second.deadline_ms == shown.deadline_ms);
    }
  }

  // --- what is drawn
  std::string Plain() { return absl::StrCat("p", input_.Below(3)); }
  std::string Reserved() { return absl::StrCat("r", input_.Below(3)); }
  std::string Token() {
    return tokens_.empty() ? "t:" + std::string(32, 'A') : tokens_[input_.Below(tokens_.size())];
  }
  std::string AnyKey() {
    const size_t draw = input_.Below(8);
    return draw < 4 ? Plain() : draw < 7 ? Reserved() : Token();
  }
  int64_t Ms() {
    return 1 + static_cast<int64_t>(input_.Below(2) == 0 ? input_.Below(256)
                                                         : input_.Below(65536) * 100);
  }
  std::string Value() {
    switch (input_.Below(5)) {
      case 0:
        return std::to_string(static_cast<int64_t>(input_.Number()));
      case 1:
        return std::string(input_.Below(4096), 'x');
      case 2:
        return "*1\r\n$7\r\nFLUSHDB\r\n";  // what looks like the log itself
      default:
        return "v" + std::string(input_.Text(40));
    }
  }
  uint64_t Fence() {
    return fences_.empty() ? 1 : fences_[fences_.size() - 1 - input_.Below(fences_.size())];
  }

  // --- commands

  // Either the very reply or, where only the word of an error is known, one that begins with it.
  // Cuts it off.
  static void Take(const std::string& expected, std::string& reply) {
    Require(absl::StartsWith(reply, expected));
    const size_t end = expected[0] == '-' ? reply.find("\r\n") + 2 : expected.size();
    reply.erase(0, end);
  }
  void Do(const Words& words, const std::string& expected) {
    std::string reply = server_->Do(words);
    if (queued_.has_value()) {
      queued_->push_back(expected);
      Require(reply == "+QUEUED\r\n");
      return;
    }
    Take(expected, reply);
    Require(reply.empty());
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
        return Pass();
      case 1:
        return MakeToken();
      case 2:
        return Several();
      case 3:
        return World();
      default:
        return Command();
    }
  }
  void Pass() {
    const int64_t ms = Ms();
    time_.AdvanceMs(ms);
    clock_.AdvanceMs(ms);
    model_.Pass(ms);
    if (input_.Flag()) data_->store().Tick();
    if (input_.Flag()) data_->persistence().Tick();
  }
  void MakeToken() {
    const int64_t ms = Ms();
    const std::string value = absl::StrCat("u", input_.Below(3));
    const std::string reply =
        server_->Do({"IDEM.TOKEN", "t:", "PX", std::to_string(ms), "VALUE", value});
    Require(reply.size() == 5 + 32 + 2 && absl::StartsWith(reply, "$32\r\n"));
    if (tokens_.size() == kTokensMax) tokens_.erase(tokens_.begin());
    tokens_.push_back("t:" + reply.substr(5, 32));
    model_.Issued(tokens_.back(), value, ms);
  }
  void Several() {
    Require(server_->Do({"MULTI"}) == "+OK\r\n");
    queued_.emplace();
    for (size_t n = input_.Below(5); n != 0; --n) Command();
    const std::vector<std::string> expected = *std::exchange(queued_, std::nullopt);
    std::string reply = server_->Do({"EXEC"});
    Take(absl::StrCat("*", expected.size(), "\r\n"), reply);
    for (const std::string& one : expected) Take(one, reply);
    Require(reply.empty());
  }
  void World() {
    switch (input_.Below(8)) {
      case 0:
        return Restart(/*clean=*/true);
      case 1:
      case 2:
        return Restart(/*clean=*/false);
      case 3:
      case 4:
        return Require(data_->persistence().RewriteInBackground().ok());
      case 5:
        return SaveAndLoadDump();
      default:
        data_->log().Release(server_->need());
        return RequireContents();
    }
  }

  void Command() {
    const size_t draw = input_.Below(24);
    if (draw < 10) return StringCommand(draw);
    if (draw < 12) return Consume();
    if (draw < 16) return Reserve();
    if (draw < 22) return Fenced(draw - 16);
    Transition();
  }
  void StringCommand(size_t which) {
    const std::string key = AnyKey();
    switch (which) {
      case 0:
      case 1: {
        Words words = {"SET", key, Value()};
        std::optional<int64_t> lifetime_ms;
        bool keep = false;
        auto only = KeyModel::SetOnly::kAlways;
        switch (input_.Below(4)) {
          case 0:
            lifetime_ms = Ms();
            words.insert(words.end(), {"PX", std::to_string(*lifetime_ms)});
            break;
          case 1:
            keep = true;
            words.push_back("KEEPTTL");
            break;
          default:
            break;
        }
        switch (input_.Below(4)) {
          case 0:
            only = KeyModel::SetOnly::kIfAbsent;
            words.push_back("NX");
            break;
          case 1:
            only = KeyModel::SetOnly::kIfThere;
            words.push_back("XX");
            break;
          default:
            break;
        }
        return Do(words, model_.Set(key, words[2], lifetime_ms, keep, only));
      }
      case 2:
        return Do({"GET", key}, model_.Get(key));
      case 3: {
        const auto by = static_cast<int64_t>(input_.Number());
        return Do({"INCRBY", key, std::to_string(by)}, model_.IncrBy(key, by));
      }
      case 4: {
        const std::string text = Value();
        return Do({"APPEND", key, text}, model_.Append(key, text));
      }
      case 5: {
        const std::string other = AnyKey();
        return Do({"DEL", key, other}, model_.Delete({key, other}));
      }
      case 6: {
        const std::string to = AnyKey();
        return Do({"RENAME", key, to}, model_.Rename(key, to));
      }
      case 7: {
        const int64_t ms = Ms();
        return Do({"PEXPIRE", key, std::to_string(ms)}, model_.Expire(key, ms));
      }
      case 8:
        if (input_.Flag()) return Do({"PERSIST", key}, model_.Persist(key));
        return Do({"PTTL", key}, model_.TimeLeft(key));
      default:
        if (input_.Below(8) == 7) return Do({"FLUSHDB"}, model_.FlushDb());
        return Do({"GETDEL", key}, model_.GetDel(key));
    }
  }
  void Consume() {
    const std::string key = input_.Below(4) == 0 ? AnyKey() : Token();
    Words words = {"IDEM.CONSUME", key, "REASON"};
    std::optional<std::string> if_equal;
    std::string by;
    if (input_.Flag()) {
      if_equal = absl::StrCat("u", input_.Below(3));
      words.insert(words.end(), {"IFEQ", *if_equal});
    }
    if (input_.Flag()) {
      by = absl::StrCat("b", input_.Below(2));
      words.insert(words.end(), {"BY", by});
    }
    // A record of a token holds its value percent-encoded; the model does not.
    if (!by.empty() && !Unreserved(key)) return;
    Do(words, model_.Consume(key, if_equal, by));
  }
  void Reserve() {
    KeyModel::Reserving how;
    how.issued = input_.Below(3) == 0;
    const std::string key = input_.Below(8) == 0 ? AnyKey() : how.issued ? Token() : Reserved();
    how.lease_ms = Ms();
    Words words = {"IDEM.RESERVE", key, "LEASE", std::to_string(how.lease_ms)};
    if (how.issued) words.push_back("ISSUED");
    if (how.issued && input_.Flag()) {
      how.if_equal = absl::StrCat("u", input_.Below(3));
      words.insert(words.end(), {"IFEQ", *how.if_equal});
    }
    if (input_.Flag()) {
      how.claim = absl::StrCat("c", input_.Below(3));
      words.insert(words.end(), {"CLAIM", how.claim});
    }
    if (input_.Flag()) {
      how.lifetime_ms = Ms();
      words.insert(words.end(), {"PX", std::to_string(*how.lifetime_ms)});
    }
    if (input_.Flag()) {
      how.fingerprint = absl::StrCat("f", input_.Below(2));
      words.insert(words.end(), {"FINGERPRINT", how.fingerprint});
    }
    if (input_.Below(4) == 0) {
      how.stop = true;
      words.insert(words.end(), {"ONLAPSE", "STOP"});
    }
    if (how.issued && !Unreserved(key)) return;
    const uint64_t before = model_.fence();
    Do(words, model_.Reserve(key, how));
    if (model_.fence() == before) return;
    if (fences_.size() == kFencesMax) fences_.erase(fences_.begin());
    fences_.push_back(model_.fence());
  }
  void Fenced(size_t which) {
    const std::string key = input_.Below(4) == 0 ? Token() : Reserved();
    const uint64_t fence = Fence();
    const std::string said = std::to_string(fence);
    switch (which) {
      case 0:
      case 1: {
        const std::string result = Value();
        const int64_t code = static_cast<int64_t>(input_.Below(3)) * 200;
        return Do({"IDEM.COMPLETE", key, said, result, "CODE", std::to_string(code)},
                  model_.Complete(key, fence, result, code));
      }
      case 2: {
        const int64_t after_ms = input_.Flag() ? Ms() : 0;
        Words words = {"IDEM.FAIL", key, said};
        if (after_ms != 0) words.insert(words.end(), {"AFTER", std::to_string(after_ms)});
        return Do(words, model_.Fail(key, fence, after_ms));
      }
      case 3:
        return Do({"IDEM.RELEASE", key, said}, model_.Release(key, fence));
      case 4: {
        const int64_t lease_ms = Ms();
        return Do({"IDEM.EXTEND", key, said, std::to_string(lease_ms)},
                  model_.Extend(key, fence, lease_ms));
      }
      default: {
        const std::string progress = Value();
        return Do({"IDEM.CHECKPOINT", key, said, progress},
                  model_.Checkpoint(key, fence, progress));
      }
    }
  }
  void Transition() {
    const std::string key = AnyKey();
    const std::string to = absl::StrCat("s", input_.Below(3));
    const bool init = input_.Flag();
    Words words = {"IDEM.TRANSITION", key, to, "FROM", "2", "s0", "s1"};
    if (init) words.push_back("INIT");
    Do(words, model_.Transition(key, to, {"s0", "s1"}, init));
  }

  // Whether what the key holds can stand in a record's line as it is.
  bool Unreserved(const std::string& key) {
    const auto contents = model_.Contents();
    const auto found = contents.find(key);
    if (found == contents.end() || absl::StartsWith(found->second.value, "idem/1 ")) return true;
    return std::all_of(found->second.value.begin(), found->second.value.end(),
                       [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); });
  }

  Input input_;
  SimOptions options_;
  std::unique_ptr<SimFs> fs_;
  SimTime time_{kStartMs};
  idemd::storage::FakeClock clock_{kStartMs};
  KeyModel model_{kStartMs};
  std::unique_ptr<History> history_;
  std::unique_ptr<SimData> data_;
  std::unique_ptr<SimServer> server_;
  std::vector<std::string> tokens_;
  std::vector<uint64_t> fences_;
  std::optional<std::vector<std::string>> queued_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Run(Input(data, size)).Go();
  return 0;
}

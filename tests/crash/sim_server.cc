// Builds the parts of a server without sockets or threads.
#include "tests/crash/sim_server.h"

#include <optional>

#include "protocol/resp/parser.h"

namespace idemd::testing {
namespace {

server::PersistenceOptions Options(const SimOptions& options, std::shared_ptr<std::string> died) {
  server::PersistenceOptions to;
  to.directory = "/data";
  to.sync = options.sync;
  to.restart_grace_ms = options.restart_grace_ms;
  to.rewrite_percentage = 0;
  to.on_callers_thread = true;
  to.die = [died = std::move(died), gave_up = options.gave_up](const absl::Status& why) {
    if (!died->empty()) return;
    *died = std::string(why.message());
    if (gave_up) gave_up();
  };
  return to;
}

}  // namespace

SimData::SimData(SimFs& fs, storage::TimeSource& time, storage::Clock& clock, History& history,
                 const SimOptions& options)
    : persistence_(Options(options, died_), fs, time),
      log_(persistence_.log(), history, options.fault),
      store_(clock, log_) {}

absl::StatusOr<std::unique_ptr<SimData>> SimData::Recover(SimFs& fs, storage::TimeSource& time,
                                                          storage::Clock& clock, History& history,
                                                          const SimOptions& options) {
  std::unique_ptr<SimData> data(new SimData(fs, time, clock, history, options));
  if (absl::Status opened = data->persistence_.Open(); !opened.ok()) return opened;
  // Made when a log has a command for it: most that are recovered here are short.
  std::optional<SimReplay> replay;
  absl::Status loaded = data->persistence_.Load(
      data->store_, data->tokens_, nullptr,
      [&](const std::vector<absl::string_view>& words, storage::DbIndex* db) {
        if (!replay.has_value()) replay.emplace(data->store_, data->tokens_, &data->persistence_);
        return replay->Run(words, db);
      });
  if (!loaded.ok()) return loaded;
  if (!data->died_->empty()) return absl::UnavailableError(*data->died_);
  return data;
}

class SimServer::NoPeer final : public server::Peer {
 public:
  void Send(std::shared_ptr<const std::string>, storage::Lsn, std::shared_ptr<const std::atomic<bool>>) override {}
  void Kill() override {}
  void Resume(std::function<void(server::Session&, std::string&)>) override {}
};

SimServer::SimServer(SimData& data, int64_t started_ms)
    : data_(data),
      services_(data.store(), data.tokens(), &data.persistence(), started_ms),
      dispatcher_(services_.services()) {
  session_.peer = std::make_shared<NoPeer>();
}

std::string SimServer::Do(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  protocol::Parser parser;
  protocol::Batch batch;
  parser.Parse(request, protocol::ParserLimits(), 16, batch);
  std::string reply;
  dispatcher_.Run(session_, batch, 0, SIZE_MAX, reply);
  data_.log().Release(0);  // mirrors the refusal of a full disk
  return reply;
}

}  // namespace idemd::testing

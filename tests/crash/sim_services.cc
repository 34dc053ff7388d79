// What does not change is made once: a recovery is too short to build a table of commands.
#include "tests/crash/sim_services.h"

namespace idemd::testing {
namespace {

server::Settings& SharedSettings() {
  static server::Settings settings;
  return settings;
}

const server::CommandTable& SharedCommands() {
  static const server::CommandTable commands;
  return commands;
}

server::Scripts& SharedScripts() {
  static server::Scripts scripts(SharedSettings(), SharedCommands());
  return scripts;
}

const std::shared_ptr<server::acl::Users>& SharedUsers() {
  static const std::shared_ptr<server::acl::Users> users = server::MakeUsers(SharedSettings(), SharedCommands());
  return users;
}

}  // namespace

SimServices::SimServices(storage::Store& store, storage::TokenMint& tokens,
                         server::PersistenceControl* persistence, int64_t started_ms)
    : services_{.store = store,
                .clock = nullptr,
                .tokens = tokens,
                .settings = SharedSettings(),
                .clients = clients_,
                .slowlog = slowlog_,
                .latency = latency_,
                .stats = stats_,
                .native = native_,
                .commands = SharedCommands(),
                .run_id = "sim",
                .started_ms = started_ms,
                .persistence = persistence,
                .scripts = &SharedScripts(),
                .users = SharedUsers()} {}

}  // namespace idemd::testing

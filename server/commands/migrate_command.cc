// MIGRATE: keys go over to another server, which gets them by RESTORE; here they go when it has said that it has them.
//
// The values are read under the locks of all keys, as of one moment; then the locks are given back and the client waits, while
// the words travel on a thread of server/net. When the other server's OK has come, a key is removed under its lock, if it
// still is what was sent. That is decided as for EXEC: each key is watched from the moment its value was read, and a key
// whose watch was marked stays. Of a stream that is not enough, since what its groups have read marks no watch: its bytes are
// made once more and compared. A key that changed stays here as it is now, and the caller is told: the other server holds
// what it was.
//
// Nobody waits inside of EXEC and scripts, so there it is refused. Connections are not kept for the next call.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admin/settings.h"
#include "server/commands/blocking.h"
#include "server/commands/context.h"
#include "server/commands/dispatch.h"
#include "server/commands/groups.h"
#include "server/commands/outbound.h"
#include "server/commands/session_waiter.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::server {
namespace {

using storage::DbIndex;
using storage::HashedKey;
using storage::KeyView;
using Words = absl::Span<const absl::string_view>;

constexpr size_t kFirstOption = 6;
constexpr int64_t kTimeoutMsDefault = 1000;

// Where the names of the keys begin: behind KEYS, or 0: words[3] is the only one.
size_t KeysBegin(Words words) {
  if (words.size() <= kFirstOption || !words[3].empty()) return 0;
  for (size_t i = kFirstOption; i < words.size(); ++i) {
    if (absl::EqualsIgnoreCase(words[i], "keys")) return i + 1;
    // A password may look like an option.
    const absl::string_view word = words[i];
    if (absl::EqualsIgnoreCase(word, "auth")) i += 1;
    if (absl::EqualsIgnoreCase(word, "auth2")) i += 2;
  }
  return 0;
}

bool FindMigrateKeys(Words words, std::vector<int>& positions) {
  const size_t begin = KeysBegin(words);
  if (begin == 0) {
    positions.push_back(3);
    return words.size() > 3;
  }
  for (size_t i = begin; i < words.size(); ++i) positions.push_back(static_cast<int>(i));
  return true;
}

// Of a full command nothing is incomplete.
const char* MigrateKeyFlags(Words) { return "RW ACCESS DELETE"; }

struct MigrateOptions {
  bool copy = false;
  bool replace = false;
  Words login = {};  // what follows AUTH; empty: none
  Words keys = {};
  int64_t db = 0;
  int64_t timeout_ms = 0;
};

// False: the error was written.
bool ReadMigrateOptions(Context& c, MigrateOptions* options) {
  options->keys = c.words.subspan(3, 1);
  for (size_t i = kFirstOption; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const size_t more = c.words.size() - i - 1;
    if (absl::EqualsIgnoreCase(word, "copy")) {
      options->copy = true;
    } else if (absl::EqualsIgnoreCase(word, "replace")) {
      options->replace = true;
    } else if (absl::EqualsIgnoreCase(word, "auth") && more >= 1) {
      options->login = c.words.subspan(i + 1, 1);
      i += 1;
    } else if (absl::EqualsIgnoreCase(word, "auth2") && more >= 2) {
      options->login = c.words.subspan(i + 1, 2);
      i += 2;
    } else if (absl::EqualsIgnoreCase(word, "keys")) {
      if (!c.words[3].empty()) {
        c.reply.Error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
        return false;
      }
      options->keys = c.words.subspan(i + 1);
      break;
    } else {
      c.Syntax();
      return false;
    }
  }
  if (!c.Int(5, &options->timeout_ms) || !c.Int(4, &options->db)) return false;
  if (options->timeout_ms <= 0) options->timeout_ms = kTimeoutMsDefault;
  return true;
}

storage::RdbStrings StringsOf(const Settings& settings) {
  return settings.Text("rdbcompression") == "yes" ? storage::RdbStrings::kCompressed : storage::RdbStrings::kPlain;
}

std::string PayloadOf(const KeyView& view, storage::RdbStrings strings) {
  if (view.collection != nullptr) return storage::DumpPayload(*view.collection, strings);
  std::string text;
  return storage::DumpPayload(storage::StringValue(view, text), strings);
}

// One MIGRATE that is under way.
class Migration {
 public:
  Migration(Context& c, const MigrateOptions& options)
      : services_(c.services),
        db_(c.db()),
        copy_(options.copy),
        greetings_(options.login.empty() ? 1 : 2),
        strings_(StringsOf(c.services.settings)) {
    protocol::Writer writer(requests_, 2);
    if (!options.login.empty()) {
      writer.Array(1 + options.login.size());
      writer.Bulk("AUTH");
      for (const absl::string_view word : options.login) writer.Bulk(word);
    }
    writer.Array(2);
    writer.Bulk("SELECT");
    writer.Bulk(absl::StrCat(options.db));
  }

  // The key's lock is held; it is there.
  void Add(storage::Unit& unit, const HashedKey& key, const KeyView& view, bool replace) {
    Sent sent{std::string(key.bytes), view.deadline_ms, std::make_shared<storage::Watch>(), {}};
    const int64_t ttl_ms =
        view.deadline_ms == storage::kNoDeadline ? 0 : std::max<int64_t>(1, view.deadline_ms - unit.now_ms());
    std::string payload = PayloadOf(view, strings_);
    protocol::Writer writer(requests_, 2);
    writer.Array(replace ? 5 : 4);
    writer.Bulk("RESTORE");
    writer.Bulk(key.bytes);
    writer.Bulk(absl::StrCat(ttl_ms));
    writer.Bulk(payload);
    if (replace) writer.Bulk("REPLACE");
    if (view.type == storage::ValueType::kStream) sent.stream = std::move(payload);
    if (!copy_) unit.WatchKey(db_, key, sent.watch);
    sent_.push_back(std::move(sent));
  }

  size_t replies() const { return greetings_ + sent_.size(); }
  std::string TakeRequests() { return std::move(requests_); }
  void SetWaiter(std::shared_ptr<CallWaiter> waiter) { waiter_ = std::move(waiter); }

  // What the other server said: keys go, the caller is answered.
  void End(const ConversationResult& result) {
    std::string error;
    std::vector<const Sent*> arrived;
    for (size_t i = 0; i < result.lines.size(); ++i) {
      const std::string& line = result.lines[i];
      const bool refused = line.empty() || line[0] == '-';
      if (refused && error.empty())
        error = absl::StrCat("ERR Target instance replied with error: ", line.empty() ? "" : line.substr(1));
      // Without a login, or in another database, an OK would be none for what was asked.
      if (i < greetings_ && refused) break;
      if (i >= greetings_ && !refused) arrived.push_back(&sent_[i - greetings_]);
    }
    storage::Lsn need = storage::kNoLsn;
    if (!copy_) RemoveArrived(arrived, &need, &error);
    if (error.empty()) error = FailureText(result.failure);
    waiter_->Answer([error](protocol::Writer& reply) { error.empty() ? reply.Ok() : reply.Error(error); }, need);
  }

 private:
  struct Sent {
    std::string name;
    int64_t deadline_ms;
    std::shared_ptr<storage::Watch> watch;
    std::string stream;  // of a stream: what was sent
  };

  static std::string FailureText(LinkFailure failure) {
    switch (failure) {
      case LinkFailure::kNone:
        break;
      case LinkFailure::kConnecting:
        return "IOERR error or timeout connecting to the client";
      case LinkFailure::kWriting:
        return "IOERR error or timeout writing to target instance";
      case LinkFailure::kReading:
        return "IOERR error or timeout reading to target instance";
    }
    return {};
  }

  // Forgets the watches of all keys, and removes those that have arrived and are what they were.
  void RemoveArrived(const std::vector<const Sent*>& arrived, storage::Lsn* need, std::string* error) {
    // As for any other write: a log that takes nothing any more keeps the keys here.
    const std::string refusal = arrived.empty() ? "" : WriteRefusal(services_);
    std::vector<HashedKey> keys;
    for (const Sent& sent : sent_) keys.emplace_back(sent.name);
    size_t stayed = 0;
    storage::Unit unit(services_.store);
    unit.LockKeys(keys);
    for (size_t i = 0; i < sent_.size(); ++i) unit.UnwatchKey(db_, keys[i], *sent_[i].watch);
    for (const Sent* sent : arrived) {
      if (!refusal.empty()) break;
      const HashedKey& key = keys[static_cast<size_t>(sent - sent_.data())];
      const KeyView view = unit.Find(db_, key, /*touch=*/false);
      if (!view && sent->deadline_ms <= unit.now_ms()) continue;  // expired meanwhile, here as there
      const bool same_stream = sent->stream.empty() || (view && PayloadOf(view, strings_) == sent->stream);
      if (!view || !same_stream || sent->watch->touched.load(std::memory_order_acquire)) {
        ++stayed;
      } else if (unit.Remove(db_, key)) {
        unit.Notify(storage::EventClass::kGeneric, "del", db_, key.bytes);
      }
    }
    unit.Commit();
    *need = unit.need();
    if (unit.has_ready()) ServeBlocked(services_, unit.TakeReady());
    if (!error->empty()) return;
    if (!refusal.empty()) *error = refusal;
    if (stayed != 0)
      *error = absl::StrCat("ERR ", stayed, " of ", sent_.size(), " keys changed while they were being sent, and stay here as they are");
  }

  Services& services_;
  const DbIndex db_;
  const bool copy_;
  const size_t greetings_;  // replies before those of the keys
  const storage::RdbStrings strings_;
  std::string requests_;
  std::vector<Sent> sent_;
  std::shared_ptr<CallWaiter> waiter_;
};

void Migrate(Context& c) {
  MigrateOptions options;
  if (!ReadMigrateOptions(c, &options)) return;
  if (c.services.outbound == nullptr || c.unit.sealed())
    return c.reply.Error("ERR MIGRATE is not allowed inside of a transaction or a script");
  std::vector<HashedKey> keys;
  for (const absl::string_view key : options.keys) keys.emplace_back(key);
  c.unit.LockKeys(keys);
  const auto migration = std::make_shared<Migration>(c, options);
  bool any = false;
  for (const HashedKey& key : keys) {
    const KeyView view = c.unit.Find(c.db(), key);
    if (!view) continue;
    any = true;
    migration->Add(c.unit, key, view, options.replace);
  }
  if (!any) return c.reply.Simple("NOKEY");
  Conversation conversation;
  conversation.host = std::string(c.words[1]);
  conversation.port = std::atoi(std::string(c.words[2]).c_str());  // nonsense is port 0, as in Redis
  conversation.timeout_ms = options.timeout_ms;
  conversation.requests = migration->TakeRequests();
  conversation.replies = migration->replies();
  migration->SetWaiter(CallWaiter::Begin(c, nullptr));
  c.services.outbound->Begin(std::move(conversation),
                             [migration](const ConversationResult& result) { migration->End(result); });
}

constexpr ArgSpec kKeyOrEmpty[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "empty_string", .type = ArgType::kToken, .token = ""}};
constexpr ArgSpec kAuth2Args[] = {{.name = "username"}, {.name = "password"}};
constexpr ArgSpec kLoginArgs[] = {
    {.name = "password", .token = "AUTH", .since = "4.0.7"},
    {.name = "username_password", .type = ArgType::kBlock, .token = "AUTH2", .since = "6.0.0", .args = kAuth2Args}};
constexpr ArgSpec kMigrateArgs[] = {
    {.name = "host"},
    {.name = "port", .type = ArgType::kInteger},
    {.name = "key_or_empty_string", .type = ArgType::kOneOf, .args = kKeyOrEmpty},
    {.name = "destination-db", .type = ArgType::kInteger},
    {.name = "timeout", .type = ArgType::kInteger},
    {.name = "copy", .type = ArgType::kToken, .token = "COPY", .optional = true, .since = "3.0.0"},
    {.name = "replace", .type = ArgType::kToken, .token = "REPLACE", .optional = true, .since = "3.0.0"},
    {.name = "authentication", .type = ArgType::kOneOf, .optional = true, .args = kLoginArgs},
    {.name = "key", .type = ArgType::kKey, .token = "KEYS", .optional = true, .multiple = true, .key_spec = 1,
     .since = "3.0.6"}};
constexpr KeySpec kMigrateKeys[] = {
    {.flags = "RW ACCESS DELETE", .index = 3},
    {.flags = "RW ACCESS DELETE INCOMPLETE", .keyword = "KEYS", .keyword_from = -2, .last = -1}};

constexpr CommandSpec kMigrateCommands[] = {
    {.name = "MIGRATE",
     .handler = &Migrate,
     .arity = -6,
     .flags = kWrite | kMovableKeys | kDangerous,
     .keys = Keys::At(3),
     .find_keys = &FindMigrateKeys,
     .key_specs = kMigrateKeys,
     .key_flags_of = &MigrateKeyFlags,
     .since = "2.6.0",
     .complexity = "O(N) where N is the size of the values",
     .summary = "Moves keys to another server, idemd or Redis, while others are served here. Not inside of EXEC and scripts.",
     .args = kMigrateArgs}};

}  // namespace

absl::Span<const CommandSpec> MigrateCommands() { return kMigrateCommands; }

}  // namespace idemd::server

// Messages between clients: SUBSCRIBE and its kin, PUBLISH, SPUBLISH, PUBSUB.
#include "server/pubsub/pubsub.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/commands/connection.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/persistence_control.h"
#include "server/commands/help.h"
#include "server/pubsub/subscription.h"

namespace idemd::server {
namespace {

// One of the three kinds of subscriptions.
struct Kind {
  SubscriptionSet Subscriptions::*set;
  ChannelSpace space;
  bool patterns;
  const char* subscribed;
  const char* unsubscribed;
};
constexpr Kind kChannels = {&Subscriptions::channels, ChannelSpace::kPlain, false, "subscribe", "unsubscribe"};
constexpr Kind kPatterns = {&Subscriptions::patterns, ChannelSpace::kPlain, true, "psubscribe", "punsubscribe"};
constexpr Kind kShardChannels = {&Subscriptions::shard_channels, ChannelSpace::kShard, false, "ssubscribe",
                                 "sunsubscribe"};

Subscriptions& SubscriptionsOf(Session& session) {
  if (session.subscriptions == nullptr) session.subscriptions = std::make_shared<Subscriptions>();
  return *session.subscriptions;
}

// For CLIENT LIST, and for what depends on whether a client is subscribed to anything.
void ShowCounts(Session& session) {
  const Subscriptions& subscriptions = *session.subscriptions;
  ClientInfo& info = session.info();
  const auto show = [](std::atomic<uint32_t>& count, const SubscriptionSet& set) {
    count.store(static_cast<uint32_t>(set.size()), std::memory_order_relaxed);
  };
  show(info.channels, subscriptions.channels);
  show(info.patterns, subscriptions.patterns);
  show(info.shard_channels, subscriptions.shard_channels);
}

// Tells the client of one change. That is no reply: CLIENT REPLY does not silence it.
void Confirm(Context& c, const Kind& kind, const char* what, const std::string* name) {
  const Subscriptions& subscriptions = *c.session.subscriptions;
  const size_t begin = c.reply.Mark();
  c.reply.Push(3);
  c.reply.Bulk(what);
  name == nullptr ? c.reply.Null() : c.reply.Bulk(*name);
  const size_t count = kind.space == ChannelSpace::kShard
                           ? subscriptions.shard_channels.size()
                           : subscriptions.channels.size() + subscriptions.patterns.size();
  c.reply.Integer(static_cast<int64_t>(count));
  if (c.session.reply_mode != ReplyMode::kOn) c.session.unsilenced.emplace_back(begin, c.reply.Mark());
}

void Subscribe(Context& c, const Kind& kind) {
  Session& session = c.session;
  SubscriptionSet& set = SubscriptionsOf(session).*kind.set;
  for (size_t i = 1; i < c.words.size(); ++i) {
    const std::string name(c.words[i]);
    if (!set.Has(name)) {
      PubSub& pubsub = *c.services.pubsub;
      set.Add(name, kind.patterns ? pubsub.SubscribePattern(name, session.peer)
                                  : pubsub.Subscribe(kind.space, name, session.peer));
    }
    Confirm(c, kind, kind.subscribed, &name);
  }
  ShowCounts(session);
}

void UnsubscribeFrom(Context& c, const Kind& kind, const std::string& name) {
  const std::shared_ptr<Subscription> subscription = (c.session.subscriptions.get()->*kind.set).Take(name);
  if (subscription != nullptr) {
    kind.patterns ? c.services.pubsub->UnsubscribePattern(name, *subscription)
                  : c.services.pubsub->Unsubscribe(kind.space, name, *subscription);
  }
  Confirm(c, kind, kind.unsubscribed, &name);
}

void Unsubscribe(Context& c, const Kind& kind) {
  const SubscriptionSet& set = SubscriptionsOf(c.session).*kind.set;
  if (c.words.size() > 1) {
    for (size_t i = 1; i < c.words.size(); ++i) UnsubscribeFrom(c, kind, std::string(c.words[i]));
  } else if (set.size() == 0) {
    Confirm(c, kind, kind.unsubscribed, nullptr);
  } else {
    for (const std::string& name : set.Names()) UnsubscribeFrom(c, kind, name);
  }
  ShowCounts(c.session);
}

void SubscribeChannels(Context& c) { Subscribe(c, kChannels); }
void SubscribePatterns(Context& c) { Subscribe(c, kPatterns); }
void SubscribeShardChannels(Context& c) { Subscribe(c, kShardChannels); }
void UnsubscribeChannels(Context& c) { Unsubscribe(c, kChannels); }
void UnsubscribePatterns(Context& c) { Unsubscribe(c, kPatterns); }
void UnsubscribeShardChannels(Context& c) { Unsubscribe(c, kShardChannels); }

// Those who follow this server pass messages on to their own clients.
void TellReplicas(Services& services, storage::DbIndex db, ChannelSpace space, absl::string_view channel, absl::string_view text) {
  if (services.persistence == nullptr || !services.persistence->has_replicas()) return;
  std::string command;
  protocol::Writer writer(command, 2);
  writer.Array(3);
  writer.Bulk(space == ChannelSpace::kPlain ? "PUBLISH" : "SPUBLISH");
  writer.Bulk(channel);
  writer.Bulk(text);
  services.persistence->TellReplicas(command, db);
}

// A message leaves when what this client did before is as safe as the log makes it; inside EXEC and scripts, with all
// else that the unit tells.
void PublishTo(Context& c, ChannelSpace space) {
  PubSub& pubsub = *c.services.pubsub;
  auto* const from = static_cast<Session*>(c.unit.origin());  // of a script's command, the client that runs the script
  const absl::string_view channel = c.words[1];
  const absl::string_view text = c.words[2];
  if (!c.unit.sealed()) {
    const storage::Lsn need = std::max(c.session.need, c.unit.need());
    TellReplicas(c.services, c.db(), space, channel, text);
    return c.reply.Integer(static_cast<int64_t>(pubsub.Publish(space, channel, text, need, from)));
  }
  const size_t receivers = pubsub.Receivers(space, channel);
  if (receivers != 0 || (c.services.persistence != nullptr && c.services.persistence->has_replicas())) {
    c.unit.AtCommit([&services = c.services, db = c.db(), space, channel = std::string(channel), text = std::string(text), from](storage::Lsn need) {
      TellReplicas(services, db, space, channel, text);
      services.pubsub->Publish(space, channel, text, need, from);
    });
  }
  c.reply.Integer(static_cast<int64_t>(receivers));
}

void Publish(Context& c) { PublishTo(c, ChannelSpace::kPlain); }
void ShardPublish(Context& c) { PublishTo(c, ChannelSpace::kShard); }

void ReplyChannels(Context& c, ChannelSpace space) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  const std::vector<std::string> names =
      c.services.pubsub->Channels(space, c.words.size() == 3 ? &c.words[2] : nullptr);
  c.reply.Array(names.size());
  for (const std::string& name : names) c.reply.Bulk(name);
}

void ReplySubscribers(Context& c, ChannelSpace space) {
  c.reply.Array((c.words.size() - 2) * 2);
  for (size_t i = 2; i < c.words.size(); ++i) {
    c.reply.Bulk(c.words[i]);
    c.reply.Integer(static_cast<int64_t>(c.services.pubsub->Subscribers(space, c.words[i])));
  }
}

void PubSubChannels(Context& c) { ReplyChannels(c, ChannelSpace::kPlain); }
void PubSubShardChannels(Context& c) { ReplyChannels(c, ChannelSpace::kShard); }
void PubSubNumSub(Context& c) { ReplySubscribers(c, ChannelSpace::kPlain); }
void PubSubShardNumSub(Context& c) { ReplySubscribers(c, ChannelSpace::kShard); }
void PubSubNumPat(Context& c) { c.reply.Integer(static_cast<int64_t>(c.services.pubsub->patterns())); }

constexpr ArgSpec kChannelsArgs[] = {{.name = "channel", .multiple = true}};
constexpr ArgSpec kOptionalChannelsArgs[] = {{.name = "channel", .optional = true, .multiple = true}};
constexpr ArgSpec kPatternsArgs[] = {{.name = "pattern", .type = ArgType::kPattern, .multiple = true}};
constexpr ArgSpec kOptionalPatternsArgs[] = {
    {.name = "pattern", .type = ArgType::kPattern, .optional = true, .multiple = true}};
constexpr ArgSpec kOptionalPatternArgs[] = {{.name = "pattern", .type = ArgType::kPattern, .optional = true}};
constexpr ArgSpec kShardChannelsArgs[] = {{.name = "shardchannel", .multiple = true}};
constexpr ArgSpec kOptionalShardChannelsArgs[] = {{.name = "shardchannel", .optional = true, .multiple = true}};
constexpr ArgSpec kPublishArgs[] = {{.name = "channel"}, {.name = "message"}};
constexpr ArgSpec kShardPublishArgs[] = {{.name = "shardchannel"}, {.name = "message"}};

constexpr uint32_t kPlain = kPubSub | kLoading | kStale;
constexpr uint32_t kListening = kPlain | kNoScript | kWhileSubscribed;

constexpr CommandSpec kPubSubSubcommands[] = {
    {.name = "CHANNELS", .handler = &PubSubChannels, .arity = -2, .flags = kPlain, .group = Group::kPubSub,
     .since = "2.8.0", .complexity = "O(N) where N is the number of channels",
     .summary = "Lists the channels that somebody is subscribed to.", .args = kOptionalPatternArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kPubSub,
     .since = "6.2.0", .summary = "Prints this help.", .categories = "slow"},
    {.name = "NUMPAT", .handler = &PubSubNumPat, .arity = 2, .flags = kPlain, .group = Group::kPubSub,
     .since = "2.8.0", .summary = "Counts the patterns that somebody is subscribed to."},
    {.name = "NUMSUB", .handler = &PubSubNumSub, .arity = -2, .flags = kPlain, .group = Group::kPubSub,
     .since = "2.8.0", .complexity = "O(N) for N channels", .summary = "Counts the subscribers of channels.",
     .args = kOptionalChannelsArgs},
    {.name = "SHARDCHANNELS", .handler = &PubSubShardChannels, .arity = -2, .flags = kPlain, .group = Group::kPubSub,
     .since = "7.0.0", .complexity = "O(N) where N is the number of shard channels",
     .summary = "Lists the shard channels that somebody is subscribed to.", .args = kOptionalPatternArgs},
    {.name = "SHARDNUMSUB", .handler = &PubSubShardNumSub, .arity = -2, .flags = kPlain, .group = Group::kPubSub,
     .since = "7.0.0", .complexity = "O(N) for N shard channels",
     .summary = "Counts the subscribers of shard channels.", .args = kOptionalShardChannelsArgs}};

constexpr CommandSpec kPubSubCommands[] = {
    {.name = "PUBLISH", .handler = &Publish, .arity = 3, .flags = kPlain | kFast | kMayReplicate,
     .group = Group::kPubSub, .since = "2.0.0",
     .complexity = "O(N+M) where N is the number of subscribers of the channel and M the number of patterns",
     .summary = "Sends a message to all who listen to a channel.", .args = kPublishArgs,
     .channels = Channels::kFirst},
    {.name = "SPUBLISH", .handler = &ShardPublish, .arity = 3, .flags = kPlain | kFast | kMayReplicate,
     .keys = Keys::At(1), .key_flags = "NOT_KEY", .group = Group::kPubSub, .since = "7.0.0",
     .complexity = "O(N) where N is the number of subscribers of the shard channel",
     .summary = "Sends a message to all who listen to a shard channel.", .args = kShardPublishArgs,
     .channels = Channels::kFirst},
    {.name = "SUBSCRIBE", .handler = &SubscribeChannels, .arity = -2, .flags = kListening, .group = Group::kPubSub,
     .since = "2.0.0", .complexity = "O(N) for N channels", .summary = "Listens to channels.", .args = kChannelsArgs,
     .channels = Channels::kAll},
    {.name = "UNSUBSCRIBE", .handler = &UnsubscribeChannels, .arity = -1, .flags = kListening,
     .group = Group::kPubSub, .since = "2.0.0", .complexity = "O(N) for N channels",
     .summary = "Stops to listen to channels, or to all of them.", .args = kOptionalChannelsArgs},
    {.name = "PSUBSCRIBE", .handler = &SubscribePatterns, .arity = -2, .flags = kListening, .group = Group::kPubSub,
     .since = "2.0.0", .complexity = "O(N) for N patterns",
     .summary = "Listens to all channels whose names match patterns.", .args = kPatternsArgs,
     .channels = Channels::kAllPatterns},
    {.name = "PUNSUBSCRIBE", .handler = &UnsubscribePatterns, .arity = -1, .flags = kListening,
     .group = Group::kPubSub, .since = "2.0.0", .complexity = "O(N) for N patterns",
     .summary = "Stops to listen to patterns, or to all of them.", .args = kOptionalPatternsArgs},
    {.name = "SSUBSCRIBE", .handler = &SubscribeShardChannels, .arity = -2, .flags = kListening,
     .keys = Keys::From(1), .key_flags = "NOT_KEY", .group = Group::kPubSub, .since = "7.0.0",
     .complexity = "O(N) for N shard channels", .summary = "Listens to shard channels.", .args = kShardChannelsArgs,
     .channels = Channels::kAll},
    {.name = "SUNSUBSCRIBE", .handler = &UnsubscribeShardChannels, .arity = -1, .flags = kListening,
     .group = Group::kPubSub, .since = "7.0.0", .complexity = "O(N) for N shard channels",
     .summary = "Stops to listen to shard channels, or to all of them.", .args = kOptionalShardChannelsArgs},
    {.name = "PUBSUB", .arity = -2, .group = Group::kPubSub, .since = "2.8.0", .complexity = "Depends on subcommand.",
     .summary = "Commands about channels and who listens.", .subcommands = kPubSubSubcommands}};

}  // namespace

void EndSubscriptions(Services& services, Session& session) {
  if (session.subscriptions == nullptr) return;
  services.pubsub->UnsubscribeAll(*session.subscriptions);
  ShowCounts(session);
  session.subscriptions.reset();
}

std::shared_ptr<PubSub> MakePubSub() { return std::make_shared<PubSub>(); }

absl::Span<const CommandSpec> PubSubCommands() { return kPubSubCommands; }

}  // namespace idemd::server

// The groups of commands: each file of handlers ends with its entries, exported by one of these.
#pragma once

#include "absl/types/span.h"
#include "server/commands/command.h"

namespace idemd::server {

absl::Span<const CommandSpec> ConnectionCommands();  // connection_commands.cc
absl::Span<const CommandSpec> ClientCommands();      // client_commands.cc: CLIENT
absl::Span<const CommandSpec> ServerCommands();      // server_commands.cc
absl::Span<const CommandSpec> PersistenceCommands();  // persistence_commands.cc: SAVE, WAITAOF, SHUTDOWN, ...
absl::Span<const CommandSpec> InfoCommands();        // info_command.cc: INFO
absl::Span<const CommandSpec> CommandCommands();     // command_command.cc: COMMAND
absl::Span<const CommandSpec> ObserveCommands();  // observe_commands.cc: SLOWLOG, MONITOR
absl::Span<const CommandSpec> LatencyCommands();  // observe_latency.cc: LATENCY
absl::Span<const CommandSpec> MemoryCommands();  // observe_memory.cc: MEMORY
absl::Span<const CommandSpec> AclCommands();  // acl_commands.cc: ACL
absl::Span<const CommandSpec> TransactionCommands();  // transaction_commands.cc: MULTI, EXEC, WATCH, ...
absl::Span<const CommandSpec> ScriptCommands();       // script_commands.cc: EVAL, SCRIPT
absl::Span<const CommandSpec> FunctionCommands();     // function_commands.cc: FCALL, FUNCTION
absl::Span<const CommandSpec> ClusterCommands();      // cluster_commands.cc: CLUSTER, answered as one server alone
absl::Span<const CommandSpec> KeyCommands();         // key_commands.cc: DEL, RENAME, COPY, ...
absl::Span<const CommandSpec> LifetimeCommands();    // lifetime_commands.cc: EXPIRE, TTL, ...
absl::Span<const CommandSpec> ScanCommands();        // scan_commands.cc: SCAN, KEYS, RANDOMKEY
absl::Span<const CommandSpec> ObjectCommands();      // object_commands.cc: OBJECT
absl::Span<const CommandSpec> DumpCommands();        // dump_commands.cc: DUMP, RESTORE
absl::Span<const CommandSpec> PubSubCommands();  // pubsub_commands.cc: SUBSCRIBE, PUBLISH, PUBSUB, ...
absl::Span<const CommandSpec> ConfigCommands();  // config_commands.cc: CONFIG
absl::Span<const CommandSpec> StringCommands();         // string_commands.cc: GET, SET, ...
absl::Span<const CommandSpec> StringManyCommands();     // string_many_commands.cc: MGET, MSET, MSETNX
absl::Span<const CommandSpec> StringEditCommands();     // string_edit_commands.cc: APPEND, GETRANGE, ...
absl::Span<const CommandSpec> StringNumberCommands();   // string_number_commands.cc: INCR, ...
absl::Span<const CommandSpec> StringLcsCommands();      // string_lcs_command.cc: LCS
absl::Span<const CommandSpec> StringCompareCommands();  // string_compare_commands.cc: DELIFEQ, DELEX, DIGEST
absl::Span<const CommandSpec> BitCommands();            // bit_commands.cc: SETBIT, BITCOUNT, ...
absl::Span<const CommandSpec> BitOperationCommands();   // bit_operation_command.cc: BITOP
absl::Span<const CommandSpec> BitFieldCommands();       // bit_field_commands.cc: BITFIELD, BITFIELD_RO
absl::Span<const CommandSpec> IdemTokenCommands();  // idem_token.cc
absl::Span<const CommandSpec> IdemReserveCommands();  // idem_reserve.cc
absl::Span<const CommandSpec> IdemMreserveCommands();  // idem_mreserve.cc
absl::Span<const CommandSpec> IdemFencedCommands();  // idem_fenced.cc
absl::Span<const CommandSpec> IdemStatusCommands();  // idem_status.cc
absl::Span<const CommandSpec> IdemTransitionCommands();  // idem_transition.cc
absl::Span<const CommandSpec> IdemThrottleCommands();  // idem_throttle.cc
absl::Span<const CommandSpec> IdemStatsCommands();  // idem_stats.cc

}  // namespace idemd::server

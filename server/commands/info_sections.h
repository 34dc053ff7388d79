// The sections of INFO; each appends its lines to `out`.
#pragma once

#include <string>

#include "server/admin/process.h"
#include "server/commands/context.h"
#include "storage/store.h"

namespace idemd::server {

// What the process uses: the store has pages of its own, the rest allocates as usual.
ProcessMemory MemoryWith(const storage::MemoryStatus& store);

void InfoServer(Context& c, std::string& out);
void InfoClients(Context& c, std::string& out);
void InfoMemory(Context& c, std::string& out);
void InfoPersistence(Context& c, std::string& out);
void InfoStats(Context& c, std::string& out);
void InfoReplication(Context& c, std::string& out);
void InfoCpu(Context& c, std::string& out);
void InfoModules(Context& c, std::string& out);
void InfoCommandStats(Context& c, std::string& out);
void InfoErrorStats(Context& c, std::string& out);
void InfoLatencyStats(Context& c, std::string& out);
void InfoCluster(Context& c, std::string& out);
void InfoIdem(Context& c, std::string& out);
void InfoKeyspace(Context& c, std::string& out);

}  // namespace idemd::server

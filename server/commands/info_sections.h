// The sections of INFO; each appends its lines to `out`.
#pragma once

#include <string>

#include "server/commands/context.h"

namespace idemd::server {

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

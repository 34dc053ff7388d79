// Between RESP and Lua values, both ways, by Redis' rules.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "protocol/resp/writer.h"

struct lua_State;

namespace idemd::server {

// Pushes what one reply (as our own writer wrote it) is in Lua: of RESP2 nil is false; of RESP3 maps, sets, doubles, big
// numbers and verbatim strings are tables with a field of that name. Returns what follows it. May raise Lua's errors.
const char* PushReply(lua_State* lua, const char* at);

// An error as redis.pcall() gives it: {err = "CODE text"}, and whether it was counted already.
void PushErrorTable(lua_State* lua, absl::string_view text, bool counted);

// What redis.error_reply(text) makes of it: a text of one word gets the code ERR; a dash before it goes.
std::string ErrorReplyText(absl::string_view text);

// Writes the value on top as a reply, and pops it. `script_resp` is what the script set with setresp(). Sets *counted when
// the reply is an error that was counted before. May raise Lua's errors, with a part of the reply written.
void WriteReply(lua_State* lua, int script_resp, protocol::Writer& reply, bool* counted);

}  // namespace idemd::server

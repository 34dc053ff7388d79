// Whether a script touches only keys that its caller declares: then only their shards are locked while it runs.
#pragma once

#include "server/commands/table.h"
#include "server/script/lua_lexer.h"

namespace idemd::server {

// True when every redis.call and redis.pcall of the text names its command, and gives it, where it takes keys, only
// KEYS[...], unpack(KEYS), or a local that never was anything but one of KEYS. Doubt is false. (What it says is checked
// again when commands run, so a mistake here would cost an error, never a key that is not locked.)
bool KeysAreDeclared(const CommandTable& commands, const LuaTokens& tokens);

}  // namespace idemd::server

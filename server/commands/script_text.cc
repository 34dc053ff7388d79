// Reads a script's first line, and has its keys and its plan looked for.
#include "server/commands/script_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "protocol/resp/parser.h"
#include "server/commands/script_keys.h"
#include "server/commands/script_plan.h"
#include "server/script/lua_lexer.h"
#include "server/script/sha1.h"

namespace idemd::server {
namespace {

// "#!lua flags=a,b": false with the error reply.
bool ReadFirstLine(absl::string_view line, Script* script, std::string* error) {
  std::vector<std::string> words;
  if (!protocol::SplitWords(line, words) || words.empty()) {
    *error = "ERR Invalid engine in script shebang";
    return false;
  }
  if (words[0] != "#!lua") {
    *error = absl::StrCat("ERR Unexpected engine in script shebang: ", words[0]);
    return false;
  }
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (!absl::ConsumePrefix(&word, "flags=")) {
      *error = absl::StrCat("ERR Unknown lua shebang option: ", words[i]);
      return false;
    }
    for (absl::string_view name : absl::StrSplit(word, ',', absl::SkipEmpty())) {
      const uint32_t flag = ScriptFlagOf(name);
      if (flag == 0) {
        *error = absl::StrCat("ERR Unexpected flag in script shebang: ", name);
        return false;
      }
      script->flags |= flag;
    }
  }
  script->has_flags = true;
  return true;
}

}  // namespace

Script::Script() = default;
Script::~Script() = default;

std::shared_ptr<Script> ReadScript(const CommandTable& commands, absl::string_view text, std::string* error) {
  auto script = std::make_shared<Script>();
  script->text.assign(text.data(), text.size());
  script->sha = Sha1Hex(text);
  script->code = script->text;
  if (absl::StartsWith(text, "#!")) {
    const size_t end = script->text.find('\n');
    if (end == std::string::npos) {
      *error = "ERR Invalid script shebang";
      return nullptr;
    }
    if (!ReadFirstLine(script->code.substr(0, end), script.get(), error)) return nullptr;
    script->code.remove_prefix(end);  // the line's end stays, and with it the numbers of lines
  }
  LuaTokens tokens;
  if (Tokenize(script->code, &tokens)) {
    script->keys_are_declared.store(KeysAreDeclared(commands, tokens), std::memory_order_relaxed);
    script->plan = ScriptPlan::Read(commands, tokens);
  }
  return script;
}

}  // namespace idemd::server

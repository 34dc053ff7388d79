// Proves from a script's words that its keys are declared ones.
//
// The words are not parsed into statements. What is needed is weaker: how KEYS and `redis` are written wherever they
// occur, and what every name that is used as a key was ever given.
#include "server/commands/script_keys.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace idemd::server {
namespace {

using Kind = LuaToken::Kind;

// Ways to reach `redis` or KEYS under another name.
constexpr absl::string_view kLoopholes[] = {"_G", "getfenv", "setfenv", "load", "loadstring", "getmetatable", "rawget",
                                            "rawset"};
// Fields of `redis` that run no command.
constexpr absl::string_view kHarmless[] = {"sha1hex",    "error_reply", "status_reply", "setresp",     "log",
                                           "LOG_DEBUG",  "LOG_VERBOSE", "LOG_NOTICE",   "LOG_WARNING", "breakpoint",
                                           "debug",      "set_repl",    "REPL_ALL",     "REPL_AOF",    "REPL_NONE",
                                           "REPL_SLAVE", "REPL_REPLICA", "replicate_commands", "REDIS_VERSION",
                                           "REDIS_VERSION_NUM"};

template <size_t n>
bool IsOneOf(absl::string_view word, const absl::string_view (&words)[n]) {
  for (absl::string_view candidate : words)
    if (word == candidate) return true;
  return false;
}

class Proof {
 public:
  Proof(const CommandTable& commands, const LuaTokens& tokens) : commands_(commands), tokens_(tokens.tokens) {}

  bool Holds() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::kName) continue;
      if (i > 0 && (At(i - 1).Is(".") || At(i - 1).Is(":"))) continue;  // a field, whatever its name
      if (IsOneOf(tokens_[i].text, kLoopholes)) return false;
      if (tokens_[i].text == "KEYS" && !KeysAreReadAt(i)) return false;
    }
    FindKeyLocals();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!tokens_[i].IsName("redis") || (i > 0 && (At(i - 1).Is(".") || At(i - 1).Is(":")))) continue;
      if (!CallIsDeclared(i)) return false;
    }
    return true;
  }

 private:
  const LuaToken& At(size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }

  // The place behind the bracket that closes the one at `open`; 0 if there is none.
  size_t Behind(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < tokens_.size(); ++i) {
      if (At(i).Is("(") || At(i).Is("[") || At(i).Is("{")) ++depth;
      if (At(i).Is(")") || At(i).Is("]") || At(i).Is("}")) --depth;
      if (depth == 0) return i + 1;
    }
    return 0;
  }

  // KEYS[...] that is not assigned to, #KEYS, or KEYS as the argument of ipairs, pairs, unpack or table.concat.
  bool KeysAreReadAt(size_t i) const {
    if (At(i + 1).Is("[")) {
      const size_t behind = Behind(i + 1);
      // A list of variables that is assigned to has its '=' behind it.
      return behind != 0 && !At(behind).Is("=") && !(At(behind).Is(",") && IsAssignedList(behind));
    }
    if (i > 0 && At(i - 1).Is("#")) return true;
    if (i < 2 || !At(i - 1).Is("(")) return false;
    const LuaToken& function = At(i - 2);
    const bool reads = function.IsName("ipairs") || function.IsName("pairs") || function.IsName("unpack") ||
                       function.IsName("concat") || function.IsName("getn");
    return reads && (At(i + 1).Is(")") || At(i + 1).Is(","));
  }

  // From a comma on: a, b, c[1] = ...
  bool IsAssignedList(size_t i) const {
    while (At(i).Is(",")) {
      ++i;
      if (At(i).kind != Kind::kName) return false;
      ++i;
      while (At(i).Is(".") || At(i).Is("[")) i = At(i).Is("[") ? Behind(i) : i + 2;
      if (i == 0) return false;
    }
    return At(i).Is("=");
  }

  // Names that only ever were KEYS[...], or the value in a loop over ipairs(KEYS).
  void FindKeyLocals() {
    absl::flat_hash_set<absl::string_view> keys;
    absl::flat_hash_set<absl::string_view> others;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (At(i).Is("for")) {
        ReadFor(i + 1, &keys, &others);
      } else if (At(i).Is("function")) {
        for (size_t p = i + 1; !At(p).Is(")") && At(p).kind != Kind::kEnd; ++p)
          if (At(p).kind == Kind::kName) others.insert(At(p).text);
      } else if (At(i).Is("=")) {
        ReadAssignment(i, &keys, &others);
      } else if (At(i).Is("local")) {  // without a value it is nil
        size_t p = i + 1;
        while (At(p).kind == Kind::kName && At(p + 1).Is(",")) p += 2;
        if (At(p).kind == Kind::kName && !At(p + 1).Is("="))
          for (size_t n = i + 1; n <= p; n += 2) others.insert(At(n).text);
      }
    }
    for (absl::string_view name : keys)
      if (!others.contains(name)) key_locals_.insert(name);
  }

  using Names = absl::flat_hash_set<absl::string_view>;

  void ReadFor(size_t i, Names* keys, Names* others) const {
    std::vector<absl::string_view> names;
    for (; At(i).kind == Kind::kName || At(i).Is(","); ++i)
      if (At(i).kind == Kind::kName) names.push_back(At(i).text);
    const bool over_keys = names.size() == 2 && At(i).Is("in") && (At(i + 1).IsName("ipairs") || At(i + 1).IsName("pairs")) &&
                           At(i + 2).Is("(") && At(i + 3).IsName("KEYS") && At(i + 4).Is(")");
    for (size_t n = 0; n < names.size(); ++n) (over_keys && n == 1 ? keys : others)->insert(names[n]);
  }

  // names = values: each name gets the value in its place. Anything but plain names is no local.
  void ReadAssignment(size_t equals, Names* keys, Names* others) const {
    std::vector<absl::string_view> names;
    size_t i = equals;
    while (i > 0 && At(i - 1).kind == Kind::kName) {
      names.insert(names.begin(), At(i - 1).text);
      if (i < 2 || !At(i - 2).Is(",")) break;
      i -= 2;
    }
    if (names.empty()) return;
    size_t value = equals + 1;
    for (size_t n = 0; n < names.size(); ++n) {
      const bool is_key = value != 0 && At(value).IsName("KEYS") && At(value + 1).Is("[");
      size_t behind = is_key ? Behind(value + 1) : 0;
      // One key and nothing done to it: another value or statement follows.
      const bool whole = behind != 0 && !IsOperatorAt(behind);
      (whole ? keys : others)->insert(names[n]);
      value = whole && At(behind).Is(",") ? behind + 1 : 0;
    }
  }

  bool IsOperatorAt(size_t i) const {
    const LuaToken& token = At(i);
    if (token.Is("and") || token.Is("or")) return true;
    return token.kind == Kind::kOperator && !token.Is(",") && !token.Is(";");
  }

  // redis.call("name", ...) or redis.<something harmless>.
  bool CallIsDeclared(size_t i) const {
    if (!At(i + 1).Is(".") || At(i + 2).kind != Kind::kName) return false;
    const absl::string_view field = At(i + 2).text;
    if (field != "call" && field != "pcall") return IsOneOf(field, kHarmless);
    if (!At(i + 3).Is("(")) return false;
    std::vector<size_t> arguments;  // where each begins
    if (!SplitArguments(i + 3, &arguments)) return false;
    return ArgumentsAreDeclared(arguments);
  }

  bool SplitArguments(size_t open, std::vector<size_t>* arguments) const {
    const size_t behind = Behind(open);
    if (behind == 0) return false;
    if (behind == open + 2) return true;  // none: an error when it runs
    arguments->push_back(open + 1);
    int depth = 0;
    for (size_t i = open; i + 1 < behind; ++i) {
      if (At(i).Is("(") || At(i).Is("[") || At(i).Is("{")) ++depth;
      if (At(i).Is(")") || At(i).Is("]") || At(i).Is("}")) --depth;
      // A function's body among the arguments has commas and calls of its own.
      if (At(i).Is("function")) return false;
      if (depth == 1 && At(i).Is(",")) arguments->push_back(i + 1);
    }
    arguments->push_back(behind);  // where the next one would begin
    return true;
  }

  // `arguments` are the places where they begin, and one behind the last.
  bool ArgumentsAreDeclared(const std::vector<size_t>& arguments) const {
    if (arguments.empty()) return true;
    const size_t count = arguments.size() - 1;
    const CommandEntry* entry = IsLiteral(arguments, 0) ? commands_.Find(At(arguments[0]).text) : nullptr;
    if (entry == nullptr) return false;
    if (!entry->subcommands.empty() && count > 1) {
      entry = IsLiteral(arguments, 1) ? commands_.FindSubcommand(*entry, At(arguments[1]).text) : nullptr;
      if (entry == nullptr) return false;
    }
    const CommandSpec& spec = *entry->spec;
    if ((spec.flags & (kAnyKeys | kMovableKeys)) != 0 || spec.find_keys != nullptr) return false;
    if (spec.keys.first == 0) return true;
    const bool open_end = IsManyAt(arguments, count - 1);
    const bool ends_with_keys = open_end && IsUnpackedKeysAt(arguments, count - 1);
    // How many words there will be is known only without an unpack() at the end.
    if (open_end && spec.keys.last < 0 && !(spec.keys.last == -1 && spec.keys.step == 1 && ends_with_keys)) return false;
    const size_t first = static_cast<size_t>(spec.keys.first);
    const size_t fixed = open_end ? count - 1 : count;
    const size_t last = spec.keys.last < 0 ? fixed - std::min(fixed, static_cast<size_t>(-spec.keys.last - (open_end ? 1 : 0)))
                                           : static_cast<size_t>(spec.keys.last);
    for (size_t i = first; i <= last; i += static_cast<size_t>(spec.keys.step)) {
      if (i >= fixed) return !open_end || ends_with_keys;
      if (!IsKeyAt(arguments, i)) return false;
    }
    return true;
  }

  size_t Words(const std::vector<size_t>& arguments, size_t i) const { return arguments[i + 1] - 1 - arguments[i]; }
  bool IsLiteral(const std::vector<size_t>& arguments, size_t i) const {
    return Words(arguments, i) == 1 && At(arguments[i]).kind == Kind::kString;
  }
  // An argument that may be several: a call or "..." at the end of the list.
  bool IsManyAt(const std::vector<size_t>& arguments, size_t i) const {
    const size_t end = arguments[i + 1] - 1;
    return At(end - 1).Is("...") || (At(end - 1).Is(")") && !At(arguments[i]).Is("("));
  }
  bool IsUnpackedKeysAt(const std::vector<size_t>& arguments, size_t i) const {
    const size_t at = arguments[i];
    return At(at).IsName("unpack") && At(at + 1).Is("(") && At(at + 2).IsName("KEYS") &&
           Behind(at + 1) == arguments[i + 1] - 1;
  }
  bool IsKeyAt(const std::vector<size_t>& arguments, size_t i) const {
    const size_t at = arguments[i];
    if (Words(arguments, i) == 1) return At(at).kind == Kind::kName && key_locals_.contains(At(at).text);
    return At(at).IsName("KEYS") && At(at + 1).Is("[") && Behind(at + 1) == arguments[i + 1] - 1;
  }

  const CommandTable& commands_;
  const std::vector<LuaToken>& tokens_;
  Names key_locals_;
};

}  // namespace

bool KeysAreDeclared(const CommandTable& commands, const LuaTokens& tokens) { return Proof(commands, tokens).Holds(); }

}  // namespace idemd::server

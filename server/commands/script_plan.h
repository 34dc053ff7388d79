// The usual scripts of this trade without Lua: a token that is used once, a lock that is given back, extended or taken.
//
// They are recognised by what they are, not by how they are spelled: a text that says no more than what is below is
// read into a plan, which runs its commands itself. Locals, if, loops over KEYS, comparisons, sums, redis.call and
// redis.pcall with a literal command; no functions, no tables but one that is returned.
//
// A plan never guesses. Where Lua would raise an error of its own, or do what is not exactly known here, it gives up,
// and the script runs in Lua from its beginning; the commands that the plan has run are not run again, their replies are
// repeated (ScriptCalls::Repeat): a script of this kind does the same as long as it hears the same.
//
// Threads   a plan is made once, then read by any. A PlanRun belongs to one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/resp/writer.h"
#include "server/commands/table.h"
#include "server/script/lua_lexer.h"

namespace idemd::server {

class ScriptCalls;  // script_calls.h

class ScriptPlan {
 public:
  static constexpr size_t kLocalsMax = 32;

  enum class Op : uint8_t {
    // expressions
    kNil, kTrue, kFalse, kNumber, kString, kLocal,
    kKey, kArgument,            // KEYS[a], ARGV[a]
    kKeyCount, kArgumentCount,  // #KEYS, #ARGV
    kAnd, kOr, kNot, kEqual, kUnequal, kLess, kLessOrEqual,
    kAdd, kSubtract, kMultiply, kDivide, kModulo, kNegate, kConcat,
    kCall, kProtectedCall,      // redis.call, redis.pcall
    kStatus, kErrorReply, kToNumber, kToString,
    // statements
    kAssign,     // local number `local` = a
    kEvaluate,   // a
    kIf,         // a, then b, else c
    kBlock,      // list
    kForList,    // a pair of locals from `local` on over KEYS (number 0) or ARGV (1): b
    kForNumber,  // local number `local` from list[0] to list[1] by list[2]: b
    kBreak,
    kReturn,     // a
    kReturnList, // list
  };
  struct Node {
    Op op;
    int line = 0;
    uint16_t local = 0;
    uint16_t a = 0;
    uint16_t b = 0;
    uint16_t c = 0;
    double number = 0;
    std::string text = {};
    const CommandEntry* entry = nullptr;
    std::vector<uint16_t> list = {};
  };

  // Null: it is a script for Lua.
  static std::unique_ptr<const ScriptPlan> Read(const CommandTable& commands, const LuaTokens& tokens);

  const Node& node(uint16_t i) const { return nodes_[i]; }
  uint16_t root() const { return root_; }

 private:
  friend class PlanReader;
  std::vector<Node> nodes_;
  uint16_t root_ = 0;
};

// Room for one run of a plan after the other.
class PlanRun {
 public:
  enum class Outcome : uint8_t { kDone, kGaveUp };

  // Writes exactly one reply when it is done. When it gave up, replies() are those of the commands that have run.
  Outcome Run(const ScriptPlan& plan, ScriptCalls& calls, absl::Span<const absl::string_view> keys,
              absl::Span<const absl::string_view> args, absl::string_view name, protocol::Writer& reply,
              bool* error_counted);
  absl::Span<const std::string* const> replies() const { return called_; }

 private:
  enum class Kind : uint8_t { kNil, kFalse, kTrue, kNumber, kString, kStatus, kError, kReply };
  struct Value {
    Kind kind = Kind::kNil;
    bool counted = false;  // of kError
    double number = 0;
    absl::string_view text = {};  // kReply: its bytes
    bool truth() const { return kind != Kind::kNil && kind != Kind::kFalse; }
  };
  enum class Flow : uint8_t { kNext, kBreak, kReturn, kRaise, kGiveUp };

  Flow Statement(uint16_t i);
  Flow Block(const std::vector<uint16_t>& list);
  Flow ForList(const ScriptPlan::Node& node);
  Flow ForNumber(const ScriptPlan::Node& node);
  Flow ReturnList(const ScriptPlan::Node& node);
  // False: no value; flow_ says why.
  bool Evaluate(uint16_t i, Value* value);
  bool Operands(const ScriptPlan::Node& node, Value* a, Value* b) { return Evaluate(node.a, a) && Evaluate(node.b, b); }
  bool Compare(const ScriptPlan::Node& node, Value* value);
  bool Arithmetic(const ScriptPlan::Node& node, Value* value);
  bool Concat(const ScriptPlan::Node& node, Value* value);
  bool Element(const ScriptPlan::Node& node, absl::Span<const absl::string_view> words, Value* value);
  bool Call(const ScriptPlan::Node& node, Value* value);
  bool AsNumber(const Value& value, double* number);
  bool AsText(const Value& value, bool exact, absl::string_view* text);
  bool GiveUp() {
    flow_ = Flow::kGiveUp;
    return false;
  }
  bool Write(const Value& value, protocol::Writer& reply, bool* error_counted);
  std::string& Fresh();

  const ScriptPlan* plan_ = nullptr;
  ScriptCalls* calls_ = nullptr;
  absl::Span<const absl::string_view> keys_;
  absl::Span<const absl::string_view> args_;
  Flow flow_ = Flow::kNext;
  int rounds_ = 0;
  int raised_at_ = 0;  // the line
  Value locals_[ScriptPlan::kLocalsMax];
  Value result_;
  std::vector<Value> list_;  // of kReturnList
  bool is_list_ = false;
  // Replies and texts made on the way. A deque, since values are views of them.
  std::deque<std::string> texts_;
  size_t texts_used_ = 0;
  std::vector<const std::string*> called_;
};

}  // namespace idemd::server

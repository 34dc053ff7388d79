// Reads a script into a plan, by Lua's grammar as far as plans go.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/commands/script_plan.h"

namespace idemd::server {

using Kind = LuaToken::Kind;
using Op = ScriptPlan::Op;

class PlanReader {
 public:
  PlanReader(const CommandTable& commands, const LuaTokens& tokens, ScriptPlan* plan)
      : commands_(commands), tokens_(tokens.tokens), plan_(*plan) {}

  bool Read() {
    plan_.root_ = Block();
    return ok_ && Now().kind == Kind::kEnd;
  }

 private:
  static constexpr size_t kNodesMax = 1000;

  const LuaToken& Now() const { return tokens_[at_]; }
  const LuaToken& Ahead(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  bool Take(absl::string_view word) {
    if (!Now().Is(word)) return false;
    ++at_;
    return true;
  }
  void Expect(absl::string_view word) {
    if (!Take(word)) Fail();
  }
  uint16_t Fail() {
    ok_ = false;
    at_ = tokens_.size() - 1;
    return 0;
  }
  uint16_t Add(ScriptPlan::Node node) {
    if (plan_.nodes_.size() >= kNodesMax) return Fail();
    plan_.nodes_.push_back(std::move(node));
    return static_cast<uint16_t>(plan_.nodes_.size() - 1);
  }
  uint16_t Add(Op op) { return Add(ScriptPlan::Node{.op = op}); }

  // --- names

  int Find(absl::string_view name) const {
    for (size_t i = names_.size(); i-- > 0;)
      if (names_[i] == name) return static_cast<int>(i);
    return -1;
  }
  uint16_t Declare(absl::string_view name) {
    if (names_.size() >= ScriptPlan::kLocalsMax) return Fail();
    names_.push_back(name);
    return static_cast<uint16_t>(names_.size() - 1);
  }
  // What scripts get for nothing, unless a local hides it.
  bool IsGlobal(absl::string_view name) const { return Now().IsName(name) && Find(name) < 0; }

  // --- statements

  bool AtBlockEnd() const {
    return Now().kind == Kind::kEnd || Now().Is("end") || Now().Is("else") || Now().Is("elseif");
  }

  uint16_t Block() {
    const size_t names = names_.size();
    ScriptPlan::Node block{.op = Op::kBlock};
    while (ok_ && !AtBlockEnd()) {
      const bool last = Now().Is("return") || Now().Is("break");
      Statement(&block.list);
      Take(";");
      if (last && !AtBlockEnd()) Fail();
    }
    names_.resize(names);
    return Add(std::move(block));
  }

  void Statement(std::vector<uint16_t>* list) {
    if (Now().Is("local")) return Local(list);
    if (Now().Is("if")) return list->push_back(If());
    if (Now().Is("for")) return list->push_back(For());
    if (Now().Is("return")) return list->push_back(Return());
    if (Take("do")) {
      list->push_back(Block());
      return Expect("end");
    }
    if (Take("break")) {
      if (loops_ == 0) Fail();
      return list->push_back(Add(Op::kBreak));
    }
    if (Now().kind == Kind::kName && Ahead(1).Is("=")) return Assignment(list);
    if (!Now().IsName("redis")) {
      Fail();
      return;
    }
    const uint16_t expression = Primary();
    if (!ok_) return;
    const Op op = plan_.nodes_[expression].op;
    if (op != Op::kCall && op != Op::kProtectedCall) {
      Fail();
      return;
    }
    list->push_back(Add(ScriptPlan::Node{.op = Op::kEvaluate, .a = expression}));
  }

  // Values are read before the names are there: local x = x.
  void Local(std::vector<uint16_t>* list) {
    Expect("local");
    std::vector<absl::string_view> names;
    do {
      if (Now().kind != Kind::kName) {
        Fail();
        return;
      }
      names.push_back(Now().text);
      ++at_;
    } while (Take(","));
    std::vector<uint16_t> values;
    if (Take("=")) {
      do values.push_back(Expression());
      while (Take(","));
    }
    // A call at the end of a shorter list is one value here, as commands' replies are.
    if (values.size() > names.size()) Fail();
    while (values.size() < names.size()) values.push_back(Add(Op::kNil));
    for (size_t i = 0; ok_ && i < names.size(); ++i) {
      const uint16_t local = Declare(names[i]);
      list->push_back(Add(ScriptPlan::Node{.op = Op::kAssign, .local = local, .a = values[i]}));
    }
  }

  void Assignment(std::vector<uint16_t>* list) {
    const int local = Find(Now().text);
    if (local < 0) {
      Fail();
      return;
    }
    at_ += 2;
    const uint16_t value = Expression();
    list->push_back(Add(ScriptPlan::Node{.op = Op::kAssign, .local = static_cast<uint16_t>(local), .a = value}));
  }

  uint16_t If() {
    ++at_;  // if, elseif
    ScriptPlan::Node node{.op = Op::kIf};
    node.a = Expression();
    Expect("then");
    node.b = Block();
    if (Now().Is("elseif")) {
      node.c = If();
      return Add(std::move(node));
    }
    node.c = Take("else") ? Block() : Add(Op::kBlock);
    Expect("end");
    return Add(std::move(node));
  }

  uint16_t For() {
    Expect("for");
    if (Now().kind != Kind::kName) return Fail();
    return Ahead(1).Is("=") ? ForNumber() : ForList();
  }

  uint16_t ForNumber() {
    const absl::string_view name = Now().text;
    at_ += 2;
    ScriptPlan::Node node{.op = Op::kForNumber};
    node.list.push_back(Expression());
    Expect(",");
    node.list.push_back(Expression());
    node.list.push_back(Take(",") ? Expression() : Add(ScriptPlan::Node{.op = Op::kNumber, .number = 1}));
    return Body(std::move(node), {name});
  }

  // for i, key in ipairs(KEYS) do
  uint16_t ForList() {
    const absl::string_view index = Now().text;
    const absl::string_view value = Ahead(2).text;
    if (!Ahead(1).Is(",") || Ahead(2).kind != Kind::kName || !Ahead(3).Is("in")) return Fail();
    at_ += 4;
    if (!IsGlobal("ipairs") || !Ahead(1).Is("(")) return Fail();
    at_ += 2;
    if (!IsGlobal("KEYS") && !IsGlobal("ARGV")) return Fail();
    ScriptPlan::Node node{.op = Op::kForList, .number = Now().text == "KEYS" ? 0.0 : 1.0};
    ++at_;
    Expect(")");
    return Body(std::move(node), {index, value});
  }

  uint16_t Body(ScriptPlan::Node node, std::initializer_list<absl::string_view> names) {
    Expect("do");
    const size_t before = names_.size();
    node.local = static_cast<uint16_t>(before);
    for (absl::string_view name : names) Declare(name);
    ++loops_;
    node.b = Block();
    --loops_;
    names_.resize(std::min(names_.size(), before));
    Expect("end");
    return Add(std::move(node));
  }

  uint16_t Return() {
    Expect("return");
    if (Take("{")) {
      ScriptPlan::Node node{.op = Op::kReturnList};
      while (ok_ && !Now().Is("}")) {
        if (Now().kind == Kind::kName && Ahead(1).Is("=")) return Fail();
        if (Now().Is("[")) return Fail();
        node.list.push_back(Expression());
        if (!Take(",") && !Take(";")) break;
      }
      Expect("}");
      return Add(std::move(node));
    }
    ScriptPlan::Node node{.op = Op::kReturn};
    node.a = AtBlockEnd() || Now().Is(";") ? Add(Op::kNil) : Expression();
    return Add(std::move(node));
  }

  // --- expressions, from what binds least to what binds most

  uint16_t Expression() {
    if (++depth_ > 50) return Fail();
    const uint16_t value = Or();
    --depth_;
    return value;
  }

  uint16_t Binary(Op op, uint16_t a, uint16_t b) { return Add(ScriptPlan::Node{.op = op, .a = a, .b = b}); }

  uint16_t Or() {
    uint16_t left = And();
    while (ok_ && Take("or")) left = Binary(Op::kOr, left, And());
    return left;
  }
  uint16_t And() {
    uint16_t left = Comparison();
    while (ok_ && Take("and")) left = Binary(Op::kAnd, left, Comparison());
    return left;
  }
  uint16_t Comparison() {
    uint16_t left = Concat();
    for (;;) {
      if (!ok_) return left;
      if (Take("==")) {
        left = Binary(Op::kEqual, left, Concat());
      } else if (Take("~=")) {
        left = Binary(Op::kUnequal, left, Concat());
      } else if (Take("<")) {
        left = Binary(Op::kLess, left, Concat());
      } else if (Take("<=")) {
        left = Binary(Op::kLessOrEqual, left, Concat());
      } else if (Now().Is(">") || Now().Is(">=")) {
        // What is left is worked out first, and the two are exchanged only for the comparison.
        const Op op = Now().Is(">") ? Op::kLess : Op::kLessOrEqual;
        ++at_;
        const uint16_t right = Concat();
        left = Add(ScriptPlan::Node{.op = op, .a = left, .b = right, .number = 1});
      } else {
        return left;
      }
    }
  }
  // Binds to the right.
  uint16_t Concat() {
    const uint16_t left = Sum();
    if (!ok_ || !Take("..")) return left;
    return Binary(Op::kConcat, left, Concat());
  }
  uint16_t Sum() {
    uint16_t left = Product();
    for (;;) {
      if (ok_ && Take("+")) {
        left = Binary(Op::kAdd, left, Product());
      } else if (ok_ && Take("-")) {
        left = Binary(Op::kSubtract, left, Product());
      } else {
        return left;
      }
    }
  }
  uint16_t Product() {
    uint16_t left = Unary();
    for (;;) {
      if (ok_ && Take("*")) {
        left = Binary(Op::kMultiply, left, Unary());
      } else if (ok_ && Take("/")) {
        left = Binary(Op::kDivide, left, Unary());
      } else if (ok_ && Take("%")) {
        left = Binary(Op::kModulo, left, Unary());
      } else {
        return left;
      }
    }
  }
  uint16_t Unary() {
    if (++depth_ > 50) return Fail();
    uint16_t value = 0;
    if (Take("not")) {
      value = Add(ScriptPlan::Node{.op = Op::kNot, .a = Unary()});
    } else if (Take("-")) {
      value = Add(ScriptPlan::Node{.op = Op::kNegate, .a = Unary()});
    } else if (Take("#")) {
      if (IsGlobal("KEYS")) value = Add(Op::kKeyCount);
      else if (IsGlobal("ARGV")) value = Add(Op::kArgumentCount);
      else return Fail();
      ++at_;
    } else {
      value = Primary();
    }
    --depth_;
    return value;
  }

  uint16_t Primary() {
    const LuaToken& token = Now();
    switch (token.kind) {
      case Kind::kString:
        ++at_;
        return Ended(Add(ScriptPlan::Node{.op = Op::kString, .text = std::string(token.text)}));
      case Kind::kNumber:
        ++at_;
        return Ended(Number(token.text));
      case Kind::kKeyword:
        ++at_;
        if (token.text == "nil") return Ended(Add(Op::kNil));
        if (token.text == "true") return Ended(Add(Op::kTrue));
        if (token.text == "false") return Ended(Add(Op::kFalse));
        return Fail();
      case Kind::kOperator: {
        if (!Take("(")) return Fail();
        const uint16_t inside = Expression();
        Expect(")");
        return Ended(inside);
      }
      case Kind::kName:
        return Ended(Named());
      case Kind::kEnd:
        break;
    }
    return Fail();
  }

  // Nothing is done to a value: no field, index, call or power follows.
  uint16_t Ended(uint16_t value) {
    for (absl::string_view op : {".", "[", ":", "(", "{", "^"})
      if (Now().Is(op)) return Fail();
    return Now().kind == Kind::kString ? Fail() : value;
  }

  uint16_t Number(absl::string_view text) {
    double value = 0;
    for (char c : text)
      if ((c < '0' || c > '9') && c != '.') return Fail();  // hexadecimal, exponents: for Lua
    if (!absl::SimpleAtod(text, &value)) return Fail();
    return Add(ScriptPlan::Node{.op = Op::kNumber, .number = value});
  }

  uint16_t Named() {
    const LuaToken& token = Now();
    if (const int local = Find(token.text); local >= 0) {
      ++at_;
      return Add(ScriptPlan::Node{.op = Op::kLocal, .local = static_cast<uint16_t>(local)});
    }
    if (token.text == "KEYS" || token.text == "ARGV") {
      ++at_;
      if (!Take("[")) return Fail();
      const uint16_t index = Expression();
      Expect("]");
      return Add(ScriptPlan::Node{.op = token.text == "KEYS" ? Op::kKey : Op::kArgument, .a = index});
    }
    if (token.text == "tonumber" || token.text == "tostring") {
      ++at_;
      Expect("(");
      const uint16_t value = Expression();
      Expect(")");
      return Add(ScriptPlan::Node{.op = token.text == "tonumber" ? Op::kToNumber : Op::kToString, .a = value});
    }
    return token.text == "redis" ? Redis() : Fail();
  }

  uint16_t Redis() {
    ++at_;
    if (!Take(".")) return Fail();
    const absl::string_view field = Now().text;
    ++at_;
    const int line = Now().line;  // Lua names the line of the bracket
    Expect("(");
    if (field == "call" || field == "pcall") return Call(field == "call" ? Op::kCall : Op::kProtectedCall, line);
    if (field != "status_reply" && field != "error_reply") return Fail();
    const uint16_t text = Expression();
    Expect(")");
    return Add(ScriptPlan::Node{.op = field == "status_reply" ? Op::kStatus : Op::kErrorReply, .a = text});
  }

  uint16_t Call(Op op, int line) {
    ScriptPlan::Node node{.op = op, .line = line};
    if (Now().kind != Kind::kString) return Fail();
    node.entry = commands_.Find(Now().text);
    if (node.entry == nullptr || !node.entry->subcommands.empty()) return Fail();
    do node.list.push_back(Expression());
    while (ok_ && Take(","));
    Expect(")");
    return Add(std::move(node));
  }

  const CommandTable& commands_;
  const std::vector<LuaToken>& tokens_;
  ScriptPlan& plan_;
  size_t at_ = 0;
  bool ok_ = true;
  int depth_ = 0;
  int loops_ = 0;
  std::vector<absl::string_view> names_;  // by local number
};

std::unique_ptr<const ScriptPlan> ScriptPlan::Read(const CommandTable& commands, const LuaTokens& tokens) {
  auto plan = std::make_unique<ScriptPlan>();
  if (!PlanReader(commands, tokens, plan.get()).Read()) return nullptr;
  return plan;
}

}  // namespace idemd::server

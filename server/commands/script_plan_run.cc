// Runs a plan: Lua's semantics for what plans say, and giving up where they end.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/commands/script_calls.h"
#include "server/commands/script_plan.h"
#include "server/script/reply.h"

namespace idemd::server {
namespace {

using Op = ScriptPlan::Op;
using Node = ScriptPlan::Node;

// Longer loops are for Lua, which can be stopped.
constexpr int kRoundsMax = 10'000;
constexpr size_t kTextsKept = 64;
constexpr size_t kTextBytesKept = 64 * 1024;
// Integers below print the same in every way that numbers are printed.
constexpr double kPlainBelow = 1e14;

bool IsPlain(double number) {
  return number == std::floor(number) && std::fabs(number) < kPlainBelow && !(number == 0 && std::signbit(number));
}

// Digits with a sign and a point at most: all readers of numbers agree on those.
bool ReadNumber(absl::string_view text, double* number) {
  constexpr size_t kDigitsMax = 15;
  if (text.empty() || text.size() > kDigitsMax) return false;
  size_t digits = 0;
  size_t points = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') ++digits;
    else if (text[i] == '.') ++points;
    else if (text[i] != '-' || i != 0) return false;
  }
  return digits > 0 && points <= 1 && absl::SimpleAtod(text, number);
}

int64_t Truncated(double value) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

std::string& PlanRun::Fresh() {
  if (texts_used_ == texts_.size()) texts_.emplace_back();
  std::string& text = texts_[texts_used_++];
  text.clear();
  return text;
}

PlanRun::Outcome PlanRun::Run(const ScriptPlan& plan, ScriptCalls& calls, absl::Span<const absl::string_view> keys,
                              absl::Span<const absl::string_view> args, absl::string_view name, protocol::Writer& reply,
                              bool* error_counted) {
  plan_ = &plan;
  calls_ = &calls;
  keys_ = keys;
  args_ = args;
  rounds_ = 0;
  result_ = {};
  is_list_ = false;
  called_.clear();
  if (texts_.size() > kTextsKept) texts_.resize(kTextsKept);
  for (size_t i = 0; i < std::min(texts_used_, texts_.size()); ++i)
    if (texts_[i].capacity() > kTextBytesKept) std::string().swap(texts_[i]);
  texts_used_ = 0;
  switch (Statement(plan.root())) {
    case Flow::kGiveUp:
      return Outcome::kGaveUp;
    case Flow::kRaise:
      reply.Error(absl::StrCat(result_.text, " script: ", name, ", on @user_script:", raised_at_, "."));
      *error_counted = result_.counted;
      return Outcome::kDone;
    case Flow::kNext:
    case Flow::kBreak:
    case Flow::kReturn:
      break;
  }
  const size_t mark = reply.buffer().size();
  bool wrote = true;
  if (is_list_) {
    bool ignored = false;
    reply.Array(list_.size());
    for (const Value& value : list_) wrote = wrote && Write(value, reply, &ignored);
  } else {
    wrote = Write(result_, reply, error_counted);
  }
  if (wrote) return Outcome::kDone;
  reply.buffer().resize(mark);
  return Outcome::kGaveUp;
}

// --- statements

PlanRun::Flow PlanRun::Block(const std::vector<uint16_t>& list) {
  for (uint16_t i : list)
    if (const Flow flow = Statement(i); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

PlanRun::Flow PlanRun::Statement(uint16_t i) {
  const Node& node = plan_->node(i);
  Value value;
  switch (node.op) {
    case Op::kBlock:
      return Block(node.list);
    case Op::kAssign:
      if (!Evaluate(node.a, &value)) return flow_;
      locals_[node.local] = value;
      return Flow::kNext;
    case Op::kEvaluate:
      return Evaluate(node.a, &value) ? Flow::kNext : flow_;
    case Op::kIf:
      if (!Evaluate(node.a, &value)) return flow_;
      return Statement(value.truth() ? node.b : node.c);
    case Op::kForList:
      return ForList(node);
    case Op::kForNumber:
      return ForNumber(node);
    case Op::kBreak:
      return Flow::kBreak;
    case Op::kReturn:
      return Evaluate(node.a, &result_) ? Flow::kReturn : flow_;
    case Op::kReturnList:
      return ReturnList(node);
    default:
      return Flow::kGiveUp;
  }
}

PlanRun::Flow PlanRun::ForList(const Node& node) {
  const absl::Span<const absl::string_view> words = node.number == 0 ? keys_ : args_;
  for (size_t i = 0; i < words.size(); ++i) {
    if (++rounds_ > kRoundsMax) return Flow::kGiveUp;
    locals_[node.local] = {.kind = Kind::kNumber, .number = static_cast<double>(i + 1)};
    locals_[node.local + 1] = {.kind = Kind::kString, .text = words[i]};
    const Flow flow = Statement(node.b);
    if (flow == Flow::kBreak) break;
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

PlanRun::Flow PlanRun::ForNumber(const Node& node) {
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    Value value;
    if (!Evaluate(node.list[i], &value)) return flow_;
    if (value.kind != Kind::kNumber) return Flow::kGiveUp;
    bounds[i] = value.number;
  }
  if (bounds[2] == 0) return Flow::kGiveUp;
  for (double i = bounds[0]; bounds[2] > 0 ? i <= bounds[1] : i >= bounds[1]; i += bounds[2]) {
    if (++rounds_ > kRoundsMax) return Flow::kGiveUp;
    locals_[node.local] = {.kind = Kind::kNumber, .number = i};
    const Flow flow = Statement(node.b);
    if (flow == Flow::kBreak) break;
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

// The reply ends before the first nil; what follows is worked out all the same.
PlanRun::Flow PlanRun::ReturnList(const Node& node) {
  list_.clear();
  bool ended = false;
  for (uint16_t i : node.list) {
    Value value;
    if (!Evaluate(i, &value)) return flow_;
    ended = ended || value.kind == Kind::kNil;
    if (!ended) list_.push_back(value);
  }
  is_list_ = true;
  return Flow::kReturn;
}

// --- expressions

bool PlanRun::Evaluate(uint16_t i, Value* value) {
  const Node& node = plan_->node(i);
  switch (node.op) {
    case Op::kNil:
      *value = {};
      return true;
    case Op::kTrue:
      *value = {.kind = Kind::kTrue};
      return true;
    case Op::kFalse:
      *value = {.kind = Kind::kFalse};
      return true;
    case Op::kNumber:
      *value = {.kind = Kind::kNumber, .number = node.number};
      return true;
    case Op::kString:
      *value = {.kind = Kind::kString, .text = node.text};
      return true;
    case Op::kLocal:
      *value = locals_[node.local];
      return true;
    case Op::kKey:
      return Element(node, keys_, value);
    case Op::kArgument:
      return Element(node, args_, value);
    case Op::kKeyCount:
      *value = {.kind = Kind::kNumber, .number = static_cast<double>(keys_.size())};
      return true;
    case Op::kArgumentCount:
      *value = {.kind = Kind::kNumber, .number = static_cast<double>(args_.size())};
      return true;
    case Op::kAnd:
      return Evaluate(node.a, value) && (!value->truth() || Evaluate(node.b, value));
    case Op::kOr:
      return Evaluate(node.a, value) && (value->truth() || Evaluate(node.b, value));
    case Op::kNot:
      if (!Evaluate(node.a, value)) return false;
      *value = {.kind = value->truth() ? Kind::kFalse : Kind::kTrue};
      return true;
    case Op::kEqual:
    case Op::kUnequal:
    case Op::kLess:
    case Op::kLessOrEqual:
      return Compare(node, value);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
      return Arithmetic(node, value);
    case Op::kNegate: {
      double number = 0;
      if (!Evaluate(node.a, value)) return false;
      if (!AsNumber(*value, &number)) return GiveUp();
      *value = {.kind = Kind::kNumber, .number = -number};
      return true;
    }
    case Op::kConcat:
      return Concat(node, value);
    case Op::kCall:
    case Op::kProtectedCall:
      return Call(node, value);
    case Op::kStatus:
      if (!Evaluate(node.a, value)) return false;
      if (value->kind != Kind::kString) return GiveUp();
      value->kind = Kind::kStatus;
      return true;
    case Op::kErrorReply:
      if (!Evaluate(node.a, value)) return false;
      if (value->kind != Kind::kString) return GiveUp();
      value->kind = Kind::kError;
      value->text = Fresh() = ErrorReplyText(value->text);
      return true;
    case Op::kToNumber: {
      double number = 0;
      if (!Evaluate(node.a, value)) return false;
      if (value->kind == Kind::kNumber) return true;
      if (value->kind != Kind::kString) {
        *value = {};
        return true;
      }
      if (!ReadNumber(value->text, &number)) return GiveUp();
      *value = {.kind = Kind::kNumber, .number = number};
      return true;
    }
    case Op::kToString: {
      absl::string_view text;
      if (!Evaluate(node.a, value)) return false;
      if (!AsText(*value, false, &text)) return GiveUp();
      *value = {.kind = Kind::kString, .text = text};
      return true;
    }
    default:
      return GiveUp();
  }
}

bool PlanRun::Element(const Node& node, absl::Span<const absl::string_view> words, Value* value) {
  if (!Evaluate(node.a, value)) return false;
  const double index = value->kind == Kind::kNumber ? value->number : 0;
  *value = {};
  if (index >= 1 && index <= static_cast<double>(words.size()) && index == std::floor(index))
    *value = {.kind = Kind::kString, .text = words[static_cast<size_t>(index) - 1]};
  return true;
}

bool PlanRun::Compare(const Node& node, Value* value) {
  Value a;
  Value b;
  if (!Operands(node, &a, &b)) return false;
  bool holds = false;
  if (node.op == Op::kEqual || node.op == Op::kUnequal) {
    // Two tables may be one and the same.
    if (a.kind >= Kind::kStatus && b.kind >= Kind::kStatus) return GiveUp();
    holds = a.kind == b.kind && (a.kind != Kind::kNumber || a.number == b.number) &&
            (a.kind != Kind::kString || a.text == b.text);
    if (node.op == Op::kUnequal) holds = !holds;
  } else {
    if (node.number != 0) std::swap(a, b);
    if (a.kind == Kind::kNumber && b.kind == Kind::kNumber) {
      holds = node.op == Op::kLess ? a.number < b.number : a.number <= b.number;
    } else if (a.kind == Kind::kString && b.kind == Kind::kString) {
      holds = node.op == Op::kLess ? a.text < b.text : a.text <= b.text;
    } else {
      return GiveUp();
    }
  }
  *value = {.kind = holds ? Kind::kTrue : Kind::kFalse};
  return true;
}

bool PlanRun::AsNumber(const Value& value, double* number) {
  *number = value.number;
  return value.kind == Kind::kNumber || (value.kind == Kind::kString && ReadNumber(value.text, number));
}

bool PlanRun::Arithmetic(const Node& node, Value* value) {
  Value left;
  Value right;
  double a = 0;
  double b = 0;
  if (!Operands(node, &left, &right)) return false;
  if (!AsNumber(left, &a) || !AsNumber(right, &b)) return GiveUp();
  double result = 0;
  switch (node.op) {
    case Op::kAdd:
      result = a + b;
      break;
    case Op::kSubtract:
      result = a - b;
      break;
    case Op::kMultiply:
      result = a * b;
      break;
    case Op::kDivide:
      result = a / b;
      break;
    default:
      if (b == 0 || std::isinf(b) || std::isinf(a)) return GiveUp();
      result = a - std::floor(a / b) * b;
  }
  *value = {.kind = Kind::kNumber, .number = result};
  return true;
}

// `exact`: as an argument of a command; else as Lua prints it. Integers are the same in both.
bool PlanRun::AsText(const Value& value, bool exact, absl::string_view* text) {
  if (value.kind == Kind::kString) {
    *text = value.text;
    return true;
  }
  if (value.kind != Kind::kNumber) return false;
  if (!IsPlain(value.number) && !exact) return false;
  std::string& digits = Fresh();
  if (IsPlain(value.number)) {
    absl::StrAppend(&digits, static_cast<int64_t>(value.number));
  } else {
    char printed[32];
    std::snprintf(printed, sizeof printed, "%.17g", value.number);
    digits = printed;
  }
  *text = digits;
  return true;
}

bool PlanRun::Concat(const Node& node, Value* value) {
  Value left;
  Value right;
  absl::string_view a;
  absl::string_view b;
  if (!Operands(node, &left, &right)) return false;
  if (!AsText(left, false, &a) || !AsText(right, false, &b)) return GiveUp();
  std::string& joined = Fresh();
  absl::StrAppend(&joined, a, b);
  *value = {.kind = Kind::kString, .text = joined};
  return true;
}

// --- commands

bool PlanRun::Call(const Node& node, Value* value) {
  absl::InlinedVector<absl::string_view, 8> words;
  for (uint16_t i : node.list) {
    Value argument;
    absl::string_view text;
    if (!Evaluate(i, &argument)) return false;
    if (!AsText(argument, true, &text)) return GiveUp();
    words.push_back(text);
  }
  std::string& reply = Fresh();
  calls_->Run(*node.entry, words, 2, reply);
  called_.push_back(&reply);
  const absl::string_view line = absl::string_view(reply).substr(1, reply.find('\r') - 1);
  switch (reply[0]) {
    case ':': {
      int64_t number = 0;
      if (!absl::SimpleAtoi(line, &number)) return GiveUp();
      *value = {.kind = Kind::kNumber, .number = static_cast<double>(number)};
      return true;
    }
    case '$':
      *value = {.kind = Kind::kFalse};
      if (line != "-1")
        *value = {.kind = Kind::kString, .text = absl::string_view(reply).substr(line.size() + 3, reply.size() - line.size() - 5)};
      return true;
    case '+':
      *value = {.kind = Kind::kStatus, .text = line};
      return true;
    case '-':
      *value = {.kind = Kind::kError, .counted = true, .text = line};
      if (node.op == Op::kProtectedCall) return true;
      result_ = *value;
      raised_at_ = node.line;
      flow_ = Flow::kRaise;
      return false;
    case '*':
      *value = {.kind = Kind::kReply, .text = reply};
      if (line == "-1") *value = {.kind = Kind::kFalse};
      return true;
    default:
      return GiveUp();
  }
}

// --- the reply

namespace {

// Copies one reply in version 2 of the protocol, as it would come out of Lua. False: it has what plans do not know.
bool CopyReply(absl::string_view* rest, protocol::Writer& reply) {
  const size_t end = rest->find('\r');
  const char kind = (*rest)[0];
  const absl::string_view line = rest->substr(1, end - 1);
  int64_t number = 0;
  if (kind != '+' && !absl::SimpleAtoi(line, &number)) return false;
  rest->remove_prefix(end + 2);
  switch (kind) {
    case ':':
      reply.Integer(Truncated(static_cast<double>(number)));
      return true;
    case '+':
      reply.Simple(line);
      return true;
    case '$':
      if (number < 0) {
        reply.Null();
        return true;
      }
      reply.Bulk(rest->substr(0, static_cast<size_t>(number)));
      rest->remove_prefix(static_cast<size_t>(number) + 2);
      return true;
    case '*':
      if (number < 0) {
        reply.Null();
        return true;
      }
      reply.Array(static_cast<size_t>(number));
      for (int64_t i = 0; i < number; ++i)
        if (!CopyReply(rest, reply)) return false;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool PlanRun::Write(const Value& value, protocol::Writer& reply, bool* error_counted) {
  switch (value.kind) {
    case Kind::kNil:
    case Kind::kFalse:
      reply.Null();
      return true;
    case Kind::kTrue:
      reply.Integer(1);
      return true;
    case Kind::kNumber:
      reply.Integer(Truncated(value.number));
      return true;
    case Kind::kString:
      reply.Bulk(value.text);
      return true;
    case Kind::kStatus:
      // What a line cannot hold is for Lua.
      if (value.text.find_first_of(absl::string_view("\r\n\0", 3)) != absl::string_view::npos) return false;
      reply.Simple(value.text);
      return true;
    case Kind::kError:
      if (value.text.find('\0') != absl::string_view::npos) return false;
      reply.Error(value.text);
      *error_counted = value.counted;
      return true;
    case Kind::kReply: {
      absl::string_view rest = value.text;
      return CopyReply(&rest, reply);
    }
  }
  return false;
}

}  // namespace idemd::server

// Reads, tries out and keeps libraries of functions.
#include "server/commands/functions.h"

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "protocol/resp/parser.h"
#include "server/admin/log.h"

namespace idemd::server {
namespace {

constexpr std::chrono::milliseconds kLoadTime{500};
constexpr char kNameRule[] =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

bool IsName(absl::string_view name) {
  for (char c : name)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return !name.empty();
}

// "#!lua name=x": "" or the error without its code.
std::string ReadFirstLine(absl::string_view text, std::string* name) {
  if (!absl::StartsWith(text, "#!")) return "Missing library metadata";
  const size_t end = text.find('\n');
  std::vector<std::string> words;
  if (end == absl::string_view::npos || !protocol::SplitWords(text.substr(0, end), words) || words.empty())
    return "Invalid library metadata";
  const std::string engine = words[0].substr(2);
  bool named = false;
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (!absl::StartsWithIgnoreCase(word, "name=")) return absl::StrCat("Invalid metadata value given: ", word);
    if (named) return "Invalid metadata value, name argument was given multiple times";
    word.remove_prefix(5);
    name->assign(word.data(), word.size());
    named = true;
  }
  if (!named) return "Library name was not given";
  if (!IsName(*name)) return kNameRule;
  if (!absl::EqualsIgnoreCase(engine, "lua")) return absl::StrCat("Engine '", engine, "' not found");
  return {};
}

}  // namespace

// --- the server's

std::string Functions::Add(FunctionThread& thread, absl::string_view text, bool replace, Libraries* libraries,
                           std::string* name) {
  auto library = std::make_shared<Library>();
  if (std::string why = ReadFirstLine(text, &library->name); !why.empty()) return why;
  *name = library->name;
  const auto old = libraries->find(library->name);
  if (old != libraries->end() && !replace) return absl::StrCat("Library '", library->name, "' already exists");
  library->text.assign(text.data(), text.size());
  if (std::string why = thread.TryOut(library.get()); !why.empty()) return why;
  for (const auto& [other_name, other] : *libraries) {
    if (other_name == library->name) continue;
    for (const LibraryFunction& theirs : other->functions)
      for (const LibraryFunction& ours : library->functions)
        if (absl::EqualsIgnoreCase(ours.name, theirs.name)) return absl::StrCat("Function ", ours.name, " already exists");
  }
  (*libraries)[library->name] = std::move(library);
  return {};
}

void Functions::Become(Libraries libraries) {
  libraries_ = std::move(libraries);
  generation_.fetch_add(1, std::memory_order_release);
}

std::string Functions::Load(FunctionThread& thread, absl::string_view text, bool replace, std::string* name) {
  storage::MutexLock lock(mutex_);
  Libraries libraries = libraries_;
  if (std::string why = Add(thread, text, replace, &libraries, name); !why.empty()) return why;
  Become(std::move(libraries));
  return {};
}

std::string Functions::Restore(FunctionThread& thread, const std::vector<std::string>& texts, RestorePolicy policy) {
  storage::MutexLock lock(mutex_);
  Libraries libraries;
  if (policy != RestorePolicy::kFlush) libraries = libraries_;
  // Whatever the policy, the payload's own libraries must not take each other's places.
  Libraries restored;
  for (const std::string& text : texts) {
    std::string name;
    std::string ignored;
    if (std::string why = ReadFirstLine(text, &name); !why.empty()) return why;
    if (restored.contains(name) || (policy == RestorePolicy::kAppend && libraries.contains(name)))
      return absl::StrCat("Library ", name, " already exists");
    restored[name] = nullptr;
    libraries.erase(name);
  }
  for (const std::string& text : texts) {
    std::string name;
    if (std::string why = Add(thread, text, false, &libraries, &name); !why.empty()) return why;
  }
  Become(std::move(libraries));
  return {};
}

bool Functions::Delete(absl::string_view name) {
  storage::MutexLock lock(mutex_);
  Libraries libraries = libraries_;
  if (libraries.erase(std::string(name)) == 0) return false;
  Become(std::move(libraries));
  return true;
}

void Functions::Flush() {
  storage::MutexLock lock(mutex_);
  Become({});
}

Libraries Functions::All() const {
  storage::MutexLock lock(mutex_);
  return libraries_;
}

// --- one thread's

// Takes what a library registers while its text runs.
class FunctionThread::Loading final : public ScriptHost {
 public:
  struct Taken {
    LibraryFunction function;
    int handle;
  };
  std::vector<Taken> taken;

  std::string Register(const RegisteredFunction& f) override {
    if (!IsName(f.name)) return kNameRule;
    for (const Taken& other : taken)
      if (absl::EqualsIgnoreCase(other.function.name, f.name)) return "Function already exists in the library";
    taken.push_back({{std::string(f.name), f.has_description, std::string(f.description), f.flags}, f.handle});
    return {};
  }
  absl::string_view Step() override {
    return std::chrono::steady_clock::now() > until_ ? absl::string_view("ERR FUNCTION LOAD timeout") : absl::string_view();
  }
  // A library that is loaded has no commands.
  void Call(absl::Span<const absl::string_view>, int, std::string& reply) override {
    reply = "-ERR redis.call/pcall can only be called inside a script invocation\r\n";
  }
  Verdict MayCall(absl::Span<const absl::string_view>) override { return Verdict::kUnknown; }
  void Log(int, absl::string_view text) override { LogNotice(text); }

 private:
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + kLoadTime;
};

Interpreter& FunctionThread::interpreter() {
  if (interpreter_ == nullptr) {
    interpreter_ = std::make_unique<Interpreter>(
        Interpreter::Kind::kFunctions, memory_bytes_,
        static_cast<size_t>(functions_.settings().script_memory_bytes_max.load(std::memory_order_relaxed)));
  }
  return *interpreter_;
}

std::string FunctionThread::TryOut(Library* library) {
  Interpreter& in = interpreter();
  std::string error;
  const int handle = in.Compile(library->code(), &error);
  if (handle == Interpreter::kNone) return absl::StrCat("Error compiling function: ", error);
  Loading loading;
  error = in.Load(handle, loading);
  in.Forget(handle);
  for (Loading::Taken& taken : loading.taken) {
    in.Forget(taken.handle);
    library->functions.push_back(std::move(taken.function));
  }
  if (!error.empty()) return absl::StrCat("Error registering functions: ", error);
  return library->functions.empty() ? "No functions registered" : "";
}

void FunctionThread::Unload(const Loaded& loaded) {
  for (const std::string& name : loaded.names) {
    const auto it = by_name_.find(name);
    interpreter_->Forget(it->second.handle);
    by_name_.erase(it);
  }
}

void FunctionThread::Update() {
  generation_ = functions_.generation();
  const Libraries all = functions_.All();
  for (auto it = libraries_.begin(); it != libraries_.end();) {
    const auto now = all.find(it->first);
    if (now != all.end() && now->second == it->second.library) {
      ++it;
      continue;
    }
    Unload(it->second);
    libraries_.erase(it++);
  }
  for (const auto& [name, library] : all) {
    if (libraries_.contains(name)) continue;
    std::string error;
    const int handle = interpreter().Compile(library->code(), &error);
    Loading loading;
    if (handle != Interpreter::kNone) error = interpreter().Load(handle, loading);
    interpreter().Forget(handle);
    if (!error.empty()) LogWarning(absl::StrCat("The library '", name, "' could not be loaded again: ", error));
    Loaded& loaded = libraries_[name];
    loaded.library = library;
    for (Loading::Taken& taken : loading.taken) {
      const std::string lower = absl::AsciiStrToLower(taken.function.name);
      by_name_[lower] = {taken.function.name, taken.function.flags, taken.handle};
      loaded.names.push_back(lower);
    }
  }
}

const FunctionThread::Function* FunctionThread::Find(absl::string_view name) {
  if (generation_ != functions_.generation()) Update();
  auto it = by_name_.find(name);
  if (it == by_name_.end()) it = by_name_.find(absl::AsciiStrToLower(name));
  return it == by_name_.end() ? nullptr : &it->second;
}

}  // namespace idemd::server

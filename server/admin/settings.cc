// The values of this process: texts, the atomics made from them, and changes while running.
#include "server/admin/settings.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "protocol/glob.h"
#include "protocol/number.h"
#include "server/admin/option.h"

namespace idemd::server {
namespace {

void KeepLimit(OutputLimit& limit, absl::Span<const absl::string_view> words) {
  int64_t numbers[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    if (!protocol::ParseInt64(words[i + 1], &numbers[i])) return;
  }
  limit.hard_bytes.store(numbers[0], std::memory_order_relaxed);
  limit.soft_bytes.store(numbers[1], std::memory_order_relaxed);
  limit.soft_seconds.store(numbers[2], std::memory_order_relaxed);
}

absl::Status Failed(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("CONFIG SET failed (possibly related to argument '", name, "') - ", why));
}

}  // namespace

Settings::Settings() {
  {
    storage::MutexLock lock(mutex_);
    texts_.resize(Options().size());
  }
  for (size_t i = 0; i < Options().size(); ++i) Keep(i, DefaultText(*Options()[i]));
}

void Settings::Keep(size_t option, std::string text) {
  const OptionSpec& spec = *Options()[option];
  if (spec.number != nullptr)
    (this->*spec.number).store(NumberOf(spec, text) * spec.scale, std::memory_order_relaxed);
  if (spec.flag != nullptr)
    (this->*spec.flag).store(NumberOf(spec, text) != 0, std::memory_order_relaxed);
  if (spec.type == OptionType::kOutputLimits) {
    const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
    KeepLimit(output_limit_normal, absl::MakeConstSpan(words).subspan(0, 4));
    KeepLimit(output_limit_replica, absl::MakeConstSpan(words).subspan(4, 4));
    KeepLimit(output_limit_pubsub, absl::MakeConstSpan(words).subspan(8, 4));
  }
  storage::MutexLock lock(mutex_);
  // The directory was looked at when the text was read; where it has gone since, we stay.
  if (spec.type == OptionType::kDirectory && !texts_[option].empty() && chdir(text.c_str()) != 0)
    return;
  texts_[option] = std::move(text);
}

std::string Settings::TextOf(size_t option) const {
  storage::MutexLock lock(mutex_);
  return texts_[option];
}

std::string Settings::Text(absl::string_view name) const {
  const size_t option = FindOption(name);
  return option == kNoOption ? "" : TextOf(option);
}

std::vector<double> Settings::percentiles() const {
  const std::string text = Text("latency-tracking-info-percentiles");
  std::vector<double> values;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    double value = 0;
    if (protocol::ParseDouble(word, &value)) values.push_back(value);
  }
  return values;
}

std::vector<std::pair<int64_t, int64_t>> Settings::save_points() const {
  const std::string text = Text("save");
  std::vector<std::pair<int64_t, int64_t>> points;
  int64_t seconds = -1;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number = 0;
    if (!protocol::ParseInt64(word, &number)) break;
    if (seconds < 0) {
      seconds = number;
    } else {
      points.emplace_back(std::exchange(seconds, -1), number);
    }
  }
  return points;
}

std::vector<std::string> Settings::bind() const {
  return absl::StrSplit(Text("bind"), ' ', absl::SkipEmpty());
}

std::string Settings::file() const {
  storage::MutexLock lock(mutex_);
  return file_;
}

std::vector<std::string> Settings::warnings() const {
  storage::MutexLock lock(mutex_);
  return warnings_;
}

bool Settings::IsSecret(absl::string_view name) {
  const size_t option = FindOption(name);
  return option != kNoOption && Options()[option]->has(kSecret);
}

std::vector<Settings::Value> Settings::Get(absl::Span<const absl::string_view> patterns) const {
  std::vector<Value> values;
  const auto add = [&](size_t option, absl::string_view name) {
    for (const Value& value : values) {
      if (absl::EqualsIgnoreCase(value.name, name)) return;
    }
    values.push_back({std::string(name), TextOf(option)});
  };
  for (absl::string_view pattern : patterns) {
    if (pattern.find_first_of("*?[") == absl::string_view::npos) {
      const size_t option = FindOption(pattern);
      if (option != kNoOption) add(option, pattern);
      continue;
    }
    for (size_t i = 0; i < Options().size(); ++i) {
      const OptionSpec& spec = *Options()[i];
      if (spec.has(kHidden)) continue;
      if (protocol::GlobMatch(pattern, spec.name, true)) add(i, spec.name);
      if (spec.alias != nullptr && protocol::GlobMatch(pattern, spec.alias, true))
        add(i, spec.alias);
    }
  }
  return values;
}

absl::Status Settings::ReadPairs(
    absl::Span<const std::pair<absl::string_view, absl::string_view>> pairs, SetOptions options,
    std::vector<Change>* changes) const {
  for (const auto& [name, value] : pairs) {
    const size_t option = FindOption(name);
    if (option == kNoOption) {
      return absl::InvalidArgumentError(
          absl::StrCat("Unknown option or number of arguments for CONFIG SET - '", name, "'"));
    }
    const OptionSpec& spec = *Options()[option];
    if (spec.has(kImmutable)) return Failed(name, "can't set immutable config");
    if (spec.has(kProtected) && !options.allow_protected)
      return Failed(name, "can't set protected config");
    for (const Change& earlier : *changes) {
      // Also when it was named by its alias: one of the two values would be lost.
      if (earlier.option == option) return Failed(name, "duplicate parameter");
    }
    changes->push_back({option, std::string(value)});
  }
  for (size_t i = 0; i < changes->size(); ++i) {
    Change& change = (*changes)[i];
    const OptionSpec& spec = *Options()[change.option];
    std::string text;
    const absl::Status read =
        ReadOption(spec, ValueWords(spec, change.text), TextOf(change.option), &text);
    const absl::string_view name =
        absl::EqualsIgnoreCase(pairs[i].first, spec.name) ? spec.name : spec.alias;
    if (!read.ok()) return Failed(name, read.message());
    if (spec.effect == Effect::kDefaultOnly && text != DefaultText(spec))
      return Failed(name, absl::StrCat("not supported: ", spec.limit));
    change.text = std::move(text);
  }
  return absl::OkStatus();
}

absl::Status Settings::Set(absl::Span<const std::pair<absl::string_view, absl::string_view>> pairs,
                           SetOptions options, std::vector<std::string>* warnings) {
  storage::MutexLock one_at_a_time(change_mutex_);
  std::vector<Change> changes;
  if (absl::Status read = ReadPairs(pairs, options, &changes); !read.ok()) return read;

  std::vector<Change> old;
  std::vector<const Hook*> ran;
  const auto undo = [&] {
    for (Change& change : old) Keep(change.option, std::move(change.text));
    for (const Hook* again : ran) again->run().IgnoreError();  // the old values worked before
  };
  try {
    return Apply(changes, old, ran, undo, warnings);
  } catch (const std::bad_alloc&) {
    undo();
    throw;
  }
}

absl::Status Settings::Apply(std::vector<Change>& changes, std::vector<Change>& old, std::vector<const Hook*>& ran,
                             absl::FunctionRef<void()> undo, std::vector<std::string>* warnings) {
  for (Change& change : changes) {
    std::string before = TextOf(change.option);
    if (before == change.text && !Options()[change.option]->has(kReload)) continue;
    old.push_back({change.option, std::move(before)});
    Keep(change.option, std::move(change.text));
  }
  const auto changed = [&](const std::string& name) {
    return std::any_of(old.begin(), old.end(),
                       [&](const Change& c) { return name == Options()[c.option]->name; });
  };
  for (const Hook& hook : hooks_) {
    const auto name = std::find_if(hook.names.begin(), hook.names.end(), changed);
    if (name == hook.names.end()) continue;
    ran.push_back(&hook);
    const absl::Status applied = hook.run();
    if (applied.ok()) continue;
    undo();
    return Failed(*name, applied.message());
  }
  for (const Change& change : old) {
    const OptionSpec& spec = *Options()[change.option];
    if (warnings == nullptr || spec.effect == Effect::kFull || spec.effect == Effect::kDefaultOnly)
      continue;
    if (spec.effect == Effect::kPartial && TextOf(change.option) == DefaultText(spec)) continue;
    warnings->push_back(absl::StrCat(
        "'", spec.name, "' was set to '", TextOf(change.option), "', which has no effect",
        spec.limit[0] == '\0' ? " in this version" : ": ", spec.limit));
  }
  return absl::OkStatus();
}

void Settings::OnChange(std::vector<std::string> names, std::function<absl::Status()> hook) {
  hooks_.push_back({std::move(names), std::move(hook)});
}

absl::Status Settings::RunHooks() {
  storage::MutexLock one_at_a_time(change_mutex_);
  for (const Hook& hook : hooks_) {
    if (absl::Status applied = hook.run(); !applied.ok()) return applied;
  }
  return absl::OkStatus();
}

}  // namespace idemd::server

// Rules make a user whose description, read as a line of an ACL file and of a settings file, makes
// the same user: the same description, the same passwords, the same verdict on every call. Of rules
// that are refused none was applied. Who needs no checks is allowed everything; a verdict names a
// word of the call.
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/acl/users.h"
#include "tests/fuzz/input.h"
#include "tests/server/acl/catalog_of_test.h"

using namespace idemd::server::acl;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;

namespace {

constexpr size_t kRulesMax = 32;
constexpr absl::string_view kName = "alice";

// Every command on a key, on none, on a prefix, and on channels; with words from the rules
// themselves.
template <class Take>
void ForEachCall(const Catalog& catalog, const std::vector<absl::string_view>& texts, Take take) {
  for (CommandId command = 0; command < catalog.commands().size(); ++command) {
    for (absl::string_view text : texts) {
      const absl::string_view words[] = {catalog.commands()[command].name, text, text};
      for (const Access access : {Access{0}, kRead, kWrite, kReadWrite}) {
        const KeyUse key[] = {
            {.key = text, .access = access, .word = 1, .prefix = text.size() % 2 != 0}};
        take(Call{.command = command, .words = words, .keys = key, .channels = {}});
      }
      const ChannelUse channel[] = {{.channel = text, .pattern = text.size() % 2 != 0, .word = 2}};
      take(Call{.command = command, .words = words, .keys = {}, .channels = channel});
      take(Call{.command = command, .words = words, .keys = {}, .channels = {}});
    }
  }
}

void RequireSameUser(const Catalog& catalog, const User& user, const User& again,
                     const std::vector<absl::string_view>& texts) {
  Require(again.Describe(catalog) == user.Describe(catalog));
  Require(again.enabled() == user.enabled() && again.nopass() == user.nopass());
  Require(again.passwords() == user.passwords() && again.LetsIn("p") == user.LetsIn("p"));
  ForEachCall(catalog, texts, [&](const Call& call) {
    size_t word = 0, word_again = 0;
    const Verdict verdict = user.Check(catalog, call, &word);
    Require(again.Check(catalog, call, &word_again) == verdict && word_again == word &&
            word < call.words.size());
    if (user.unrestricted()) Require(verdict == Verdict::kAllowed);
    if (user.MayReadAllKeys(catalog, call)) Require(verdict == Verdict::kAllowed);
  });
  for (absl::string_view text : texts) {
    for (const bool pattern : {false, true})
      Require(user.AllowsChannel(text, pattern) == again.AllowsChannel(text, pattern));
  }
}

}  // namespace

// The first byte is acl-pubsub-default; then a rule a line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Catalog catalog = TestCatalog();
  Input input(data, std::min<size_t>(size, 512));
  const bool all_channels = input.Flag();
  std::vector<absl::string_view> rules =
      absl::StrSplit(input.Rest(), absl::MaxSplits('\n', kRulesMax));
  std::vector<absl::string_view> texts = {"", "k", "0"};
  for (absl::string_view rule : rules) {
    if (texts.size() < 8) texts.push_back(rule.substr(std::min<size_t>(rule.size(), 1)));
  }

  Users users(catalog, [](bool) {});
  users.all_channels = all_channels;
  const size_t half = rules.size() / 2;
  for (const Users::Rules part :
       {absl::MakeConstSpan(rules).first(half), absl::MakeConstSpan(rules).subspan(half)}) {
    const std::shared_ptr<const User> before = users.Find(kName).user;
    const bool taken = users.Set(kName, part).ok();
    const std::shared_ptr<const User> user = users.Find(kName).user;
    if (!taken) {
      Require(user == before);
      continue;
    }
    const std::string line = user->Describe(catalog);
    std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    Require(words.size() >= 3 && words[0] == "user" && words[1] == kName);
    words.erase(words.begin());
    Users others(catalog, [](bool) {});
    others.all_channels = all_channels;
    Require(others.Declare({words}).ok());
    RequireSameUser(catalog, *user, *others.Find(kName).user, texts);
  }
  return 0;
}

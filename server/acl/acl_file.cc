// ACL files: "user NAME RULE..." on each line, read as a whole or not at all, and written beside the old one first.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/acl/users.h"

namespace idemd::server::acl {
namespace {

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0;
}

absl::Status WorldError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Reads one line into a user; what is wrong is added to `errors`.
class FileReader {
 public:
  FileReader(const Catalog& catalog, std::string path, bool all_channels)
      : catalog_(catalog), path_(std::move(path)), all_channels_(all_channels) {}

  void Line(absl::string_view text, int number, std::map<std::string, std::shared_ptr<const User>, std::less<>>* users);
  const std::string& errors() const { return errors_; }

 private:
  template <typename... Parts>
  void Error(int number, const Parts&... parts) {
    absl::StrAppend(&errors_, path_, ":", number, ": ", parts..., " ");
  }

  const Catalog& catalog_;
  const std::string path_;
  const bool all_channels_;
  std::string errors_;
};

void FileReader::Line(absl::string_view text, int number,
                      std::map<std::string, std::shared_ptr<const User>, std::less<>>* users) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(text), ' ', absl::SkipEmpty());
  if (words.empty() || words[0][0] == '#') return;
  if (words[0] != "user" || words.size() < 2)
    return Error(number, "line should start with user keyword and have a name.");
  std::string name(words[1]);
  if (users->contains(name)) {
    absl::StrAppend(&errors_, "WARNING: Duplicate user '", name, "' found on line ", number, ". ");
    return;
  }
  std::vector<std::string> rules;
  absl::string_view open;
  if (!JoinSelectors(absl::MakeConstSpan(words).subspan(2), &rules, &open))
    return Error(number, "Unmatched parenthesis in selector definition.");
  User user(name, all_channels_);
  for (const std::string& rule : rules) {
    const RuleError error = user.Apply(catalog_, rule, all_channels_);
    if (error != RuleError::kNone) return Error(number, RuleErrorText(error), ".");
  }
  users->emplace(std::move(name), std::make_shared<const User>(std::move(user)));
}

}  // namespace

absl::Status Users::Load(const std::string& path, std::vector<std::string>* replaced) {
  std::ifstream in(path);
  std::ostringstream text;
  errno = 0;
  if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf())))
    return WorldError(absl::StrCat("Error loading ACLs, opening file '", path, "'"));
  FileReader reader(catalog_, path, all_channels.load(std::memory_order_relaxed));
  Map users;
  int number = 0;
  const std::string whole = text.str();
  for (absl::string_view line : absl::StrSplit(whole, '\n')) reader.Line(line, ++number, &users);
  if (!reader.errors().empty())
    return absl::InvalidArgumentError(absl::StrCat(
        reader.errors(),
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"));
  users.emplace("default", std::make_shared<const User>(User::Default()));
  storage::MutexLock lock(mutex_);
  for (const auto& [name, user] : users_) {
    if (name != "default") replaced->push_back(name);
  }
  users_ = std::move(users);
  Changed();
  return absl::OkStatus();
}

absl::Status Users::Save(const std::string& path) const {
  std::string text;
  for (const std::shared_ptr<const User>& user : All())
    absl::StrAppend(&text, user->Describe(catalog_), "\n");
  const std::string beside = absl::StrCat(path, ".tmp-", getpid());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return WorldError("Opening temp ACL file for ACL SAVE");
  const bool written = WriteAll(fd, text);
  absl::Status status = written ? absl::OkStatus() : WorldError("Writing ACL file for ACL SAVE");
  if (close(fd) != 0 && status.ok()) status = WorldError("Writing ACL file for ACL SAVE");
  if (status.ok() && std::rename(beside.c_str(), path.c_str()) != 0)
    status = WorldError("Renaming ACL file for ACL SAVE");
  if (!status.ok()) unlink(beside.c_str());
  return status;
}

}  // namespace idemd::server::acl

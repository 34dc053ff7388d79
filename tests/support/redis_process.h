// A stock redis-server for tests that compare with it, on a Unix socket in a folder of its own.
//
// Replies read as in harness.h. The process ends with its object; nothing waits by the clock: the
// server says on its standard output that it is ready, or ends.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace idemd::testing {

class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "idemd-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }
  std::string Read(absl::string_view name) const {
    std::ifstream in(File(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  void Write(absl::string_view name, absl::string_view bytes) const {
    std::ofstream(File(name), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

// Whether a redis-server is on the PATH.
inline bool HasRedisServer() {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return false;
  for (const absl::string_view folder : absl::StrSplit(path, ':'))
    if (access(absl::StrCat(folder, "/redis-server").c_str(), X_OK) == 0) return true;
  return false;
}

// Whether that is a Redis 7.0, whose bytes ours are compared with: later ones write some things in another way.
inline bool HasRedis70() {
  if (!HasRedisServer()) return false;
  FILE* const pipe = popen("redis-server --version", "r");
  if (pipe == nullptr) return false;
  std::string text(200, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  pclose(pipe);
  return text.find(" v=7.0.") != std::string::npos;
}

class RedisProcess {
 public:
  // Its files are in `folder`, which outlives it. `options` as on the command line.
  explicit RedisProcess(const TempFolder& folder, const std::vector<std::string>& options = {}) {
    const std::string socket_path = folder.File("socket");
    std::vector<std::string> words = {"redis-server",   "--port",    "0",
                                      "--unixsocket",   socket_path, "--dir",
                                      folder.File("."), "--save",    ""};
    words.insert(words.end(), options.begin(), options.end());
    if (Spawn(words)) Connect(socket_path);
  }
  ~RedisProcess() {
    if (socket_ >= 0) close(socket_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (output_ >= 0) close(output_);
  }
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  // Whether it serves; else log() tells why not.
  bool serves() const { return socket_ >= 0; }
  const std::string& log() const { return log_; }

  std::string Do(const std::vector<std::string>& words) {
    std::string request = absl::StrCat("*", words.size(), "\r\n");
    for (const std::string& word : words)
      absl::StrAppend(&request, "$", word.size(), "\r\n", word, "\r\n");
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t n = send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return "-GONE";
      sent += static_cast<size_t>(n);
    }
    return Reply();
  }
  // Words without blanks.
  std::string Do(absl::string_view line) {
    return Do(std::vector<std::string>(absl::StrSplit(line, ' ')));
  }
  // The same for a bulk reply, without quotes; "" for any other.
  std::string Bulk(const std::vector<std::string>& words) {
    const std::string reply = Do(words);
    return reply.size() >= 2 && reply[0] == '"' ? reply.substr(1, reply.size() - 2) : "";
  }

 private:
  bool Spawn(std::vector<std::string>& words) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error =
        posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_ends[1]);
    output_ = pipe_ends[0];
    if (error != 0) pid_ = 0;
    if (error != 0) return false;
    char bytes[4096];
    while (log_.find("eady to accept connections") == std::string::npos) {
      const ssize_t n = read(output_, bytes, sizeof(bytes));
      if (n <= 0) return false;  // it ended
      log_.append(bytes, static_cast<size_t>(n));
    }
    return true;
  }

  void Connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return;
    path.copy(address.sun_path, path.size());
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return;
    close(socket_);
    socket_ = -1;
  }

  // False: the connection is gone.
  bool Receive() {
    char bytes[65536];
    const ssize_t n = recv(socket_, bytes, sizeof(bytes), 0);
    if (n > 0) received_.append(bytes, static_cast<size_t>(n));
    return n > 0;
  }
  std::string Take(size_t size) {
    while (received_.size() < size)
      if (!Receive()) return "";
    const std::string taken = received_.substr(0, size);
    received_.erase(0, size);
    return taken;
  }
  std::string Reply() {
    size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos)
      if (!Receive()) return "-GONE";
    const std::string line = Take(end + 2).substr(0, end);
    const std::string rest = line.substr(1);
    if (line[0] == '-') return line;
    if (line[0] == '$' || line[0] == '*') {
      if (rest == "-1") return "nil";
      const size_t count = std::strtoull(rest.c_str(), nullptr, 10);
      if (line[0] == '$') return absl::StrCat("\"", Take(count + 2).substr(0, count), "\"");
      std::string all;
      for (size_t i = 0; i < count; ++i) absl::StrAppend(&all, i == 0 ? "" : " ", Reply());
      return absl::StrCat("[", all, "]");
    }
    return rest;
  }

  pid_t pid_ = 0;
  int output_ = -1;
  int socket_ = -1;
  std::string log_;
  std::string received_;
};

}  // namespace idemd::testing

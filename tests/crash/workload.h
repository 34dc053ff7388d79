// Random requests on a few keys: tokens, reservations, states, plain strings, collections, scripts,
// whole databases.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/crash/sim_server.h"

namespace idemd::testing {

class Workload {
 public:
  Workload(SimServer& server, std::mt19937_64& random) : server_(server), random_(random) {}
  // One unit: a command, or a MULTI with all of its own.
  void Step();
  // A token that was issued, "" when there is none, and its database.
  const std::string& token() const { return token_; }

 private:
  using Words = std::vector<std::string>;
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  std::string Key(const char* kind) { return kind + std::to_string(Below(6)); }
  std::string Value();
  std::string Run(const Words& words) { return server_.Do(words); }
  void Token();
  void Consume();
  void Reserve();
  void Fenced();
  void Plain();
  void Several();
  void Whole();
  // workload_collections.cc
  std::string Few(const char* kind);
  std::string Part();
  std::string Element();
  std::string AnyCollection();
  void Collection();
  void Hash();
  void Set();
  void SortedSet();
  void List();
  void Stream();
  void AnyOfThem();

  SimServer& server_;
  std::mt19937_64& random_;
  storage::DbIndex db_ = 0;
  std::string token_;
  Words tokens_;
  Words fences_{"1"};
  uint64_t ids_ = 0;  // of entries of streams
};

}  // namespace idemd::testing

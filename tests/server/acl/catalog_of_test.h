// A small set of commands for tests of rules.
#pragma once

#include "server/acl/catalog.h"

namespace idemd::server::acl {

inline constexpr absl::string_view kTestCategories[] = {"read", "write", "admin", "slow"};
inline constexpr uint32_t kReads = 1, kWrites = 2, kAdmins = 4, kSlow = 8;

// 0 get, 1 set, 2 del, 3 config, 4 config|get, 5 config|set, 6 select, 7 auth, 8 mget
inline Catalog TestCatalog() {
  Catalog catalog(kTestCategories);
  catalog.Add({.name = "get", .categories = kReads});
  catalog.Add({.name = "set", .categories = kWrites});
  catalog.Add({.name = "del", .categories = kWrites});
  catalog.Add({.name = "config", .categories = kSlow});
  catalog.Add({.name = "config|get", .parent = 3, .categories = kAdmins});
  catalog.Add({.name = "config|set", .parent = 3, .categories = kAdmins});
  catalog.Add({.name = "select"});
  catalog.Add({.name = "auth", .always = true});
  catalog.Add({.name = "mget", .categories = kReads});
  return catalog;
}

}  // namespace idemd::server::acl

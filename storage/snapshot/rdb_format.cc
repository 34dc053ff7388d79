// The names behind the numbers of the RDB format.
#include "storage/snapshot/rdb_format.h"

#include "absl/strings/str_cat.h"

namespace idemd::storage {

const char* RdbTypeName(uint8_t type) {
  switch (type) {
    case 0:
      return "a string";
    case 1:
      return "a list";
    case 2:
      return "a set";
    case 3:
      return "a sorted set";
    case 4:
      return "a hash";
    case 5:
      return "a sorted set (binary scores)";
    case 6:
      return "a module's value (of an old candidate)";
    case 7:
      return "a module's value";
    case 9:
      return "a hash (zipmap)";
    case 10:
      return "a list (ziplist)";
    case 11:
      return "a set (intset)";
    case 12:
      return "a sorted set (ziplist)";
    case 13:
      return "a hash (ziplist)";
    case 14:
      return "a list (quicklist of ziplists)";
    case 15:
    case 19:
    case 21:
      return "a stream";
    case 16:
      return "a hash (listpack)";
    case 17:
      return "a sorted set (listpack)";
    case 18:
      return "a list (quicklist)";
    case 20:
      return "a set (listpack)";
    case 22:
    case 24:
      return "a hash with lifetimes";
    case 23:
    case 25:
      return "a hash with lifetimes (listpack)";
    default:
      return nullptr;
  }
}

std::string RdbModuleName(uint64_t id) {
  constexpr char kCharacters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string name;
  for (int shift = 58; shift >= 10; shift -= 6) name += kCharacters[id >> shift & 0x3f];
  return absl::StrCat(name, " ", id & 0x3ff);
}

}  // namespace idemd::storage

// What a key can hold, and what TYPE calls it.
#pragma once

#include <cstdint>

namespace idemd::storage {

enum class ValueType : uint8_t { kNone, kString, kRecord, kHash, kList, kSet, kSortedSet, kStream };

// A record is a string to whoever asks.
inline constexpr const char* ValueTypeName(ValueType type) {
  switch (type) {
    case ValueType::kNone:
      return "none";
    case ValueType::kString:
    case ValueType::kRecord:
      return "string";
    case ValueType::kHash:
      return "hash";
    case ValueType::kList:
      return "list";
    case ValueType::kSet:
      return "set";
    case ValueType::kSortedSet:
      return "zset";
    case ValueType::kStream:
      return "stream";
  }
  return "none";
}

inline constexpr bool IsString(ValueType type) { return type == ValueType::kString || type == ValueType::kRecord; }
inline constexpr bool IsCollection(ValueType type) { return type > ValueType::kRecord; }

}  // namespace idemd::storage

// A collection through RDB and back, and damaged bytes into the reader.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "storage/collection/collection.h"
#include "storage/collection/rdb_collection.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

// Reads what follows a key, in chunks of `chunk` bytes; null where it is refused. All of it must be used.
inline std::unique_ptr<Collection> ReadRdbBytes(uint8_t type, absl::string_view bytes, size_t chunk, bool whole = true) {
  absl::string_view left = bytes;
  std::string kept;  // as from a file: the chunk before is gone
  RdbScanner scan([&left, &kept, chunk](size_t) {
    kept = std::string(left.substr(0, chunk));
    left.remove_prefix(kept.size());
    return absl::string_view(kept);
  });
  const ReadRdbCollection read = RdbCollectionReader(type);
  if (read == nullptr) return nullptr;
  std::unique_ptr<Collection> made = read(type, scan);
  EXPECT_EQ(made == nullptr, !scan.failure().ok());
  EXPECT_TRUE(made == nullptr || !whole || scan.input().AtEnd());
  return made;
}

inline std::unique_ptr<Collection> RoundTrip(const Collection& of, RdbStrings strings, size_t chunk) {
  std::string bytes;
  of.AppendRdb(strings, bytes);
  return ReadRdbBytes(of.rdb_type(), bytes, chunk);
}

// Cuts and flips what `of` writes: the reader refuses it or makes something that can be read through.
inline void ReadDamaged(const Collection& of, std::mt19937_64& random, int tries) {
  std::string good;
  of.AppendRdb(RdbStrings::kPlain, good);
  const auto look = [&](const std::string& bytes) {
    const auto made = ReadRdbBytes(of.rdb_type(), bytes, size_t{1} << 20, /*whole=*/false);
    if (made == nullptr) return;
    size_t elements = 0, shown = 0;
    made->ForEach([&](absl::string_view element) {
      elements += 1;
      shown += static_cast<size_t>(std::count(element.begin(), element.end(), 'x'));
    });
    EXPECT_EQ(elements, made->size());
    EXPECT_LE(shown, bytes.size() * 100);
  };
  for (int i = 0; i < tries; ++i) {
    std::string bytes = good;
    for (int flips = static_cast<int>(random() % 3); flips >= 0 && !bytes.empty(); --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1u << random() % 8);
    if (random() % 2 == 0) bytes.resize(random() % (bytes.size() + 1));
    look(bytes);
  }
}

}  // namespace idemd::storage

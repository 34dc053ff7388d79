// Sorted sets: members with scores, in the order of both, each with a rank.
//
// A small one is a listpack: member, score, member, score, ..., in order. A large one keeps each member once, in an allocation of
// its own (scored_member.h), with a table by its bytes (dense_table.h) and a tree by its score (score_tree.h). One becomes large
// when it gets more members than the settings say, or a longer one, and stays so.
//
// Ranks count from 0 at the lowest score; members of one score are in the order of their bytes.
//
// Threads     as collection.h; the settings may be set from any.
// Lifetime    what members are shown as is good during the call.
// Limits      2^32 - 2 members of less than 2^32 bytes.
// Scores      any number but NaN; -0 is kept as 0 by a small one, as by Redis.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"
#include "storage/collection/dense_table.h"
#include "storage/collection/listpack.h"
#include "storage/collection/score_tree.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

class SortedSet final : public Collection {
 public:
  static constexpr ValueType kType = ValueType::kSortedSet;
  // The settings zset-max-listpack-entries and zset-max-listpack-value: what a small one may hold.
  static inline std::atomic<uint64_t> small_members_max{128};
  static inline std::atomic<uint64_t> small_bytes_max{64};

  SortedSet() = default;
  // Large at once where so many members, or such a long one, are to come.
  SortedSet(size_t members, size_t longest);
  ~SortedSet() override;

  ValueType type() const override { return kType; }
  size_t size() const override { return large_ != nullptr ? large_->tree.size() : SmallPairs(); }
  size_t memory_bytes() const override;
  const char* encoding() const override { return large_ != nullptr ? "skiplist" : "listpack"; }
  bool is_small() const { return large_ == nullptr; }
  std::unique_ptr<Collection> Clone() const override;
  uint8_t rdb_type() const override;
  void AppendRdb(RdbStrings strings, std::string& out) const override;
  void ForEach(absl::FunctionRef<void(absl::string_view member)> each) const override;
  // The types that RDB has for them: the first two have scores as texts and as eight bytes.
  static constexpr uint8_t kRdbTexts = 3, kRdbDoubles = 5, kRdbZiplist = 12, kRdbListpack = 17;
  // Null: `scan` says what is wrong.
  static std::unique_ptr<Collection> ReadRdb(uint8_t type, RdbScanner& scan);

  // --- one member
  // What is to become of a member that is there, and of one that is not; as the options of ZADD.
  struct Rule {
    bool only_new = false;    // NX
    bool only_old = false;    // XX
    bool only_above = false;  // GT: not below the score it has
    bool only_below = false;  // LT
    bool add = false;         // INCR: `score` is added to the one that it has
  };
  enum class Outcome : uint8_t {
    kAdded,
    kMoved,
    kSame,     // it has that score already
    kRefused,  // by the rule
    kNan,      // infinities that cannot be added
  };
  struct Result {
    Outcome outcome;
    double score;  // that it has now; of kRefused and kNan: that it would have got
  };
  Result Set(absl::string_view member, double score, const Rule& rule);
  Result Set(absl::string_view member, double score) { return Set(member, score, Rule()); }
  bool Remove(absl::string_view member);
  std::optional<double> Score(absl::string_view member) const;
  std::optional<size_t> Rank(absl::string_view member) const;

  // --- ranges, as ranks
  // How many members have a lower score, or, with `equal`, no higher one.
  size_t CountBelow(double score, bool equal) const;
  // How many members come before these bytes, where all have the same score.
  size_t CountBelow(absl::string_view member, bool equal) const;
  // `count` members from rank `first` on, as far as there are that many. `reverse`: ranks are counted from the highest, and
  // downwards. The member's bytes are good during the call.
  using Each = absl::FunctionRef<void(absl::string_view member, double score)>;
  void ForRange(size_t first, size_t count, bool reverse, Each each) const;
  void RemoveRange(size_t first, size_t count);

  // --- places, which mean nothing and change with the set
  // The member at a place below size().
  void ShowPlace(size_t place, Each each) const;
  // As DenseTable::Scan(); a small one comes whole.
  uint64_t Scan(uint64_t cursor, uint64_t count, Each each) const;

  // For tests: stops the process when something is not as it should be.
  void CheckInvariants() const;

 private:
  struct TextOf {
    static absl::string_view Of(const ScoredMember* member) { return member->text(); }
  };
  struct Large {
    Large() = default;
    ~Large();
    ScoredMember* Find(absl::string_view text) const;
    // The member, with this score if it was not there; `added` says so.
    ScoredMember* FindOrAdd(absl::string_view text, double score, bool* added);
    bool Erase(absl::string_view text);

    DenseTable<ScoredMember*, TextOf> members;
    ScoreTree tree;
    size_t member_bytes = 0;  // as allocated
  };

  Result SetLarge(absl::string_view member, double score, const Rule& rule);
  static Result Decide(std::optional<double> old, double score, const Rule& rule);
  double ScoreAt(Listpack::At at) const;
  Listpack::At FindSmall(absl::string_view member) const { return small_.Find(small_.First(), member, 1); }
  void InsertSmall(absl::string_view member, double score);
  size_t SmallPairs() const { return small_.count() / 2; }
  template <class Predicate>
  size_t CountSmall(const Predicate& before) const;
  bool FitsSmall(size_t members, size_t longest) const;
  void BecomeLarge();
  void BecomeSmall();
  // Packed forms as a file has them; this set is empty.
  bool TakeSmall(absl::string_view bytes);
  bool TakeZiplist(absl::string_view bytes);

  Listpack small_;  // empty when there is a large form
  std::unique_ptr<Large> large_;
};

}  // namespace idemd::storage

// Sorted sets: members with scores, in the order of both, each with a rank.
//
// A small one is a listpack: member, score, member, score, ..., in order. A large one keeps each member once, in an allocation of
// its own (scored_member.h), with an index by its bytes and a tree by its score (score_tree.h). One becomes large when it gets
// more members than Limits says, or a longer one, and stays so.
//
// Ranks count from 0 at the lowest score; members of one score are in the order of their bytes.
//
// Threads     as Collection. limits() may be set from any thread.
// Scores      any number but NaN; -0 is kept as 0 by a small one, as by Redis.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/collection/collection.h"
#include "storage/collection/listpack.h"
#include "storage/collection/score_tree.h"
#include "storage/snapshot/rdb_scanner.h"

namespace idemd::storage {

class SortedSet final : public Collection {
 public:
  // How large a small one may be: zset-max-listpack-entries, zset-max-listpack-value.
  struct Limits {
    std::atomic<int64_t> entries{128};
    std::atomic<int64_t> value_bytes{64};
  };
  static Limits& limits();

  SortedSet() = default;
  // Large at once where so many members, or such a long one, are to come.
  SortedSet(size_t members, size_t longest);
  ~SortedSet() override;

  ValueType type() const override { return ValueType::kSortedSet; }
  size_t size() const override { return large_ != nullptr ? large_->tree.size() : SmallPairs(); }
  size_t memory_bytes() const override;
  const char* encoding() const override { return large_ != nullptr ? "skiplist" : "listpack"; }
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

  // For tests: stops the process when something is not as it should be.
  void CheckInvariants() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(absl::string_view text) const;
    size_t operator()(const ScoredMember* member) const { return (*this)(member->text()); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const ScoredMember* a, const ScoredMember* b) const { return a == b; }
    bool operator()(const ScoredMember* a, absl::string_view b) const { return a->text() == b; }
    bool operator()(absl::string_view a, const ScoredMember* b) const { return a == b->text(); }
  };
  struct Large {
    Large() = default;
    ~Large();
    ScoredMember* Find(absl::string_view text) const;
    // The member, with this score if it was not there; `added` says so.
    ScoredMember* FindOrAdd(absl::string_view text, double score, bool* added);
    void Erase(ScoredMember* member);
    // An index from which nearly all has gone gives its memory back.
    void ShrinkIndex();

    absl::flat_hash_set<ScoredMember*, Hash, Equal> index;
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

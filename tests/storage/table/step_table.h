// A table under a schedule: keys of both forms that tell when they are misused, and the states that
// each key went through.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/table/table.h"
#include "tests/schedule/step_sync.h"

namespace idemd::storage {

inline uint64_t TestHash(uint32_t number) {  // splitmix64
  uint64_t x = number * 0x9e3779b97f4a7c15u + 0x1234567u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
// All keys have the same home: who comes later goes to a later line.
inline uint64_t OneHomeHash(uint32_t number) {
  return TestHash(number) & ~(uint64_t{0xffff} << 42);
}

// A key is a number. Of four, the first two can be inline; they have the same 16 bytes and differ
// in their shapes. Those bytes would pass for two slots of that key that lead to a decoy, which
// tells when it is used.
struct StepKey {
  explicit StepKey(uint32_t n);
  static bool CanBeInline(uint32_t n) { return n % 4 < 2; }

  uint32_t number;
  uint64_t hash;
  uint64_t words[2];
};

class StepEntry {
 public:
  using Key = StepKey;
  // Of all keys; a scenario sets it before it makes any.
  static inline uint64_t (*hash_function)(uint32_t number) = &TestHash;
  static constexpr uint32_t kDecoy = UINT32_MAX;  // the number of what must never be used
  static inline const StepEntry* decoy = nullptr;

  StepEntry(uint32_t number, int version, int64_t deadline_ms)
      : number_(number), version_(version), deadline_ms_(deadline_ms) {
    if (number != kDecoy) ++living;
  }
  static void Destroy(StepEntry* entry) {
    entry->life_.End();
    --living;
    Schedule::current()->Quarantine([entry] { delete entry; });
  }

  // --- what the table asks
  static const uint64_t* Words(const Key& key) {
    return Key::CanBeInline(key.number) ? key.words : nullptr;
  }
  static bool ShapeIs(uint32_t shape, const Key& key) { return (shape & 1) == (key.number & 1); }
  static uint32_t NumberOf(uint32_t shape, const uint64_t* words) {
    return static_cast<uint32_t>(words[1] >> 48) << 1 | (shape & 1);
  }
  static uint64_t InlineHash(uint32_t shape, const uint64_t* words) {
    return hash_function(NumberOf(shape, words));
  }
  bool Is(const Key& key) const { return number() == key.number; }
  uint64_t hash() const { return hash_function(number()); }
  int64_t deadline_ms() const { return deadline_ms_; }

  void set_deadline_ms(int64_t at) { deadline_ms_ = at; }
  uint32_t number() const {
    Use();
    return number_;
  }
  int version() const {
    Use();
    return version_;
  }

  static inline int living = 0;

 private:
  void Use() const {
    life_.Use();
    if (number_ == kDecoy)
      Schedule::current()->Fail("the bytes of an inline key are never followed as an address [T4]");
  }

  StepLife life_;
  const uint32_t number_;
  const int version_;
  int64_t deadline_ms_;  // holder of the lock
};

inline StepKey::StepKey(uint32_t n)
    : number(n),
      hash(StepEntry::hash_function(n)),
      words{SlotWord(TagOf(StepEntry::hash_function(n & ~1u)), StepEntry::decoy),
            SlotWord(n >> 1, StepEntry::decoy)} {}

// Three lines of one pair each: three inline keys or six others fill a segment, which splits at
// once.
struct TinyShape {
  static constexpr uint32_t kPairs = 1;
  static constexpr uint32_t kLinesFirst = 4;
  static constexpr uint32_t kLinesMin = 4;
  static constexpr uint32_t kLinesStep = 1;
  static constexpr uint32_t kLinesMax = 4;
  static constexpr uint32_t kStepsMore = 0;
  static constexpr uint32_t kFillMax = 100;  // so that keys get far from home
  static constexpr size_t kKeysPerReferenceMin = 1;
};
// Begins with two lines and grows before it splits.
struct SmallShape : TinyShape {
  static constexpr uint32_t kLinesFirst = 3;
  static constexpr uint32_t kLinesMax = 6;
  static constexpr uint32_t kStepsMore = 0;
};
// Pair 1 has its cell in the line's last word.
struct PairShape : TinyShape {
  static constexpr uint32_t kPairs = 2;
  static constexpr uint32_t kLinesFirst = 3;
  static constexpr uint32_t kLinesMin = 3;
  static constexpr uint32_t kLinesMax = 3;
  static constexpr uint32_t kStepsMore = 0;
};

// The states of one key in the order in which the writers made them. A state begins at some step of
// the operation that made it, so that a find may answer it from that operation's first step until
// the next one's last.
class KeyStates {
 public:
  static constexpr int kAbsent = -1;

  void Begin(int version) { states_.push_back({version, UINT64_MAX}); }
  void End(uint64_t now) {
    for (size_t i = states_.size(); i-- > 0 && states_[i].surely_from == UINT64_MAX;)
      states_[i].surely_from = now;
  }
  int now() const { return states_.back().version; }

  // The earliest state, not before number `from`, that a find from step `begun` until now may have
  // answered with `version`; -1: none. With `timeless`, steps say nothing about what is visible to
  // whom (stale values).
  int Explain(int version, int from, uint64_t begun, bool timeless) const {
    for (size_t i = static_cast<size_t>(from); i < states_.size(); ++i) {
      const bool over = i + 1 < states_.size() && states_[i + 1].surely_from < begun;
      if (states_[i].version == version && (timeless || !over)) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  struct State {
    int version;
    uint64_t surely_from;  // the step at which its operation had ended
  };
  std::vector<State> states_ = {{kAbsent, 0}};
};

// What a writer does to a key.
enum class Do : uint8_t {
  kPut,         // out of line; an inline key changes its form
  kPutInline,   // a key that is out of line stays so, and nothing happens
  kPutExpired,  // the same at a time at which the inline key that is there has lapsed
  kTake,
  kSetDeadline,  // of a key that is there
  kSweep,        // expires the older half of what can expire; whatever the key
  kRelocate,     // copies all entries; whatever the key
};
struct Change {
  Do what;
  uint32_t key = 0;
};

// What a key held at one moment.
struct Held {
  int version;
  int64_t deadline_ms;
  bool operator==(const Held&) const = default;
};

template <class Sync, class Shape>
class StepTable {
 public:
  static constexpr uint32_t kKeys = 24;
  using Table = BasicTable<StepEntry, Sync, Shape>;
  using Item = typename Table::Item;

  // Keys below `stable` are never taken and never expire. `hash` is that of all keys.
  StepTable(Schedule& schedule, uint64_t (*hash)(uint32_t), uint32_t stable = 0)
      : schedule_(schedule), stable_(stable), decoy_(StepEntry::kDecoy, 0, 0), table_(kSoon) {
    StepEntry::hash_function = hash;
    StepEntry::decoy = &decoy_;
    versions_.push_back({});
  }

  Table& table() { return table_; }
  static bool IsInlineKey(uint32_t key) { return StepKey::CanBeInline(key); }

  // Threads move the epoch on now and then also when they have retired nothing; without, there are
  // fewer steps.
  bool busy = true;

  // Writers; the lock is taken here, inside a guard as in a Unit.
  void Write(const Change& change) {
    {
      const BasicEpochGuard<Sync> guard;
      mutex_.Lock();
      switch (change.what) {
        case Do::kPut:
          Put(change.key);
          break;
        case Do::kPutInline:
          PutInline(change.key, false);
          break;
        case Do::kPutExpired:
          PutInline(change.key, true);
          break;
        case Do::kTake:
          Take(change.key);
          break;
        case Do::kSetDeadline:
          SetDeadline(change.key);
          break;
        case Do::kSweep:
          Sweep();
          break;
        case Do::kRelocate:
          Relocate();
          break;
      }
      for (KeyStates& states : states_) states.End(schedule_.now());
      mutex_.Unlock();
    }
    if (busy) epochs_.domain().TryAdvance();
  }
  // Epochs enough for what was emptied before to be filled again.
  void LetEpochsPass() {
    for (int i = 0; i < 4; ++i) epochs_.domain().TryAdvance();
  }
  void CheckInvariants() const { table_.CheckInvariants(kBase); }

  // One reader's memory: what it saw of each key must not go back.
  class Reader {
   public:
    explicit Reader(StepTable& of) : of_(of) {}

    void Find(uint32_t key) {
      if (of_.busy)
        of_.epochs_.domain().TryAdvance();  // as a thread with a backlog does now and then
      const StepKey looked_up(key);
      const uint64_t begun = of_.schedule_.now();
      const BasicEpochGuard<Sync> guard;
      const Item item = of_.table_.Find(looked_up);
      int version = KeyStates::kAbsent;
      if (item) {
        of_.schedule_.Expect(of_.KeyOf(item) == key, "what is found is the key's [T1]");
        version = of_.VersionOf(item);
      }
      const int state = of_.states_[key].Explain(version, at_[key], begun, of_.schedule_.stale());
      of_.schedule_.Expect(
          state >= 0, item ? "what is found is current [T2]" : "absent is a promise [T2] [T3]");
      if (state >= 0) at_[key] = state;
    }
    // A whole scan; returns the keys seen.
    std::set<uint32_t> Scan() {
      std::set<uint32_t> seen;
      uint64_t cursor = 0;
      do {
        const uint64_t begun = of_.schedule_.now();
        const BasicEpochGuard<Sync> guard;
        cursor =
            of_.table_.Scan(cursor, [&](const Item& item) { seen.insert(of_.Visit(item, begun)); });
      } while (cursor != 0);
      return seen;
    }
    void ScanSeesWhatStays() {
      const std::set<uint32_t> seen = Scan();
      for (uint32_t key = 0; key < of_.stable_; ++key)
        of_.schedule_.Expect(seen.count(key) == 1, "a scan visits what is there throughout [T6]");
    }
    void Random() {
      const uint64_t begun = of_.schedule_.now();
      const BasicEpochGuard<Sync> guard;
      const Item item = of_.table_.Random(of_.schedule_.seed());
      of_.schedule_.Expect(static_cast<bool>(item) || of_.stable_ == 0, "there is some key");
      if (item) of_.Visit(item, begun);
    }

   private:
    StepTable& of_;
    std::array<int, kKeys> at_{};
  };

  // One cut after another, each saved while the writers go on.
  class Saver {
   public:
    explicit Saver(StepTable& of) : of_(of) {}

    // Saves so many lines at a time.
    void Save(uint32_t lines) {
      OneCut cut(of_, ++epoch_);
      Locked([&] {
        cut.expected = of_.Holds();
        of_.table_.BeginCut(cut);
      });
      uint64_t position = 0;
      bool all = false;
      while (!all) {
        Locked([&] {
          uint32_t saved = 0;
          all = of_.table_.SaveNext(&position, [&] { return ++saved == lines; });
          if (all) of_.table_.EndCut();
        });
      }
      of_.schedule_.Expect(cut.saved == cut.expected, "what was there at the cut is saved as it was [T8]");
      changed_meanwhile += Locked([&] { return of_.Holds(); }) != cut.expected ? 1 : 0;
    }
    // A cut that is given up after a few lines.
    void GiveUp(uint32_t lines) {
      OneCut cut(of_, ++epoch_);
      Locked([&] { of_.table_.BeginCut(cut); });
      Locked([&] {
        uint64_t position = 0;
        of_.table_.SaveNext(&position, [&] { return lines-- == 0; });
        of_.table_.EndCut();
      });
    }

    uint64_t changed_meanwhile = 0;

   private:
    struct OneCut final : Cut<StepEntry> {
      OneCut(StepTable& table, uint32_t epoch) : Cut<StepEntry>(epoch), of(table) {}
      void Save(const Item& item) override {
        of.schedule_.Expect(saved.emplace(of.KeyOf(item), of.HeldIn(item)).second, "a key is saved once [T8]");
      }
      StepTable& of;
      std::map<uint32_t, Held> expected, saved;
    };
    template <class Body>
    auto Locked(Body body) {
      const BasicEpochGuard<Sync> guard;
      of_.mutex_.Lock();
      struct Unlocks {
        StepMutex& mutex;
        ~Unlocks() { mutex.Unlock(); }
      } const unlocks{of_.mutex_};
      return body();
    }

    StepTable& of_;
    uint32_t epoch_ = 0;
  };

 private:
  // Deadlines tell key and version, so that a cell proves itself:
  //
  //   31 30 29          8 7     0
  //   +-----+------------+-------+
  //   | when| version    | key   |
  //   +-----+------------+-------+
  static constexpr int64_t kBase = 0;
  static constexpr uint32_t kSoon = 1u << 30;
  static constexpr uint32_t kLate = 1u << 31;  // of stable keys
  struct Version {
    uint32_t key = UINT32_MAX;
    uint32_t shape = 0;  // 0: out of line
  };

  int NewVersion(uint32_t key, uint32_t shape) {
    versions_.push_back({key, shape});
    return static_cast<int>(versions_.size() - 1);
  }
  uint32_t KeyMark(uint32_t key) const { return key < stable_ ? kLate : kSoon; }
  int64_t DeadlineOf(uint32_t key, int version) const {
    return KeyMark(key) | static_cast<uint32_t>(version) << 8 | key;
  }

  uint32_t KeyOf(const Item& item) const {
    const uint32_t key =
        item.entry != nullptr ? item.entry->number() : StepEntry::NumberOf(item.shape, item.words);
    schedule_.Expect(key < kKeys, "a key is one of those that were put [T1]");
    return key < kKeys ? key : 0;
  }
  int VersionOf(const Item& item) const {
    if (item.entry != nullptr) return item.entry->version();
    const uint32_t key = KeyOf(item);
    const uint32_t version = (item.cell & ~KeyMark(key)) >> 8;
    const bool proves_itself = (item.cell & KeyMark(key)) != 0 && (item.cell & 0xff) == key &&
                               version < versions_.size() && versions_[version].key == key;
    schedule_.Expect(proves_itself, "a cell is its key's deadline [T2] [T4]");
    if (proves_itself)
      schedule_.Expect(versions_[version].shape == item.shape,
                       "a deadline and a shape were there at one moment [T2]");
    return static_cast<int>(version);
  }
  Held HeldIn(const Item& item) const {
    return {VersionOf(item), item.entry != nullptr ? item.entry->deadline_ms() : DeadlineOfCell(item.cell, kBase)};
  }
  // The lock is held.
  std::map<uint32_t, Held> Holds() const {
    std::map<uint32_t, Held> held;
    for (uint32_t key = 0; key < kKeys; ++key) {
      const Now& now = now_[key];
      if (!now.there()) continue;
      Item item;
      item.entry = now.entry;
      item.shape = now.shape;
      item.cell = CellOf(now.deadline_ms);
      item.words[0] = StepKey(key).words[0];
      item.words[1] = StepKey(key).words[1];
      held[key] = HeldIn(item);
    }
    return held;
  }
  uint32_t Visit(const Item& item, uint64_t begun) const {
    const uint32_t key = KeyOf(item);
    schedule_.Expect(states_[key].Explain(VersionOf(item), 0, begun, schedule_.stale()) >= 0,
                     "what is visited is current [T2] [T6]");
    return key;
  }

  void Put(uint32_t key) {
    const int version = NewVersion(key, 0);
    auto* fresh = new StepEntry(key, version, DeadlineOf(key, version));
    states_[key].Begin(version);
    Replaced(key, table_.Put(StepKey(key), fresh));
    now_[key] = {fresh, 0, fresh->deadline_ms()};
  }
  void PutInline(uint32_t key, bool expired) {
    const uint32_t shape = 2 + static_cast<uint32_t>(versions_.size() % 3) * 2 + (key & 1);
    const int version = NewVersion(key, shape);
    const int64_t deadline_ms = DeadlineOf(key, version);
    const bool out_of_line = now_[key].entry != nullptr;
    if (!out_of_line) {
      if (expired && now_[key].there()) states_[key].Begin(KeyStates::kAbsent);
      states_[key].Begin(version);
    }
    const int64_t now_ms = expired ? std::numeric_limits<int64_t>::max() - 1 : kBase;
    Item old;
    const bool put = table_.PutInline(StepKey(key), shape, deadline_ms, now_ms, kBase, &old);
    schedule_.Expect(put == !out_of_line, "a key that is out of line stays so [T7]");
    if (!put) return;
    Replaced(key, old);
    now_[key] = {nullptr, shape, deadline_ms};
  }
  void Take(uint32_t key) {
    states_[key].Begin(KeyStates::kAbsent);
    Replaced(key, table_.Take(StepKey(key)));
    now_[key] = {};
  }
  void SetDeadline(uint32_t key) {
    if (!now_[key].there()) return;
    const int version = NewVersion(key, now_[key].shape);
    now_[key].deadline_ms = DeadlineOf(key, version);
    table_.SaveBefore(StepKey(key));
    if (now_[key].entry != nullptr)
      now_[key].entry->set_deadline_ms(now_[key].deadline_ms);
    else
      states_[key].Begin(version);
    table_.SetDeadline(StepKey(key), now_[key].deadline_ms);
  }
  void Sweep() {
    const int64_t now_ms = kSoon | static_cast<uint32_t>(versions_.size() / 2) << 8;
    std::set<uint32_t> expected, taken;
    for (uint32_t key = 0; key < kKeys; ++key)
      if (now_[key].there() && now_[key].deadline_ms <= now_ms) expected.insert(key);
    bool more = true;
    while (more) {
      std::vector<typename Table::Due> due;
      more = table_.CollectDue(now_ms, kBase, 1, due);
      for (const auto& d : due) {
        const uint32_t key = KeyOf(d.item);
        taken.insert(key);
        states_[key].Begin(KeyStates::kAbsent);
        table_.Remove(d);
        Replaced(key, d.item);
        now_[key] = {};
      }
      table_.FinishDue(due);
    }
    schedule_.Expect(taken == expected, "a sweep takes what is due [T5]");
  }
  void Relocate() {
    uint64_t position = 0;
    do {
      table_.Relocate(&position, 1, [&](StepEntry& entry) {
        auto* copy = new StepEntry(entry.number(), entry.version(), entry.deadline_ms());
        now_[entry.number()].entry = copy;
        moved_.push_back(&entry);
        return copy;
      });
    } while (position != 0);
    for (StepEntry* entry : moved_) Retire(entry);
    moved_.clear();
  }
  // Retires what was there, and knows what that must have been.
  void Replaced(uint32_t key, const Item& old) {
    schedule_.Expect(old.entry == now_[key].entry && old.shape == now_[key].shape,
                     "a writer finds what was put [T2]");
    if (old && old.entry == nullptr)
      schedule_.Expect(DeadlineOfCell(old.cell, kBase) == now_[key].deadline_ms,
                       "a writer finds its deadline [T2]");
    if (old.entry != nullptr) Retire(old.entry);
  }
  void Retire(StepEntry* old) { BasicRetire<Sync>(old, &DestroyRetired); }
  static void DestroyRetired(void* at) { StepEntry::Destroy(static_cast<StepEntry*>(at)); }

  struct Now {
    StepEntry* entry = nullptr;
    uint32_t shape = 0;
    int64_t deadline_ms = kNoDeadline;
    bool there() const { return entry != nullptr || shape != 0; }
  };

  Schedule& schedule_;
  const uint32_t stable_;
  StepEntry decoy_;
  StepEpochs<Sync> epochs_;  // outlives the table, which retires to it
  Table table_;
  StepMutex mutex_;
  std::vector<Version> versions_;
  std::vector<StepEntry*> moved_;
  std::array<Now, kKeys> now_{};  // what the lock's holder knows to be there
  std::array<KeyStates, kKeys> states_;
};

}  // namespace idemd::storage

"""Requests on hashes, sets, sorted sets, lists and streams with a group, alone, several in one EXEC and by scripts; how they are read back."""
from history import ABSENT, ANY, Gone, Op
from lib.resp import Error, Nil

KINDS = "HSZLX"       # the second part of a key's name says what it is; F is a hash with a lifetime
EACH = 3              # keys of a kind that a worker has
MANY = 40             # elements; past that there is a trim
MOVING = [f"m{i}" for i in range(60)]  # elements of two lists that all workers move between
MOVE_SCRIPT = ("local one = redis.call('LPOP', KEYS[1]) "
               "redis.call('SADD', KEYS[2], one) redis.call('HINCRBY', KEYS[3], 'moved', 1) return one")


def text(value):
    return bytes(value).decode("latin-1") if isinstance(value, bytes) else str(value)


def texts(values):
    return [text(value) for value in values]


# --- states: tuples as in history.py. An empty collection is none, but for a stream.
def hash_state(pairs):
    return ("hash", frozenset(pairs.items())) if pairs else ABSENT


def set_state(members):
    return ("set", frozenset(members)) if members else ABSENT


def zset_state(scores):
    return ("zset", frozenset(scores.items())) if scores else ABSENT


def list_state(elements):
    return ("list", *elements) if elements else ABSENT


def stream_state(last, pending, entries):
    """`last`: delivered to the group; `pending`: IDs; `entries`: IDs and values by turns."""
    return ("stream", last, frozenset(pending), *entries)


class OneLess:
    """A set without one member; which one, only a lost reply would have told."""

    def __init__(self, members):
        self.members = members

    def __eq__(self, other):
        return isinstance(other, frozenset) and other < self.members and len(other) == len(self.members) - 1

    __hash__ = None


# --- reading back
def is_collection(key):
    return key.split(":")[1] in KINDS + "F"


def reads(key):
    kind = key.split(":")[1]
    if kind in "HF":
        return [("HGETALL", key)]
    if kind == "S":
        return [("SMEMBERS", key)]
    if kind == "Z":
        return [("ZRANGE", key, "0", "-1", "WITHSCORES")]
    if kind == "L":
        return [("LRANGE", key, "0", "-1")]
    return [("XRANGE", key, "-", "+"), ("XINFO", "GROUPS", key), ("XPENDING", key, "g", "-", "+", "100000")]


def seen_state(key, replies):
    kind = key.split(":")[1]
    if kind == "X" and isinstance(replies[1], Error) and replies[1].code == "ERR":
        return ABSENT  # no such key
    for reply in replies:
        if isinstance(reply, Error):
            return ("error", repr(reply))
    if kind == "X":
        entries = []
        for number, fields in replies[0]:
            entries += [text(number), text(fields[1])]
        groups = [dict(zip(texts(group[::2]), group[1::2])) for group in replies[1]]
        if len(groups) != 1:
            return ("stream", f"{len(groups)} groups", *entries)
        return stream_state(text(groups[0]["last-delivered-id"]), [text(one[0]) for one in replies[2]], entries)
    words = texts(replies[0])
    if kind in "HF":
        return hash_state(dict(zip(words[::2], words[1::2])))
    if kind == "S":
        return set_state(words)
    if kind == "Z":
        return zset_state(dict(zip(words[::2], words[1::2])))
    return list_state(words)


class Collections:
    """Draws for one worker; what it knows of its keys is in the worker's knowledge."""

    def __init__(self, worker):
        self.w = worker
        self.random = worker.random
        self.serial = 0

    def draw(self, busy):
        return self.random.choice((
            self.hash, self.hash, self.set, self.set, self.zset, self.zset, self.list, self.list, self.list, self.stream,
            self.stream, self.stream, self.stream, self.lmove, self.transfer, self.script, self.rename, self.copy,
            self.remove, self.lifetime, self.fleeting, self.shared_move, self.shared_move))(busy)

    # --- what there is
    def key(self, kind, busy):
        key = f"{self.w.prefix}{kind}:{self.random.randrange(EACH)}"
        return None if key in busy else key

    def keys(self, kinds, busy):
        """Different keys of these kinds; None where one of them is busy."""
        found = []
        for kind in kinds:
            key = self.key(kind, busy.union(found))
            if key is None:
                return None
            found.append(key)
        return found

    def state(self, key):
        return self.w.k.keys.get(key, ABSENT)

    def pairs(self, key):
        """Of a hash or sorted set."""
        state = self.state(key)
        return {} if state == ABSENT else dict(state[1])

    def members(self, key):
        state = self.state(key)
        return set() if state == ABSENT else set(state[1])

    def elements(self, key):
        state = self.state(key)
        return [] if state == ABSENT else list(state[1:])

    def value(self):
        self.serial += 1
        return f"{self.w.incarnation}.{self.serial}" + "x" * self.random.choice((0, 0, 0, 80, 700))

    def part(self):
        return f"p{self.random.randrange(30)}"

    def op(self, words, after, reply, replies=1):
        """`reply`: what must come, or a function of it."""
        op = Op(words, {key: self.state(key) for key in after}, after, replies)

        def took(got):
            if callable(reply):
                reply(op, got)
            else:
                self.w.check(op, got == reply or (isinstance(got, bytes) and text(got) == reply), got)
        op.took = took
        return op

    # --- one key
    def hash(self, busy):
        key = self.key("H", busy)
        if key is None:
            return None
        pairs = self.pairs(key)
        kind = self.random.randrange(4)
        if kind == 0:
            now = int(pairs.get("count", 0)) + self.random.choice((1, 5))
            words = ("HINCRBY", key, "count", str(now - int(pairs.get("count", 0))))
            return self.op(words, {key: hash_state({**pairs, "count": str(now)})}, now)
        names = list({self.part() for _ in range(self.random.randint(1, 3))})
        if kind == 1:
            left = {name: value for name, value in pairs.items() if name not in names}
            return self.op(("HDEL", key, *names), {key: hash_state(left)}, len(pairs) - len(left))
        fresh = {name: self.value() for name in names}
        after = {**pairs, **fresh}
        words = [word for pair in fresh.items() for word in pair]
        return self.op(("HSET", key, *words), {key: hash_state(after)}, len(after) - len(pairs))

    def set(self, busy):
        key = self.key("S", busy)
        if key is None:
            return None
        members = self.members(key)
        kind = self.random.randrange(4)
        if kind == 0 and len(members) > 1:
            op = None

            def popped(op, got):
                self.w.check(op, text(got) in members, got)
                op.after = {key: set_state(members - {text(got)})}
            op = self.op(("SPOP", key), {key: ("set", OneLess(frozenset(members)))}, popped)
            return op
        some = {self.part() if self.random.random() < 0.7 else str(self.random.randrange(100)) for _ in range(3)}
        if kind == 1 or len(members) > MANY:
            some |= set(list(members)[:len(members) // 2])
            return self.op(("SREM", key, *some), {key: set_state(members - some)}, len(members & some))
        return self.op(("SADD", key, *some), {key: set_state(members | some)}, len(some - members))

    def zset(self, busy):
        key = self.key("Z", busy)
        if key is None:
            return None
        scores = self.pairs(key)
        kind, member = self.random.randrange(4), self.part()
        if kind == 0:
            left = {name: score for name, score in scores.items() if name != member}
            return self.op(("ZREM", key, member), {key: zset_state(left)}, len(scores) - len(left))
        if kind == 1:
            score = str(int(scores.get(member, "0")) + 3)
            return self.op(("ZINCRBY", key, "3", member), {key: zset_state({**scores, member: score})}, score)
        if kind == 2 and scores:
            lowest = min(scores, key=lambda name: (int(scores[name]), name))
            left = {name: score for name, score in scores.items() if name != lowest}
            return self.op(("ZPOPMIN", key), {key: zset_state(left)},
                           lambda op, got: self.w.check(op, texts(got) == [lowest, scores[lowest]], got))
        score = str(self.random.randrange(1000))
        return self.op(("ZADD", key, score, member), {key: zset_state({**scores, member: score})}, int(member not in scores))

    def list(self, busy):
        key = self.key("L", busy)
        if key is None:
            return None
        elements = self.elements(key)
        if len(elements) > MANY:
            return self.op(("LTRIM", key, "-10", "-1"), {key: list_state(elements[-10:])}, "OK")
        kind = self.random.randrange(6)
        if kind == 0 and elements:
            return self.op(("LPOP", key), {key: list_state(elements[1:])}, elements[0])
        if kind == 1 and elements:
            return self.op(("RPOP", key), {key: list_state(elements[:-1])}, elements[-1])
        if kind == 2 and elements:
            value = self.value()
            return self.op(("LSET", key, "0", value), {key: list_state([value] + elements[1:])}, "OK")
        values = [self.value() for _ in range(self.random.randint(1, 3))]
        if kind == 3:
            after = values[::-1] + elements
            return self.op(("LPUSH", key, *values), {key: list_state(after)}, len(after))
        after = elements + values
        return self.op(("RPUSH", key, *values), {key: list_state(after)}, len(after))

    def stream(self, busy):
        key = self.key("X", busy)
        if key is None:
            return None
        state = self.state(key)
        if state == ABSENT:
            return self.op(("XGROUP", "CREATE", key, "g", "0", "MKSTREAM"), {key: stream_state("0-0", (), ())}, "OK")
        _, last, pending, *entries = state
        ids = entries[::2]
        kind = self.random.randrange(8)
        if kind == 0 and ids:
            at = self.random.randrange(len(ids))
            left = entries[:2 * at] + entries[2 * at + 2:]
            return self.op(("XDEL", key, ids[at]), {key: stream_state(last, pending, left)}, 1)
        if len(ids) > MANY:
            return self.op(("XTRIM", key, "MAXLEN", "=", "10"), {key: stream_state(last, pending, entries[-20:])},
                           len(ids) - 10)
        if kind in (1, 2):
            order = [tuple(map(int, one.split("-"))) for one in ids]
            unread = [one for one, number in zip(ids, order) if number > tuple(map(int, last.split("-")))]
            got_ids = unread[:self.random.randint(1, 5)]
            if got_ids:
                after = stream_state(got_ids[-1], pending | set(got_ids), entries)
                return self.op(("XREADGROUP", "GROUP", "g", "c", "COUNT", str(len(got_ids)), "STREAMS", key, ">"), {key: after},
                               lambda op, got: self.w.check(op, [text(one[0]) for one in got[0][1]] == got_ids, got))
        if kind == 3 and pending:
            some = sorted(pending)[:4]
            return self.op(("XACK", key, "g", *some), {key: stream_state(last, pending - set(some), entries)}, len(some))
        value = self.value()

        def added(op, got):
            op.after = {key: stream_state(last, pending, [*entries, text(got), value])}
        return self.op(("XADD", key, "*", "f", value), {key: stream_state(last, pending, [*entries, ANY, value])}, added)

    # --- several keys: all of it or nothing
    def lmove(self, busy):
        keys = self.keys("LL", busy)
        if keys is None:
            return None
        a, b = keys
        there, here = self.elements(a), self.elements(b)
        if not there:
            return None
        return self.op(("LMOVE", a, b, "LEFT", "RIGHT"), {a: list_state(there[1:]), b: list_state(here + there[:1])}, there[0])

    def transfer(self, busy):
        """A sum that stays the same, with what tells of it."""
        keys = self.keys("HHLSZ", busy)
        if keys is None:
            return None
        a, b, log, names, ranks = keys
        of_a, of_b, amount, value = self.pairs(a), self.pairs(b), self.random.randint(1, 9), self.value()
        of_a["sum"] = str(int(of_a.get("sum", "0")) - amount)
        of_b["sum"] = str(int(of_b.get("sum", "0")) + amount)
        member = self.part()
        words = (("MULTI",), ("HINCRBY", a, "sum", str(-amount)), ("HINCRBY", b, "sum", str(amount)), ("RPUSH", log, value),
                 ("SADD", names, member), ("ZADD", ranks, "7", member), ("EXEC",))
        after = {a: hash_state(of_a), b: hash_state(of_b), log: list_state(self.elements(log) + [value]),
                 names: set_state(self.members(names) | {member}), ranks: zset_state({**self.pairs(ranks), member: "7"})}
        return self.op(words, after, lambda op, got: self.w.check(
            op, isinstance(got, list) and [text(one) for one in got[:2]] == [of_a["sum"], of_b["sum"]], got), len(words))

    def script(self, busy):
        keys = self.keys("LSH", busy)
        if keys is None:
            return None
        source, target, count = keys
        elements, counts = self.elements(source), self.pairs(count)
        if not elements:
            return None
        counts["moved"] = str(int(counts.get("moved", "0")) + 1)
        after = {source: list_state(elements[1:]), target: set_state(self.members(target) | {elements[0]}),
                 count: hash_state(counts)}
        return self.op(("EVAL", MOVE_SCRIPT, "3", *keys), after, elements[0])

    def rename(self, busy):
        kind = self.random.choice(KINDS)
        keys = self.keys(kind * 2, busy)
        if keys is None or self.state(keys[0]) == ABSENT:
            return None
        return self.op(("RENAME", *keys), {keys[0]: ABSENT, keys[1]: self.state(keys[0])}, "OK")

    def copy(self, busy):
        kind = self.random.choice(KINDS)
        keys = self.keys(kind * 2, busy)
        if keys is None or self.state(keys[0]) == ABSENT:
            return None
        a, b = keys
        return self.op(("COPY", a, b, "REPLACE"), {a: self.state(a), b: self.state(a)}, 1)

    def remove(self, busy):
        key = self.key(self.random.choice(KINDS), busy)
        if key is None or self.random.random() < 0.5:
            return None
        return self.op(("DEL", key), {key: ABSENT}, int(self.state(key) != ABSENT))

    def lifetime(self, busy):
        """One that no step of the clock ends: the log has it beside the parts."""
        key = self.key(self.random.choice(KINDS), busy)
        if key is None or self.state(key) == ABSENT:
            return None
        return self.op(("EXPIRE", key, "864000"), {key: self.state(key)}, 1)

    def fleeting(self, busy):
        key = self.w.fresh("F")
        words = (("MULTI",), ("HSET", key, "f", "soon"), ("PEXPIRE", key, str(self.random.choice((20, 100, 400)))), ("EXEC",))
        return self.op(words, {key: Gone("soon", hash_state({"f": "soon"}))}, lambda op, got: self.w.check(op, got == [1, 1], got), 4)

    # --- lists of all
    def shared_move(self, busy):
        """Who moves what cannot be known; that nothing is lost or there twice, the check knows."""
        if not self.w.k.moving:
            return None
        a, b = self.random.sample(("moving:a", "moving:b"), 2)
        op = Op(("LMOVE", a, b, *(self.random.choice(("LEFT", "RIGHT")) for _ in range(2))), {}, {})
        op.took = lambda got: self.w.check(op, isinstance(got, Nil) or text(got) in MOVING, got)
        return op

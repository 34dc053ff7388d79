"""Random commands on streams and their groups; IDs are small, so that they meet."""
import time

from lib.resp import Map

SETTINGS = {"stream-node-max-entries": 7}

KEYS = ["s1", "s2", "s{3}"]
GROUPS = ["g1", "g2", "group-3"]
CONSUMERS = ["ann", "bob", "c"]
HUGE = 18446744073709551615


class Ids:
    """IDs around those that were used last."""

    def __init__(self, rng):
        self.rng, self.ms = rng, dict.fromkeys(KEYS, 1)

    def new(self, key):
        self.ms[key] += self.rng.choice([0, 0, 1, 1, 2, 5])
        return self.rng.choice([f"{self.ms[key]}-*"] * 6 + [f"{self.ms[key]}", f"{self.ms[key]}-{self.rng.randrange(9)}"])

    def old(self, key):
        ms = self.ms[key] - self.rng.randrange(40)
        if ms < 0 or self.rng.random() < 0.02:
            return self.rng.choice(["0-0", "0", "-", "+", "$", ">", "x", "1-", "-1", "1-x", "1-2-3", "007-1", str(HUGE),
                                    f"{HUGE}-{HUGE}", f"{HUGE + 1}-1", "", "(1"])
        return f"{ms}-{self.rng.randrange(4)}" if self.rng.random() < 0.7 else str(ms)

    def bound(self, key):
        return self.rng.choice(["-", "+", self.old(key), self.old(key), "(" + self.old(key)])


def words_of(rng):
    return rng.choice([lambda: str(rng.randrange(-300, 300)), lambda: "", lambda: "v" * rng.randrange(80),
                       lambda: str(rng.randrange(-2**63, 2**63)), lambda: f"text{rng.randrange(4)}"])()


def fields(rng):
    if rng.random() < 0.6:
        return ["name", words_of(rng), "price", words_of(rng)]
    return [word for _ in range(rng.randrange(1, 4)) for word in (words_of(rng), words_of(rng))]


def trim(rng, ids, key):
    words = rng.choice([["MAXLEN"], ["MINID"]])
    words = words + rng.choice([[], ["="], ["~"], ["~"]])
    words.append(str(rng.randrange(-1, 60)) if words[0] == "MAXLEN" else ids.old(key))
    if rng.random() < 0.3:
        words += ["LIMIT", str(rng.choice([0, 1, 5, 7, 20, 1000, -1]))]
    return words


def add(rng, ids, key):
    words = ["XADD", key]
    if rng.random() < 0.1:
        words.append("NOMKSTREAM")
    if rng.random() < 0.08:
        words += trim(rng, ids, key)
    words.append(ids.new(key) if rng.random() < 0.93 else ids.old(key))
    return words + fields(rng) + (["odd"] if rng.random() < 0.01 else [])


def xrange(rng, ids, key):
    words = [rng.choice(["XRANGE", "XREVRANGE"]), key, ids.bound(key), ids.bound(key)]
    wrong = [["COUNT"], ["COUNT", "x"], ["LIMIT", "1"]]
    return words + rng.choice([[], [], ["COUNT", str(rng.randrange(-1, 9))]] * 6 + wrong)


def setid(rng, ids, key):
    words = ["XSETID", key, f"{ids.ms[key] + rng.randrange(3)}-{rng.randrange(9)}"]
    if rng.random() < 0.5:
        words += ["ENTRIESADDED", str(rng.randrange(-1, 500))]
    if rng.random() < 0.5:
        words += ["MAXDELETEDID", ids.old(key)]
    return words


def read(rng, ids, keys):
    words = rng.choice([[], [], ["COUNT", str(rng.randrange(-1, 6))]] * 5 + [["NOACK"], ["GROUP", "g1", "ann"], ["COUNT", "x"]])
    starts = [rng.choice([ids.old(key)] * 9 + ["$", "$", ">"]) for key in keys]
    return ["XREAD"] + words + ["STREAMS"] + keys + starts


def read_group(rng, ids, keys):
    words = ["XREADGROUP", "GROUP", rng.choice(GROUPS), rng.choice(CONSUMERS)]
    words += rng.choice([["COUNT", str(rng.randrange(1, 9))]] * 4 + [[], ["COUNT", "-3"]])
    words += ["NOACK"] if rng.random() < 0.2 else []
    starts = [rng.choice([">"] * 5 + ["0", ids.old(key)]) for key in keys]
    return words + ["STREAMS"] + keys + starts


def group(rng, ids, key):
    name, consumer = rng.choice(GROUPS), rng.choice(CONSUMERS)
    start = rng.choice(["$", "0", ids.old(key), ids.old(key)])
    read_count = rng.choice([[], [], ["ENTRIESREAD", str(rng.randrange(-2, 100))], ["ENTRIESREAD"], ["MKSTREAM"] * 2])
    return rng.choice([
        ["XGROUP", "CREATE", key, name, start] + read_count + (["MKSTREAM"] if rng.random() < 0.3 else []),
        ["XGROUP", "CREATE", key, name, start],
        ["XGROUP", "SETID", key, name, start] + read_count,
        ["XGROUP", "DESTROY", key, name] if rng.random() < 0.2 else ["XGROUP", "CREATECONSUMER", key, name, consumer],
        ["XGROUP", "CREATECONSUMER", key, name, consumer],
        ["XGROUP", "DELCONSUMER", key, name, consumer] if rng.random() < 0.4 else ["XINFO", "GROUPS", key],
        ["XGROUP", "NOSUCH", key, name] if rng.random() < 0.1 else ["XGROUP", "CREATECONSUMER", key, name, consumer]])


def pending(rng, ids, key):
    words = ["XPENDING", key, rng.choice(GROUPS)]
    if rng.random() < 0.3:
        return words
    words += rng.choice([[], [], ["IDLE", "0"], ["IDLE", "100000000"]])
    words += [ids.bound(key), ids.bound(key), str(rng.randrange(-1, 20))]
    return words + rng.choice([[], [], [rng.choice(CONSUMERS)]] * 5 + [["nobody"], ["x", "y"]])


def claim(rng, ids, key):
    words = ["XCLAIM", key, rng.choice(GROUPS), rng.choice(CONSUMERS), rng.choice(["0"] * 9 + ["-5", "100000000", "x"])]
    words += [ids.old(key) for _ in range(rng.randrange(1, 5))]
    options = [["IDLE", "1000"], ["TIME", "1000"], ["TIME", "99999999999999"], ["RETRYCOUNT", str(rng.randrange(-1, 9))],
               ["FORCE"], ["FORCE"], ["JUSTID"], ["LASTID", ids.old(key)], ["NOSUCH"], ["IDLE", "x"]]
    for option in rng.sample(options[:-2] if rng.random() < 0.9 else options, rng.randrange(4)):
        words += option
    return words


def autoclaim(rng, ids, key):
    words = ["XAUTOCLAIM", key, rng.choice(GROUPS), rng.choice(CONSUMERS), rng.choice(["0"] * 9 + ["100000000", "x"]),
             rng.choice(["-", "0", ids.bound(key)])]
    words += rng.choice([[], ["COUNT", str(rng.randrange(1, 6))]] * 5 + [["COUNT", "0"], ["COUNT", "x"]])
    return words + rng.choice([[], [], ["JUSTID"]] * 4 + [["NOSUCH"]])


def other(rng, ids, key):
    return rng.choice([
        ["XLEN", key], ["XINFO", "STREAM", key], ["XINFO", "STREAM", key, "FULL"], ["XINFO", "GROUPS", key],
        ["XINFO", "STREAM", key, "FULL", "COUNT", str(rng.randrange(-1, 5))], ["XINFO", "CONSUMERS", key, rng.choice(GROUPS)],
        ["TYPE", key], ["OBJECT", "ENCODING", key], ["EXISTS", key], ["XINFO", "NOSUCH"], ["XINFO", "STREAM", key, "x"],
        ["COPY", key, rng.choice(KEYS), "REPLACE"], ["DEL", key], ["RENAME", key, rng.choice(KEYS)], ["PERSIST", key],
        ["XINFO", "CONSUMERS", key]])


def commands(rng):
    ids = Ids(rng)
    kinds = [add] * 30 + [xrange] * 6 + [group] * 8 + [pending] * 4 + [claim] * 5 + [autoclaim] * 4 + [setid]
    while True:
        key = rng.choice(KEYS)
        roll = rng.random()
        if roll < 0.06:
            yield ["XDEL", key] + [ids.old(key) for _ in range(rng.randrange(1, 5))]
        elif roll < 0.08:
            yield ["XTRIM", key] + (trim(rng, ids, key) if rng.random() < 0.95 else ["x", "y"])
        elif roll < 0.14:
            yield ["XACK", key, rng.choice(GROUPS)] + [ids.old(key) for _ in range(rng.randrange(1, 5))]
        elif roll < 0.24:
            keys = rng.sample(KEYS, rng.choice([1, 1, 1, 2, 3]))
            yield (read if rng.random() < 0.3 else read_group)(rng, ids, keys)
        elif roll < 0.242:
            yield other(rng, ids, key)
        elif roll < 0.243:  # another type, for a while
            yield ["SET", key, "v"]
            for _ in range(3):
                yield rng.choice(kinds)(rng, ids, key)
            yield ["DEL", key]
        elif roll < 0.3:
            yield rng.choice([["XLEN", key], ["XINFO", "STREAM", key], ["XINFO", "GROUPS", key],
                              ["XINFO", "CONSUMERS", key, rng.choice(GROUPS)], ["XINFO", "STREAM", key, "FULL"]])
        else:
            yield rng.choice(kinds)(rng, ids, key)


def readback():
    found = []
    for key in KEYS:
        found += [["TYPE", key], ["XLEN", key], ["XRANGE", key, "-", "+"], ["XREVRANGE", key, "+", "-"],
                  ["XINFO", "STREAM", key, "FULL", "COUNT", "0"], ["XINFO", "STREAM", key], ["XINFO", "GROUPS", key]]
        for name in GROUPS:
            found += [["XPENDING", key, name], ["XPENDING", key, name, "-", "+", "100000"], ["XINFO", "CONSUMERS", key, name]]
    return found


# --- what the two servers may tell differently: their own clocks, and a tree that is not there

RADIX = (b"radix-tree-nodes",)
# A node of which all is deleted may stay in Redis (XTRIM MINID in front of deleted entries).
KEYS_OF_TREE = (b"radix-tree-keys",)


def without(value, names):
    """A reply in which the values of these fields are left out, however deep."""
    if isinstance(value, Map):
        return Map((k, 0 if bytes(k) in names else without(v, names)) for k, v in value)
    if isinstance(value, list):
        changed = [without(v, names) for v in value]
        for i in range(len(value) - 1):
            if isinstance(value[i], bytes) and bytes(value[i]) in names and not isinstance(value[i + 1], list):
                changed[i + 1] = 0
        return changed
    return value


def masked_times(value, now_ms):
    """A time of now becomes 0; one that was set stays."""
    if isinstance(value, Map):
        return Map((k, masked_times(v, now_ms)) for k, v in value)
    if isinstance(value, list):
        return [masked_times(v, now_ms) for v in value]
    if isinstance(value, int) and (abs(value - now_ms) < 3_600_000):
        return 0
    return value


def masked_idle(reply):
    """Of XPENDING's entries: a time of less than an hour, or of half a century, becomes 0."""
    return [[e[0], e[1], e[2] // 3_600_000, e[3]] if isinstance(e, list) and len(e) == 4 else e for e in reply]


def mask(words):
    name, now_ms = words[0], int(time.time() * 1000)
    if name == "XPENDING":
        return lambda reply: masked_idle(reply) if isinstance(reply, list) else reply
    if name == "XINFO":
        names = (b"idle", b"seen-time") + RADIX + KEYS_OF_TREE
        return lambda reply: masked_times(without(reply, names), now_ms)
    return None


def mask_restart(words):
    if words[0] == "XPENDING":
        return mask(words)
    if words[0] == "XINFO":
        return lambda reply: without(reply, (b"idle", b"seen-time") + RADIX + KEYS_OF_TREE)
    return None

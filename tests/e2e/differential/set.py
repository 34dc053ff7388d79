"""Random commands on sets of numbers and of texts, alone and several together.

What SPOP takes is not the same twice, so where that matters the set goes at once.
"""

SETTINGS = {"set-max-intset-entries": 16}

KEYS = ["s1", "s2", "s{3}", "s4", "once"]
TEXTS = ["a", "b", "", "007", "-0", "+1", "1.5", " 1", "x" * 15, "y" * 16, "z" * 3000, "\xff\x00\r\n", str(2**63), "12345678901234567890"]
NUMBERS = ["0", "-1", str(2**31), str(-2**31), str(2**63 - 1), str(-2**63), "32767", "32768", "-32769"]
NUMERIC = ["s1", "s2"]  # mostly


def member(rng, key):
    if key in NUMERIC and rng.random() < 0.97:
        return rng.choice(NUMBERS) if rng.random() < 0.2 else str(rng.randrange(30))
    return rng.choice([lambda: rng.choice(TEXTS), lambda: f"m{rng.randrange(20)}", lambda: str(rng.randrange(20))])()


def members(rng, key, most):
    return [member(rng, key) for _ in range(rng.randrange(1, most))]


def key_of(rng):
    return rng.choice(KEYS) if rng.random() < 0.97 else rng.choice(["text", "gone"])


def keys(rng):
    return [key_of(rng) for _ in range(rng.choice([1, 2, 2, 3, 4]))]


def scan(rng, key):
    words = ["SSCAN", key, "0", "COUNT", "10000"]
    return rng.choice([words, words + ["MATCH", "m1*"], words + ["MATCH", "1*"], ["SSCAN", key, rng.choice(["x", "-", "1x", " 1"])],
                       ["SSCAN", key, "0", "COUNT", "-1"], ["SSCAN", key, "0", "MATCH"], ["SSCAN", "gone", "0", "NOSUCH"]])


def random_member(rng, key):
    return ["SRANDMEMBER", key] + rng.choice([[], ["0"], ["1000"], ["3"], ["-4"], ["x"], ["2", "x"], [str(-2**63)], [str(2**63 - 1)]])


def cardinality(rng):
    named = keys(rng)
    count = str(len(named)) if rng.random() < 0.93 else rng.choice(["0", "-1", "x", "9", str(2**63 - 1)])
    return ["SINTERCARD", count] + named + rng.choice([[], [], ["LIMIT", str(rng.randrange(4))], ["LIMIT"], ["limit", "-1"], ["LIMIT", "x"],
                                                       ["NOSUCH", "1"]])


def commands(rng):
    while True:
        key, other = key_of(rng), rng.choice(KEYS)
        if rng.random() < 0.03:
            if rng.random() < 0.5:
                yield ["SPOP", key] + rng.choice([[], ["1"], ["3"], ["20"]])
                yield ["DEL", key]
            else:
                yield ["SPOP", key, rng.choice(["1000", "0", "-1", "x", str(2**63 - 1)])]
            continue
        yield rng.choice([
            lambda: ["SADD", key] + members(rng, key, 6),
            lambda: ["SADD", key] + members(rng, key, 6),
            lambda: ["SADD", key] + members(rng, key, 12),
            lambda: ["SREM", key] + members(rng, key, 6),
            lambda: ["SREM", key] + members(rng, key, 12),
            lambda: ["SMOVE", key, other, member(rng, key)],
            lambda: ["SISMEMBER", key, member(rng, key)],
            lambda: ["SMISMEMBER", key] + members(rng, key, 6),
            lambda: [rng.choice(["SMEMBERS", "SCARD"]), key],
            lambda: [rng.choice(["SINTER", "SUNION", "SDIFF"])] + keys(rng),
            lambda: [rng.choice(["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]), other] + keys(rng),
            lambda: cardinality(rng),
            lambda: scan(rng, key),
            lambda: random_member(rng, key),
            lambda: rng.choice([
                lambda: ["DEL", key],
                lambda: ["SET", "text", "no set"],
                lambda: ["RENAME", key, other],
                lambda: ["COPY", key, other, "REPLACE"],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["PEXPIRE", key, "100000000"],
                lambda: ["TYPE", key],
                lambda: [rng.choice(["SADD", "SREM", "SMOVE", "SINTERSTORE", "SSCAN"]), key],
                lambda: ["CONFIG", "SET", "set-max-intset-entries", rng.choice(["0", "1", "16", "16", "40"])]])(),
        ])()


def readback():
    return [words for key in KEYS for words in (["TYPE", key], ["SMEMBERS", key], ["SCARD", key])]


def in_order(reply):
    return type(reply)(sorted(reply)) if isinstance(reply, list) else reply


def count_of(reply):
    return (type(reply).__name__, len(reply)) if isinstance(reply, list) else type(reply).__name__


def mask(words):
    name = words[0].upper()
    if name in ("SMEMBERS", "SINTER", "SUNION", "SDIFF"):
        return in_order
    if name == "SSCAN":
        return lambda reply: [reply[0], in_order(reply[1])] if isinstance(reply, list) else reply
    if name in ("SPOP", "SRANDMEMBER"):
        whole = len(words) == 3 and (words[2] == "1000" or words[2].startswith("92"))
        return in_order if whole else count_of
    return None


mask_restart = mask

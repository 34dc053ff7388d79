"""Random commands on hashes, small and large ones, around the limits between the two."""

SETTINGS = {"hash-max-listpack-entries": 12, "hash-max-listpack-value": 24}

KEYS = ["h1", "h2", "h{3}", "h4", "once"]
VALUES = ["a", "b", "", "7", "007", "-1", "12345678901234567890", str(2**63 - 1), str(-2**63), "1.5", " 1", "x" * 24, "y" * 25, "z" * 3000,
          "\xff\x00\r\n", "inf", "1e3"]
WRONG = ["x", "", "1.5", str(2**63), " 1"]


def field(rng):
    return rng.choice([lambda: f"f{rng.randrange(10)}", lambda: f"f{rng.randrange(30)}", lambda: str(rng.randrange(20)),
                       lambda: rng.choice(VALUES[:12])])()


def value(rng):
    return rng.choice([lambda: rng.choice(VALUES), lambda: str(rng.randrange(-100, 100)), lambda: f"v{rng.randrange(10)}"])()


def key_of(rng):
    return rng.choice(KEYS) if rng.random() < 0.97 else rng.choice(["text", "gone"])


def pairs(rng):
    words = [word for _ in range(rng.randrange(1, 5)) for word in (field(rng), value(rng))]
    return words if rng.random() < 0.99 else words + ["odd"]


def increment(rng, key):
    if rng.random() < 0.5:
        return ["HINCRBY", key, field(rng), rng.choice(["1", "-1", "0", "100", str(2**63 - 1), str(-2**63)] + WRONG)]
    return ["HINCRBYFLOAT", key, field(rng), rng.choice(["1", "-0.5", "0.1", "3.14159", "1e10", "inf", "nan", "1e400"] + WRONG)]


def scan(rng, key):
    words = ["HSCAN", key, "0", "COUNT", "10000"]
    return rng.choice([words, words + ["MATCH", "f1*"], words + ["MATCH", "*"], ["HSCAN", key, rng.choice(["x", "-", "1x", " 1"])],
                       ["HSCAN", key, "0", "COUNT", "0"], ["HSCAN", key, "0", "COUNT"], ["HSCAN", "gone", "0", "NOSUCH"]])


def random_field(rng, key):
    return ["HRANDFIELD", key] + rng.choice([[], ["0"], ["1000"], ["1000", "withvalues"], ["3"], ["-4"], ["-4", "WITHVALUES"], ["x"],
                                            ["2", "x"], ["1", "withvalues", "x"], [str(-2**63)], [str(2**63 - 1)],
                                            [str(2**63 - 1), "WITHVALUES"], [str(-2**62 - 9), "WITHVALUES"]])


def commands(rng):
    while True:
        key = key_of(rng)
        yield rng.choice([
            lambda: ["HSET", key] + pairs(rng),
            lambda: ["HSET", key] + pairs(rng),
            lambda: ["HMSET", key] + pairs(rng),
            lambda: ["HSETNX", key, field(rng), value(rng)],
            lambda: ["HDEL", key] + [field(rng) for _ in range(rng.randrange(1, 6))],
            lambda: ["HDEL", key] + [field(rng) for _ in range(rng.randrange(1, 9))],
            lambda: increment(rng, key),
            lambda: ["HGET", key, field(rng)],
            lambda: ["HMGET", key] + [field(rng) for _ in range(rng.randrange(1, 6))],
            lambda: ["HEXISTS", key, field(rng)],
            lambda: ["HSTRLEN", key, field(rng)],
            lambda: [rng.choice(["HGETALL", "HKEYS", "HVALS", "HLEN"]), key],
            lambda: scan(rng, key),
            lambda: random_field(rng, key),
            lambda: rng.choice([
                lambda: ["DEL", key],
                lambda: ["SET", "text", "no hash"],
                lambda: ["RENAME", key, rng.choice(KEYS)],
                lambda: ["COPY", key, rng.choice(KEYS), "REPLACE"],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["PEXPIRE", key, "100000000"],
                lambda: ["TYPE", key],
                lambda: [rng.choice(["HSET", "HGET", "HDEL", "HINCRBY", "HGETALL", "HSCAN"]), key],
                lambda: ["CONFIG", "SET", "hash-max-listpack-entries", rng.choice(["0", "1", "12", "12", "40"])],
                lambda: ["CONFIG", "SET", "hash-max-ziplist-value", rng.choice(["0", "1", "24", "24", "4000"])]])(),
        ])()


def readback():
    return [words for key in KEYS for words in (["TYPE", key], ["HGETALL", key], ["HLEN", key])]


def in_pairs(reply):
    return [tuple(reply[i:i + 2]) for i in range(0, len(reply), 2)] if len(reply) % 2 == 0 else reply


def sorted_pairs(reply):
    if not isinstance(reply, list):
        return reply
    # In RESP3 they come as pairs.
    pairs = reply if all(isinstance(item, (tuple, list)) for item in reply) else in_pairs(reply)
    return type(reply)(sorted(pairs))


def in_order(reply):
    return type(reply)(sorted(reply)) if isinstance(reply, list) else reply


def scanned(reply):
    return [reply[0], sorted_pairs(reply[1])] if isinstance(reply, list) else reply


def mask(words):
    name = words[0].upper()
    if name in ("HKEYS", "HVALS"):
        return in_order
    if name == "HGETALL":
        return sorted_pairs
    if name == "HSCAN":
        return scanned
    if name != "HRANDFIELD":
        return None
    if len(words) == 2:
        return type
    if words[2].startswith("1000") or words[2].startswith("92"):
        return in_order if len(words) == 3 else sorted_pairs
    return lambda reply: len(reply) if isinstance(reply, list) else reply


mask_restart = mask

"""Random commands on lists, across the borders of their nodes; those that wait find something, or do so for a millisecond."""

SETTINGS = {"list-max-listpack-size": 5}

KEYS = ["l1", "l2", "l{3}", "l4"]
TEXTS = ["a", "b", "c", "", "7", "007", "-1", "12345678901234567890", str(2**63 - 1), str(-2**63), "x" * 63, "y" * 64,
         "z" * 3000, "w" * 9000]
ENDS = ["LEFT", "RIGHT", "left", "Right"]


def index(rng):
    return str(rng.choice([0, 1, -1, -2, rng.randrange(-40, 40), rng.randrange(-40, 40), 1000, -1000]))


def element(rng):
    return rng.choice(TEXTS) if rng.random() < 0.6 else str(rng.randrange(-300, 300))


def end(rng):
    return rng.choice(ENDS) if rng.random() < 0.98 else "UP"


def number(rng):
    return rng.choice(["0", "1", "2", "3", "10", "-1", "x", str(2**63 - 1)])


def counted(rng, key):
    keys = [key] + [rng.choice(KEYS) for _ in range(rng.randrange(3))]
    count = str(len(keys)) if rng.random() < 0.95 else number(rng)
    words = [count] + keys + [end(rng)]
    if rng.random() < 0.5:
        words += ["COUNT", number(rng)]
    if rng.random() < 0.03:
        words += rng.choice([["COUNT"], ["LEFT"], ["COUNT", "1"]])
    return words


def position(rng, key):
    words = ["LPOS", key, element(rng)]
    for option in rng.sample(["RANK", "COUNT", "MAXLEN"], rng.randrange(4)):
        words += [option, rng.choice([number(rng), str(rng.randrange(-4, 5))])]
    if rng.random() < 0.02:
        words.append(rng.choice(["RANK", "OTHER"]))
    return words


def commands(rng):
    timeout = ["0.001"] * 20 + ["-1", "x", "inf", "-inf", "1e400", "nan", ""]
    while True:
        key, other = rng.choice(KEYS), rng.choice(KEYS)
        yield rng.choice([
            lambda: [rng.choice(["LPUSH", "RPUSH"]), key] + [element(rng) for _ in range(rng.randrange(1, 9))],
            lambda: [rng.choice(["LPUSH", "RPUSH"]), key] + [element(rng) for _ in range(rng.randrange(1, 9))],
            lambda: [rng.choice(["LPUSHX", "RPUSHX"]), key] + [element(rng) for _ in range(rng.randrange(1, 4))],
            lambda: [rng.choice(["LPOP", "RPOP"]), key],
            lambda: [rng.choice(["LPOP", "RPOP"]), key, number(rng)],
            lambda: ["LRANGE", key, index(rng), index(rng)],
            lambda: ["LRANGE", key, "0", "-1"],
            lambda: ["LLEN", key],
            lambda: ["LINDEX", key, index(rng)],
            lambda: ["LSET", key, index(rng), element(rng)],
            lambda: ["LINSERT", key, rng.choice(["BEFORE", "AFTER", "before", "in"]), element(rng), element(rng)],
            lambda: ["LINSERT", key, rng.choice(["BEFORE", "AFTER"]), element(rng), element(rng)],
            lambda: ["LREM", key, index(rng), element(rng)],
            lambda: ["LTRIM", key, index(rng), index(rng)] if rng.random() < 0.3 else ["LTRIM", key, "0", "30"],
            lambda: position(rng, key),
            lambda: ["LMOVE", key, other, end(rng), end(rng)],
            lambda: ["RPOPLPUSH", key, other],
            lambda: ["LMPOP"] + counted(rng, key),
            lambda: rng.choice([
                lambda: ["BLPOP", key, other, rng.choice(timeout)],
                lambda: ["BRPOP", key, rng.choice(timeout)],
                lambda: ["BLMOVE", key, other, end(rng), end(rng), rng.choice(timeout)],
                lambda: ["BRPOPLPUSH", key, other, rng.choice(timeout)],
                lambda: ["BLMPOP", rng.choice(timeout)] + counted(rng, key)])(),
            lambda: rng.choice([
                lambda: ["DEL", key],
                lambda: ["SET", key, "no list"],
                lambda: ["RENAME", key, other],
                lambda: ["COPY", key, other, "REPLACE"],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["PEXPIRE", key, "100000000"],
                lambda: ["PERSIST", key],
                lambda: ["TYPE", key],
                lambda: ["LPUSH", key],
                lambda: ["LPOP", key, "1", "2"],
                lambda: ["CONFIG", "SET", "list-max-listpack-size", rng.choice(["-2", "-1", "1", "3", "16", "0"])]])(),
        ])()


def readback():
    return [words for key in KEYS for words in (["TYPE", key], ["LRANGE", key, "0", "-1"], ["LLEN", key], ["GET", key],
                                                ["LRANGE", key, "-3", "-2"])]


def mask(words):
    return None


mask_restart = mask

"""Random commands on sorted sets that are small and large by turns."""

SETTINGS = {"zset-max-listpack-entries": 20, "zset-max-listpack-value": 24}

KEYS = ["z1", "z2", "z{3}", "z4", "same"]  # all members of the last have one score
STORED = ["d1", "d2"]
SCORES = ["0", "-0", "1", "1", "2", "-3", "2.5", "0.1", "3.3333333333333335", "1e17", "1e16", "-1e300", "inf", "-inf", "+inf",
          "17", "1.0", "007", "123456789012345678", "5e-324", "1e-7", "0x10", "Infinity", "4611686018427387904", "9.3e18"]
WRONG_SCORES = ["nan", "", "x", "1x", " 1", "1e400", "1,5", "--1"]


def member(rng):
    return rng.choice([lambda: str(rng.randrange(30)), lambda: f"m{rng.randrange(40)}", lambda: "", lambda: "a long member of some bytes",
                       lambda: f"{rng.randrange(3)}", lambda: "\xff\x00", lambda: str(rng.randrange(-2**40, 2**40, 2**37))])()


def score(rng):
    if rng.random() < 0.01:
        return rng.choice(WRONG_SCORES)
    return rng.choice([rng.choice(SCORES), str(rng.randrange(-20, 20)), str(rng.random()), f"{rng.uniform(-9, 9):.3f}"])


def score_of(rng, key):
    return "5" if key == "same" else score(rng)


def key_of(rng):
    return rng.choice(KEYS + STORED + ["gone"]) if rng.random() < 0.97 else "text"


def pairs(rng, key, most):
    return [word for _ in range(rng.randrange(1, most)) for word in (score_of(rng, key), member(rng))]


def add(rng):
    key = rng.choice(KEYS)
    words = ["ZADD", key if rng.random() < 0.99 else "text"]
    if key != "same" and rng.random() < 0.4:
        words += rng.sample(["NX", "xx", "GT", "Lt", "CH", "INCR"], rng.choice([1, 1, 2, 3]))
    words += pairs(rng, key, 2 if "INCR" in words and rng.random() < 0.9 else 6)
    return words + (["odd"] if rng.random() < 0.01 else [])


def increment(rng):
    return ["ZINCRBY", rng.choice(KEYS[:-1] + ["text"] if rng.random() < 0.02 else KEYS[:-1]), score(rng), member(rng)]


def remove(rng):
    return ["ZREM", key_of(rng)] + [member(rng) for _ in range(rng.randrange(1, 5))]


def rank(rng):
    return str(rng.randrange(-12, 12)) if rng.random() < 0.97 else rng.choice(["x", "", "1.5", "9223372036854775808", "-9223372036854775808"])


def score_bound(rng):
    bound = rng.choice([score(rng), "-inf", "+inf", str(rng.randrange(-5, 20))])
    return rng.choice(["", "", "("]) + bound if rng.random() < 0.98 else rng.choice(["(", "((1", "[1", "nan", "1 ", "", " 3"])


def lex_bound(rng):
    if rng.random() < 0.02:
        return rng.choice(["", "x", "+x", "-x", "5", "(", "["])
    return rng.choice(["-", "+", "[" + member(rng), "(" + member(rng)])


def limit(rng):
    if rng.random() < 0.65:
        return []
    return rng.choice([["LIMIT", str(rng.randrange(-1, 6)), str(rng.randrange(-1, 8))]] * 6 + [["LIMIT", "1"], ["limit", "x", "1"]])


def show(rng):
    return ["WITHSCORES"] if rng.random() < 0.5 else []


def shuffled(rng, words):
    return words if len(words) < 2 or rng.random() < 0.8 else rng.sample(words, len(words))


def range_words(rng, by, reverse):
    bound = {"": rank, "BYSCORE": score_bound, "BYLEX": lex_bound}[by]
    words = [bound(rng), bound(rng)]
    groups = ([[by]] if by else []) + ([["REV"]] if reverse else [])
    if by or rng.random() < 0.02:
        groups.append(limit(rng))
    rng.shuffle(groups)
    return words, [word for group in groups for word in group]


def zrange(rng):
    by = rng.choice(["", "BYSCORE", "BYLEX"])
    words, options = range_words(rng, by, rng.random() < 0.5)
    key = key_of(rng) if by != "BYLEX" or rng.random() < 0.02 else "same"
    if key != "same" and by == "BYLEX":
        key = "gone"
    scores = show(rng) if by != "BYLEX" or rng.random() < 0.05 else []
    return ["ZRANGE", key] + words + options + scores + (["NOSUCH"] if rng.random() < 0.01 else [])


def zrange_store(rng):
    by = rng.choice(["", "BYSCORE", "BYLEX"])
    words, options = range_words(rng, by, rng.random() < 0.5)
    source = "same" if by == "BYLEX" else key_of(rng)
    return ["ZRANGESTORE", rng.choice(STORED), source] + words + options + (["WITHSCORES"] if rng.random() < 0.01 else [])


def old_range(rng):
    name = rng.choice(["ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZRANGEBYLEX", "ZREVRANGEBYLEX"])
    bound = rank if name == "ZREVRANGE" else lex_bound if name.endswith("LEX") else score_bound
    options = [] if name == "ZREVRANGE" else limit(rng)
    if not name.endswith("LEX") or rng.random() < 0.02:
        options = shuffled(rng, [*show(rng)]) + options if rng.random() < 0.5 else options + show(rng)
    return [name, "same" if name.endswith("LEX") else key_of(rng), bound(rng), bound(rng)] + options


def count(rng):
    if rng.random() < 0.5:
        return ["ZCOUNT", key_of(rng), score_bound(rng), score_bound(rng)]
    return ["ZLEXCOUNT", "same", lex_bound(rng), lex_bound(rng)]


def remove_range(rng):
    return rng.choice([lambda: ["ZREMRANGEBYRANK", key_of(rng), rank(rng), rank(rng)],
                       lambda: ["ZREMRANGEBYSCORE", key_of(rng), score_bound(rng), score_bound(rng)],
                       lambda: ["ZREMRANGEBYLEX", "same", lex_bound(rng), lex_bound(rng)]])()


def look(rng):
    key = key_of(rng)
    return rng.choice([lambda: ["ZSCORE", key, member(rng)], lambda: ["ZRANK", key, member(rng)], lambda: ["ZREVRANK", key, member(rng)],
                       lambda: ["ZMSCORE", key] + [member(rng) for _ in range(rng.randrange(1, 4))], lambda: ["ZCARD", key],
                       lambda: ["TYPE", key], lambda: ["OBJECT", "ENCODING", key]])()


def pop(rng):
    counted = rng.choice([[], [], [str(rng.randrange(-1, 5))], ["x"], ["1", "2"]])
    if rng.random() < 0.5:
        return [rng.choice(["ZPOPMIN", "ZPOPMAX"]), key_of(rng)] + counted
    keys = [key_of(rng) for _ in range(rng.randrange(1, 4))]
    words = ["ZMPOP", str(len(keys)) if rng.random() < 0.95 else rng.choice(["0", "-1", "x", "9", "9223372036854775807"])] + keys
    words.append(rng.choice(["MIN", "max", "MIN", "max", "mid"]))
    return words + rng.choice([[], [], ["COUNT", str(rng.randrange(0, 5))], ["COUNT"], ["COUNT", "1", "COUNT", "2"], ["x"]])


def random_member(rng):
    return ["ZRANDMEMBER", key_of(rng)] + rng.choice([[], ["0"], ["1000"], ["1000", "WITHSCORES"], ["x"], ["2", "x"], ["3"], ["-4"],
                                                       ["5", "withscores"], ["-9223372036854775808"], ["9223372036854775807", "WITHSCORES"]])


def algebra(rng):
    name = rng.choice(["ZUNION", "ZINTER", "ZDIFF", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZINTERCARD"])
    keys = [key_of(rng) for _ in range(rng.randrange(1, 4))]
    words = [name] + ([rng.choice(STORED)] if name.endswith("STORE") else [])
    words += [str(len(keys)) if rng.random() < 0.97 else rng.choice(["0", "-1", "x", "9"])] + keys
    options = []
    if name == "ZINTERCARD":
        options = rng.choice([[], [["LIMIT", str(rng.randrange(-1, 5))]], [["LIMIT", "x"]], [["LIMIT"]]])
    elif "DIFF" not in name or rng.random() < 0.02:
        if rng.random() < 0.5:
            options.append(["WEIGHTS"] + [rng.choice(["1", "2", "0", "-1", "0.5", "inf", score(rng)]) for _ in keys])
        if rng.random() < 0.5:
            options.append(["AGGREGATE", rng.choice(["SUM", "min", "Max", "MAX", "min", "avg"])])
    if not name.endswith("STORE") and name != "ZINTERCARD" or rng.random() < 0.02:
        options.append(show(rng))
    rng.shuffle(options)
    return words + [word for option in options for word in option]


def other(rng):
    key = rng.choice(KEYS + STORED)
    return rng.choice([["SET", "text", "v"], ["DEL", key], ["COPY", key, rng.choice(KEYS[:-1] + STORED), "REPLACE"], ["PERSIST", key],
                       ["RENAME", key, rng.choice(STORED)], ["EXISTS", key], ["ZADD", key, "1"], ["ZRANGE", key, "0"]])


def commands(rng):
    kinds = [add] * 24 + [increment] * 6 + [remove] * 5 + [zrange] * 8 + [zrange_store] * 3 + [old_range] * 6 + [count] * 4
    kinds += [remove_range] * 2 + [look] * 10 + [pop] * 5 + [random_member] * 2 + [algebra] * 10
    while True:
        yield other(rng) if rng.random() < 0.01 else rng.choice(kinds)(rng)


def readback():
    found = []
    for key in KEYS + STORED:
        found += [["TYPE", key], ["ZCARD", key], ["ZRANGE", key, "0", "-1", "WITHSCORES"], ["ZREVRANGE", key, "0", "-1"],
                  ["OBJECT", "ENCODING", key]]
    return found


def mask(words):
    if words[0] == "ZRANDMEMBER":
        return lambda reply: len(reply) if isinstance(reply, list) else type(reply).__name__
    return None


def mask_restart(words):
    # What became small again stays large until it is read from a file.
    return (lambda reply: None) if words[0] == "OBJECT" else None

"""Random SORTs of lists, sets and sorted sets, by what is in them and by what other keys hold.

Not with numbers out of a double's range: having met one, Redis refuses good ones too until something else goes wrong.
"""

SETTINGS = {}

SOURCES = ["list", "set", "zset", "words", "gone", "text"]
PATTERNS = ["w_*", "w_*", "h_*->f", "h_*->g", "h_*->", "gone_*", "#", "nostar", "w_*_x", "*", "w_**"]


def fill(rng):
    numbers = [str(rng.choice([rng.randrange(-9, 9), rng.randrange(1000), rng.random()])) for _ in range(rng.randrange(1, 12))]
    yield ["DEL", "list", "set", "zset", "words"]
    yield ["RPUSH", "list"] + numbers
    yield ["SADD", "set"] + numbers
    yield ["ZADD", "zset"] + [word for i, number in enumerate(numbers) for word in (str(i % 4), number)]
    yield [rng.choice(["RPUSH", "SADD"]), "words"] + [rng.choice(["a", "B", "b", "aa", "", "10", "9", "1e3", "0x10", "inf", "nan"])
                                                      for _ in range(rng.randrange(1, 7))]
    for number in numbers:
        if rng.random() < 0.7:
            yield ["SET", f"w_{number}", rng.choice([str(rng.randrange(10)), "", "x", "5.5", " 3", "idem"])]
        if rng.random() < 0.5:
            yield ["HSET", f"h_{number}", "f", str(rng.randrange(10)), "g", rng.choice("abc")]


def sort(rng):
    words = [rng.choice(["SORT", "SORT", "sort", "SORT_RO"]), rng.choice(SOURCES)]
    by = ["BY", rng.choice(PATTERNS)] if rng.random() < 0.4 else []
    alpha = ["ALPHA"] if rng.random() < 0.5 else []
    options = [by, alpha]
    for _ in range(rng.choice([0, 0, 1, 2])):
        options.append(["GET", rng.choice(PATTERNS)])
    if rng.random() < 0.5:
        options.append([rng.choice(["ASC", "DESC", "desc"])])
    # Elements that weigh the same come in any order; so do those of a set that nothing puts in order.
    if not (by and alpha) and not (by and "*" not in by[1]):
        if rng.random() < 0.4:
            options.append(["LIMIT", str(rng.choice([-1, 0, 0, 1, 2, 5, 100])), str(rng.choice([-1, 0, 1, 3, 100]))])
        if rng.random() < 0.3:
            options.append(["STORE", "stored"])
    rng.shuffle(options)
    if rng.random() < 0.03:  # at the end, where it takes no other option for its argument
        options.append(rng.choice([["LIMIT", "1"], ["BY"], ["NOSUCH"], ["LIMIT", "x", "1"], ["STORE"]]))
    return words + [word for option in options for word in option]


def native_order(rng):
    words = ["SORT", rng.choice(["list", "zset"]), "BY", "nothing"] + rng.choice([[], ["DESC"], ["GET", "#", "GET", "w_*"]])
    if rng.random() < 0.5:
        words += ["LIMIT", str(rng.randrange(-1, 6)), str(rng.randrange(-1, 6))]
    return words + rng.choice([[], ["STORE", "stored"]])


def commands(rng):
    yield ["SET", "text", "no list"]
    while True:
        yield from fill(rng)
        for _ in range(20):
            yield sort(rng) if rng.random() < 0.9 else native_order(rng)
            if rng.random() < 0.2:
                yield ["LRANGE", "stored", "0", "-1"]


def readback():
    return [["LRANGE", "stored", "0", "-1"], ["LRANGE", "list", "0", "-1"], ["ZRANGE", "zset", "0", "-1", "WITHSCORES"]]


def mask(words):
    if words[0].upper() not in ("SORT", "SORT_RO") or "BY" not in words:
        return None
    by = words[words.index("BY") + 1:][:1]
    loose = by and (("ALPHA" in words and "*" in by[0]) or ("*" not in by[0] and words[1] not in ("list", "zset")))
    return (lambda reply: sorted(map(repr, reply)) if isinstance(reply, list) else reply) if loose else None


def mask_restart(words):
    return None

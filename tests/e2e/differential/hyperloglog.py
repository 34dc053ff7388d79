"""Random commands on HyperLogLogs, sparse and dense: their bytes are those of Redis.

Of several elements Redis adds those before the one at which it finds the value damaged; idemd adds none. So a damaged value gets one.
"""

SETTINGS = {"hll-sparse-max-bytes": 400}

KEYS = ["p1", "p2", "p{3}", "p4"]
OTHERS = ["text", "cut", "gone"]


def element(rng):
    return rng.choice([lambda: str(rng.randrange(50)), lambda: f"e{rng.randrange(10**9)}", lambda: "", lambda: "x" * rng.randrange(30)])()


def key_of(rng):
    return rng.choice(KEYS) if rng.random() < 0.96 else rng.choice(OTHERS)


def add(rng, most):
    key = rng.choice(KEYS) if rng.random() < 0.97 else rng.choice(["text", "gone"])
    return ["PFADD", key] + [element(rng) for _ in range(rng.randrange(most))]


def commands(rng):
    while True:
        key = key_of(rng)
        yield rng.choice([
            lambda: add(rng, 9),
            lambda: add(rng, 9),
            lambda: add(rng, 60),
            lambda: ["PFCOUNT", key],
            lambda: ["PFCOUNT"] + [key_of(rng) for _ in range(rng.randrange(1, 5))],
            lambda: ["PFMERGE", rng.choice(KEYS)] + [key_of(rng) for _ in range(rng.randrange(4))],
            lambda: ["GET", key],
            lambda: ["PFDEBUG", rng.choice(["ENCODING", "DECODE", "encoding", "GETREG", "NOSUCH"]), key],
            lambda: rng.choice([
                lambda: ["DEL", key],
                lambda: ["DEL", key],
                lambda: ["SET", "text", "no such thing"],
                lambda: ["SETRANGE", "cut", "0", "HYLL\x01" + "\x00" * 11 + rng.choice(["", "\x7f\xff", "\x80", "\x7f\xff\x00"])],
                lambda: ["PFADD", "cut", "a"],
                lambda: ["PFDEBUG", "TODENSE", key],
                lambda: ["COPY", rng.choice(KEYS), rng.choice(KEYS), "REPLACE"],
                lambda: ["PEXPIRE", key, "100000000"],
                lambda: ["STRLEN", key],
                lambda: ["PFADD"],
                lambda: ["PFCOUNT"],
                lambda: ["PFMERGE"],
                lambda: ["CONFIG", "SET", "hll-sparse-max-bytes", rng.choice(["0", "40", "400", "400", "3000"])]])(),
        ])()


def readback():
    return [words for key in KEYS for words in (["GET", key], ["PFCOUNT", key])]


def mask(words):
    return None


mask_restart = mask

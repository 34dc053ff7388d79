"""Random places, near and far, at the edges of the map and across them."""

SETTINGS = {"zset-max-listpack-entries": 40}

KEYS = ["g1", "g2", "g{3}"]
STORED = ["d1"]
LONGITUDES = ["0", "180", "-180", "179.9999", "-179.99", "13.361389", "15.087269", "90", "-0.00001"]
LATITUDES = ["0", "85.05112878", "-85.05112878", "85", "38.115556", "37.502669", "-66.5", "80.1", "0.00001"]
MIDDLES = [(13.4, 38.0), (179.9, 0.1), (-179.9, 60.0), (0.0, 84.9), (-70.0, -46.0), (100.0, -85.0)]


def place(rng):
    roll = rng.random()
    if roll < 0.1:
        return [rng.choice(LONGITUDES), rng.choice(LATITUDES)]
    if roll < 0.5:
        longitude, latitude = rng.choice(MIDDLES)
        return [f"{longitude + rng.gauss(0, 0.3):.7f}", f"{latitude + rng.gauss(0, 0.2):.7f}"]
    if roll < 0.52:
        return rng.choice([["181", "0"], ["0", "86"], ["x", "0"], ["0", ""], ["nan", "1"], ["-180.0001", "1"]])
    return [str(rng.uniform(-180, 180)), str(rng.uniform(-85, 85))]


def member(rng):
    return f"p{rng.randrange(120)}"


def unit(rng):
    return rng.choice(["m", "km", "KM", "mi", "ft"]) if rng.random() < 0.98 else rng.choice(["", "cm", "x"])


def length(rng):
    if rng.random() < 0.02:
        return rng.choice(["-1", "x", "", "0", "inf"])
    return f"{rng.choice([1, 10, 100, 1000, 5000, 20000]) * rng.uniform(0.1, 3):.4f}"


def add(rng):
    words = ["GEOADD", rng.choice(KEYS)] + (rng.sample(["NX", "xx", "CH"], rng.choice([1, 1, 2])) if rng.random() < 0.2 else [])
    for _ in range(rng.randrange(1, 6)):
        words += place(rng) + [member(rng)]
    return words + (["odd"] if rng.random() < 0.02 else [])


def options(rng, with_words=True):
    found = []
    if with_words:
        found += rng.sample([["WITHDIST"], ["withcoord"], ["WITHHASH"]], rng.randrange(3))
    # Of what lies equally far the two may choose differently, where some are chosen.
    found += rng.choice([[], [], [["ASC"]], [["desc"]], [["COUNT", "1000"]], [["COUNT", "7", "ANY"]], [["COUNT", "0"]], [["ANY"]], [["COUNT"]]]
                        if rng.random() < 0.1 else [[], [["ASC"]], [["DESC"]], [["COUNT", "1000"]], [["COUNT", "9", "ANY"]]])
    rng.shuffle(found)
    return [word for option in found for word in option]


def where(rng):
    middle = ["FROMLONLAT"] + place(rng) if rng.random() < 0.6 else ["FROMMEMBER", member(rng)]
    shape = ["BYRADIUS", length(rng), unit(rng)] if rng.random() < 0.5 else ["BYBOX", length(rng), length(rng), unit(rng)]
    groups = [middle, shape]
    if rng.random() < 0.02:
        groups.append(rng.choice([["FROMMEMBER", "p1"], ["BYBOX", "1", "1", "m"], ["x"], ["FROMLONLAT", "1"]]))
    if rng.random() < 0.01:
        groups.pop(0)
        groups.append(["ASC", "ASC"])
    rng.shuffle(groups)
    return [word for group in groups for word in group]


def key_of(rng):
    return rng.choice(KEYS + STORED) if rng.random() < 0.95 else rng.choice(["text", "gone"])


def search(rng):
    return ["GEOSEARCH", key_of(rng)] + where(rng) + options(rng)


def search_store(rng):
    return ["GEOSEARCHSTORE", STORED[0], key_of(rng)] + where(rng) + options(rng, rng.random() < 0.03) + rng.choice([[], ["STOREDIST"]])


def radius(rng):
    by_member = rng.random() < 0.5
    name = rng.choice(["GEORADIUS", "GEORADIUS", "GEORADIUS_RO"]).replace("RADIUS", "RADIUSBYMEMBER" if by_member else "RADIUS")
    words = [name, key_of(rng)] + ([member(rng)] if by_member else place(rng)) + [length(rng), unit(rng)]
    if rng.random() < 0.2:
        return words + options(rng, rng.random() < 0.05) + rng.choice([["STORE", STORED[0]], ["storedist", STORED[0]], ["STORE"]])
    return words + options(rng)


def look(rng):
    key = key_of(rng)
    return rng.choice([lambda: ["GEOPOS", key] + [member(rng) for _ in range(rng.randrange(4))],
                       lambda: ["GEOHASH", key] + [member(rng) for _ in range(rng.randrange(4))],
                       lambda: ["GEODIST", key, member(rng), member(rng)] + rng.choice([[], [unit(rng)], ["m", "x"]])])()


def commands(rng):
    yield ["SET", "text", "v"]
    kinds = [add] * 8 + [search] * 10 + [search_store] * 3 + [radius] * 8 + [look] * 6
    while True:
        roll = rng.random()
        if roll < 0.01:
            yield ["ZADD", rng.choice(KEYS), rng.choice(["1", "3.5", "1e15", "9e15", "4503599627370496"]), member(rng)]
        elif roll < 0.03:
            yield ["ZREMRANGEBYRANK", rng.choice(KEYS), "0", "40"]
        else:
            yield rng.choice(kinds)(rng)


def readback():
    return [["ZRANGE", key, "0", "-1", "WITHSCORES"] for key in KEYS + STORED] + [["OBJECT", "ENCODING", key] for key in KEYS]


def mask(_words):
    return None


def mask_restart(words):
    return (lambda reply: None) if words[0] == "OBJECT" else None

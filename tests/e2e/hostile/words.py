"""Every command with too few and too many words, and every number that a command takes at its edges.

What there is comes from the server itself: COMMAND LIST, COMMAND INFO, and the arguments in COMMAND DOCS. A command that is new in
the table is in here without an edit.
"""
import time

from lib.resp import Closed, Connection, Error, Timeout, as_dict
from lib.server import Redis, redis_version

# Never carried out here: they end the server or its log, turn the connection into something else, or end other connections.
NOT_RUN = {"shutdown", "quit", "monitor", "sync", "psync", "replconf", "failover", "migrate", "client|kill", "client|pause", "client|reply",
           "config|set", "config|rewrite", "debug"}
INT_EDGES = ["0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483649", "4294967295", "4294967296", "9223372036854775806",
             "9223372036854775807", "-9223372036854775807", "-9223372036854775808", "4611686018427387904"]
NO_INT = ["", " ", "+1", " 1", "1 ", "01", "1.0", "1e3", "0x10", "nan", "inf", "abc", "1\x00", "9223372036854775808", "-9223372036854775809",
          "18446744073709551616", "9" * 400, "\xff", "--1"]
DOUBLE_EDGES = ["0", "-0", "1", "-1", "0.1", "1e-400", "1.7976931348623157e308", "-1.7976931348623157e308", "4.9e-324", "inf", "-inf", "1e17",
                "9223372036854775807", "1" * 300, "180", "90", "-180.0000001"]
NO_DOUBLE = ["", " ", "1 ", "nan", "-nan", "1e400", "-1e400", "abc", "1.2.3", "1e", "\x00", "1\x00", "0x", "\xff"]
EXAMPLES = {
    "string": [["SET", "{k}", "value"]],
    "bitmap": [["SET", "{k}", "value"]],
    "hyperloglog": [["PFADD", "{k}", "a", "b"]],
    "hash": [["HSET", "{k}", "v", "1", "f2", "2"]],
    "list": [["RPUSH", "{k}", "v", "b", "c"]],
    "set": [["SADD", "{k}", "v", "b", "c"]],
    "sorted-set": [["ZADD", "{k}", "1", "v", "2", "b"]],
    "geo": [["GEOADD", "{k}", "13.36", "38.11", "v"]],
    "stream": [["XADD", "{k}", "1-1", "f", "v"], ["XGROUP", "CREATE", "{k}", "v", "0"]],
    "idempotency": [["IDEM.RESERVE", "{k}"]],
}
KEYS = ["k{h}1", "k{h}2", "k{h}3"]


class Number:
    """A place in a command where a number goes."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind

    def __str__(self):
        return "1"


class Commands:
    """What COMMAND says."""

    def __init__(self, client):
        self.names = [bytes(name).decode() for name in client.call("COMMAND", "LIST")]
        infos = client.call("COMMAND", "INFO", *self.names)
        self.arity = {name: info[1] for name, info in zip(self.names, infos)}
        self.flags = {name: {bytes(flag).decode() for flag in info[2]} for name, info in zip(self.names, infos)}
        self.docs = {}
        for name, docs in as_dict(client.call("COMMAND", "DOCS")).items():
            self._add_docs(name, as_dict(docs))

    def _add_docs(self, name, docs):
        self.docs[name] = docs
        for sub, inner in as_dict(docs.get("subcommands", [])).items():
            self._add_docs(sub, as_dict(inner))

    def group(self, name):
        return bytes(self.docs[name]["group"]).decode() if name in self.docs else ""


class Shapes:
    """Word lists that a command's arguments allow: those it needs, and beside them each optional one and each alternative once."""

    def __init__(self):
        self.keys = 0

    def sequences(self, arguments):
        arguments = [as_dict(argument) for argument in arguments]
        alternatives = [self.alternatives(argument) for argument in arguments]
        optional = [b"optional" in (argument.get("flags") or []) for argument in arguments]
        base = [[] if opt else alts[0] for opt, alts in zip(optional, alternatives)]
        yield sum(base, [])
        for i, alts in enumerate(alternatives):
            for words in alts if optional[i] else alts[1:]:
                yield sum(base[:i] + [words] + base[i + 1:], [])

    def alternatives(self, argument):
        kind = bytes(argument["type"]).decode()
        token = bytes(argument["token"]).decode() if "token" in argument else None
        head = [token] if token is not None and kind != "pure-token" else []
        if kind == "pure-token":
            return [[token]]
        if kind == "oneof":
            return [head + words for inner in argument["arguments"] for words in self.alternatives(as_dict(inner))]
        if kind == "block":
            return [head + words for words in self.sequences(argument["arguments"])]
        return [head + [self.value(argument, kind)]]

    def value(self, argument, kind):
        name = bytes(argument["name"]).decode()
        if kind in ("integer", "unix-time", "double"):
            return Number(name, "double" if kind == "double" else "integer")
        if kind == "key":
            self.keys += 1
            return KEYS[min(self.keys, len(KEYS)) - 1]
        if name == "script":
            return "return 1"
        return "*" if kind == "pattern" else "v"


def words_of(name):
    return name.upper().split("|")


# --- too few, too many

def wrong_arity(client, name, words):
    reply = client.call(*words)
    if isinstance(reply, Error) and b"wrong number of arguments for '%s' command" % name.encode() in reply:
        return None
    return f"{len(words)} words: {bytes(reply) if isinstance(reply, bytes) else reply!r}"


def arity(battery, commands):
    def too_few(name):
        with battery.connect() as client:
            first = len(words_of(name))
            for count in range(first, abs(commands.arity[name])):
                wrong = wrong_arity(client, name, words_of(name) + ["x"] * (count - first))
                if wrong:
                    return wrong
        return None

    def too_many(name):
        given = words_of(name)
        most = commands.arity[name]
        with battery.connect() as client:
            for more in (1, 2, 50, 5000):
                wrong = wrong_arity(client, name, given + ["x"] * (most - len(given) + more))
                if wrong:
                    return wrong
        return None

    def any_number(name):
        """A command of so many words as one likes: whatever it answers, and the connection goes on."""
        given = words_of(name)
        for count in [*range(max(0, -commands.arity[name] - len(given)), 8), 50, 999, 1000, 5001]:
            for word in ("x", "", "\x00\r\n", "1", "-1"):
                with battery.connect() as client:
                    client.send(*given, *[word] * count)
                    try:
                        client.read(timeout=0.02 if "blocking" in commands.flags[name] else 5.0)
                    except Timeout:
                        if "blocking" not in commands.flags[name]:
                            return f"{count} times {word!r}: no answer"
        return None

    for name in commands.names:
        if len(words_of(name)) < abs(commands.arity[name]):
            yield f"{name} with too few words", lambda n=name: too_few(n)
        if commands.arity[name] > 0:
            yield f"{name} with too many words", lambda n=name: too_many(n)
        elif name not in NOT_RUN:
            yield f"{name} with any number of words", lambda n=name: any_number(n)


def unknown(battery):
    def error(*words):
        with battery.connect() as client:
            reply = client.call(*words)
            return None if isinstance(reply, Error) and len(reply) < 1000 else repr(reply)[:200]

    for name in ("", "\x00", "\r\n", "GE", "GETT", "get\x00", " GET", "GET ", "x" * 100_000, "\xff\xfe", "idem.", "IDEM.RESERVE\n", "*", "config|get"):
        yield f"a command called {name[:20]!r}", lambda n=name: error(n)
        yield f"... with many words {name[:20]!r}", lambda n=name: error(n, *["\r\n" * 50] * 200)
        yield f"a subcommand called {name[:20]!r}", lambda n=name: error("CONFIG", n, "x")
    for name in ("GET\r\n", "-ERR x", "+OK\r\n"):
        yield f"an error that quotes {name!r}", lambda n=name: error(n, "a\r\n+OK\r\nb")


# --- numbers

class Edges:
    """Sends commands with numbers on one connection, each to fresh keys."""

    def __init__(self, battery, commands):
        self.battery, self.commands = battery, commands
        self.client = None
        self.redis = Redis().__enter__() if redis_version().startswith("7.0.") else None

    def places(self, name):
        """(words with one Number in them that stands for itself, its name and kind): each number of the command once."""
        seen = set()
        for words in Shapes().sequences(self.commands.docs[name].get("arguments", [])):
            path = []
            for i, word in enumerate(words):
                if isinstance(word, str) and word.isupper():
                    path.append(word)
                if not isinstance(word, Number):
                    continue
                known = (word.name, tuple(path[-1:]))
                if known in seen:
                    continue
                seen.add(known)
                yield [*words_of(name), *map(str, words)], len(words_of(name)) + i, word

    def send(self, name, words):
        """The command's reply, or None where it waits."""
        patience = 0.02 if "blocking" in self.commands.flags[name] or "WAIT" in words else 5.0
        if self.client is None:
            self.client = self.battery.connect()
        self.client.pipeline(self.setup(name))
        self.client.send(*words)
        try:
            return self.client.read(timeout=patience)
        except Timeout:
            self.close()
            if patience > 1:
                raise
            return None
        except Closed:
            self.close()
            raise

    def setup(self, name):
        setup = [["RESET"], ["DEL", *KEYS]]
        for command in EXAMPLES.get(self.commands.group(name), EXAMPLES["string"]):
            setup += [[word.replace("{k}", key) for word in command] for key in KEYS]
        return setup

    def redis_takes(self, name, words):
        """Whether a stock Redis takes it for a number, too: scores may be empty there, and cursors begin with a plus."""
        if self.redis is None:
            return True
        with Connection(self.redis.port) as client:
            client.pipeline(self.setup(name))
            return not isinstance(client.call(*words), Error)

    def close(self):
        if self.client is not None:
            self.client.close()
        self.client = None

    def check(self, name, words, at, number):
        double = number.kind == "double"
        for text in DOUBLE_EDGES if double else INT_EDGES:
            started = time.monotonic()
            try:
                self.send(name, words[:at] + [text] + words[at + 1:])
            except (Timeout, Closed) as error:
                return f"{text}: {type(error).__name__}"
            if time.monotonic() - started > 2.0:
                return f"{text}: took {time.monotonic() - started:.1f} s"
        for text in NO_DOUBLE if double else NO_INT:
            given = words[:at] + [text] + words[at + 1:]
            reply = self.send(name, given)
            if not isinstance(reply, Error) and not self.redis_takes(name, given):
                return f"{text!r} is taken for a number: {' '.join(words)[:100]}: {reply!r}"
        return None

    def cases(self):
        for name in self.commands.names:
            if name in NOT_RUN or name not in self.commands.docs:
                continue
            for words, at, number in self.places(name):
                shown = " ".join([*words[:at], f"<{number.name}>", *words[at + 1:]])
                yield shown, lambda n=name, w=words, a=at, x=number: self.check(n, w, a, x)
        self.close()
        if self.redis is not None:
            self.redis.__exit__()


def settings(battery):
    """CONFIG SET of what is no number, for all settings that are one."""
    def body(name, before):
        with battery.connect() as client:
            for text in (text for text in NO_INT if text != "01"):  # sizes may begin with a zero, as in Redis
                reply = client.call("CONFIG", "SET", name, text)
                if not isinstance(reply, Error):
                    client.call("CONFIG", "SET", name, before)
                    return f"takes {text!r}: {reply!r}"
        return None

    with battery.connect() as client:
        values = as_dict(client.call("CONFIG", "GET", "*"))
    for name, value in values.items():
        if bytes(value).lstrip(b"-").isdigit():
            yield name, lambda n=name, v=value: body(n, v)


def cases(battery):
    if not any(battery.wants(kind) for kind in ("arity", "unknown", "numbers", "settings")):
        return
    with battery.connect(timeout=60) as client:
        commands = Commands(client)
    battery.run("arity", arity(battery, commands))
    battery.run("unknown", unknown(battery))
    battery.run("numbers", Edges(battery, commands).cases())
    battery.run("settings", settings(battery))

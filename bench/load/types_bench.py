#!/usr/bin/env python3
"""Processor time per command of every data type, of scripts and of MULTI: idemd beside redis-server, in turn.

  types_bench.py BUILD [--rounds N] [--seconds S] [--rows NAMES] [--pipelines 1,16,64] [--quick] [--out FILE]

Requests are made before the clock starts, and the same bytes go to both servers, over 50 connections of one client that
keeps as many requests under way on each as the pipeline says. What is compared is what the server's process used, from
/proc; the client, which is Python, is slower than both. Each row begins on an empty server with the row's own data.
Ratios above 1: idemd needs less. Ends with the rows that are below 0.95.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import selectors
import socket
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests/e2e")]
from compare import Contender, Server  # noqa: E402
from lib.resp import Connection  # noqa: E402

CONNECTIONS = 50
KEYS, PARTS = 10_000, 100
TOKEN_SCRIPT = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end")
# What no recognition knows: the interpreter runs it on both sides.
LUA_SCRIPT = ("local v = redis.call('get', KEYS[1]) local t = {} for i = 1, 3 do t[i] = string.rep(ARGV[1], i) end "
              "if v == table.concat(t, ':') then redis.call('del', KEYS[1]) return 1 end return v and 2 or 0")
FLOOR = 0.95


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Row:
    """`make(random)` gives one request as a list of commands, `prepare` those that make the data; `replies` per request."""

    def __init__(self, name, make, prepare=(), replies=1):
        self.name, self.make, self.prepare, self.replies = name, make, prepare, replies


def key(r, of="key"):
    return f"{of}:{r.randrange(KEYS):012d}"


def part(r):
    return f"part:{r.randrange(PARTS):04d}"


def filled(command, *between, of="key", parts=PARTS):
    """A command that fills each key with parts: `between` stands before each."""
    for number in range(KEYS // 10):
        words = [command, f"{of}:{number:012d}"]
        for i in range(parts):
            words += [i if b == "#" else b for b in between] + [f"part:{i:04d}"]
        yield words


def few(r):
    return f"key:{r.randrange(KEYS // 10):012d}"


def with_values(command="HSET"):
    for number in range(KEYS // 10):
        yield [command, f"key:{number:012d}", *itertools.chain.from_iterable((f"part:{i:04d}", "value") for i in range(PARTS))]


ROWS = [
    Row("SET", lambda r: [["SET", key(r), "value"]]),
    Row("GET", lambda r: [["GET", key(r)]], [["SET", f"key:{i:012d}", "value"] for i in range(KEYS)]),
    Row("INCR", lambda r: [["INCR", key(r)]]),
    Row("APPEND", lambda r: [["APPEND", key(r), "x"]]),
    Row("SETBIT", lambda r: [["SETBIT", key(r), r.randrange(4096), 1]]),
    Row("EXPIRE", lambda r: [["EXPIRE", key(r), 1000]], [["SET", f"key:{i:012d}", "value"] for i in range(KEYS)]),
    Row("LPUSH", lambda r: [["LPUSH", key(r), "value"]]),
    Row("RPUSH, LPOP", lambda r: [["RPUSH", few(r), "value"], ["LPOP", few(r)]], replies=2),
    Row("LRANGE of 100", lambda r: [["LRANGE", few(r), 0, 99]], filled("RPUSH")),
    Row("LINDEX", lambda r: [["LINDEX", few(r), r.randrange(PARTS)]], filled("RPUSH")),
    Row("HSET", lambda r: [["HSET", few(r), part(r), "value"]]),
    Row("HGET", lambda r: [["HGET", few(r), part(r)]], with_values()),
    Row("HINCRBY", lambda r: [["HINCRBY", few(r), part(r), 1]]),
    Row("HGETALL of 10", lambda r: [["HGETALL", few(r)]],
        [["HSET", f"key:{n:012d}", *itertools.chain.from_iterable((f"part:{i}", "value") for i in range(10))] for n in range(KEYS // 10)]),
    Row("SADD", lambda r: [["SADD", few(r), part(r)]]),
    Row("SISMEMBER", lambda r: [["SISMEMBER", few(r), part(r)]], filled("SADD")),
    Row("SADD, SPOP", lambda r: [["SADD", few(r), part(r)], ["SPOP", few(r)]], replies=2),
    Row("ZADD", lambda r: [["ZADD", few(r), r.randrange(1000), part(r)]]),
    Row("ZSCORE", lambda r: [["ZSCORE", few(r), part(r)]], filled("ZADD", "#")),
    Row("ZRANK", lambda r: [["ZRANK", few(r), part(r)]], filled("ZADD", "#")),
    Row("ZRANGE of 10", lambda r: [["ZRANGE", few(r), 10, 19]], filled("ZADD", "#")),
    Row("ZRANGEBYSCORE of 10", lambda r: [["ZRANGEBYSCORE", few(r), 20, 29]], filled("ZADD", "#")),
    Row("ZADD of 100 000", lambda r: [["ZADD", "big", r.randrange(10**6), f"part:{r.randrange(100_000)}"]]),
    Row("ZADD, ZPOPMIN", lambda r: [["ZADD", few(r), r.randrange(1000), part(r)], ["ZPOPMIN", few(r)]], replies=2),
    Row("XADD", lambda r: [["XADD", few(r), "MAXLEN", "~", "1000", "*", "field", "value"]]),
    Row("XRANGE of 10", lambda r: [["XRANGE", few(r), "-", "+", "COUNT", 10]],
        [["XADD", f"key:{n:012d}", f"0-{i + 1}", "field", "value"] for n in range(KEYS // 10) for i in range(10)]),
    Row("PFADD", lambda r: [["PFADD", few(r), r.randrange(10**6)]]),
    Row("GEOADD", lambda r: [["GEOADD", few(r), round(r.uniform(-179, 179), 4), round(r.uniform(-80, 80), 4), part(r)]]),
    Row("MULTI of four", lambda r: [["MULTI"], ["SET", key(r), "value"], ["GET", key(r)], ["INCR", key(r, "n")], ["EXPIRE", key(r), 100],
                                    ["EXEC"]], replies=6),
    Row("EVALSHA, the token script", lambda r: [["EVALSHA", "TOKEN", 1, key(r), "1"]]),
    Row("EVALSHA, another script", lambda r: [["EVALSHA", "LUA", 1, key(r), "1"]]),
]


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Load:
    """The connections of one measurement."""

    def __init__(self, port, chunks, replies):
        self.chunks, self.replies = chunks, replies  # lists of (bytes, number of replies)
        self.selector = selectors.DefaultSelector()
        self.states = []
        for _ in range(CONNECTIONS):
            sock = socket.create_connection(("127.0.0.1", port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            state = {"sock": sock, "due": 0, "rest": b"", "at": random.randrange(len(chunks))}
            self.states.append(state)
            self.selector.register(sock, selectors.EVENT_READ, state)

    def send(self, state):
        state["at"] = (state["at"] + 1) % len(self.chunks)
        state["sock"].sendall(self.chunks[state["at"]])
        state["due"] = self.replies

    def run(self, seconds):
        """Requests of a chunk times chunks that were answered."""
        done, end = 0, time.monotonic() + seconds
        for state in self.states:
            self.send(state)
        open_now = CONNECTIONS
        while open_now:
            for event, _ in self.selector.select():
                state = event.data
                data = state["sock"].recv(1 << 20)
                if not data:
                    raise SystemExit("the server closed a connection")
                state["due"], state["rest"] = count(state["due"], state["rest"] + data)
                if state["due"] > 0:
                    continue
                done += 1
                if time.monotonic() < end:
                    self.send(state)
                else:
                    open_now -= 1
        return done

    def close(self):
        for state in self.states:
            state["sock"].close()


def count(due, data):
    """How many replies are still due, and the bytes of one that is not whole. Errors end the run."""
    at = 0
    while due > 0:
        end = reply_end(data, at)
        if end < 0:
            break
        at, due = end, due - 1
    return due, data[at:]


def reply_end(data, at):
    line = data.find(b"\r\n", at)
    if line < 0:
        return -1
    kind, text = data[at], data[at + 1:line]
    at = line + 2
    if kind == 0x2D:
        raise SystemExit("the server says: " + text.decode())
    if kind == 0x24:
        size = int(text)
        at += size + 2 if size >= 0 else 0
        return at if at <= len(data) else -1
    if kind == 0x2A:
        for _ in range(max(int(text), 0)):
            at = reply_end(data, at)
            if at < 0:
                return -1
    return at


def measure(server, row, pipeline, seconds):
    r = random.Random(row.name)
    with Connection(server.port, timeout=60.0) as client:
        client.call("FLUSHALL")
        shas = {"TOKEN": client.call("SCRIPT", "LOAD", TOKEN_SCRIPT), "LUA": client.call("SCRIPT", "LOAD", LUA_SCRIPT)}
        batch = []
        for words in list(row.prepare() if callable(row.prepare) else row.prepare):
            batch.append(encode(*words))
            if len(batch) == 100:
                client.send_raw(b"".join(batch))
                for _ in batch:
                    client.read()
                batch = []
        client.send_raw(b"".join(batch))
        for _ in batch:
            client.read()
    requests = max(1, pipeline // row.replies) if row.replies > 1 else pipeline
    chunks = []
    for _ in range(max(50, 2000 // requests)):
        chunk = b""
        for _ in range(requests):
            for words in row.make(r):
                chunk += encode(*[bytes(shas[w]) if w in shas else w for w in words])
        chunks.append(chunk)
    load = Load(server.port, chunks, requests * row.replies)
    load.run(seconds / 5)
    before = cpu_s(server.process.pid)
    done = load.run(seconds)
    used = cpu_s(server.process.pid) - before
    load.close()
    return used * 1e6 / (done * requests * row.replies)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rows")
    parser.add_argument("--pipelines", default="1,16,64")
    parser.add_argument("--quick", action="store_true", help="one round of 0.3 s: whether it works, not how fast it is")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.3
    pipelines = [int(p) for p in options.pipelines.split(",")]
    wanted = options.rows.split(";") if options.rows else None
    rows = [row for row in ROWS if wanted is None or row.name in wanted]
    for row in rows:
        row.prepare = list(row.prepare)
    cpus = sorted(os.sched_getaffinity(0))
    server_cpu, client_cpu = (cpus[0], cpus[1]) if len(cpus) > 1 else (None, None)
    contenders = [Contender("redis", "redis-server", "redis"), Contender("idemd", str(pathlib.Path(options.build) / "idemd"), "idemd")]
    found = {}
    for number in range(options.rounds):
        servers = [Server(contender, server_cpu) for contender in contenders]
        if client_cpu is not None:
            os.sched_setaffinity(0, {client_cpu})
        try:
            for server in servers:
                server.stop()
            for row, pipeline in itertools.product(rows, pipelines):
                for server in servers if number % 2 == 0 else servers[::-1]:
                    server.go_on()
                    found.setdefault((row.name, pipeline), {}).setdefault(server.name, []).append(
                        measure(server, row, pipeline, options.seconds))
                    server.stop()
        finally:
            for server in servers:
                server.go_on()
                server.end()
            os.sched_setaffinity(0, set(cpus))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    print("| us of processor time per command | " + " | ".join(f"pipeline {p}: Redis, idemd (ratio)" for p in pipelines) + " |")
    print("| --- |" + " ---: |" * len(pipelines))
    below = []
    for row in rows:
        cells = []
        for pipeline in pipelines:
            sides = found[row.name, pipeline]
            ratios = [a / b for a, b in zip(sides["redis"], sides["idemd"]) if b > 0]
            ratio = statistics.median(ratios)
            cells.append(f"{statistics.median(sides['redis']):.2f}, {statistics.median(sides['idemd']):.2f} ({ratio:.2f})")
            if ratio < FLOOR:
                below.append(f"{row.name} at {pipeline}: {ratio:.2f}")
        print(f"| {row.name} | " + " | ".join(cells) + " |")
    print(f"\nBelow {FLOOR}: " + ("; ".join(below) or "none"))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({f"{n} {p}": sides for (n, p), sides in found.items()}))


if __name__ == "__main__":
    main()

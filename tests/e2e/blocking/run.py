#!/usr/bin/env python3
"""Callers who wait at keys: whom a command of somebody else serves, and with what, is the same as of a stock redis-server; and in
a storm, through disconnects and a kill -9, each element is in one place.

    run.py [BUILD] [--steps N] [--seconds S] [--seed S]
"""
import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.resp import Closed, Connection, Error, Timeout  # noqa: E402
from lib.server import Server, eventually, find_binary, free_port, skipped_for_redis  # noqa: E402

KEYS = ["k1", "k2", "k{3}", "k4"]
CALLERS = 6


class Redis:
    """A stock redis-server that keeps nothing."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="idemd-redis-")
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", ""],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        eventually(self.answers, "redis-server answers", timeout=20)
        return self

    def answers(self):
        try:
            with Connection(self.port, timeout=2.0) as client:
                return client.call("PING") == b"PONG"
        except (OSError, Closed, Timeout):
            return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)
        shutil.rmtree(self.directory, ignore_errors=True)


# --- the same as Redis

def plain(value):
    if isinstance(value, list):
        return [plain(v) for v in value]
    return f"{type(value).__name__} {value!r}"


class Side:
    """One of the two servers, with a driver and some callers."""

    def __init__(self, port, resps):
        self.port, self.resps = port, resps
        self.driver = Connection(port, timeout=20)
        self.callers = [None] * len(resps)
        self.ids = [None] * len(resps)
        for i in range(len(resps)):
            self.connect(i)

    def connect(self, i):
        self.callers[i] = Connection(self.port, resp=self.resps[i], timeout=20)
        self.ids[i] = self.callers[i].call("CLIENT", "ID")

    def flags(self, i):
        """Of CLIENT LIST, and the last command; None when it is gone."""
        line = bytes(self.driver.call("CLIENT", "LIST", "ID", str(self.ids[i]))).decode()
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        return (fields["flags"], fields["cmd"]) if fields else None

    def blocked(self, i):
        found = self.flags(i)
        return found is not None and "b" in found[0]

    def blocks(self, i, words):
        """Sends words; whether the caller waits then, else its reply."""
        self.callers[i].send("ECHO", "before")
        assert self.callers[i].read() == b"before"
        self.callers[i].send(*words)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.blocked(i):
                return True
            try:
                return self.callers[i].read(timeout=0.001)
            except Timeout:
                pass
        raise AssertionError(f"{words} neither answers nor waits")

    def close(self):
        for client in [self.driver, *self.callers]:
            client.close()


def wait_words(rng, zsets):
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    ends = [rng.choice(["LEFT", "RIGHT"]) for _ in range(2)]
    count = rng.choice([[], ["COUNT", str(rng.randrange(1, 4))]])
    choices = [
        lambda: ["BLPOP", key, other, "0"],
        lambda: ["BRPOP", key, "0"],
        lambda: ["BLMOVE", key, other, *ends, "0"],
        lambda: ["BRPOPLPUSH", key, other, "0"],
        lambda: ["BLMPOP", "0", "2", key, other, ends[0], *count]]
    if zsets:
        choices += [
            lambda: ["BZPOPMIN", key, other, "0"],
            lambda: ["BZPOPMAX", key, "0"],
            lambda: ["BZMPOP", "0", "2", key, other, rng.choice(["MIN", "MAX"]), *count]]
    return rng.choice(choices)()


def change_words(rng, zsets, ids):
    """Commands of the driver, as [words, ...]: one, or a transaction."""
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    element = lambda: str(rng.randrange(100))  # noqa: E731
    choices = [lambda: [["RPUSH", key, element()]]] * 6 + [
        lambda: [["LPUSH", key] + [element() for _ in range(rng.randrange(1, 4))]],
        lambda: [["RPUSH", key] + [element() for _ in range(rng.randrange(1, 4))]],
        lambda: [["LPUSHX", key, element()]],
        lambda: [["LINSERT", key, "BEFORE", element(), element()]],
        lambda: [["LMOVE", key, other, "LEFT", "RIGHT"]],
        lambda: [["DEL", key]],
        lambda: [["DEL", *KEYS]],
        lambda: [["RENAME", key, other]],
        lambda: [["COPY", key, other, "REPLACE"]],
        lambda: [["SET", key, "text"]],
        lambda: [["SWAPDB", "0", "1"]],
        lambda: [["MOVE", key, "1"]],
        lambda: [["FLUSHALL"]],
        lambda: [["CLIENT", "UNBLOCK", rng.choice(ids), *rng.choice([[], ["TIMEOUT"], ["ERROR"]])]],
        lambda: [["CLIENT", "KILL", "ID", rng.choice(ids)]],
        lambda: [["MULTI"], ["RPUSH", key, element()], ["LPUSH", other, element(), element()], ["EXEC"]],
        lambda: [["MULTI"], ["RPUSH", key, element()], ["DEL", key], ["EXEC"]],
        lambda: [["MULTI"], ["RPUSH", key, element()], ["RPUSH", other, element()], ["BLPOP", key, "0"], ["EXEC"]],
        lambda: [["MULTI"], ["RPUSH", key, element()], ["SWAPDB", "0", "1"], ["EXEC"]]]
    if zsets:
        choices += [lambda: [["ZADD", key, element(), "m" + element()]]] * 5 + [
            lambda: [["ZADD", key, "1", "a", "2", "b", "3", "c"]],
            # Onto nothing: whoever waits at a key of another type is not told by Redis 7.0 when the result replaces that.
            lambda: [["MULTI"], ["DEL", key], ["ZUNIONSTORE", key, "2", other, rng.choice(KEYS)], ["EXEC"]],
            lambda: [["ZINCRBY", key, "1", "a"]],
            lambda: [["MULTI"], ["DEL", key], ["ZADD", key, "1", "a"], ["EXEC"]]]
    return rng.choice(choices)()


def keys_waited_for(waiting):
    return sum(len([word for word in words if word in KEYS]) for words in waiting if words is not None)


def same_as_redis(binary, rng, steps):
    resps = [rng.choice([2, 3]) for _ in range(CALLERS)]
    with Server(binary, appendonly="no", save="", io_threads=3) as idemd, Redis() as redis:
        sides = [Side(idemd.port, resps), Side(redis.port, resps)]
        zsets = not isinstance(sides[0].driver.call("ZADD", "probe", "1", "a"), Error)
        for side in sides:
            side.driver.call("FLUSHALL")
        waiting = [None] * CALLERS
        history = []

        def expect_same(what, ours, theirs):
            if ours != theirs:
                raise AssertionError(f"{what}:\n    idemd {ours!r}\n    redis {theirs!r}\n  after\n    "
                                     + "\n    ".join(history[-25:]))

        for _ in range(steps):
            idle = [i for i in range(CALLERS) if waiting[i] is None]
            if idle and rng.random() < 0.5:
                i, words = rng.choice(idle), wait_words(rng, zsets)
                history.append(f"{i}: {' '.join(words)}")
                found = [side.blocks(i, words) for side in sides]
                expect_same(history[-1], *[f is True or plain(f) for f in found])
                waiting[i] = words if found[0] is True else None
                continue
            about = rng.randrange(CALLERS)
            state = rng.getstate()
            if ["SWAPDB", "0", "1"] in change_words(rng, zsets, [""]) and keys_waited_for(waiting) > 1:
                continue  # then Redis looks at the keys in the order of a hash table
            replies = []
            for side in sides:  # the same choices for both
                rng.setstate(state)
                commands = change_words(rng, zsets, [str(side.ids[about])])
                replies.append([plain(reply) for reply in side.driver.pipeline(commands)])
            history.append("; ".join(" ".join(words) for words in commands))
            expect_same(history[-1], *replies)
            for i in range(CALLERS):
                gone = [side.flags(i) is None for side in sides]
                expect_same(f"{history[-1]}: caller {i} is gone", *gone)
                if gone[0]:
                    for side in sides:
                        side.callers[i].close()
                        side.connect(i)
                    waiting[i] = None
                if waiting[i] is None:
                    continue
                still = [side.blocked(i) for side in sides]
                expect_same(f"{history[-1]}: caller {i}, {waiting[i]}, waits on", *still)
                if not still[0]:
                    expect_same(f"{history[-1]}: caller {i}, {waiting[i]}", *[plain(side.callers[i].read()) for side in sides])
                    waiting[i] = None
            if rng.random() < 0.1:
                for db in (0, 1):
                    for key in KEYS:
                        look = [["SELECT", str(db)], ["TYPE", key], ["LRANGE", key, "0", "-1"], ["SELECT", "0"]]
                        if zsets:
                            look.insert(1, ["ZRANGE", key, "0", "-1", "WITHSCORES"])
                        expect_same(f"{key} in {db}", *[plain(side.driver.pipeline(look)) for side in sides])
        for side in sides:
            side.close()


# --- a storm

class Storm:
    """Pushers, and takers who move what they find to `taken`; some of them leave while they wait."""

    def __init__(self, server, rng):
        self.server, self.rng = server, rng
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.pushed, self.moved, self.failures = set(), set(), []
        self.numbers = iter(range(1 << 60))
        self.threads = []

    def run(self, pushers, takers):
        for work, count in ((self.push, pushers), (self.take, takers)):
            for _ in range(count):
                rng = random.Random(self.rng.getrandbits(64))
                self.threads.append(threading.Thread(target=self.guarded, args=(work, rng)))
        for thread in self.threads:
            thread.start()

    def guarded(self, work, rng):
        try:
            work(rng)
        except (Closed, OSError):
            if not self.ending.is_set():
                self.failures.append(traceback.format_exc())
        except Exception:  # noqa: BLE001
            self.failures.append(traceback.format_exc())

    def push(self, rng):
        with self.server.connect(timeout=30) as client:
            while not self.ending.is_set():
                with self.lock:
                    elements = [f"e{next(self.numbers)}" for _ in range(rng.randrange(1, 4))]
                reply = client.call(rng.choice(["LPUSH", "RPUSH"]), rng.choice(KEYS), *elements)
                assert isinstance(reply, int), reply
                with self.lock:
                    self.pushed.update(elements)
                if reply > 50:
                    time.sleep(0.01)

    def take(self, rng):
        client = self.server.connect(timeout=30)
        while not self.ending.is_set():
            if rng.random() < 0.02:
                client.send("BLMOVE", rng.choice(KEYS), "taken", "LEFT", "RIGHT", "0")
                time.sleep(rng.random() * 0.01)
                client.close()
                client = self.server.connect(timeout=30)
                continue
            timeout = rng.choice(["0.001", "0.005", "0.05"])
            reply = client.call(*rng.choice([["BLMOVE", rng.choice(KEYS), "taken", "LEFT", "RIGHT", timeout],
                                             ["BRPOPLPUSH", rng.choice(KEYS), "taken", timeout]]))
            if isinstance(reply, bytes) and not isinstance(reply, Error):
                with self.lock:
                    self.moved.add(bytes(reply).decode())
        client.close()

    def end(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures[0]


def check_places(client, storm):
    """What was acknowledged is there, once; what was moved is where it was moved to."""
    taken = [bytes(e).decode() for e in client.call("LRANGE", "taken", "0", "-1")]
    left = [bytes(e).decode() for key in KEYS for e in client.call("LRANGE", key, "0", "-1")]
    everything = taken + left
    assert len(set(everything)) == len(everything), "an element is in two places"
    lost = storm.pushed - set(everything)
    assert not lost, f"{len(lost)} elements are lost: {sorted(lost)[:5]}"
    back = storm.moved - set(taken)
    assert not back, f"{len(back)} elements were moved and are not there: {sorted(back)[:5]}"
    assert storm.moved, "nobody was served"
    return len(everything)


def elements_are_in_one_place(binary, rng, seconds):
    with Server(binary, appendonly="yes", save="", io_threads=4) as server:
        storm = Storm(server, rng)
        storm.run(pushers=3, takers=9)
        time.sleep(seconds)
        storm.end()
        with server.connect() as client:
            # Whoever left while it waited stands in no line any more.
            eventually(lambda: b"blocked_clients:0\r\n" in bytes(client.call("INFO", "clients")), "nobody is blocked")
            check_places(client, storm)


def a_killed_server_has_each_element_in_one_place(binary, rng, seconds):
    with Server(binary, appendonly="yes", save="", io_threads=4) as server:
        for _ in range(3):
            storm = Storm(server, rng)
            storm.run(pushers=3, takers=9)
            time.sleep(seconds / 3)
            storm.ending.set()
            server.kill()
            storm.end()
            server.start()
            with server.connect() as client:
                check_places(client, storm)
                client.call("FLUSHALL")


def times_are_kept(binary, rng, _):
    """Waits end when they should, also those of many at once."""
    with Server(binary, appendonly="no", save="") as server:
        clients = [server.connect(timeout=30) for _ in range(40)]
        began = []
        for i, client in enumerate(clients):
            began.append(time.monotonic())
            client.send("BLPOP", rng.choice(KEYS), str(0.05 + i * 0.01))
        for i, client in enumerate(clients):
            reply = client.read()
            assert not isinstance(reply, (list, Error)), reply
            assert time.monotonic() - began[i] >= 0.05 + i * 0.01, f"caller {i} was told too early"
        for client in clients:
            client.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    binary = find_binary(options.build)
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    tests = [(same_as_redis, options.steps), (elements_are_in_one_place, options.seconds),
             (a_killed_server_has_each_element_in_one_place, options.seconds), (times_are_kept, None)]
    if skipped_for_redis("who is served"):
        tests = tests[1:]
    failed = 0
    for test, size in tests:
        try:
            test(binary, random.Random(seed), size)
            print(f"ok   {test.__name__}, seed {seed}", flush=True)
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"FAIL {test.__name__}, seed {seed}\n{traceback.format_exc()}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

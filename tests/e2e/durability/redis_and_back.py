#!/usr/bin/env python3
"""The way in and the way back: idemd starts from what a stock Redis wrote, and a stock Redis from what idemd wrote.

    redis_and_back.py [BUILD] [--rounds N] [--seed S]

A round makes a directory with one of the two, starts the other on it, and compares every key, value and deadline of all databases.
Then it goes back, and in again. Directories are random: kinds of persistence, kinds of writes, how the process ended.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.resp import Closed, Connection, Error, Timeout  # noqa: E402
from lib.server import Server, find_binary, free_port  # noqa: E402

DATABASES = 16
FAR_MS = 10_000_000  # deadlines that no round lives to see


class Redis:
    """A stock redis-server on a directory of ours."""

    def __init__(self, directory, **settings):
        self.directory = directory
        self.port = free_port()
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", directory, "--save", ""]
        for name, value in settings.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        self.log = open(os.path.join(directory, "redis.log"), "ab")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until_loaded(self.port, self.process)

    def stop(self, how):
        if how == "kill":
            self.wait_until_written()
            self.process.kill()
        else:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.log.close()

    def wait_until_written(self):
        """While a sync is under way on a busy disk, Redis holds back up to two seconds of what it has acknowledged."""
        deadline = time.monotonic() + 10
        with Connection(self.port, timeout=20.0) as client:
            while True:
                info = bytes(client.call("INFO", "persistence"))
                if b"aof_enabled:0" in info or b"aof_buffer_length:0" in info:
                    return
                assert time.monotonic() < deadline, "Redis does not write its log"
                time.sleep(0.01)


def wait_until_loaded(port, process, timeout=20.0):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError("the server ended while it was starting")
        try:
            with Connection(port, timeout=2.0) as client:
                if not isinstance(client.call("GET", "nothing"), Error):
                    return
        except (OSError, Closed, Timeout):
            pass
        time.sleep(0.01)
    raise AssertionError("the server did not load its data in time")


class Idemd(Server):
    """idemd on a directory that stays when it has gone."""

    def __init__(self, binary, directory, **settings):
        super().__init__(binary, **settings)
        shutil.rmtree(self.directory)
        self.directory = directory

    def end(self, how):
        if how == "kill":
            self.process.kill()
            self.process.wait(10)
            self.log.close()
        else:
            code = self.stop()
            assert code == 0, f"idemd ended with {code}: {self.log_text()}"


def keyspace(port):
    """{(db, key): (value, deadline)} of all databases."""
    seen = {}
    with Connection(port, timeout=20.0) as client:
        for db in range(DATABASES):
            client.expect_ok("SELECT", db)
            cursor, keys = b"0", set()
            while True:
                cursor, part = client.call("SCAN", cursor, "COUNT", 1000)
                keys.update(bytes(key) for key in part)
                if bytes(cursor) == b"0":
                    break
            keys = sorted(keys)
            values = client.pipeline([["GET", key] for key in keys])
            deadlines = client.pipeline([["PEXPIRETIME", key] for key in keys])
            for key, value, deadline in zip(keys, values, deadlines):
                if deadline != -2:
                    seen[db, key] = (bytes(value), deadline)
    return seen


def must_equal(there, here, what):
    if there == here:
        return
    lines = [f"{what}: {len(there)} keys against {len(here)}"]
    for name in sorted(set(there) | set(here)):
        if there.get(name) != here.get(name):
            lines.append(f"  {name}: {there.get(name)} against {here.get(name)}"[:300])
    raise AssertionError("\n".join(lines[:12]))


# --- writes

def value_of(rng):
    return rng.choice([
        lambda: str(rng.randint(-300, 300)),
        lambda: str(rng.randint(-2**63, 2**63 - 1)),
        lambda: "",
        lambda: "x" * rng.randint(1, 3000),
        lambda: bytes(rng.randrange(256) for _ in range(rng.randint(1, 200))),
        lambda: "".join(rng.choice("abcdef0123456789") for _ in range(32)),
    ])()


def key_of(rng):
    return rng.choice(["k:", "user:", "%08x-1234-4abc-8def-0123456789ab:"]).replace("%08x", f"{rng.randrange(40):08x}") + str(rng.randrange(40))


def plain_write(rng):
    key, other = key_of(rng), key_of(rng)
    deadline = int(time.time() * 1000) + FAR_MS + rng.randrange(1000)
    return rng.choice([
        lambda: ["SET", key, value_of(rng)],
        lambda: ["SET", key, value_of(rng), "PXAT", deadline],
        lambda: ["SET", key, value_of(rng), "PX", FAR_MS],
        lambda: ["SETEX", key, FAR_MS // 1000, value_of(rng)],
        lambda: ["SET", key, value_of(rng), "PX", 1],
        lambda: ["MSET", key, value_of(rng), other, value_of(rng)],
        lambda: ["APPEND", key, value_of(rng)],
        lambda: ["INCR", "n:" + str(rng.randrange(9))],
        lambda: ["INCRBYFLOAT", "f:" + str(rng.randrange(9)), rng.choice(["0.5", "3", "-1.25"])],
        lambda: ["SETRANGE", key, rng.randrange(50), "range"],
        lambda: ["SETBIT", key, rng.randrange(500), 1],
        lambda: ["BITOP", "OR", key, key, other],
        lambda: ["GETDEL", key],
        lambda: ["GETEX", key, "PXAT", deadline],
        lambda: ["GETSET", key, value_of(rng)],
        lambda: ["PEXPIREAT", key, deadline],
        lambda: ["PERSIST", key],
        lambda: ["DEL", key, other],
        lambda: ["UNLINK", key],
        lambda: ["RENAME", key, other],
        lambda: ["COPY", key, other, "REPLACE"],
        lambda: ["MOVE", key, rng.randrange(4)],
        lambda: ["SELECT", rng.randrange(4)],
        lambda: ["SWAPDB", rng.randrange(4), rng.randrange(4)],
        lambda: ["FLUSHDB"] if rng.random() < 0.05 else ["SET", key, "kept"],
    ])()


def native_write(rng):
    key = "r:" + str(rng.randrange(60))
    return rng.choice([
        lambda: ["IDEM.TOKEN", "PREFIX", "t:", "EX", 100_000],
        lambda: ["IDEM.RESERVE", key, "LEASE", 600_000, "CLAIM", "c" + str(rng.randrange(5))],
        lambda: ["IDEM.RESERVE", key, "LEASE", 600_000, "FINGERPRINT", "f" + str(rng.randrange(3))],
        lambda: ["IDEM.CONSUME", key_of(rng)],
        lambda: ["IDEM.TRANSITION", "s:" + str(rng.randrange(9)), rng.choice(["new", "paid"]), "paid"],
    ])()


def write_some(port, rng, count, native):
    """Random writes; errors of unfitting ones are part of it."""
    with Connection(port, timeout=20.0) as client:
        client.expect_ok("SELECT", rng.randrange(4))
        for _ in range(count):
            if rng.random() < 0.1:
                client.expect_ok("MULTI")
                for _ in range(rng.randint(1, 4)):
                    client.call(*plain_write(rng))
                client.call("EXEC")
                continue
            if native and rng.random() < 0.3:
                words = native_write(rng)
                reply = client.call(*words)
                if words[0] == "IDEM.RESERVE" and isinstance(reply, list) and bytes(reply[0]) == b"RESERVED" and rng.random() < 0.5:
                    client.call("IDEM.COMPLETE", words[1], reply[1], value_of(rng), "EX", 90_000)
                continue
            client.call(*plain_write(rng))
    time.sleep(0.005)  # what was given a millisecond has gone


# --- a round

def make_with_redis(directory, rng, rounds_of_writes):
    """A directory as a Redis leaves it; returns what it held."""
    kind = rng.choice(["rdb", "aof", "both", "rewritten", "plain base"])
    settings = {"appendonly": "no" if kind == "rdb" else "yes", "appendfsync": rng.choice(["always", "everysec", "no"])}
    if kind == "plain base":
        settings["aof_use_rdb_preamble"] = "no"
    settings["rdbcompression"] = rng.choice(["yes", "no"])
    server = Redis(directory, **settings)
    write_some(server.port, rng, rounds_of_writes, native=False)
    with Connection(server.port, timeout=20.0) as client:
        if kind in ("rdb", "both"):
            client.expect_ok("SAVE")
        if kind in ("rewritten", "plain base"):
            client.call("BGREWRITEAOF")
            deadline = time.monotonic() + 20
            while b"aof_rewrite_in_progress:1" in client.call("INFO", "persistence") or b"aof_rewrite_scheduled:1" in client.call("INFO", "persistence"):
                assert time.monotonic() < deadline, "the rewrite takes too long"
                time.sleep(0.01)
    if kind in ("aof", "both", "rewritten", "plain base"):
        write_some(server.port, rng, rounds_of_writes // 3, native=False)
    held = keyspace(server.port)
    server.stop(rng.choice(["kill", "term"]) if kind != "rdb" else "kill")
    return kind, held


def one_round(binary, seed):
    rng = random.Random(seed)
    directory = tempfile.mkdtemp(prefix="idemd-way-")
    told = []
    try:
        kind, held = make_with_redis(directory, rng, 150)
        told.append(f"redis: {kind}")
        sync = rng.choice(["always", "everysec", "no"])
        node = Idemd(binary, directory, appendfsync=sync, save="").start()
        wait_until_loaded(node.port, node.process)
        must_equal(held, keyspace(node.port), "what Redis held, and what idemd read")
        write_some(node.port, rng, 150, native=True)
        if rng.random() < 0.5:
            with node.connect(timeout=20.0) as client:
                client.call("BGREWRITEAOF")
                write_some(node.port, rng, 60, native=True)
        held = keyspace(node.port)
        how = rng.choice(["kill", "term"])
        told.append(f"idemd: {sync}, {how}")
        node.end(how)
        if how == "kill":
            repaired = subprocess.run([binary, "--repair", directory], capture_output=True, text=True, timeout=60)
            assert repaired.returncode == 0, f"--repair: {repaired.returncode}: {repaired.stdout}{repaired.stderr}"
        checked = subprocess.run([binary, "--check", directory], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, f"--check: {checked.returncode}: {checked.stdout}{checked.stderr}"

        back = Redis(directory, appendonly="yes")
        must_equal(held, keyspace(back.port), "what idemd held, and what Redis read")
        write_some(back.port, rng, 60, native=False)
        held = keyspace(back.port)
        how = rng.choice(["kill", "term"])
        told.append(f"redis again: {how}")
        back.stop(how)

        again = Idemd(binary, directory, save="").start()
        wait_until_loaded(again.port, again.process)
        must_equal(held, keyspace(again.port), "what Redis held the second time, and what idemd read")
        with again.connect() as client:
            client.expect_ok("SET", "alive", "1")
        again.end("term")
    except Exception as error:
        kept = os.path.join(tempfile.gettempdir(), f"idemd-way-{seed}")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(directory, kept)
        raise AssertionError(f"seed {seed} ({'; '.join(told)}), directory kept in {kept}: {error}") from error
    finally:
        for process in ("node", "back", "again"):
            server = locals().get(process)
            if server is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("IDEMD_SEED", time.time_ns() % 1_000_000)))
    options = parser.parse_args()
    if shutil.which("redis-server") is None:
        raise SystemExit("no redis-server: ./dev setup installs it")
    binary = find_binary(options.build)
    print(f"seed {options.seed}, {options.rounds} directories")
    passed = failed = 0
    for i in range(options.rounds):
        try:
            one_round(binary, options.seed + i)
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAIL {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

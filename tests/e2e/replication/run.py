#!/usr/bin/env python3
"""A stock redis-server follows idemd: what it holds in the end is what idemd holds, whatever was written when.

    run.py [BUILD] [--commands N] [--seed S]

For each type of tests/e2e/differential: random commands, a replica that joins in the middle of them, more commands, and the
same answers from both to everything that reads. Then, with the log off and on: writers on several connections while the
replica joins, leaves and joins again; PUBLISH; WAIT; FLUSHALL, SWAPDB, transactions and native commands.
"""
import argparse
import importlib
import random
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "differential"), str(HERE.parent)]
import run as differential  # noqa: E402
from lib.resp import Error  # noqa: E402
from lib.server import Server, find_binary, skipped_for_redis  # noqa: E402

JOIN_SECONDS = 60


def follow(redis_client, server):
    assert redis_client.call("REPLICAOF", "127.0.0.1", str(server.port)) == b"OK"
    deadline = time.monotonic() + JOIN_SECONDS
    while b"master_link_status:up" not in redis_client.call("INFO", "replication"):
        assert time.monotonic() < deadline, "the replica does not join"
        time.sleep(0.02)


def wait(client):
    got = client.call("WAIT", "1", str(JOIN_SECONDS * 1000))
    assert got == 1, f"WAIT says {got}"


def same(name, seed, module, ours, theirs):
    commands = module.readback()
    held = differential.replies(theirs, commands)  # before idemd is asked: PFCOUNT writes, too
    for words, a, b in zip(commands, differential.replies(ours, commands), held):
        if differential.differs(words, module.mask_restart, a, b):
            raise AssertionError(f"{name}, seed {seed}: {differential.show(words)}\n  idemd {a[0][:600]!r}\n  redis {b[0][:600]!r}")


def one_type(name, binary, commands, seed):
    module = importlib.import_module(name)
    stream = module.commands(random.Random(seed))
    with Server(binary, appendonly="no", save="", **module.SETTINGS) as server, differential.Redis(module.SETTINGS) as redis:
        ours = server.connect(timeout=JOIN_SECONDS)
        theirs = differential.Connection(redis.port, timeout=JOIN_SECONDS)
        for half in range(2):
            for _ in range(commands // 2 // 50):
                differential.replies(ours, [next(stream) for _ in range(50)])
                if half == 1 and random.random() < 0.02:
                    wait(ours)
            if half == 0:
                follow(theirs, server)
        ours.call("SET", "last", "one")
        wait(ours)
        same(name, seed, module, ours, theirs)


def everything(client, databases):
    found = {}
    for db in databases:
        client.call("SELECT", str(db))
        for key in sorted(client.call("KEYS", "*")):
            kind = client.call("TYPE", key)
            read = {b"string": ("GET", key), b"hash": ("HGETALL", key), b"list": ("LRANGE", key, "0", "-1"),
                    b"set": ("SMEMBERS", key), b"zset": ("ZRANGE", key, "0", "-1", "WITHSCORES")}[kind]
            value = client.call(*read)
            if kind == b"hash":
                value = sorted(zip(value[::2], value[1::2]))
            elif kind == b"set":
                value = sorted(value)
            # An expiry time of Redis is a whole one in milliseconds, as ours is.
            found[db, key] = (kind, value, client.call("PEXPIRETIME", key))
    return found


def writer(server, number, stop, failures):
    try:
        rng = random.Random(number)
        with server.connect(timeout=JOIN_SECONDS) as client:
            while not stop.is_set():
                key = f"k{rng.randrange(40)}"
                batch = rng.choice([
                    [["INCR", "n:" + key]],
                    [["SET", "s:" + key, str(rng.random()), "PX", "500000"]],
                    [["MULTI"], ["HINCRBY", "h:" + key, "f", "1"], ["RPUSH", "l:" + key, str(number)], ["LTRIM", "l:" + key, "-20", "-1"],
                     ["EXEC"]],
                    [["DEL", "s:" + key, "h:" + key]],
                    [["ZADD", "z:" + key, str(rng.randrange(9)), str(rng.randrange(30))], ["ZPOPMIN", "z:" + key]],
                    [["SELECT", str(rng.randrange(3))]],
                    [["IDEM.RESERVE", "r:" + key, "LEASE", "100000"]],
                    [["EVAL", "redis.call('sadd', KEYS[1], ARGV[1]) redis.call('spop', KEYS[1], 2)", "1", "e:" + key, str(rng.randrange(99))]],
                ])
                for _, reply in differential.replies(client, batch):
                    if isinstance(reply, Error) and not reply.startswith(b"WRONGTYPE"):
                        raise AssertionError(f"{batch}: {reply}")
    except Exception as error:  # noqa: BLE001 told by the main thread
        failures.append(error)


def under_load(binary, log):
    with Server(binary, appendonly=log, save="") as server, differential.Redis({}) as redis:
        stop, failures = threading.Event(), []
        threads = [threading.Thread(target=writer, args=(server, number, stop, failures)) for number in range(4)]
        theirs = differential.Connection(redis.port, timeout=JOIN_SECONDS)
        with server.connect(timeout=JOIN_SECONDS) as client:
            for i in range(20000):
                client.send_raw(differential.encode(["SET", f"filler:{i}", "x" * 100]))
            for _ in range(20000):
                client._value(time.monotonic() + JOIN_SECONDS)
            for thread in threads:
                thread.start()
            follow(theirs, server)
            theirs.call("REPLICAOF", "NO", "ONE")
            follow(theirs, server)
            client.call("SWAPDB", "0", "2")
            stop.set()
            for thread in threads:
                thread.join()
            assert not failures, failures[0]
            wait(client)
            ours = everything(client, range(3))
            assert ours == everything(theirs, range(3)), "the replica holds something else"
            assert len(ours) > 20000
            theirs.call("SELECT", "0")
            # A negative control: the comparison sees one changed value.
            theirs.call("CONFIG", "SET", "replica-read-only", "no")
            theirs.call("INCR", "n:never")
            assert ours != everything(theirs, range(3)), "the comparison sees no difference"
            client.call("FLUSHALL")
            wait(client)
            assert everything(theirs, range(3)) == {}
            # Without a replica nothing waits, and nobody is left behind.
            theirs.call("REPLICAOF", "NO", "ONE")
            deadline = time.monotonic() + JOIN_SECONDS
            while b"connected_slaves:0" not in client.call("INFO", "replication"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert client.call("WAIT", "1", "50") == 0
        theirs.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--commands", type=int, default=6000)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    binary = find_binary(options.build)
    passed = failed = 0
    types = sorted(path.stem for path in (HERE.parent / "differential").glob("*.py") if path.stem != "run")
    if skipped_for_redis("what replicas of each type hold"):
        types = []
    cases = [(name, lambda seed, name=name: one_type(name, binary, options.commands, seed)) for name in types]
    cases += [(f"under load, appendonly {log}", lambda seed, log=log: under_load(binary, log)) for log in ("no", "yes")]
    for name, case in cases:
        seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
        try:
            case(seed)
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAIL {name}, seed {seed}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

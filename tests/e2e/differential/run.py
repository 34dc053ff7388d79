#!/usr/bin/env python3
"""The same random commands to idemd and to a stock redis-server: every reply equal, and everything equal when it is read back.

    run.py [BUILD] [--types stream,...] [--commands N] [--seed S]

Each type has a file beside this one, with
  SETTINGS          what both servers are started with
  commands(rng)     yields commands without end, on few keys, wrong ones among them
  readback()        the commands that read everything back
  mask(words)       None, or what to do to a parsed reply of this command before it is compared (times, for one)
  mask_restart(words)  the same for what is compared with itself before and after a restart

In the middle idemd rewrites its log, at the end it is killed; what was there is there when it has started again.
"""
import argparse
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.resp import Closed, Connection, Error, Timeout, encode  # noqa: E402
from lib.server import Server, find_binary, free_port, skipped_for_redis  # noqa: E402

HERE = Path(__file__).resolve().parent
BATCH = 40


class Redis:
    """A stock redis-server that keeps nothing."""

    def __init__(self, settings):
        self.directory = tempfile.mkdtemp(prefix="idemd-redis-")
        self.port = free_port()
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", ""]
        for name, value in settings.items():
            words += ["--" + name, str(value)]
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with Connection(self.port, timeout=2.0) as client:
                    if client.call("PING") == b"PONG":
                        return self
            except (OSError, Closed, Timeout):
                time.sleep(0.01)
        raise AssertionError("redis-server did not start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def replies(connection, commands):
    """(the reply's bytes, the reply) of each command, all sent at once."""
    connection.send_raw(b"".join(encode(words) for words in commands))
    found = []
    for _ in commands:
        start = connection.at
        value = connection._value(time.monotonic() + 20)
        found.append((bytes(connection.buffer[start:connection.at]), value))
    del connection.buffer[:connection.at]
    connection.at = 0
    return found


def shape(value):
    """A reply with the types it had on the wire, to be compared."""
    if isinstance(value, list):
        return type(value).__name__, [shape(v) for v in value]
    if isinstance(value, tuple):
        return tuple(shape(v) for v in value)
    return type(value).__name__, repr(value)


def differs(words, mask, ours, theirs):
    if ours[0] == theirs[0]:
        return False
    change = mask(words)
    return change is None or shape(change(ours[1])) != shape(change(theirs[1]))


def show(words):
    return " ".join(repr(word)[:60] for word in words)


class Run:
    def __init__(self, name, module, binary, commands, seed):
        self.name, self.module, self.binary, self.commands, self.seed = name, module, binary, commands, seed

    def fail(self, what, words, ours, theirs):
        raise AssertionError(f"{self.name}, seed {self.seed}: {what}\n  {show(words)}\n  idemd {ours[0][:600]!r}\n"
                             f"  redis {theirs[0][:600]!r}")

    def compare(self, what, commands, ours, theirs):
        for words, a, b in zip(commands, replies(ours, commands), replies(theirs, commands)):
            if differs(words, self.module.mask, a, b):
                self.fail(what, words, a, b)

    def rewrite(self, client):
        reply = client.call("BGREWRITEAOF")
        assert not isinstance(reply, Error) or b"in progress" in reply, reply

    def run(self):
        rng = random.Random(self.seed)
        stream = self.module.commands(rng)
        server = Server(self.binary, appendonly="yes", save="", **self.module.SETTINGS)
        with server, Redis(self.module.SETTINGS) as redis:
            ours = [server.connect(resp=resp, timeout=20) for resp in (2, 3)]
            theirs = [Connection(redis.port, resp=resp, timeout=20) for resp in (2, 3)]
            done = 0
            while done < self.commands:
                batch = [next(stream) for _ in range(min(BATCH, self.commands - done))]
                while batch[-1][0] == "SPOP":  # what it took may differ; what makes that good comes next
                    batch.append(next(stream))
                which = rng.randrange(2)
                self.compare(f"after {done} commands", batch, ours[which], theirs[which])
                done += len(batch)
                if rng.random() < BATCH * 4 / max(self.commands, 1):
                    self.rewrite(ours[0])
                if rng.random() < 0.05:
                    self.compare(f"read back after {done} commands", self.module.readback(), ours[which], theirs[which])
            readback = self.module.readback()
            for which in (0, 1):
                self.compare("read back at the end", readback, ours[which], theirs[which])
            before = replies(ours[0], readback)
            for client in ours:
                client.close()
            server.kill()
            server.start()
            with server.connect(timeout=20) as again:
                for words, a, b in zip(readback, replies(again, readback), before):
                    if differs(words, self.module.mask_restart, a, b):
                        self.fail("after a restart (redis: before it)", words, a, b)
            for client in theirs:
                client.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--types")
    parser.add_argument("--commands", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if skipped_for_redis("every reply"):
        return 77
    found = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")
    names = options.types.split(",") if options.types else found
    binary = find_binary(options.build)
    passed = failed = 0
    for name in names:
        for round_number in range(options.rounds):
            seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
            try:
                Run(name, importlib.import_module(name), binary, options.commands, seed + round_number).run()
                passed += 1
                print(f"ok   {name}: {options.commands} commands, seed {seed + round_number}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())

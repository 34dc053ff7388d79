"""Races and crowds against a real idemd with 1, 2 and 4 io-threads: one winner per key, one answer for all who wait."""
import argparse
import base64
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.resp import Error, Simple, Timeout, encode  # noqa: E402
from lib.server import ROOT, Server, eventually, find_binary  # noqa: E402

CROWD = 1000


def find_race(build):
    places = [Path(build) / "tests/e2e/race"] if build and Path(build).is_dir() else []
    if os.environ.get("BUILD"):
        places.append(Path(os.environ["BUILD"]) / "tests/e2e/race")
    places += sorted(ROOT.glob("build*/**/tests/e2e/race"), key=lambda p: -p.stat().st_mtime)
    for place in places:
        if place.is_file():
            return str(place)
    raise SystemExit("build the target `race` first")


def status(reply):
    if not isinstance(reply, list) or len(reply) != 6:
        raise AssertionError(f"no answer of IDEM.RESERVE: {reply!r}")
    return bytes(reply[0]).decode()


class Crowd:
    """Many connections that wait at one key; the first of them is there before the others."""

    def __init__(self, server, key, size=CROWD):
        self.server, self.key = server, key
        self.holder = server.connect(timeout=30)
        reply = self.holder.call("IDEM.RESERVE", key, "LEASE", "600000", "CLAIM", "holder")
        assert status(reply) == "RESERVED", reply
        self.fence = reply[1]
        self.waiting = [server.connect(timeout=30) for _ in range(size)]
        self.before = self.blocked()
        for i, client in enumerate(self.waiting):
            client.send("IDEM.RESERVE", key, "WAIT", "60000", "CLAIM", f"w{i}", "LEASE", "600000")
            if i == 0:
                self.until_blocked(1)
        self.until_blocked(size)

    def blocked(self):
        for line in bytes(self.holder.call("INFO", "clients")).decode().split("\r\n"):
            if line.startswith("blocked_clients:"):
                return int(line.split(":")[1])
        raise AssertionError("INFO clients has no blocked_clients")

    def until_blocked(self, size):
        eventually(lambda: self.blocked() - self.before >= size, f"{size} blocked clients", timeout=30)

    def all_done(self, clients, payload):
        """One COMPLETE answers all of `clients`."""
        started = time.monotonic()
        for client in clients:
            reply = client.read()
            assert status(reply) == "DONE" and bytes(reply[5]) == payload, reply
        print(f"    {len(clients)} waiters answered within {(time.monotonic() - started) * 1000:.0f} ms")

    def one_promoted(self):
        """The longest waiter has the key, and nobody else has heard anything."""
        reply = self.waiting[0].read()
        assert status(reply) == "RESERVED" and reply[1] > self.fence, reply
        end = time.monotonic() + 0.3
        for client in self.waiting[1:]:
            client.sock.setblocking(False)
            try:
                data = client.sock.recv(1)
                raise AssertionError(f"a second waiter heard {data!r}")
            except BlockingIOError:
                pass
            finally:
                client.sock.setblocking(True)
        time.sleep(max(0.0, end - time.monotonic()))
        try:
            raise AssertionError(f"a second waiter was answered: {self.waiting[1].read(timeout=0.01)!r}")
        except Timeout:
            pass
        assert self.blocked() - self.before == len(self.waiting) - 1
        return reply

    def complete(self, client, fence, payload):
        reply = client.call("IDEM.COMPLETE", self.key, fence, payload)
        assert isinstance(reply, Simple) and reply == b"OK", reply

    def close(self):
        for client in [self.holder] + self.waiting:
            client.close()


def crowd_complete(server):
    crowd = Crowd(server, "crowd:complete")
    crowd.complete(crowd.holder, crowd.fence, b"x" * 1000)
    crowd.all_done(crowd.waiting, b"x" * 1000)
    crowd.close()


def crowd_lapse(server):
    crowd = Crowd(server, "crowd:lapse")
    assert crowd.holder.call("IDEM.EXTEND", crowd.key, crowd.fence, "50") <= 50
    reply = crowd.one_promoted()
    assert reply[2] == 2, reply
    late = crowd.holder.call("IDEM.COMPLETE", crowd.key, crowd.fence, b"late")
    assert isinstance(late, Error) and late.code == "STALE", late
    crowd.complete(crowd.waiting[0], reply[1], b"mine")
    crowd.all_done(crowd.waiting[1:], b"mine")
    crowd.close()


def crowd_release(server):
    crowd = Crowd(server, "crowd:release")
    assert crowd.holder.call("IDEM.RELEASE", crowd.key, crowd.fence) == 1
    reply = crowd.one_promoted()
    assert reply[2] == 1, reply
    crowd.complete(crowd.waiting[0], reply[1], b"mine")
    crowd.all_done(crowd.waiting[1:], b"mine")
    crowd.close()


def crowd_passes_the_key_on(server):
    """Each waiter releases in turn: the key goes through the whole line, fences rise, nobody is left out."""
    crowd = Crowd(server, "crowd:pass", size=200)
    assert crowd.holder.call("IDEM.RELEASE", crowd.key, crowd.fence) == 1
    last = crowd.fence
    left = dict(enumerate(crowd.waiting))
    first = left.pop(0)
    reply = first.read()
    holder = first
    for _ in range(len(crowd.waiting) - 1):
        assert status(reply) == "RESERVED" and reply[1] > last, reply
        last = reply[1]
        assert holder.call("IDEM.RELEASE", crowd.key, last) == 1
        holder, reply = next_promoted(left)
    assert status(reply) == "RESERVED" and reply[1] > last, reply
    crowd.close()


def next_promoted(left):
    import select

    ready, _, _ = select.select([c.sock for c in left.values()], [], [], 30)
    assert len(ready) == 1, f"{len(ready)} waiters heard of one release"
    name = next(n for n, c in left.items() if c.sock is ready[0])
    client = left.pop(name)
    return client, client.read()


def crowd_leaves(server):
    """A thousand waiters that disconnect leave nothing behind: the key is free after the release."""
    crowd = Crowd(server, "crowd:leave")
    for client in crowd.waiting:
        client.close()
    eventually(lambda: crowd.blocked() == crowd.before, "no blocked client is left", timeout=30)
    assert crowd.holder.call("IDEM.RELEASE", crowd.key, crowd.fence) == 1
    assert crowd.holder.call("EXISTS", crowd.key) == 0
    crowd.holder.close()


def stop_under_waiters(server):
    """A server that is told to stop does so at once, with a hundred callers waiting."""
    crowd = Crowd(server, "crowd:stop", size=100)
    started = time.monotonic()
    code = server.stop()
    assert code == 0, f"exit code {code}"
    assert time.monotonic() - started < 5, "it took longer than 5 s"
    for client in crowd.waiting:
        assert client.closed_by_server()
    crowd.close()


def tokens_in_pipelines(server):
    """Tokens that one pipeline asks for in a jumble of prefixes, lifetimes and databases: each is the one that was asked for."""
    draws = random.Random(1)
    seen = set()
    with server.connect(timeout=30) as client:
        db = 0
        for number in range(60):
            alike = number % 3 == 0
            requests, asked = [], []
            for _ in range(draws.choice((1, 2, 31, 32, 33, 64, 200))):
                prefix = "tp:" if alike else draws.choice(("tp:", "tq:", "", "x" * 255, "x" * 256, "x" * 257))
                lifetime = 300_000 if alike else draws.choice((300_000, 60_000, 50_000))
                words = ["IDEM.TOKEN", prefix, "PX", lifetime, *draws.choice(((), (), (), ("VALUE", "v"), ("COUNT", 3)))]
                if draws.random() < 0.1:
                    db = draws.randrange(2)
                    requests.append(["SELECT", db])
                    asked.append(None)
                requests.append(words)
                asked.append((db, prefix, lifetime, "VALUE" in words))
            client.send_raw(b"".join(encode(words) for words in requests))
            replies = [client.read() for _ in requests]
            for request, reply in zip(asked, replies):
                if request is None:
                    continue
                at, prefix, lifetime, has_value = request
                for token in reply if isinstance(reply, list) else [reply]:
                    key = prefix + bytes(token).decode()
                    assert key not in seen, f"{key} twice"
                    seen.add(key)
                    client.call("SELECT", at)
                    assert lifetime - 30_000 < client.call("PTTL", key) <= lifetime, key
                    told = int.from_bytes(base64.urlsafe_b64decode(key[-32:-24]), "big")  # 48 bits, what the token itself says
                    assert told == client.call("PEXPIRETIME", key), key
                    assert bytes(client.call("GET", key)) == (b"v" if has_value else b"1"), key
                    assert bytes(client.call("IDEM.CONSUME", "other:" + key, "REASON")) == b"UNISSUED", key
                    for expected in (b"CONSUMED", b"DUPLICATE"):
                        assert bytes(client.call("IDEM.CONSUME", key, "REASON")) == expected, key
            client.call("SELECT", db)
    print(f"    {len(seen)} tokens")


def race(server, program, keys):
    done = subprocess.run([program, str(server.port), str(keys)], capture_output=True, text=True, timeout=300)
    print("    " + done.stdout.strip().replace("\n", "\n    "))
    assert done.returncode == 0, f"race ended with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory (or IDEMD_BIN and BUILD)")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--threads", default="1,2,4")
    options = parser.parse_args()
    binary, program = find_binary(options.build), find_race(options.build)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    tests = [
        ("exactly one winner per key", lambda s: race(s, program, options.keys)),
        ("1 000 waiters hear one COMPLETE", crowd_complete),
        ("a lapse promotes one of 1 000", crowd_lapse),
        ("a release promotes the longest waiter of 1 000", crowd_release),
        ("the key goes through the whole line", crowd_passes_the_key_on),
        ("1 000 waiters disconnect", crowd_leaves),
        ("each token of a pipeline is the one that was asked for", tokens_in_pipelines),
        ("it stops while 100 wait", stop_under_waiters),
    ]
    passed = failed = 0
    for threads in options.threads.split(","):
        with Server(binary, io_threads=threads) as server:
            for name, test in tests:
                started = time.monotonic()
                try:
                    test(server)
                    assert server.alive() or test is stop_under_waiters, f"the server ended: {server.log_text()}"
                    passed += 1
                    print(f"ok      io-threads {threads}: {name} ({time.monotonic() - started:.1f} s)")
                except Exception:
                    failed += 1
                    print(f"FAILED  io-threads {threads}: {name}")
                    traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The same scripts against redis-server and idemd: replies are equal byte for byte, in RESP2 and RESP3."""
import argparse
import shutil
import socket
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.server import ROOT, Server, find_binary, skipped_for_redis  # noqa: E402

# What the keys hold before a script of `matrix` runs; "a1" is what it gets as ARGV[1].
STATES = {
    "nothing": [],
    "the same": [["SET", "k1", "a1", "EX", "100000"]],
    "the same, for ever": [["SET", "k1", "a1"], ["SET", "k2", "a1"]],
    "something else": [["SET", "k1", "other"], ["SET", "k2", "7"]],
    "a number": [["SET", "k1", "7"]],
    "a hash": [["HSET", "k1", "f", "v"]],
    "a list": [["RPUSH", "k1", "a1"]],
    "a zset": [["ZADD", "k1", "1", "a1"]],
}
ARGUMENTS = [["2", "k1", "k2", "a1", "60000", "3"], ["1", "k1", "a1", "0"], ["1", "k1", "a1"], ["1", "k1"], ["0"],
             ["2", "k1", "k2", "a1", "-5"], ["1", "k1", "a1", "nonsense"], ["1", "k1", "", "60000", "NX"],
             ["3", "k1", "k1", "k3", "a1", "1000", "1"], ["1", "k1", "a1", "1.5", "0"]]
USUAL = ["2", "k1", "k2", "a1", "7"]


class Raw:
    """A connection that gives replies as the bytes that came."""

    def __init__(self, port, resp):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")
        if resp == 3:
            self.call("HELLO", "3")

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode("latin-1") for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, count = line[:1], line[1:-2]
        if kind in b"$=" and count != b"-1":
            return line + self.file.read(int(count) + 2)
        if kind in b"*~>" and count != b"-1":
            return line + b"".join(self.reply() for _ in range(int(count)))
        if kind == b"%":
            return line + b"".join(self.reply() for _ in range(2 * int(count)))
        return line


def blocks(path):
    """[(directives, script)] of a file; `----` ends a script, and lines with `#:` before it say something about it: a name, what
    commands it `needs`, or that it `differs`, and why."""
    found, directives, lines = [], {}, []
    for line in path.read_text(encoding="utf-8").split("\n") + ["----"]:
        if line == "----":
            script = "\n".join(lines)
            if script.strip():
                found.append((directives, script))
            directives, lines = {}, []
        elif line.startswith("#:"):
            name, _, value = line[2:].strip().partition(" ")
            directives[name] = value
        else:
            lines.append(line)
    return found


class Comparison:
    def __init__(self, ours, theirs, shown_max):
        self.shown_max = shown_max
        self.ours, self.theirs = ours, theirs
        self.passed = self.failed = 0
        self.shown = 0

    def same(self, resp, words, what, setup=(), differs=False):
        sides = []
        for side in (self.theirs[resp], self.ours[resp]):
            side.call("FLUSHALL")
            if any(side.call(*command)[:1] == b"-" for command in setup):
                sides.append(None)  # a type that one of them does not have
                continue
            replies = [side.call(*words)]
            replies += [side.call("TYPE", key) for key in ("k1", "k2", "k3")]
            replies += [side.call("GET", key) for key in ("k1", "k2", "k3")]
            replies += [side.call("TTL", key) for key in ("k1", "k2", "k3")]
            sides.append(replies)
        if None in sides:
            return
        if (sides[0] == sides[1]) != differs:
            self.passed += 1
            return
        self.failed += 1
        if self.shown < self.shown_max:
            self.shown += 1
            print(f"FAILED  RESP{resp} {what}\n  {words}\n  redis {sides[0]}\n  idemd {sides[1]}")


def run(ours, theirs, shown_max):
    comparison = Comparison(ours, theirs, shown_max)
    for resp in (2, 3):
        for directives, script in blocks(HERE / "scripts.txt"):
            what = script.strip().split("\n")[0][:60]
            if any(ours[2].call("COMMAND", "INFO", name) == b"*1\r\n$-1\r\n" for name in directives.get("needs", "").split()):
                continue
            comparison.same(resp, ["EVAL", script, *USUAL], what, differs="differs" in directives)
        for directives, script in blocks(HERE / "usual.txt"):
            what = directives.get("name", script.strip().split("\n")[0][:60])
            for state, setup in STATES.items():
                for arguments in ARGUMENTS:
                    comparison.same(resp, ["EVAL", script, *arguments], f"{what}: {state}", setup)
            # What was sent before is found by its name.
            names = [side.call("SCRIPT", "LOAD", script) for side in (theirs[resp], ours[resp])]
            if names[0] == names[1]:
                sha = names[0].split(b"\r\n")[1]
                comparison.same(resp, ["EVALSHA", sha, *USUAL], f"{what}: by its SHA1")
            else:
                comparison.failed += 1
                print(f"FAILED  {what}: SCRIPT LOAD {names}")
    return comparison


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default=None)
    parser.add_argument("--redis", default=None)
    parser.add_argument("--show", type=int, default=20, help="so many differences in full")
    options = parser.parse_args()
    if options.redis is None and skipped_for_redis("what scripts answer"):
        return 77
    redis = options.redis or shutil.which("redis-server") or str(ROOT / "build/tools/redis-server")
    with Server(find_binary(options.build)) as ours, Server(redis, save="") as theirs:
        comparison = run({resp: Raw(ours.port, resp) for resp in (2, 3)},
                         {resp: Raw(theirs.port, resp) for resp in (2, 3)}, options.show)
    print(f"{comparison.passed} passed, {comparison.failed} failed")
    return 1 if comparison.failed or not comparison.passed else 0


if __name__ == "__main__":
    sys.exit(main())

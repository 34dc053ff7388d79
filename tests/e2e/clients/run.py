"""Real clients against a real idemd: redis-cli, redis-benchmark, hiredis, redis-py, ioredis and node-redis."""
import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.server import ROOT, Server, find_binary  # noqa: E402

PASSWORD = "correct horse"


def run(words, stdin=None, timeout=120):
    return subprocess.run(words, input=stdin, capture_output=True, timeout=timeout)


class Suite:
    def __init__(self, build, server, locked):
        self.build, self.server, self.locked = build, server, locked
        self.passed = self.failed = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED  {what}")

    def same(self, got, expected, what):
        self.check(got == expected, f"{what}: expected {expected!r}, got {got!r}")

    # --- redis-cli
    def cli(self, *words, port=None, stdin=None, options=()):
        done = run(["redis-cli", "-p", str(port or self.server.port), *options, *words], stdin)
        return done.stdout.decode("latin-1").rstrip("\n") + done.stderr.decode("latin-1")

    def redis_cli(self):
        for option in ("-2", "-3"):
            label = f"redis-cli {option}"
            cli = lambda *words, **more: self.cli(*words, options=(option,), **more)  # noqa: E731
            self.same(cli("PING"), "PONG", label)
            self.same(cli("SET", "c:k", "v", "PX", "60000"), "OK", label)
            self.same(cli("GET", "c:k"), "v", label)
            self.same(cli("-n", "2", "EXISTS", "c:k"), "0", label)
            self.same(cli("-x", "SET", "c:stdin", stdin=b"a\x00b"), "OK", label)
            self.same(cli("STRLEN", "c:stdin"), "3", label)
            token = cli("IDEM.TOKEN", "c:t:", "EX", "60")
            self.check(re.fullmatch(r"[A-Za-z0-9_-]{32}", token) is not None, f"{label}: no token: {token!r}")
            self.same(cli("IDEM.CONSUME", "c:t:" + token), "1", label)
            self.same(cli("IDEM.CONSUME", "c:t:" + token, "REASON"), "DUPLICATE", label)
            reply = cli("IDEM.RESERVE", "c:job" + option).split("\n")
            self.same((reply[0], reply[2], reply[4:]), ("RESERVED", "1", ["0"]), label)
            self.same(cli("IDEM.COMPLETE", "c:job" + option, reply[1], "answer"), "OK", label)
            self.check(cli("IDEM.FAIL", "c:job" + option, reply[1]).startswith("CONFLICT"), label)
            self.check("done" in cli("IDEM.STATUS", "c:job" + option), label)
            self.same(cli("DEL", "c:k", "c:stdin", "c:job" + option), "3", label)
            self.check(cli("COMMAND", "COUNT").isdigit(), label)
        shown = self.cli("IDEM.RESERVE", "c:tty", options=("--no-raw", "-3"))
        self.check(shown.startswith('1) "RESERVED"\n2) (integer) '), f"redis-cli --no-raw: {shown!r}")
        fields = json.loads(self.cli("IDEM.STATUS", "c:tty", options=("--json",)))
        self.same(fields["state"], "pending", "redis-cli --json")
        self.cli("DEL", "c:tty")

    def redis_cli_connects(self):
        self.same(self.cli("PING", options=("-u", f"redis://127.0.0.1:{self.server.port}/3")), "PONG", "redis-cli -u")
        done = run(["redis-cli", "-s", self.server.socket_path, "PING"])
        self.same(done.stdout.strip(), b"PONG", "redis-cli -s")
        port = self.locked.port
        self.check(self.cli("PING", port=port).startswith("NOAUTH"), "redis-cli without the password")
        self.check("WRONGPASS" in self.cli("PING", port=port, options=("-a", "wrong", "--no-auth-warning")),
                   "redis-cli with a wrong password")
        for more in ((), ("--user", "default"), ("-3",)):
            self.same(self.cli("SET", "k", "v", port=port, options=("-a", PASSWORD, "--no-auth-warning", *more)), "OK",
                      f"redis-cli with the password {more}")

    def redis_cli_pipe(self):
        lines = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nv\r\n" % (len(k), k)
                         for k in (b"c:pipe:%d" % i for i in range(20_000)))
        shown = self.cli("--pipe", stdin=lines)
        self.check("errors: 0, replies: 20000" in shown, f"redis-cli --pipe: {shown!r}")
        found = self.cli("--scan", "--pattern", "c:pipe:*")
        self.same(len(set(found.split("\n"))), 20_000, "redis-cli --scan")
        self.same(self.cli(*["DEL", *found.split("\n")]), "20000", "redis-cli DEL of 20 000 keys")
        self.same(self.cli("EXISTS", "c:pipe:7"), "0", "redis-cli EXISTS after DEL")

    def redis_cli_errors(self):
        for words, start in (
            (("NOSUCH", "a"), "ERR unknown command 'NOSUCH', with args beginning with: 'a' "),
            (("GET",), "ERR wrong number of arguments for 'get' command"),
            (("IDEM.RESERVE", "c:e", "LEASE", "0"), "ERR "),
            (("IDEM.COMPLETE", "c:e", "1", "r"), "NOTFOUND "),
            (("SELECT", "99"), "ERR DB index is out of range"),
        ):
            got = self.cli(*words)
            self.check(got.startswith(start), f"redis-cli {' '.join(words)}: expected {start!r}, got {got!r}")

    # --- redis-benchmark
    def redis_benchmark(self):
        for options in ((), ("-c", "500", "-P", "64"), ("-c", "50", "-P", "16", "-r", "100000", "-d", "200"), ("--threads", "2"),
                        ("-s", self.server.socket_path)):
            done = run(["redis-benchmark", "-p", str(self.server.port), "-t", "ping,set,get,incr,mset", "-n", "20000", "-q",
                        *options], timeout=240)
            shown = done.stdout.decode("latin-1").replace("\r", "\n") + done.stderr.decode("latin-1")
            finished = re.findall(r"^(\S+).*: [\d.]+ requests per second", shown, re.M)
            self.same((done.returncode, sorted(set(finished))), (0, ["GET", "INCR", "MSET", "PING_INLINE", "PING_MBULK", "SET"]),
                      f"redis-benchmark {' '.join(options)}: {shown[-600:]!r}")
            self.check("rror" not in shown, f"redis-benchmark {' '.join(options)}: {shown[-600:]!r}")
            print("    " + " ".join(re.findall(r"^\S+.*?: ([\d.]+) requests per second", shown, re.M)))
        done = run(["redis-benchmark", "-p", str(self.server.port), "-n", "20000", "-P", "16", "-r", "1000000", "-q",
                    "IDEM.RESERVE", "c:bench:__rand_int__"], timeout=240)
        self.same(done.returncode, 0, f"redis-benchmark IDEM.RESERVE: {done.stderr!r}")
        self.check(b"requests per second" in done.stdout and b"rror" not in done.stdout, f"redis-benchmark: {done.stdout!r}")

    # --- programs that count for themselves
    def program(self, words, what, timeout=180):
        done = run(words, timeout=timeout)
        shown = done.stdout.decode("utf-8", "replace")
        found = re.findall(r"(\d+) passed, (\d+) failed", shown)
        problems = [line for line in shown.split("\n") if not re.fullmatch(r"\d+ passed, \d+ failed", line.strip())]
        print("\n".join(line for line in problems if line.strip()) or f"    {what}: {found[-1][0] if found else 0} checks")
        if not found:
            self.check(False, f"{what} ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
            return
        self.passed += int(found[-1][0])
        self.failed += int(found[-1][1])
        if done.returncode != 0 and found[-1][1] == "0":
            self.check(False, f"{what} ended with {done.returncode}")

    def arguments(self):
        return [str(self.server.port), self.server.socket_path, str(self.locked.port), PASSWORD]

    def hiredis(self):
        places = [Path(self.build) / "tests/e2e/hiredis_client"] if self.build and Path(self.build).is_dir() else []
        if os.environ.get("BUILD"):
            places.append(Path(os.environ["BUILD"]) / "tests/e2e/hiredis_client")
        places += sorted(ROOT.glob("build*/**/tests/e2e/hiredis_client"), key=lambda p: -p.stat().st_mtime)
        program = next((p for p in places if p.is_file()), None)
        if program is None:
            return self.check(False, "the target hiredis_client is not built")
        self.program([str(program), str(self.server.port), self.server.socket_path], "hiredis")

    def redis_py(self):
        python = os.environ.get("PYTHON", "/usr/bin/python3")
        self.program([python, str(HERE / "redis_py.py"), *self.arguments()], "redis-py")

    def node(self):
        if not (HERE / "node_modules").is_dir():
            return self.check(False, f"run npm ci in {HERE.relative_to(ROOT)} first")
        self.program(["node", str(HERE / "node_clients.mjs"), *self.arguments()], "node clients")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory (or IDEMD_BIN)")
    parser.add_argument("--only", help="one of: " + ", ".join(TESTS))
    options = parser.parse_args()
    binary = find_binary(options.build)
    with Server(binary, unix_socket=True) as server, Server(binary, requirepass=PASSWORD) as locked:
        suite = Suite(options.build, server, locked)
        for name in TESTS:
            if options.only and name != options.only:
                continue
            started = time.monotonic()
            before = suite.failed
            try:
                getattr(suite, name)()
            except Exception:
                traceback.print_exc(file=sys.stdout)
                suite.check(False, name)
            suite.check(server.alive() and locked.alive(), f"a server ended: {server.log_text()}{locked.log_text()}")
            print(f"{'ok' if suite.failed == before else 'FAILED':7} {name} ({time.monotonic() - started:.1f} s)")
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


TESTS = ("redis_cli", "redis_cli_connects", "redis_cli_pipe", "redis_cli_errors", "redis_benchmark", "hiredis", "redis_py", "node")

if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What durability costs, beside a stock Redis in the same sitting: requests under each appendfsync, starts, snapshots.

    durability_bench.py BUILD [--rounds N] [--keys N] [--only sync|start|snapshot]

Prints markdown tables; medians over interleaved rounds. CPU is the server's own, from /proc. One I/O thread each. Requests under each
appendfsync come from idemd-bench: the server is kept on the first processor, the client on the second, and logs are not rewritten meanwhile
(Redis' rewrite is a process of its own, whose time would not be counted).
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))
from lib.resp import Closed, Connection, Error, Timeout, encode  # noqa: E402
from lib.server import free_port  # noqa: E402

SHAPES = ((50, 1, 200_000), (50, 16, 1_000_000), (500, 1, 200_000), (500, 16, 1_000_000))


def pinned(cpu):
    return ["taskset", "-c", str(cpu)] if shutil.which("taskset") and os.cpu_count() > 1 else []


class Process:
    def __init__(self, words, directory, cpu=None):
        self.port = free_port()
        self.process = subprocess.Popen((pinned(cpu) if cpu is not None else []) + words + ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", directory, "--save", ""],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_until_loaded(self, timeout=600.0):
        begin = time.monotonic()
        while time.monotonic() - begin < timeout:
            try:
                with Connection(self.port, timeout=5.0) as client:
                    if not isinstance(client.call("GET", "nothing"), Error):
                        return time.monotonic()
            except (OSError, Closed, Timeout):
                pass
            time.sleep(0.01)
        raise SystemExit("a server did not start")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(120)


def servers(idemd):
    return {"redis": ["redis-server"], "idemd": [idemd, "--io-threads", "1"]}


def benchmark(build, server, clients, pipeline, requests):
    out = subprocess.run(pinned(1) + [str(Path(build) / "bench" / "idemd-bench"), "-p", str(server.port), "-c", str(clients), "-P", str(pipeline),
                                      "-n", str(requests), "-r", "1000000", "-t", "set", "--key-space", "uuid", "--server-pid", str(server.process.pid),
                                      "-q", "--json", "-"], capture_output=True, text=True, check=True).stdout
    found = json.loads(out)[0]
    return found["requests_per_second"], found["server_cpu_us"]


def sync_table(build, idemd, rounds):
    results = {}
    for _ in range(rounds):
        for sync in ("always", "everysec", "none"):
            for name, words in servers(idemd).items():
                directory = tempfile.mkdtemp(prefix="idemd-bench-", dir=os.environ.get("IDEMD_BENCH_DIR"))
                log = ["--appendonly", "no"] if sync == "none" else ["--appendonly", "yes", "--appendfsync", sync,
                                                                     "--auto-aof-rewrite-percentage", "0"]
                server = Process(words + log, directory, cpu=0)
                server.wait_until_loaded()
                benchmark(build, server, 50, 16, 1_000_000)  # the keys, and what is done for the first time
                for clients, pipeline, requests in SHAPES:
                    results.setdefault((sync, clients, pipeline, name), []).append(benchmark(build, server, clients, pipeline, requests))
                server.end()
                shutil.rmtree(directory)
    print("| appendfsync | clients x pipeline | Redis /s (CPU us) | idemd /s (CPU us) | rate | CPU | idemd against no log: rate | CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    median = {key: (statistics.median(r for r, _ in values), statistics.median(c for _, c in values)) for key, values in results.items()}
    for sync in ("always", "everysec", "none"):
        for clients, pipeline, _ in SHAPES:
            redis, ours, bare = (median[key] for key in ((sync, clients, pipeline, "redis"), (sync, clients, pipeline, "idemd"),
                                                         ("none", clients, pipeline, "idemd")))
            print(f"| {sync} | {clients} x {pipeline} | {redis[0]:,.0f} ({redis[1]:.2f}) | {ours[0]:,.0f} ({ours[1]:.2f}) | {ours[0] / redis[0]:.2f} | "
                  f"{redis[1] / ours[1]:.2f} | {ours[0] / bare[0]:.2f} | {ours[1] / bare[1]:.2f} |")


def fill(port, keys, numbered=False):
    """`keys` tokens of 36 characters with the value 1 and a lifetime; `numbered`: those that redis-benchmark can name."""
    deadline = int(time.time() * 1000) + 86_400_000
    with Connection(port, timeout=120.0) as client:
        for at in range(0, keys, 10_000):
            n = min(10_000, keys - at)
            text = os.urandom(16 * n).hex() if not numbered else "".join(f"00000000000040008000{i:012d}" for i in range(at, at + n))
            batch = bytearray()
            for i in range(0, 32 * n, 32):
                h = text[i:i + 32]
                batch += encode(["SET", f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}", "1", "PXAT", deadline])
            client.send_raw(batch)
            for _ in range(n):
                client.read()


def start_table(idemd, keys):
    print(f"| start with {keys:,} tokens from | Redis s | idemd s | ratio | files: Redis, idemd MB |")
    print("| --- | --- | --- | --- | --- |")
    took, sizes = {}, {}
    for name, words in servers(idemd).items():
        directory = tempfile.mkdtemp(prefix="idemd-bench-", dir=os.environ.get("IDEMD_BENCH_DIR"))
        words = words + ["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
        server = Process(words, directory)
        server.wait_until_loaded()
        fill(server.port, keys)
        for what in ("log", "snapshot"):
            if what == "snapshot":
                with Connection(server.port, timeout=600.0) as client:
                    begin = time.monotonic()
                    client.call("BGREWRITEAOF")
                    while True:
                        info = bytes(client.call("INFO", "persistence"))
                        if b"aof_rewrite_in_progress:0" in info and b"aof_rewrite_scheduled:0" in info:
                            break
                        time.sleep(0.05)
                    took["rewrite", name] = time.monotonic() - begin
            time.sleep(1.5)
            server.end(signal.SIGTERM)
            sizes[what, name] = sum(f.stat().st_size for f in Path(directory).rglob("*") if f.is_file()) / 1e6
            begin = time.monotonic()
            server = Process(words, directory)
            took[what, name] = server.wait_until_loaded() - begin
            with Connection(server.port) as client:
                assert client.call("DBSIZE") == keys
        server.end()
        shutil.rmtree(directory)
    for what in ("log", "snapshot", "rewrite"):
        redis, ours = took[what, "redis"], took[what, "idemd"]
        files = f"{sizes[what, 'redis']:.0f}, {sizes[what, 'idemd']:.0f}" if what != "rewrite" else ""
        print(f"| {what if what != 'rewrite' else '(making the snapshot)'} | {redis:.2f} | {ours:.2f} | {redis / ours:.1f} | {files} |")


def open_loop(program, port, seconds, command):
    """20 000 requests a second, half GET and half SET, each timed from when it was due; `command` is sent after a second."""
    running = subprocess.Popen([program, "-p", str(port), "-t", "mixed", "-r", "1000000", "--key-space", "uuid", "-d", "1", "--rate", "20000",
                                "--seconds", str(seconds), "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if command:
        time.sleep(1)
        with Connection(port) as client:
            client.call(command)
    out = running.communicate()[0]
    if running.returncode != 0:
        raise SystemExit(f"idemd-bench failed: {out}")
    return json.loads(out)[0]["latency_ms"]


def snapshot_table(idemd, idemd_bench, keys):
    """20 000 requests a second, at rest and while a dump is made; memory while one is made under full-speed writes."""
    print(f"| {keys:,} tokens, 20 000 requests/s | p50 ms | p99 | p99.9 | longest | snapshot s | memory under full-speed writes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, words in servers(idemd).items():
        directory = tempfile.mkdtemp(prefix="idemd-bench-", dir=os.environ.get("IDEMD_BENCH_DIR"))
        server = Process(words + ["--appendonly", "no"], directory)
        server.wait_until_loaded()
        fill(server.port, keys, numbered=True)  # full-speed writes replace values, they add no keys
        port = str(server.port)
        for what, command in {"at rest": None, "during BGSAVE": "BGSAVE"}.items():
            ms = open_loop(idemd_bench, server.port, 25 if command else 10, command)
            with Connection(server.port, timeout=600.0) as client:
                while b"rdb_bgsave_in_progress:1" in bytes(client.call("INFO", "persistence")):
                    time.sleep(0.05)
                took = field(client, "rdb_last_bgsave_time_sec") if command else ""
            print(f"| {name}, {what} | {ms['p50']:.3f} | {ms['p99']:.3f} | {ms['p99.9']:.3f} | {ms['max']:.3f} | {took} | |")
        with Connection(server.port, timeout=600.0) as client:
            before = most = rss(server.process.pid)
            writes = subprocess.Popen(["redis-benchmark", "-p", port, "-c", "50", "-P", "16", "-n", "100000000", "-r", str(keys), "-q", "SET",
                                       "00000000-0000-4000-8000-__rand_int__", "1", "EX", "86400"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(2)
            before = rss(server.process.pid)
            begin = time.monotonic()
            client.call("BGSAVE")
            while b"rdb_bgsave_in_progress:1" in bytes(client.call("INFO", "persistence")):
                most = max(most, rss(server.process.pid))
                time.sleep(0.02)
            took = time.monotonic() - begin
            writes.kill()
            writes.wait()
        print(f"| {name}, full-speed writes | | | | | {took:.1f} | {100 * (most - before) / before:+.1f} % |")
        server.end(signal.SIGKILL)
        shutil.rmtree(directory)


def field(client, name):
    for line in bytes(client.call("INFO", "persistence")).decode().splitlines():
        if line.startswith(name + ":"):
            return line.split(":")[1]
    return "?"


def rss(pid):
    """Of a server and its children: a forked child's pages are memory, too, where they are not shared."""
    total = 0
    for process in [pid] + children(pid):
        try:
            with open(f"/proc/{process}/smaps_rollup") as rollup:
                total += sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listed:
            return [int(child) for child in listed.read().split()]
    except OSError:
        return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", help="a build directory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--only", choices=("sync", "start", "snapshot"))
    options = parser.parse_args()
    idemd, idemd_bench = str(Path(options.build) / "idemd"), str(Path(options.build) / "bench" / "idemd-bench")
    if options.only in (None, "sync"):
        sync_table(options.build, idemd, options.rounds)
    if options.only in (None, "start"):
        start_table(idemd, options.keys)
    if options.only in (None, "snapshot"):
        snapshot_table(idemd, idemd_bench, options.keys)


if __name__ == "__main__":
    main()

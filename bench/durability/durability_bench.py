#!/usr/bin/env python3
"""What durability costs, beside a stock Redis in the same sitting: requests under each appendfsync, and starts.

    durability_bench.py IDEMD [--rounds N] [--keys N] [--only sync|start]

Prints markdown tables; medians over interleaved rounds. CPU is the server's own, from /proc. One I/O thread each.
"""
import argparse
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
TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    def __init__(self, words, directory):
        self.port = free_port()
        self.process = subprocess.Popen(words + ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", directory, "--save", ""],
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

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(120)


def servers(idemd):
    return {"redis": ["redis-server"], "idemd": [idemd, "--io-threads", "1"]}


def benchmark(port, clients, pipeline, requests):
    out = subprocess.run(["redis-benchmark", "-p", str(port), "-c", str(clients), "-P", str(pipeline), "-n", str(requests),
                          "-r", "1000000", "-t", "set", "--csv"], capture_output=True, text=True, check=True).stdout
    return float(out.strip().splitlines()[-1].split(",")[1].strip('"'))


def sync_table(idemd, rounds):
    results = {}
    for _ in range(rounds):
        for sync in ("always", "everysec", "none"):
            for name, words in servers(idemd).items():
                directory = tempfile.mkdtemp(prefix="idemd-bench-", dir=os.environ.get("IDEMD_BENCH_DIR"))
                log = ["--appendonly", "no"] if sync == "none" else ["--appendonly", "yes", "--appendfsync", sync]
                server = Process(words + log, directory)
                server.wait_until_loaded()
                for clients, pipeline, requests in SHAPES:
                    before = server.cpu_s()
                    rate = benchmark(server.port, clients, pipeline, requests)
                    results.setdefault((sync, clients, pipeline, name), []).append((rate, (server.cpu_s() - before) / requests * 1e6))
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


def fill(port, keys):
    """`keys` tokens of 36 characters with the value 1 and a lifetime."""
    deadline = int(time.time() * 1000) + 86_400_000
    with Connection(port, timeout=120.0) as client:
        for at in range(0, keys, 10_000):
            n = min(10_000, keys - at)
            text = os.urandom(16 * n).hex()
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("idemd")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--only", choices=("sync", "start"))
    options = parser.parse_args()
    if options.only != "start":
        sync_table(options.idemd, options.rounds)
    if options.only != "sync":
        start_table(options.idemd, options.keys)


if __name__ == "__main__":
    main()

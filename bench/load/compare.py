#!/usr/bin/env python3
"""Processor time per request: idemd beside the servers it replaces, in the same sitting, against the goals.

    compare.py BUILD [--keys N] [--rounds N] [--seconds S] [--rows NAMES] [--pipelines 1,16,64] [--quick] [--aa] ...

Writes a markdown table to standard output, and charts and every figure (compare.json) into build/bench.

In each round all servers are started anew, with the same flags, and loaded with the same keys. Then they take turns at every
single measurement, so that a noisy minute hits all of them; those whose turn it is not are stopped (SIGSTOP) meanwhile. A ratio is
taken within a round; shown are the median over the rounds and the least and the most. Servers stay on one processor, the
generator on another.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "bench" / "storage")]
import charts  # noqa: E402
from lib.resp import Closed, Connection, Timeout  # noqa: E402
from lib.server import free_port  # noqa: E402

OURS, AGAIN = "idemd", "idemd again"
CONNECTIONS = 50
# New or prepared keys a second that a measurement may use up, by pipeline, and at most so many in one.
KEYS_A_SECOND, KEYS_MOST = {1: 150_000, 16: 1_500_000}, 2_000_000
REPEATED = 1_000_000  # keys that duplicates are drawn from
MEMCACHED_TESTS = ("get", "set_ex", "set_nx", "del")
BUSY = 0.97  # a generator that works for this share of the time is the limit
SETTLE_S = 0.1
# A measurement of fewer requests says how often the processor was taken away, not what a request costs; it is made again.
REQUESTS_LEAST, TRIES = 2_000, 5


class Row:
    """One line of the goals: which test of idemd-bench stands for which, and how many times less it has to cost."""

    def __init__(self, name, title, theirs, ours, goal, ring, floor, unix=False, drawn=None, flags=()):
        self.name, self.title, self.theirs, self.ours = name, title, theirs, ours
        self.goal, self.ring, self.floor = goal, ring, floor
        self.unix, self.drawn, self.flags = unix, drawn, tuple(flags)


TOKENS = ((1.25, 4.5, 12), (1.75, 6, 15), (1.15, 2.5, 6))
RESERVES = ((1.35, 4.5, 10), (1.8, 6, 13), (1.2, 2.5, 5))
RESERVES_SET = ((None, 2.5, 4), (None, 3.5, 5), (None, 1.5, 2))
SETS = ((1.3, 3.5, 8), (1.6, 5.5, 10), (1.1, 2, 4))
ANSWER = ("-d", "64")
ROWS = [
    Row("get", "GET", "get", "get", (1.15, 3.2, 8), (1.5, 4, 10), (1.05, 2, 4), drawn="keys"),
    Row("set_ex", "SET EX", "set_ex", "set_ex", *SETS, drawn="keys"),
    Row("set_nx", "SET NX EX, new keys", "set_nx", "set_nx", *SETS),
    Row("consume", "IDEM.CONSUME / EVALSHA of the token script", "lua_token", "consume", *TOKENS),
    Row("consume_absent", "IDEM.CONSUME / token script, the token is gone", "lua_token_absent", "consume_absent", *TOKENS),
    Row("consume_del", "IDEM.CONSUME / DEL", "del", "consume", (None, 2.5, 5.5), (None, 3.5, 7), (None, 1.5, 3)),
    Row("reserve", "IDEM.RESERVE / a Lua reserve script, new keys", "lua_reserve", "reserve", *RESERVES),
    Row("reserve_pending", "IDEM.RESERVE / Lua script, somebody works on it", "lua_reserve_pending", "reserve_pending", *RESERVES, drawn="repeated"),
    Row("reserve_done", "IDEM.RESERVE / Lua script, the answer is there", "lua_reserve_done", "reserve_done", *RESERVES, drawn="repeated", flags=ANSWER),
    Row("reserve_set", "IDEM.RESERVE / SET NX GET PX, new keys", "set_nx_get", "reserve", *RESERVES_SET),
    Row("reserve_set_taken", "IDEM.RESERVE / SET NX GET PX, the key is taken", "set_nx_get_taken", "reserve_pending", *RESERVES_SET, drawn="repeated"),
    Row("complete", "IDEM.COMPLETE / a Lua complete script", "lua_complete", "complete", *RESERVES, flags=ANSWER),
    Row("token", "IDEM.TOKEN / SET NX EX of a client's UUID", "set_nx", "token", (1.3, 3, 6), (None, None, None), (1.1, 2, 3)),
    Row("unix_get", "GET, Unix socket", "get", "get", (1.6, 5, 10), (None, None, None), (1.3, 2.5, 5), unix=True, drawn="keys"),
]
PIPELINES = (1, 16, 64)  # what the three figures of a goal belong to


class Contender:
    """A program that can be started. `kind` says which words it knows: idemd, redis or memcached."""

    def __init__(self, name, program, kind, extra=()):
        self.name, self.program, self.kind, self.extra = name, program, kind, list(extra)

    def test(self, row):
        """The test that stands for this row here, or None."""
        if self.kind == "idemd":
            return row.ours
        if self.kind == "memcached" and (row.unix or row.theirs not in MEMCACHED_TESTS):
            return None
        return row.theirs

    def words(self, port, directory):
        if self.kind == "memcached":  # a table that holds all keys from the begin, as the growth of the others is not measured either
            user = ["-u", "root"] if os.geteuid() == 0 else []
            return [self.program, "-p", str(port), "-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", "8192", "-o", "hashpower=24", *user]
        return [self.program, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", os.path.join(directory, "s"),
                "--dir", directory, "--appendonly", "no", "--save", "", "--io-threads", "1", *self.extra]

    def greeting(self, port):
        """Its version; "" while it does not answer."""
        try:
            if self.kind == "memcached":
                with socket.create_connection(("127.0.0.1", port), timeout=2) as client:
                    client.sendall(b"version\r\n")
                    return client.recv(100).decode().split()[-1]
            with Connection(port, timeout=2.0) as client:
                info = bytes(client.call("INFO", "server")).decode()
        except (OSError, Closed, Timeout, IndexError):
            return ""
        versions = dict(line.split(":", 1) for line in info.splitlines() if "_version:" in line)
        return versions.get("valkey_version") or versions.get("idemd_version") or versions.get("redis_version", "")


class Server:
    """A contender that runs: on a free port of this machine, without persistence, on one I/O thread and one processor."""

    def __init__(self, contender, cpu):
        self.contender, self.name = contender, contender.name
        self.directory = tempfile.mkdtemp(prefix="idemd-bench-")
        self.port, self.socket = free_port(), os.path.join(self.directory, "s")
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(pinned(cpu) + contender.words(self.port, self.directory), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        self.version = ""
        while not self.version and time.monotonic() < end and self.process.poll() is None:
            time.sleep(0.02)
            self.version = contender.greeting(self.port)
        if not self.version:
            with open(os.path.join(self.directory, "log"), "rb") as log:
                said = log.read()[-2000:].decode("latin-1")
            self.end()
            raise SystemExit(f"{self.name} did not start: {said}")

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_S)  # what fell due while it was stopped is done before the clock is read

    def end(self):
        self.process.kill()
        self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def pinned(cpu):
    return ["taskset", "-c", str(cpu)] if cpu is not None else []


def room(keys):
    """How many more keys fit before Redis' table grows to the next power of two, which would be measured with them."""
    return (1 << (keys - 1).bit_length()) - keys


class Bench:
    """Runs idemd-bench against a server, and hands back what its JSON says of the one test."""

    def __init__(self, program, options, cpu):
        self.program, self.options, self.cpu = program, options, cpu

    def run(self, server, test, pipeline, *flags, unix=False):
        where = ["-s", server.socket] if unix else ["-p", str(server.port)]
        words = pinned(self.cpu) + [self.program, *where, "-t", test, "-P", str(pipeline), "-c", str(CONNECTIONS),
                                    "--key-space", self.options.key_space, "--server-pid", str(server.process.pid),
                                    "-q", "--json", "-", *flags, *(["--memcached"] if server.contender.kind == "memcached" else [])]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=900, check=False)
        if ran.returncode != 0:
            raise SystemExit(f"{server.name}, {' '.join(words)}: exit code {ran.returncode}\n{ran.stderr}")
        return json.loads(ran.stdout)[0]

    def load(self, server):
        loaded = self.run(server, "load", 64, "-r", str(self.options.keys), "-d", "1")
        if loaded["replies"] != self.options.keys:
            raise SystemExit(f"{server.name} took {loaded['replies']} keys, not {self.options.keys}")

    def measure(self, server, row, test, pipeline):
        seconds = self.options.seconds
        flags = ["--seconds", str(seconds)]
        if row.drawn == "keys":
            flags += ["-r", str(self.options.keys)]
        elif row.drawn == "repeated":
            flags += ["-r", str(min(REPEATED, self.options.keys))]
        else:
            a_second = KEYS_A_SECOND.get(pipeline, KEYS_MOST)
            flags += ["-n", str(max(10_000, min(KEYS_MOST, int(seconds * a_second), room(self.options.keys))))]
        if "-d" not in row.flags:
            flags += ["-d", "1"]
        for _ in range(TRIES):
            found = self.run(server, test, pipeline, *flags, *row.flags, unix=row.unix)
            if found["requests"] >= REQUESTS_LEAST:
                return found
            say(f"{server.name}, {test}, pipeline {pipeline}: only {found['requests']} requests; the machine is busy")
        return found


def one_round(number, contenders, bench, options, results):
    """Adds a run to `results` for each row, pipeline and contender that knows the row; returns the versions."""
    servers = []
    try:
        for contender in contenders:
            servers.append(Server(contender, options.server_cpu))
            bench.load(servers[-1])
            servers[-1].stop()
        done = {}
        for at, row in enumerate(options.rows):
            for pipeline in options.pipelines:
                for server in servers if (number + at) % 2 == 0 else servers[::-1]:
                    test = server.contender.test(row)
                    # Rows that hold the same request against different ones share its measurement.
                    key = (server.name, test, pipeline, row.unix, row.flags)
                    if test and key not in done:
                        server.go_on()
                        done[key] = bench.measure(server, row, test, pipeline)
                        server.stop()
                    if test:
                        results.setdefault((row.name, pipeline, server.name), []).append(done[key])
            say(f"round {number + 1} of {options.rounds}: " + progress(row, contenders, options, results))
        return {server.name: server.version for server in servers}
    finally:
        for server in servers:
            server.end()


def progress(row, contenders, options, results):
    parts = []
    for pipeline in options.pipelines:
        runs = [results.get((row.name, pipeline, contender.name)) for contender in contenders]
        parts.append(f"{pipeline}: " + " / ".join(us_text(found[-1]["server_cpu_us"]) if found else "–" for found in runs))
    return f"{row.name:18} " + "   ".join(parts)


def say(words):
    print(words, file=sys.stderr, flush=True)


def at_pipeline(figures, pipeline):
    return figures[PIPELINES.index(pipeline)] if pipeline in PIPELINES else None


class Cell:
    """A row at a pipeline: medians, and within each round how many times as much each rival costs as ours."""

    def __init__(self, row, pipeline, names, options, results):
        self.row, self.pipeline = row, pipeline
        runs = {name: results[row.name, pipeline, name] for name in names if (row.name, pipeline, name) in results}
        self.us = {name: statistics.median(run["server_cpu_us"] for run in found) for name, found in runs.items()}
        self.limited = {name for name, found in runs.items() if statistics.median(run["own_cpu_share"] for run in found) > BUSY}
        ours = names[-1]
        self.ratios = {name: [a["server_cpu_us"] / b["server_cpu_us"] for a, b in zip(found, runs[ours])]
                       for name, found in runs.items() if name != ours}
        self.goal = self.floor = None
        if not options.aa:
            self.goal = at_pipeline(row.ring if options.backend == "io_uring" else row.goal, pipeline)
            self.floor = at_pipeline(row.floor, pipeline)

    def ratio(self, name):
        return statistics.median(self.ratios[name])

    def marks(self, base):
        found = []
        if self.floor is not None and self.ratio(base) < self.floor:
            found.append("**below floor**")
        elif self.goal is not None and self.ratio(base) < self.goal:
            found.append("**MISSED**")
        found += [f"**dearer than {name}**" for name in self.ratios if name != AGAIN and self.ratio(name) < 1]
        return ", ".join(found)


def us_text(us):
    return f"{us:.2f}" if us >= 1 else f"{us:.3f}"


def ratio_text(cell, name):
    if name not in cell.ratios:
        return "–"
    ratios = cell.ratios[name]
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{cell.ratio(name):.2f}{spread}"


def table(cells, names):
    rivals, ours = names[:-1], names[-1]
    print("| work | pipeline | " + " | ".join(f"{name} µs" for name in names) + " | "
          + " | ".join(f"{name} / {ours}" for name in rivals) + " | goal | floor | |")
    print("| --- | ---: |" + " ---: |" * (len(names) + len(rivals) + 2) + " --- |")
    last = None
    for cell in cells:
        title = cell.row.title if cell.row is not last else ""
        last = cell.row
        figures = [us_text(cell.us[name]) + (" g" if name in cell.limited else "") if name in cell.us else "–" for name in names]
        goals = [f"{figure:g}" if figure is not None else "–" for figure in (cell.goal, cell.floor)]
        print(f"| {title} | {cell.pipeline} | " + " | ".join(figures) + " | "
              + " | ".join(ratio_text(cell, name) for name in rivals) + f" | {goals[0]} | {goals[1]} | {cell.marks(rivals[0])} |")
    print()
    if any(cell.limited for cell in cells):
        print("g: the generator was the limit; the server could have answered more.\n")


def verdict(cells, base):
    judged = [cell for cell in cells if cell.goal is not None]
    below = [cell for cell in cells if cell.floor is not None and cell.ratio(base) < cell.floor]
    missed = [cell for cell in judged if cell.ratio(base) < cell.goal]
    print(f"Of {len(judged)} goals {len(judged) - len(missed)} are reached and {len(missed)} missed; {len(below)} figures are below the floor.")
    for cell in missed:
        print(f"- {'below floor' if cell in below else 'missed'}: {cell.row.name}, pipeline {cell.pipeline}: {cell.ratio(base):.2f} of {cell.goal:g}"
              f" (floor {cell.floor:g})")


def noise(cells, base):
    off = sorted(cells, key=lambda cell: abs(cell.ratio(base) - 1))
    worst = off[-1]
    single = max(abs(ratio - 1) for cell in cells for ratio in cell.ratios[base])
    print(f"The same program twice: the medians are {100 * statistics.median(abs(c.ratio(base) - 1) for c in cells):.1f} % apart in the median, at most "
          f"{100 * abs(worst.ratio(base) - 1):.1f} % ({worst.row.name}, pipeline {worst.pipeline}); a single round at most {100 * single:.1f} %.")


def draw(cells, names, options, folder):
    charts.COLOURS.update({OURS: "#1d6fb8", "Redis": "#b3a07a", "Valkey": "#93ad8b", "memcached": "#a58aa9", AGAIN: "#8a9aa9"})
    charts.OURS = names[-1]
    for pipeline in options.pipelines:
        panels = []
        for cell in (cell for cell in cells if cell.pipeline == pipeline):
            goal = cell.us[names[0]] / cell.goal if cell.goal else None
            panels.append(charts.Panel(cell.row.title, "µs", [(name, cell.us[name]) for name in names if name in cell.us], goal))
        charts.chart(os.path.join(folder, f"compare_{pipeline}{'_aa' if options.aa else ''}.svg"),
                     f"Processor time per request, pipeline {pipeline}",
                     f"The server's own, user and system; shorter is better. {charts.count(options.keys)} keys, {CONNECTIONS} connections, "
                     f"median of {options.rounds} rounds.{'' if options.aa else ' Red: the goal.'}", panels)


def contenders_of(options):
    idemd = str(Path(options.build) / "idemd")
    extra = ["--io-backend", options.backend] if options.backend else []
    if options.aa:
        return [Contender(AGAIN, idemd, "idemd", extra), Contender(OURS, idemd, "idemd", extra)]
    found = []
    for name, program, kind in (("Redis", "redis-server", "redis"), ("Valkey", "valkey-server", "redis"),
                                ("memcached", "memcached", "memcached")):
        path = shutil.which(program)
        if path:
            found.append(Contender(name, path, kind))
        else:
            say(f"{program} is not installed: left out")
    for named in options.server:
        name, _, path = named.partition("=")
        if not path:
            raise SystemExit("--server NAME=PROGRAM")
        found.append(Contender(name, path, "redis"))
    if not found or found[0].kind != "redis":
        raise SystemExit("the goals are told in multiples of Redis: there is no redis-server")
    return found + [Contender(OURS, idemd, "idemd", extra)]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a build directory, with idemd and bench/idemd-bench")
    parser.add_argument("--keys", type=int, default=10_000_000, help="loaded before anything is measured (10000000)")
    parser.add_argument("--key-space", default="uuid", choices=("uuid", "token", "name", "redis"), help="kind of keys (uuid)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (2)")
    parser.add_argument("--rows", help="names with commas: " + ", ".join(row.name for row in ROWS))
    parser.add_argument("--pipelines", default="1,16,64")
    parser.add_argument("--quick", action="store_true", help="80000 keys, 2 rounds of 0.3 s: whether it works, not how fast it is")
    parser.add_argument("--aa", action="store_true", help="idemd against itself: what differs is noise")
    parser.add_argument("--backend", help="idemd's io-backend; io_uring is held against the goals of the ring")
    parser.add_argument("--server", action="append", default=[], metavar="NAME=PROGRAM", help="one more that takes Redis' flags")
    parser.add_argument("--out", default=str(ROOT / "build" / "bench"), help="folder for charts and compare.json")
    options = parser.parse_args()
    if options.quick:
        options.keys, options.rounds, options.seconds = min(options.keys, 80_000), min(options.rounds, 2), 0.3
    options.pipelines = [int(word) for word in options.pipelines.split(",")]
    wanted = options.rows.split(",") if options.rows else [row.name for row in ROWS]
    unknown = set(wanted) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no rows of these names: {', '.join(sorted(unknown))}")
    options.rows = [row for row in ROWS if row.name in wanted]
    cpus = sorted(os.sched_getaffinity(0))
    options.server_cpu, options.bench_cpu = (cpus[0], cpus[1]) if len(cpus) > 1 and shutil.which("taskset") else (None, None)
    return options


def main():
    options = read_options()
    bench = Bench(str(Path(options.build) / "bench" / "idemd-bench"), options, options.bench_cpu)
    contenders = contenders_of(options)
    names = [contender.name for contender in contenders]
    results, versions, load_before = {}, {}, os.getloadavg()[0]
    if load_before > 0.5:
        say(f"this machine is at work (load {load_before:.1f}): do not record what follows")
    for number in range(options.rounds):
        versions = one_round(number, contenders, bench, options, results)
    cells = [Cell(row, pipeline, names, options, results) for row in options.rows for pipeline in options.pipelines]
    os.makedirs(options.out, exist_ok=True)
    stem = "compare_aa" if options.aa else "compare"
    with open(os.path.join(options.out, stem + ".json"), "w", encoding="utf-8") as out:
        json.dump({"machine": charts.machine(), "versions": versions, "keys": options.keys, "seconds": options.seconds,
                   "load_before": load_before, "load_after": os.getloadavg()[0],
                   "runs": [{"row": row, "pipeline": pipeline, "server": name, "rounds": runs}
                            for (row, pipeline, name), runs in results.items()]}, out, indent=1)
    draw(cells, names, options, options.out)
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"{told}; {charts.machine()}; load {load_before:.1f} before. {charts.count(options.keys)} keys ({options.key_space}), {CONNECTIONS} connections, "
          f"{options.rounds} rounds of {options.seconds:g} s{'; io-backend ' + options.backend if options.backend else ''}. The server's CPU time per request; ratios "
          "within a round, median (least–most).\n")
    table(cells, names)
    if options.aa:
        noise(cells, names[0])
    else:
        verdict(cells, names[0])


if __name__ == "__main__":
    main()

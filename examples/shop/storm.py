#!/usr/bin/env python3
"""The storm: impatient clients, a repeating bank and queue, killed workers; then the ledger is counted.

    storm.py             with idemd: fails unless 0 effects are doubled and 0 orders are lost
    storm.py --without   the same storm on a shop that only checks and acts: fails unless it was
                         strong enough to double effects there
    storm.py --careless  on a shop that has idemd, but brings its resources no fence and never looks
                         what an attempt before it has done: fails unless that shows
    storm.py --all       the three, side by side

It uses the server at IDEMD_URL (or --url), else starts the binary named by IDEMD_BIN (or --binary).
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

import redis

import guarded
import idemd_process
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["order", "charge", "points", "label", "parcel"]
LIMIT_BURST, LIMIT_PER_S = 10, 20  # as in guarded.py: 9 + 1 at once, 20 a second
QUIET_S = 4  # longer than a lease, a stall and the queue's hiding time


class Clients:
    """People who click twice, lose patience, go back, and try again until they are told yes."""

    def __init__(self, port, seed, orders, deadline):
        self.port, self.seed, self.orders, self.deadline = port, seed, orders, deadline
        self.lock = threading.Lock()
        self.requests = collections.Counter()
        self.open = list(range(orders))
        self.done = threading.Event()
        self.crawl_s = 0.0

    def post(self, path, **words):
        """Returns (code, answer), or None when no answer came: nobody knows what was done."""
        with self.lock:
            self.requests[path] += 1
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
            connection.request("POST", path, urllib.parse.urlencode(words))
            response = connection.getresponse()
            answer = response.status, response.read().decode()
            connection.close()
        except (OSError, http.client.HTTPException):
            answer = None
        with self.lock:
            self.requests["no answer"] += answer is None
            self.requests["admitted " + path] += answer is not None and answer[0] == 200
        return answer

    def click(self, twice, path, **words):
        """Two clicks are two requests at once; a yes to either is a yes."""
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(self.post(path, **words)))
            for _ in range(2 if twice else 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answered = sorted(answer for answer in answers if answer)
        return answered[0] if answered else None

    def buy(self, index):
        dice = random.Random(f"{self.seed}:client:{index}")
        user, number = f"user{index % 12}", f"PO-{index:04}"
        token = None
        while time.monotonic() < self.deadline:
            if token is None:
                answer = self.post("/form", user=user)
                token = answer[1] if answer and answer[0] == 200 else None
            else:
                twice = dice.random() < 0.5
                answer = self.click(twice, "/orders", user=user, token=token, number=number)
                if answer and answer[0] == 200:
                    break
                if answer == (410, "DUPLICATE"):
                    break  # "this form was already submitted": so it must have worked
                if answer and answer[0] in (403, 410):
                    token = None
                if answer is None and dice.random() < 0.3:
                    token = None  # goes back and fills in the form again, with the same number
            if token is None or answer is None or answer[0] != 200:
                time.sleep(dice.uniform(0.05, 0.25))
        while time.monotonic() < self.deadline:
            answer = self.click(dice.random() < 0.5, "/pay", user=user, number=number)
            if answer and answer[0] in (200, 404):
                return
            time.sleep(dice.uniform(0.05, 0.25))

    def shopper(self):
        while True:
            with self.lock:
                if not self.open:
                    return
                index = self.open.pop(0)
            self.buy(index)

    def crawler(self):
        while not self.done.is_set():
            self.post("/catalogue", user="crawler")
            time.sleep(0.01)

    def run(self):
        shoppers = [threading.Thread(target=self.shopper) for _ in range(8)]
        crawlers = [threading.Thread(target=self.crawler) for _ in range(2)]
        begin = time.monotonic()
        for thread in shoppers + crawlers:
            thread.start()
        for thread in shoppers:
            thread.join()
        self.done.set()
        for thread in crawlers:
            thread.join()
        self.crawl_s = time.monotonic() - begin


def read_ledger(path):
    effects, refused = collections.Counter(), 0
    with open(path, encoding="utf-8") as ledger:
        for line in ledger:
            if not line.endswith("\n"):
                break  # being written
            entry = json.loads(line)
            if entry["effect"] == "refused":
                refused += 1
            else:
                effects[entry["kind"], entry["operation"]] += 1
    return effects, refused


def wait_until_settled(world, path, orders, deadline):
    """Until every order is shipped and nobody repeats anything, or nothing happens any more."""
    seen, since = None, time.monotonic()
    while time.monotonic() < deadline:
        effects, refused = read_ledger(path)
        shipped = sum(1 for kind, _ in effects if kind == "parcel")
        if shipped == orders and world.call("report")["unsettled"] == 0:
            time.sleep(2 * guarded.LEASE_MS / 1000)  # whoever stalls now would wake up by then
            return
        if (len(effects), sum(effects.values()), refused) != seen:
            seen, since = (len(effects), sum(effects.values()), refused), time.monotonic()
        if time.monotonic() - since > QUIET_S:
            return
        time.sleep(0.1)


@contextlib.contextmanager
def process(*command):
    """A process of ours that ends when its input does."""
    child = subprocess.Popen(
        [sys.executable, *command], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, bufsize=1,
    )  # fmt: skip
    try:
        yield child
    finally:
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def storm(options, mode, url, directory):
    """One storm; returns the rows of its column."""
    begin = time.monotonic()
    deadline = begin + options.seconds
    ledger = os.path.join(directory, f"{mode}.ledger")
    with contextlib.suppress(FileNotFoundError):
        os.remove(ledger)  # of an earlier run that kept it
    prefix = f"shop:{uuid.uuid4().hex[:8]}:"
    seed = str(options.seed)
    guard = ["--url", url, "--prefix", prefix] if url else []
    with process("shop.py", "--seed", seed, "--mode", mode, *guard) as shop:
        shop_port = int(shop.stdout.readline())
        with process("world.py", ledger, seed, str(shop_port)) as world_process:
            world_port = int(world_process.stdout.readline())
            shop.stdin.write(f"{world_port}\n")
            world = wire.Remote(world_port)
            clients = Clients(shop_port, seed, options.orders, deadline - QUIET_S - 2)
            clients.run()
            shop.stdin.write("calm\n")
            wait_until_settled(world, ledger, options.orders, deadline)
            shop.stdin.close()
            killed = json.loads(shop.stdout.readline())["killed"]
            outside = world.call("report")
    effects, refused = read_ledger(ledger)
    stages = stage_counters(url, prefix) if url else {}
    return rows(options, clients, outside, effects, refused, killed, stages,
                time.monotonic() - begin)  # fmt: skip


def stage_counters(url, prefix):
    """What idemd itself counted, by stage; then its keys are removed."""
    store = redis.Redis.from_url(url, decode_responses=True)
    counters = {}
    for stage in ["token", "number", "pay", "status", "follow", "ship", "limit"]:
        flat = store.execute_command("IDEM.STATS", f"{prefix}{stage}:")
        counters[stage] = dict(zip(flat[::2], flat[1::2]))
    for key in store.scan_iter(match=prefix + "*", count=1000):
        store.delete(key)
    return counters


def rows(options, clients, outside, effects, refused, killed, stages, seconds):
    def count(stage, name):
        return int(stages[stage].get(name, 0)) if stages else None

    operations = [f"PO-{index:04}" for index in range(options.orders)]
    doubled = {
        kind: sum(max(0, effects[kind, number] - 1) for number in operations) for kind in KINDS
    }
    lost = [n for n in operations if any(effects[kind, n] == 0 for kind in KINDS)]
    stray = sum(n for (kind, number), n in effects.items() if number not in operations)
    admitted = clients.requests["admitted /catalogue"]
    bound = LIMIT_BURST + LIMIT_PER_S * clients.crawl_s + 1
    sent = sum(n for name, n in clients.requests.items() if name.startswith("/"))
    guards = ["token", "number", "pay", "status", "follow", "ship"]
    table = {
        "orders submitted": options.orders,
        "requests sent by clients": sent,
        "callbacks sent by the bank": outside.get("callbacks", 0),
        "deliveries made by the queue": outside.get("deliveries", 0),
        "requests that got no answer": clients.requests["no answer"],
        "workers killed": killed,
        "workers stalled past their lease": outside.get("stall", 0),
    }
    for stage, name in [
        ("token", "form token"), ("number", "order number"), ("pay", "payment"),
        ("status", "status transition"), ("follow", "follow-up"), ("ship", "shipping"),
    ]:  # fmt: skip
        table[f"duplicates blocked: {name}"] = count(stage, "duplicates-blocked")
    table["requests held back by the limit"] = count("limit", "throttle-limited")
    table["take-overs after a lapse or failure"] = (
        sum(count(stage, "taken-over") for stage in guards) if stages else None
    )
    table["unknown outcomes seen"] = count("pay", "unknown-hits")
    table["late losers refused by the resource"] = refused
    for kind in KINDS:
        table[f"double effects: {kind}"] = doubled[kind]
    table["requests past the limit"] = max(0, round(admitted - bound))
    table["double effects"] = sum(doubled.values()) + stray
    table["lost orders"] = len(lost)
    table["seconds"] = round(seconds, 1)
    return table


def show(seed, columns):
    print(f"\nshop storm, seed {seed}")
    print(f"| {'':<38} | " + " | ".join(f"{title:>10}" for title, _ in columns) + " |")
    print("| " + "-" * 38 + " | " + " | ".join("-" * 9 + ":" for _ in columns) + " |")
    for label in columns[0][1]:
        cells = [table[label] for _, table in columns]
        texts = ["" if cell is None else str(cell) for cell in cells]
        print(f"| {label:<38} | " + " | ".join(f"{text:>10}" for text in texts) + " |")


def verdict_with(table):
    """What must hold with idemd; a storm without wind proves nothing and fails too."""
    faults = [
        f"{label}: {table[label]}, must be 0"
        for label in ["double effects", "requests past the limit", "lost orders"]
        if table[label] != 0
    ]
    blown = [
        "workers killed", "workers stalled past their lease", "take-overs after a lapse or failure",
        "duplicates blocked: form token", "duplicates blocked: payment",
        "duplicates blocked: status transition", "duplicates blocked: shipping",
        "requests held back by the limit",
    ]  # fmt: skip
    return faults + [f"the storm was too weak: {label} is 0" for label in blown if not table[label]]


def verdict_careless(table):
    faults = [] if table["double effects"] else ["the gap between effect and COMPLETE was not hit"]
    for label in ["requests past the limit", "lost orders"]:
        if table[label]:
            faults.append(f"{label}: {table[label]}, must be 0")
    return faults


def verdict_without(table):
    return [
        f"the storm was too weak to prove anything: {label} is 0 without idemd"
        for label in ["double effects", "requests past the limit", "lost orders", "workers killed"]
        if table[label] == 0
    ]


VERDICTS = {"with": verdict_with, "careless": verdict_careless, "without": verdict_without}
TITLES = {"with": "with idemd", "careless": "careless", "without": "without"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    for name in ["without", "careless", "all"]:
        mode.add_argument("--" + name, action="store_const", const=name, dest="mode")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("IDEMD_SEED", "1")))
    parser.add_argument("--orders", type=int, default=80)
    parser.add_argument("--seconds", type=int, default=55, help="the longest one storm may last")
    parser.add_argument("--url", default=os.environ.get("IDEMD_URL"))
    parser.add_argument("--binary", default=os.environ.get("IDEMD_BIN"))
    parser.add_argument("--port", type=int, default=0, help="for the binary; any free one if 0")
    parser.add_argument("--keep", metavar="DIR", help="keep the ledgers there")
    options = parser.parse_args()

    modes = list(VERDICTS) if options.mode == "all" else [options.mode or "with"]
    columns, faults = [], []
    with contextlib.ExitStack() as stack:
        directory = options.keep or stack.enter_context(tempfile.TemporaryDirectory())
        os.makedirs(directory, exist_ok=True)
        url = None
        if modes != ["without"]:
            url = stack.enter_context(
                idemd_process.running(options.url, options.binary, options.port, directory)
            )
        for mode in modes:
            table = storm(options, mode, None if mode == "without" else url, directory)
            columns.append((TITLES[mode], table))
            faults += VERDICTS[mode](table)
    show(options.seed, columns)
    for fault in faults:
        print("BROKEN:", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

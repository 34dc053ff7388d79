"""The world outside the shop: what happens here has happened, and is written into the ledger.

It is a process of its own, knows nothing of idemd, and is never killed. It holds the order table,
the bank, the warehouse and the carrier (each only as entries of an append-only ledger), the shop's
message queue, and the list of faults that the storm plans. It does what it is asked, as often as
it is asked, with one exception: a caller that brings a fence older than one that it has seen for
the same operation is refused.
"""

import collections
import http.client
import json
import random
import sys
import threading
import time
import urllib.parse

import wire

# Where a worker may be struck, and how. "before": about to act, "after": has acted, told nobody.
STRIKES = {
    "order.before": ("stall", 0.06),
    "order.after": ("kill", 0.08),
    "order.answer": ("kill", 0.06),
    "order.busy": ("busy", 0.08),
    "charge.before": ("stall", 0.08),
    "charge.after": ("kill", 0.08),
    "paid.between": ("kill", 0.06),
    "points.after": ("kill", 0.06),
    "ship.busy": ("busy", 0.08),
    "label.after": ("kill", 0.06),
    "parcel.before": ("stall", 0.06),
    "parcel.after": ("kill", 0.06),
}


class World:
    def __init__(self, ledger_path, seed, shop_port):
        self.lock = threading.Lock()
        self.ledger = open(ledger_path, "a", encoding="utf-8")
        self.seed = seed
        self.shop_port = shop_port
        self.effects = collections.defaultdict(list)  # (kind, operation) -> ids
        self.floor = {}  # (kind, operation) -> the smallest fence still accepted
        self.rows = {}  # plain rows, read and written apart: what the naive shop works with
        self.messages = {}  # receipt -> [topic, body, visible from]
        self.asked = set()  # faults that were drawn
        self.counts = collections.Counter()
        self.calling = 0  # charges whose callbacks are under way
        self.random = random.Random(f"{seed}:world")

    # --- effects -------------------------------------------------------------------------------

    def apply(self, kind, operation, fence):
        """Does it. Returns its id, or what is refused and why."""
        time.sleep(0.004)  # the way there
        with self.lock:
            if not self.accepts(kind, operation, fence):
                self.write(kind, operation, fence, "refused")
                return {"refused": "old fence"}
            effect = f"{kind}-{operation}-{len(self.effects[kind, operation]) + 1}"
            self.effects[kind, operation].append(effect)
            self.write(kind, operation, fence, effect)
            self.calling += kind == "charge"
        if kind == "charge":
            threading.Thread(target=self.call_back, args=(operation,), daemon=True).start()
        time.sleep(0.004)  # the way back
        return {"id": effect}

    def look(self, kind, operation, fence, close=False):
        """Says what is there, and from now on refuses older fences (with `close`, this one too)."""
        with self.lock:
            if not self.accepts(kind, operation, fence):
                self.write(kind, operation, fence, "refused")
                return {"refused": "old fence"}
            if close:
                self.floor[kind, operation] = fence + 1
            found = self.effects.get((kind, operation))
            return {"id": found[0] if found else None}

    def accepts(self, kind, operation, fence):
        if fence is None:
            return True  # the naive shop has no fences
        if fence < self.floor.get((kind, operation), 0):
            return False
        self.floor[kind, operation] = fence
        return True

    def write(self, kind, operation, fence, effect):
        entry = {"kind": kind, "operation": operation, "fence": fence, "effect": effect}
        self.ledger.write(json.dumps(entry) + "\n")
        self.ledger.flush()

    # --- the bank's callback: at least once, here three times --------------------------------

    def call_back(self, number):
        first = [threading.Thread(target=self.deliver, args=(number,)) for _ in range(2)]
        for thread in first:
            thread.start()
        for thread in first:
            thread.join()
        time.sleep(0.2)
        self.deliver(number)
        with self.lock:
            self.calling -= 1

    def deliver(self, number):
        body = urllib.parse.urlencode({"number": number})
        for _ in range(60):  # the bank gives up in the end
            with self.lock:
                self.counts["callbacks"] += 1
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.shop_port, timeout=1)
                connection.request("POST", "/paid", body)
                code = connection.getresponse().status
                connection.close()
                if code == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.15)

    # --- rows without an index, for the naive shop ---------------------------------------------

    def get(self, table, key):
        time.sleep(0.001)
        return self.rows.get(f"{table}/{key}")

    def put(self, table, key, value):
        time.sleep(0.001)
        self.rows[f"{table}/{key}"] = value

    # --- the queue: at least once; now and then it hands out a message twice --------------------

    def enqueue(self, topic, body):
        with self.lock:
            for _ in range(2 if self.random.random() < 0.3 else 1):
                self.counts["messages"] += 1
                self.messages[self.counts["messages"]] = [topic, body, 0]

    def poll(self):
        """Returns [receipt, topic, body] and hides the message for half a second, or null."""
        now = time.monotonic()
        with self.lock:
            for receipt, message in self.messages.items():
                if message[2] <= now:
                    self.counts["deliveries"] += 1
                    message[2] = now + 0.5
                    return [receipt, message[0], message[1]]
        return None

    def ack(self, receipt):
        with self.lock:
            self.messages.pop(receipt, None)

    def nack(self, receipt, ms):
        with self.lock:
            if receipt in self.messages:
                self.messages[receipt][2] = time.monotonic() + ms / 1000

    # --- the plan ---------------------------------------------------------------------------------

    def strike(self, point, operation):
        """Each point strikes an operation at most once, and the seed says which."""
        kind, chance = STRIKES[point]
        with self.lock:
            if (point, operation) in self.asked:
                return None
            self.asked.add((point, operation))
            if random.Random(f"{self.seed}:{point}:{operation}").random() >= chance:
                return None
            self.counts[kind] += 1
            return kind

    def report(self):
        with self.lock:
            return {**self.counts, "unsettled": len(self.messages) + self.calling}


def main():
    ledger_path, seed, shop_port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    server = wire.Server(World(ledger_path, seed, shop_port))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()  # ends with the storm


if __name__ == "__main__":
    main()

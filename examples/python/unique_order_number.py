"""Unique order number: many callers bring the same number, one order is written, all get its answer.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 unique_order_number.py
"""

import hashlib
import json
import os
import sys
import threading
import time
import uuid

import redis

store = redis.Redis.from_url(
    os.environ.get("IDEMD_URL", "redis://127.0.0.1:6379"), decode_responses=True
)
PREFIX = f"order-number:{uuid.uuid4().hex[:8]}:"


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


class Crash(Exception):
    """Stands for a process that is gone: nothing after it runs."""


orders = []  # the order table; a real one keeps its unique index as the last line of defence


def insert_order(number):
    time.sleep(0.1)
    orders.append(number)
    return json.dumps({"id": len(orders), "number": number})


def find_order(number):
    return json.dumps({"id": orders.index(number) + 1, "number": number}) if number in orders else None


def create_order(number, body, crash_after_insert=False, lease_ms=5000):
    """Returns (status, answer). FOREVER makes the reservation a unique index."""
    key = PREFIX + number
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    status, fence, attempt, ms, code, payload = store.execute_command(
        "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "FINGERPRINT", digest,
        "LEASE", lease_ms, "FOREVER", "WAIT", 3000,
    )  # fmt: skip
    if status not in ("RESERVED", "HELD"):
        return status, payload
    # An earlier attempt may have crashed behind its INSERT: look before writing.
    answer = find_order(number) if attempt > 1 else None
    if answer is None:
        answer = insert_order(number)
        if crash_after_insert:
            raise Crash
    store.execute_command("IDEM.COMPLETE", key, fence, answer)
    return status, answer


# Five importers read the same file and bring the same order at the same time.
body = {"item": "lamp", "quantity": 2}
answers = []
threads = [
    threading.Thread(target=lambda: answers.append(create_order("A-1001", body))) for _ in range(5)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for status, answer in answers:
    print(f"{status:<9} {answer}")
promise(len(orders) == 1, "five callers at once write one order")
promise(sorted(s for s, _ in answers) == ["DONE"] * 4 + ["RESERVED"], "one writes, four get DONE")
promise(len({answer for _, answer in answers}) == 1, "and all five have the same answer")

status, answer = create_order("A-1001", {"item": "lamp", "quantity": 200})
promise(status == "MISMATCH", "the same number with another body is told apart")
promise(len(orders) == 1, "and writes nothing")

try:
    create_order("A-1002", body, crash_after_insert=True, lease_ms=300)
except Crash:
    print("the caller died behind its INSERT, its claim is still held")
status, answer = create_order("A-1002", body)  # waits until the lease is over
promise(status == "RESERVED", "the next caller takes over when the lease is over")
promise(orders.count("A-1002") == 1, "finds the order, and does not write it again")
promise(create_order("A-1002", body) == ("DONE", answer), "and from then on all get its answer")

promise(store.ttl(PREFIX + "A-1001") == -1, "the number is taken for ever")
store.delete(PREFIX + "A-1001", PREFIX + "A-1002")  # so that the example leaves nothing behind

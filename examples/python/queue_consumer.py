"""Queue consumer: a message is delivered twice, fails and crashes half-way, and its effects happen once.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 queue_consumer.py
"""

import os
import sys
import threading
import time
import uuid

import redis

store = redis.Redis.from_url(
    os.environ.get("IDEMD_URL", "redis://127.0.0.1:6379"), decode_responses=True
)
PREFIX = f"consumed:{uuid.uuid4().hex[:8]}:"
LEASE_MS = 1000


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


class Crash(Exception):
    """Stands for a process that is gone: nothing after it runs."""


class TryLater(Exception):
    """The carrier's interface is down: nothing happened."""


effects = []  # what the outside world saw


def effect(step, message):
    effects.append((step, message))
    time.sleep(0.05)


def consume(message, before=None):
    """Returns "ack" or "nack <ms>". `before` is called before each step, and may raise."""
    key = PREFIX + message
    status, fence, attempt, ms, code, checkpoint = store.execute_command(
        "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "LEASE", LEASE_MS, "EX", 7 * 86400
    )
    print(f"  {message}: {status}, attempt {attempt}, checkpoint {checkpoint}")
    if status == "DONE":
        return "ack"  # done before: the broker may forget it
    if status not in ("RESERVED", "HELD"):
        return f"nack {max(ms, 10)}"  # someone is at work, or it is to be tried later
    try:
        if checkpoint is None:
            if before:
                before("stock")
            effect("stock", message)
            store.execute_command("IDEM.CHECKPOINT", key, fence, "stock taken")
        if before:
            before("parcel")
        effect("parcel", message)
    except TryLater:
        store.execute_command("IDEM.FAIL", key, fence, "AFTER", 100)
        return "nack 100"
    store.execute_command("IDEM.COMPLETE", key, fence, "shipped")
    return "ack"


print("one message, two consumers at once:")
verdicts = []
threads = [threading.Thread(target=lambda: verdicts.append(consume("m1"))) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
promise(effects == [("stock", "m1"), ("parcel", "m1")], "each step ran once")
promise(sum(v == "ack" for v in verdicts) == 1, "the second delivery is put back, not acknowledged")
promise(consume("m1") == "ack", "delivered again after the end, it is acknowledged at once")
promise(len(effects) == 2, "and nothing ran")

print("a step fails before it did anything:")
effects.clear()


def carrier_is_down(step):
    if step == "parcel":
        raise TryLater


promise(consume("m2", carrier_is_down) == "nack 100", "FAIL puts the message back")
promise(consume("m2").startswith("nack"), "before AFTER is over nobody takes it")
time.sleep(0.2)
promise(consume("m2") == "ack", "then the next delivery goes on behind the checkpoint")
promise(effects == [("stock", "m2"), ("parcel", "m2")], "and each step ran once")

print("a consumer dies between two steps:")
effects.clear()


def power_cut(step):
    if step == "parcel":
        raise Crash


try:
    consume("m3", power_cut)
except Crash:
    print("  the consumer is gone, and its claim is still held")
promise(consume("m3").startswith("nack"), "until its lease is over nobody takes the message")
time.sleep(LEASE_MS / 1000 + 0.1)
promise(consume("m3") == "ack", "then the redelivery takes over and goes on behind the checkpoint")
promise(effects == [("stock", "m3"), ("parcel", "m3")], "and each step ran once")

# What no store can promise: a crash after an effect and before its checkpoint. The next attempt
# then has attempt > 1 and no checkpoint, and must ask the warehouse by the message's id before it
# acts. examples/shop does that, with consumers that are really killed.

"""Order status: a payment callback comes three times, races a cancellation, and one mail goes out.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 order_status.py
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
PREFIX = f"order-status:{uuid.uuid4().hex[:8]}:"


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


def race(*calls):
    answers, gate = [None] * len(calls), threading.Barrier(len(calls))

    def run(i):
        gate.wait()
        answers[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


class Crash(Exception):
    """Stands for a process that is gone: nothing after it runs."""


mails = []  # the outside effect that follows "paid"


def move(order, to, *listed):
    """Moves the order to `to` from one of the listed states; returns (verdict, other state)."""
    verdict, state = store.execute_command(
        "IDEM.TRANSITION", PREFIX + order, to, "FROM", len(listed), *listed, "EX", 86400
    )
    return verdict, state


def on_paid(order, crash_before_mail=False):
    """The callback's handler. ALREADY says that the state is there, not that the mail went out."""
    verdict, state = move(order, "paid", "created")
    if verdict == "REFUSED":
        return verdict, state
    if crash_before_mail:
        raise Crash
    key = PREFIX + order + ":mail"
    status, fence, attempt, ms, code, payload = store.execute_command(
        "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "LEASE", 1000, "EX", 86400, "WAIT", 3000
    )
    if status in ("RESERVED", "HELD"):
        time.sleep(0.02)
        mails.append(order)
        store.execute_command("IDEM.COMPLETE", key, fence, "sent")
    return verdict, status


def create(order):
    return store.execute_command(
        "IDEM.TRANSITION", PREFIX + order, "created", "FROM", 0, "INIT", "EX", 86400
    )


print("create:", create("1"))
answers = race(lambda: on_paid("1"), lambda: on_paid("1"), lambda: on_paid("1"))
print("three callbacks:", answers)
promise([v for v, _ in answers].count("MOVED") == 1, "one callback moves the order to paid")
promise(mails == ["1"], "and one mail goes out")
promise(move("1", "cancelled", "created") == ("REFUSED", "paid"), "a paid order is not cancelled")

create("2")
paid, cancelled = race(lambda: on_paid("2"), lambda: move("2", "cancelled", "created"))
print("paid against cancelled:", paid, cancelled)
promise(
    [paid[0], cancelled[0]].count("MOVED") == 1, "of payment and cancellation exactly one wins"
)
promise(mails.count("2") == (1 if paid[0] == "MOVED" else 0), "and the mail follows the winner")

create("3")
try:
    on_paid("3", crash_before_mail=True)
except Crash:
    print("the worker died between the state and the mail")
promise(mails.count("3") == 0 and store.get(PREFIX + "3") == "paid", "the state is ahead of the mail")
verdict, status = on_paid("3")
promise((verdict, status) == ("ALREADY", "RESERVED"), "the next callback finds the mail not done")
promise(mails.count("3") == 1, "and sends it")

verdict, state = move("unknown", "paid", "created")
promise((verdict, state) == ("REFUSED", None), "an order that was never created does not move")

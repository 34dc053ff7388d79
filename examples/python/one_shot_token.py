"""One-shot form token: a form is submitted twice, and only one submit goes through.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 one_shot_token.py
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
PREFIX = f"form:{uuid.uuid4().hex[:8]}:"  # one namespace for each run of this example


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


def race(calls):
    """Runs the calls at the same moment; returns their answers in order."""
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


# --- 1. The page is a gate: whoever consumes the token goes on --------------------------------


def show_form(user):
    """The server makes the token; the value binds it to the user who asked for the page."""
    return store.execute_command("IDEM.TOKEN", PREFIX, "EX", 300, "VALUE", user)


def submit(user, token, request_id):
    """request_id is made fresh by the code that handles this one submit, for its own resends."""
    return store.execute_command(
        "IDEM.CONSUME", PREFIX + token, "IFEQ", user, "BY", request_id, "REASON"
    )


token = show_form("ann")
first, second = str(uuid.uuid4()), str(uuid.uuid4())
answers = race([lambda: submit("ann", token, first), lambda: submit("ann", token, second)])
print("a double click:", answers)
promise(sorted(answers) == ["CONSUMED", "DUPLICATE"], "of two submits at once one goes through")

winner, loser = (first, second) if answers[0] == "CONSUMED" else (second, first)
promise(submit("ann", token, winner) == "CONSUMED", "the winner may ask again: its reply was lost")
promise(submit("ann", token, loser) == "DUPLICATE", "the other one may not, however often it asks")

token = show_form("ann")
promise(submit("bob", token, str(uuid.uuid4())) == "REFUSED", "another user's token is refused")
promise(submit("ann", token, str(uuid.uuid4())) == "CONSUMED", "and it is still there for its owner")
promise(submit("ann", "A" * 32, str(uuid.uuid4())) == "UNISSUED", "a forged token is known as such")

token = store.execute_command("IDEM.TOKEN", PREFIX, "PX", 50, "VALUE", "ann")
time.sleep(0.2)
promise(submit("ann", token, str(uuid.uuid4())) == "EXPIRED", "a late submit is told why")


# --- 2. The business step may fail: reserve the token, complete or release it -------------------


def submit_order(user, token, create_order):
    """Returns (status, answer). A step that failed before any effect gives the token back."""
    key = PREFIX + token
    status, fence, attempt, ms, code, payload = store.execute_command(
        "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "LEASE", 5000, "ISSUED", "IFEQ", user
    )
    if status == "DONE":
        return "DONE", payload
    if status not in ("RESERVED", "HELD"):
        return status, None
    try:
        answer = create_order()
    except OutOfStock:  # nothing was written: the user may correct the form and submit it again
        store.execute_command("IDEM.RELEASE", key, fence)
        return "OUT OF STOCK", None
    store.execute_command("IDEM.COMPLETE", key, fence, answer)
    return "RESERVED", answer


class OutOfStock(Exception):
    pass


orders = []


def refuse():
    raise OutOfStock


def create():
    orders.append(f"order {len(orders) + 1}")
    time.sleep(0.05)  # long enough for the second click to arrive
    return orders[-1]


token = show_form("ann")
print("first submit:", submit_order("ann", token, refuse))
promise(store.exists(PREFIX + token) == 1, "a submit that failed gives the token back")

answers = race([lambda: submit_order("ann", token, create)] * 2)
print("a double click:", answers)
promise(len(orders) == 1, "two submits at once create one order")
print("a reload:", submit_order("ann", token, create))
promise(submit_order("ann", token, create) == ("DONE", "order 1"), "later submits get its answer")
promise(len(orders) == 1, "and create nothing")

"""Per-user limit: several gateways share one limit, a refused caller is told how long to wait.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 user_limit.py
"""

import os
import sys
import threading
import time
import uuid

import redis

URL = os.environ.get("IDEMD_URL", "redis://127.0.0.1:6379")
store = redis.Redis.from_url(URL, decode_responses=True)
PREFIX = f"limit:{uuid.uuid4().hex[:8]}:"


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


def allow(gateway, user, burst, count, period_ms, *options):
    """Five integers: limited, limit, remaining, retry-after ms, reset-after ms."""
    return gateway.execute_command(
        "IDEM.THROTTLE", PREFIX + user, burst, count, period_ms, *options
    )


# Two gateways, each with its own connection: 4 + 1 requests at once, then one every 12 seconds.
allowed, refused, guard = [], [], threading.Lock()


def gateway():
    own = redis.Redis.from_url(URL, decode_responses=True)
    for _ in range(6):
        limited, limit, remaining, retry_ms, reset_ms = allow(own, "ann", 4, 5, 60_000)
        with guard:
            (refused if limited else allowed).append(retry_ms)


threads = [threading.Thread(target=gateway) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"12 requests of one user through two gateways: {len(allowed)} allowed, {len(refused)} refused")
promise(len(allowed) == 5, "the burst of 5 is shared by both gateways")
promise(all(0 < ms <= 12_000 for ms in refused), "each refusal says how long to wait")
promise(allow(store, "bob", 4, 5, 60_000)[0] == 0, "another user is not held up")

remaining = [allow(store, "bob", 4, 5, 60_000, "PEEK")[2] for _ in range(3)]
promise(remaining == [4, 4, 4], "PEEK takes nothing")
heavy = allow(store, "bob", 4, 5, 60_000, "COST", 6)
promise(heavy[0] == 1 and heavy[3] == -1, "a cost above the limit can never pass: retry-after -1")

# A client that waits as it is told gets through: 1 request, then one every half second.
promise(allow(store, "carl", 0, 2, 1000)[0] == 0, "the first request passes")
limited, limit, remaining, retry_ms, reset_ms = allow(store, "carl", 0, 2, 1000)
if limited:
    print(f"the second is refused, retry after {retry_ms} ms")
    time.sleep(retry_ms / 1000)
    limited = allow(store, "carl", 0, 2, 1000)[0]
promise(limited == 0, "after the wait it passes")

"""Withdrawal lock: one caller at a time works on an account, and a late one is refused by its fence.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 withdrawal_lock.py
"""

import contextlib
import os
import sys
import threading
import time
import uuid

import redis

store = redis.Redis.from_url(
    os.environ.get("IDEMD_URL", "redis://127.0.0.1:6379"), decode_responses=True
)
PREFIX = f"lock:account:{uuid.uuid4().hex[:8]}:"


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


class OldFence(Exception):
    pass


class Account:
    """The resource. It remembers the highest fence it saw and refuses a smaller one.

    In SQL: UPDATE account SET balance = …, fence = :fence WHERE id = :id AND fence <= :fence.
    """

    def __init__(self, balance):
        self.balance, self.fence = balance, 0

    def write(self, fence, balance):
        if fence < self.fence:
            raise OldFence(f"fence {fence} is older than {self.fence}")
        self.fence, self.balance = fence, balance


class Busy(Exception):
    pass


@contextlib.contextmanager
def lock(name, lease_ms, wait_ms):
    """PX equal to LEASE: the key goes when the lease does, as a SET NX PX lock would."""
    key = PREFIX + name
    status, fence, attempt, ms, code, payload = store.execute_command(
        "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()),
        "LEASE", lease_ms, "PX", lease_ms, "WAIT", wait_ms,
    )  # fmt: skip
    if status not in ("RESERVED", "HELD"):
        raise Busy(f"{name} is locked, for {ms} ms at most")
    try:
        yield key, fence
    finally:
        with contextlib.suppress(redis.ResponseError):  # STALE: the lock was lost meanwhile
            store.execute_command("IDEM.RELEASE", key, fence)


def withdraw(account, amount):
    with lock("ann", lease_ms=5000, wait_ms=5000) as (key, fence):
        balance = account.balance  # read, think, write: a race without the lock
        time.sleep(0.01)
        account.write(fence, balance - amount)


account = Account(100)
threads = [threading.Thread(target=withdraw, args=(account, 10)) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("five withdrawals of 10 from 100 leave", account.balance)
promise(account.balance == 50, "no withdrawal is lost")
promise(store.exists(PREFIX + "ann") == 0, "the lock is free again")


# A holder that stalls (a pause, a slow disk, a suspended machine) past its lease.
def stalled():
    with lock("ann", lease_ms=300, wait_ms=0) as (key, fence):
        balance = account.balance
        resumed.wait()  # far longer than the lease
        try:
            store.execute_command("IDEM.EXTEND", key, fence, 300)
            extended = "extended"
        except redis.ResponseError as error:
            extended = str(error).split()[0]
        try:
            account.write(fence, balance - 10)
            written = "written"
        except OldFence as error:
            written = f"refused: {error}"
        return extended, written


outcome, resumed = [], threading.Event()
late = threading.Thread(target=lambda: outcome.append(stalled()))
late.start()
while store.exists(PREFIX + "ann") == 0:
    time.sleep(0.005)
try:
    with lock("ann", lease_ms=5000, wait_ms=0):
        pass
    refused = False
except Busy as error:
    refused = True
    print("without WAIT:", error)
promise(refused, "a caller that does not wait is told so")

with lock("ann", lease_ms=5000, wait_ms=5000) as (key, fence):  # waits for the lease to lapse
    account.write(fence, account.balance - 20)
    left = store.execute_command("IDEM.EXTEND", key, fence, 10_000)
    promise(left > 5000, f"the holder extends its lease: {left} ms left")
    resumed.set()
    late.join()
extended, written = outcome[0]
print("the stalled holder's EXTEND:", extended)
print("the stalled holder's write: ", written)
promise(extended == "STALE", "the stalled holder learns that the lock is another's")
promise(written.startswith("refused"), "and the account refuses its old fence")
promise(account.balance == 30, "so nothing is overwritten: 50 - 20")

"""redis-py's own Lock: one holder at a time, for its time, and only its owner can release, extend or renew it.

usage: redis_py_lock.py PORT
"""
import contextlib
import sys
import time

import redis
from redis.exceptions import LockError, LockNotOwnedError

from checks import CLOCKS_S, FOR_LONG_MS, broken, exclusion, finish, kept, test, together, until

client = redis.Redis(port=int(sys.argv[1]))  # a pool: every thread gets a connection of its own
LONG_S = FOR_LONG_MS // 1000


def lock(name, timeout=LONG_S, **more):
    return client.lock("pylock:" + name, timeout=timeout, sleep=0.003, **more)


def rejects(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def one_at_a_time():
    kept(exclusion(10, 20, lambda contender: lock("one")))
    assert not client.exists("pylock:one")
    shared = lock("shared")  # one object for all threads: its token is each thread's own
    kept(exclusion(6, 10, lambda contender: shared))


def the_check_sees_overlaps():
    broken(exclusion(6, 10, lambda contender: contextlib.nullcontext()))
    broken(exclusion(6, 10, lambda contender: lock(f"own:{contender % 2}")))


def one_of_many():
    locks = [lock("race", thread_local=False) for _ in range(32)]
    won = together(32, lambda number: locks[number].acquire(blocking=False))
    assert won.count(True) == 1, won
    for number, mine in enumerate(locks):
        if number != won.index(True):
            rejects(LockError, mine.release)
    assert client.exists("pylock:race")
    locks[won.index(True)].release()
    assert locks[3].acquire(blocking=False)
    locks[3].release()


def patience_ends():
    with lock("patience"):
        started = time.monotonic()
        assert not lock("patience", blocking_timeout=0.2).acquire()
        assert time.monotonic() - started < 60
        rejects(LockError, lock("patience", blocking_timeout=0.05).__enter__)


def a_lapsed_one_is_anothers():
    late = lock("lapse", timeout=0.3)
    started = time.monotonic()
    assert late.acquire()
    assert late.locked()
    following = lock("lapse")
    assert following.acquire()
    assert time.monotonic() - started >= 0.3 - CLOCKS_S, "the second came too early"
    assert following.owned() and not late.owned()
    rejects(LockNotOwnedError, late.extend, LONG_S)
    rejects(LockNotOwnedError, late.reacquire)
    rejects(LockNotOwnedError, late.release)
    assert following.owned(), "somebody else's call took it away"
    following.release()
    assert not following.locked()
    rejects(LockError, following.release)


def extended_ones_last():
    for grow, least_ms in ((lambda held: held.extend(LONG_S), FOR_LONG_MS + 1),
                           (lambda held: held.extend(2 * LONG_S, replace_ttl=True), FOR_LONG_MS + 1)):
        held = lock("extend")
        assert held.acquire(blocking=False)
        assert grow(held)
        assert least_ms < client.pttl("pylock:extend") <= 2 * FOR_LONG_MS
        assert held.reacquire()
        assert FOR_LONG_MS / 2 < client.pttl("pylock:extend") <= FOR_LONG_MS
        held.release()


def kept_alive_under_contention():
    """A holder who prolongs it all the time keeps it, however many try; without that they would get it within a second."""
    def attempt():
        held = lock("alive", timeout=1)
        held.acquire()
        end = time.monotonic() + 2.5
        attempts = [lock("alive", thread_local=False) for _ in range(8)]
        try:
            while time.monotonic() < end:
                held.reacquire()
                assert not any(each.acquire(blocking=False) for each in attempts), "two hold it"
                held.reacquire()
            held.release()
            return True
        except (LockNotOwnedError, AssertionError):
            # On a machine that stood still for a second it rightly lapsed: once more then.
            client.delete("pylock:alive")
            return False

    until("a holder keeps it", attempt)


for each in (one_at_a_time, the_check_sees_overlaps, one_of_many, patience_ends, a_lapsed_one_is_anothers, extended_ones_last,
             kept_alive_under_contention):
    test(each.__name__, each)
finish()

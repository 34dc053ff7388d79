"""A lock of Redisson's shape: a hash of holder to depth, a lease, and a message to those who wait when it is given back.

The scripts are this suite's own, of the shape that such clients send. usage: redisson_lock.py PORT
"""
import contextlib
import sys
import threading
import time

import redis

from checks import CLOCKS_S, FOR_LONG_MS, PATIENCE_S, broken, exclusion, finish, kept, test, together, until

PORT = int(sys.argv[1])
client = redis.Redis(port=PORT, decode_responses=True)

# KEYS: the lock. ARGV: lease in ms, holder. nil: it is the holder's; otherwise the ms that it is somebody else's.
TAKE = client.register_script("""
local free = redis.call('exists', KEYS[1]) == 0
local mine = redis.call('hexists', KEYS[1], ARGV[2]) == 1
if free or mine then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])""")

# KEYS: the lock, the channel. ARGV: message, lease in ms, holder. nil: it was not the holder's; 0: still held; 1: free.
GIVE = client.register_script("""
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
  return nil
end
local depth = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if depth > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1""")

# KEYS: the lock. ARGV: lease in ms, holder.
RENEW = client.register_script("""
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 1
end
return 0""")

# KEYS: the lock, the channel. ARGV: message. Whoever holds it.
FORCE = client.register_script("""
if redis.call('del', KEYS[1]) == 1 then
  redis.call('publish', KEYS[2], ARGV[1])
  return 1
end
return 0""")


class Lock:
    """One holder's view of the lock. Who waits asks again when a message comes or the lease of the other is over, never in between."""

    def __init__(self, name, holder, lease_ms=FOR_LONG_MS):
        self.name, self.holder, self.lease_ms = "{rlock:" + name + "}", holder, lease_ms
        self.channel = "rlock_channel:" + self.name
        self.messages = 0
        self.waits = False  # it listens, and was then told that it is not free

    def attempt(self):
        return TAKE([self.name], [self.lease_ms, self.holder])

    def give(self):
        return GIVE([self.name, self.channel], ["free", self.lease_ms, self.holder])

    def renew(self):
        return RENEW([self.name], [self.lease_ms, self.holder])

    def take(self):
        if self.attempt() is None:
            return
        end = time.monotonic() + PATIENCE_S
        with client.pubsub() as news:
            news.subscribe(self.channel)
            assert news.get_message(timeout=PATIENCE_S)["type"] == "subscribe"
            while True:
                left_ms = self.attempt()  # again: it may have been given back before we listened
                if left_ms is None:
                    return
                if time.monotonic() > end:
                    raise AssertionError(f"{self.holder} waited in vain")
                self.waits = True
                self.messages += news.get_message(timeout=max(left_ms, 1) / 1000) is not None

    def __enter__(self):
        self.take()

    def __exit__(self, *_):
        assert self.give() is not None, f"{self.holder} lost it"


def one_at_a_time():
    locks = [Lock("one", f"host:{number}") for number in range(10)]
    kept(exclusion(10, 20, lambda contender: locks[contender]))
    assert not client.exists(locks[0].name)
    # The leases are longer than the test: whoever did not get it at once got it through a message.
    assert sum(lock.messages for lock in locks) > 0


def the_check_sees_a_lock_that_is_not_one():
    class Forgetful(Lock):
        def attempt(self):
            if client.exists(self.name):  # looks first and takes later, in two steps
                return 1
            time.sleep(0.001)
            client.hincrby(self.name, self.holder, 1)
            return None

        def __exit__(self, *_):
            client.delete(self.name)

    locks = [Forgetful("naive", f"host:{number}") for number in range(8)]
    broken(exclusion(8, 20, lambda contender: locks[contender]))
    broken(exclusion(4, 10, lambda contender: contextlib.nullcontext()))


def one_of_many():
    locks = [Lock("race", f"host:{number}") for number in range(32)]
    left = together(32, lambda number: locks[number].attempt())
    assert left.count(None) == 1, left
    assert all(0 < ms <= FOR_LONG_MS for ms in left if ms is not None)
    winner = locks[left.index(None)]
    assert client.hgetall(winner.name) == {winner.holder: "1"}
    gave = together(32, lambda number: locks[number].give())
    assert gave.count(1) == 1 and gave.count(None) == 31, gave


def taken_again_by_its_holder():
    mine, theirs = Lock("again", "me:1", 20_000), Lock("again", "you:1")
    for _ in range(3):
        assert mine.attempt() is None
    assert client.hget(mine.name, "me:1") == "3"
    assert [mine.give(), mine.give()] == [0, 0]
    assert 0 < theirs.attempt() <= 20_000
    assert mine.give() == 1
    assert mine.give() is None
    assert theirs.attempt() is None and theirs.give() == 1


def a_message_wakes_each_who_waits():
    """Everyone waits behind one lock; when it is given back all get their turn, long before its lease is over."""
    first = Lock("wake", "first")
    first.take()
    locks = [Lock("wake", f"host:{number}") for number in range(12)]
    turns = []

    def wait(number):
        if number == 12:
            until("all wait", lambda: all(lock.waits for lock in locks))
            assert client.pubsub_numsub(first.channel) == [(first.channel, 12)]
            assert not turns, "somebody came in while it was held"
            return first.give()
        with locks[number]:
            turns.append(number)
        return None

    together(13, wait)
    assert sorted(turns) == list(range(12))
    assert all(lock.messages for lock in locks), "somebody waited without a message"


def a_lapsed_one_is_anothers():
    lapsed, following = Lock("lapse", "late", 300), Lock("lapse", "next")
    started = time.monotonic()
    lapsed.take()
    following.take()
    assert time.monotonic() - started >= 0.3 - CLOCKS_S, "the second came too early"
    assert lapsed.renew() == 0 and lapsed.give() is None
    assert client.hgetall(following.name) == {"next": "1"}
    assert FORCE([following.name, following.channel], ["free"]) == 1
    assert following.give() is None


def a_watchdog_keeps_it():
    """Renewed all the time it outlasts its lease twice over, while eight others try."""
    until("a renewed lock is kept", kept_by_renewals)


def kept_by_renewals():
    """False where a renewal came too late: then it rightly lapsed, as on a machine that stands still for a second."""
    held = Lock("dog", "me", 1000)
    others = [Lock("dog", f"host:{number}", 1000) for number in range(8)]
    held.take()
    over = threading.Event()

    def work(number):
        if number == 8:
            end = time.monotonic() + 2.5
            while time.monotonic() < end and held.renew():
                time.sleep(0.05)
            over.set()
            return None
        stolen = 0
        while not over.is_set():
            if others[number].attempt() is None:
                stolen += 1
                others[number].give()
            time.sleep(0.02)
        return stolen

    *stolen, _ = together(9, work)
    return held.give() == 1 and not any(stolen)


for each in (one_at_a_time, the_check_sees_a_lock_that_is_not_one, one_of_many, taken_again_by_its_holder, a_message_wakes_each_who_waits,
             a_lapsed_one_is_anothers, a_watchdog_keeps_it):
    test(each.__name__, each)
finish()

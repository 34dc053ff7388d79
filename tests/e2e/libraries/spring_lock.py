"""A lock of the shape of Spring Integration's registry: one text, the client's id, which its owner may take again and prolong.

A registry belongs to a process: its threads first agree among themselves, then the process asks the server. The scripts are
this suite's own, of the shape that such clients send. usage: spring_lock.py PORT
"""
import contextlib
import sys
import threading
import time
import uuid

import redis

from checks import CLOCKS_S, FOR_LONG_MS, PATIENCE_S, broken, exclusion, finish, kept, test, together, until

PORT = int(sys.argv[1])
client = redis.Redis(port=PORT)

# KEYS: the lock. ARGV: the client's id, its time in ms.
OBTAIN = client.register_script("""
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return true
elseif not owner then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return true
end
return false""")

# KEYS: the lock. ARGV: the client's id, the channel.
RELEASE = client.register_script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('UNLINK', KEYS[1])
  redis.call('PUBLISH', ARGV[2], KEYS[1])
  return true
end
return false""")

# KEYS: the lock. ARGV: the client's id, its time in ms.
PROLONG = client.register_script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return false""")


class Registry:
    """One process' registry. The spinning one asks again and again, the listening one after each message that names the lock."""

    def __init__(self, name, expire_ms=FOR_LONG_MS, listen=False):
        self.name, self.expire_ms, self.listen = name, expire_ms, listen
        self.id = str(uuid.uuid4())
        self.channel = name + ":channel"
        self.local = {}
        self.guard = threading.Lock()

    def key(self, path):
        return f"{self.name}:{path}"

    def obtain(self, path):
        return OBTAIN([self.key(path)], [self.id, self.expire_ms]) == 1

    def release(self, path):
        return RELEASE([self.key(path)], [self.id, self.channel]) == 1

    def prolong(self, path):
        return PROLONG([self.key(path)], [self.id, self.expire_ms]) == 1

    def wait(self, path):
        if not self.listen:
            until(f"{path} is free", lambda: self.obtain(path))
            return
        with client.pubsub() as news:
            news.subscribe(self.channel)
            assert news.get_message(timeout=PATIENCE_S)["type"] == "subscribe"
            end = time.monotonic() + PATIENCE_S
            while not self.obtain(path):
                assert time.monotonic() < end, f"waited in vain for {path}"
                while True:  # the lock's time is longer than any patience here: only a message lets it go on
                    message = news.get_message(timeout=PATIENCE_S)
                    assert message is not None, f"no message about {path}"
                    if message["data"] == self.key(path).encode():
                        break

    @contextlib.contextmanager
    def held(self, path):
        with self.guard:
            local = self.local.setdefault(path, threading.Lock())
        with local:
            self.wait(path)
            try:
                yield
            finally:
                assert self.release(path), "it was lost"


def one_at_a_time(listen):
    name = "listening" if listen else "spinning"
    registries = [Registry(name, listen=listen) for _ in range(5)]  # five processes of two threads
    kept(exclusion(10, 15, lambda contender: registries[contender % 5].held("one")))
    assert not client.keys(name + ":*")


def many_locks_of_one_registry():
    """A path's lock is that path's alone: ten at once, each with two processes."""
    registries = [Registry("paths") for _ in range(2)]
    complaints = together(10, lambda path: exclusion(2, 15, lambda contender: registries[contender].held(path)))
    kept([each for some in complaints for each in some])


def the_check_sees_a_lock_that_is_not_one():
    same = Registry("same")  # two processes with one id: each takes what is the other's
    twin = Registry("same")
    twin.id = same.id
    released = [same, twin]

    @contextlib.contextmanager
    def hold(contender):
        until("obtained", lambda: released[contender % 2].obtain("one"))
        yield

    broken(exclusion(4, 10, hold))


def one_of_many():
    registries = [Registry("race") for _ in range(32)]
    won = together(32, lambda number: registries[number].obtain("one"))
    assert won.count(True) == 1, won
    winner = registries[won.index(True)]
    assert winner.obtain("one"), "its own lock was refused to it"
    given = together(32, lambda number: registries[number].release("one"))
    assert given == won, given
    assert not winner.release("one")


def a_lapsed_one_is_anothers():
    late, following = Registry("lapse", 300), Registry("lapse")
    started = time.monotonic()
    assert late.obtain("one")
    following.wait("one")
    assert time.monotonic() - started >= 0.3 - CLOCKS_S, "the second came too early"
    assert not late.obtain("one") and not late.prolong("one") and not late.release("one")
    assert client.get(following.key("one")) == following.id.encode()
    assert following.release("one")


def prolonged_by_its_owner_alone():
    mine, theirs = Registry("renew", 20_000), Registry("renew", FOR_LONG_MS)
    assert mine.obtain("one") and not theirs.prolong("one")
    assert 0 < client.pttl(mine.key("one")) <= 20_000
    mine.expire_ms = FOR_LONG_MS
    assert together(8, lambda number: (mine if number % 2 else theirs).prolong("one")) == [False, True] * 4
    assert 20_000 < client.pttl(mine.key("one")) <= FOR_LONG_MS
    assert mine.release("one") and not mine.prolong("one")


test("one_at_a_time, spinning", one_at_a_time, False)
test("one_at_a_time, listening", one_at_a_time, True)
for each in (many_locks_of_one_registry, the_check_sees_a_lock_that_is_not_one, one_of_many, a_lapsed_one_is_anothers,
             prolonged_by_its_owner_alone):
    test(each.__name__, each)
finish()

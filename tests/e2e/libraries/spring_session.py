"""Sessions of Spring Session's shape: a hash of attributes, a shadow key whose end is the session's, sets of what ends when.

What must hold: concurrent requests lose no attribute; a session's end is told once, while its attributes can still be read;
a touched one lives on; one that was deleted is told as deleted. usage: spring_session.py PORT
"""
import collections
import sys
import threading
import time
import uuid

import redis

from checks import CLOCKS_S, PATIENCE_S, broken, finish, kept, once_each, test, together, until

PORT = int(sys.argv[1])
client = redis.Redis(port=PORT, decode_responses=True)
AFTERWARDS_S = 300  # so much longer than the session the hash stays, for those who are told of its end


def now_ms():
    return time.time_ns() // 1_000_000


class Repository:
    """One application's view; many threads use it."""

    def __init__(self, space, lasts_s=1800):
        self.space, self.lasts_s = f"spring:session:{space}:", lasts_s

    def hash_of(self, session):
        return f"{self.space}sessions:{session}"

    def shadow_of(self, session):
        return f"{self.space}sessions:expires:{session}"

    def set_of(self, minute):
        return f"{self.space}expirations:{minute}"

    def index_of(self, user):
        return f"{self.space}index:principal:{user}"

    def minute(self, accessed_ms):
        """The full minute by which a session accessed then has ended."""
        return (accessed_ms + self.lasts_s * 1000) // 60_000 * 60_000 + 60_000

    def create(self, user, **attributes):
        session, at = str(uuid.uuid4()), now_ms()
        fields = {"creationTime": at, "lastAccessedTime": at, "maxInactiveInterval": self.lasts_s, "sessionAttr:principal": user}
        fields.update({"sessionAttr:" + name: value for name, value in attributes.items()})
        self.save(session, fields, at)
        client.sadd(self.index_of(user), session)
        client.publish(f"{self.space}event:created:{session}", user)
        return session

    def save(self, session, changed, accessed_ms, before_ms=None):
        """Only the attributes that changed are written; then the end is set anew."""
        client.hset(self.hash_of(session), mapping={"lastAccessedTime": accessed_ms, **changed})
        if before_ms is not None and self.minute(before_ms) != self.minute(accessed_ms):
            client.srem(self.set_of(self.minute(before_ms)), f"expires:{session}")
        ends = self.set_of(self.minute(accessed_ms))
        pipe = client.pipeline()
        pipe.sadd(ends, f"expires:{session}").expire(ends, self.lasts_s + AFTERWARDS_S)
        pipe.append(self.shadow_of(session), "").expire(self.shadow_of(session), self.lasts_s)
        pipe.expire(self.hash_of(session), self.lasts_s + AFTERWARDS_S)
        pipe.execute()

    def attributes(self, session):
        fields = client.hgetall(self.hash_of(session))
        return {name[len("sessionAttr:"):]: value for name, value in fields.items() if name.startswith("sessionAttr:")}

    def alive(self, session):
        return client.exists(self.shadow_of(session)) == 1

    def delete(self, session, user):
        pipe = client.pipeline()
        pipe.srem(self.index_of(user), session).delete(self.shadow_of(session)).delete(self.hash_of(session))
        return pipe.execute()[1] == 1

    def sweep(self, at_ms):
        """What ended by that minute is looked at, so that even a server that is lazy about it notices and tells."""
        ends = self.set_of(at_ms // 60_000 * 60_000)
        for member in client.smembers(ends):
            client.exists(f"{self.space}sessions:{member}")
        client.delete(ends)


class Listener:
    """Hears of one space's sessions, on a thread of its own, and reads the attributes of those that ended."""

    def __init__(self, repository):
        self.repository = repository
        self.created, self.expired, self.deleted = [], [], []
        self.attributes, self.heard_at = {}, {}
        self.over = threading.Event()

    def __enter__(self):
        self.news = client.pubsub()
        self.news.psubscribe("__keyevent@*__:expired", "__keyevent@*__:del", self.repository.space + "event:created:*")
        for _ in range(3):
            assert self.news.get_message(timeout=PATIENCE_S)["type"] == "psubscribe"
        self.thread = threading.Thread(target=self.hear, daemon=True)
        self.thread.start()
        return self

    def hear(self):
        prefix = self.repository.shadow_of("")
        while not self.over.is_set():
            message = self.news.get_message(timeout=0.05)
            if message is None:
                continue
            channel, data = message["channel"], message["data"]
            if "event:created:" in channel:
                self.created.append(channel.rsplit(":", 1)[1])
            elif data.startswith(prefix):
                session = data[len(prefix):]
                self.heard_at[session] = time.monotonic()
                self.attributes[session] = self.repository.attributes(session)
                (self.expired if channel.endswith(":expired") else self.deleted).append(session)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(PATIENCE_S)
        self.news.close()


def told(listener, ended, kind="expired"):
    """Each of these sessions' ends was told once, as what it was, and those of no others."""
    return once_each(ended, getattr(listener, kind))


def no_attribute_is_lost():
    """Twelve requests of one session at once, each with attributes of its own: all are kept, and the session is one."""
    app = Repository("attributes")
    session = app.create("ann", cart="empty")

    def request(number):
        before = now_ms()
        for turn in range(20):
            assert app.attributes(session)["cart"] == "empty"
            at = now_ms()
            app.save(session, {f"sessionAttr:r{number}:{turn}": f"{number * turn}"}, at, before)
            before = at

    together(12, request)
    expected = {f"r{number}:{turn}": f"{number * turn}" for number in range(12) for turn in range(20)}
    assert app.attributes(session) == {"principal": "ann", "cart": "empty", **expected}
    assert app.lasts_s - 60 < client.ttl(app.shadow_of(session)) <= app.lasts_s
    assert app.lasts_s < client.ttl(app.hash_of(session)) <= app.lasts_s + AFTERWARDS_S
    assert client.get(app.shadow_of(session)) == ""
    assert any(client.sismember(name, f"expires:{session}") for name in client.scan_iter(app.set_of("*"), count=1000))


def an_end_is_told_once():
    """60 sessions made at once by six threads, ended by time: one message each, not early, the attributes still to be read."""
    app = Repository("ends", lasts_s=1)
    with Listener(app) as listener, Listener(app) as another:
        made = {}  # a session, and the time before it was asked for

        def create(part):
            for number in range(10):
                asked = time.monotonic()
                made[app.create(f"user{part}", n=part * 10 + number)] = asked

        together(6, create)
        until("every end was told", lambda: len(listener.expired) >= 60 and len(another.expired) >= 60)
        kept(told(listener, list(made)) + told(another, list(made)))
        kept(once_each(list(made), listener.created))
        assert not listener.deleted
        early = [session for session, asked in made.items() if listener.heard_at[session] < asked + app.lasts_s - CLOCKS_S]
        assert not early, f"{len(early)} ended early"
        lost = [session for session in made if sorted(listener.attributes[session]) != ["n", "principal"]]
        assert not lost, f"the attributes of {len(lost)} were gone when their end was told"
        assert not any(app.alive(session) for session in made)
        broken(told(listener, [*made, "one that never was"]))
        broken(told(listener, list(made)[1:]))
        listener.expired.append(next(iter(made)))
        broken(told(listener, list(made)))


def a_touched_one_lives_on():
    """Of two sessions one is touched all the time, for more than twice its interval: it lives, and its end is told only after that."""
    def attempt():
        app = Repository("touch-" + uuid.uuid4().hex[:6], lasts_s=2)
        with Listener(app) as listener:
            touched = started = time.monotonic()
            busy, idle = app.create("busy"), app.create("idle")
            while time.monotonic() < started + 5.0:
                asked = time.monotonic()
                together(4, lambda number: app.save(busy, {f"sessionAttr:t{number}": "x"}, now_ms()))
                if time.monotonic() - touched >= app.lasts_s - CLOCKS_S:
                    return False  # the machine stood still for so long that it may have ended: once more then
                touched = asked
                time.sleep(0.1)
            until("both have ended", lambda: len(listener.expired) >= 2)
            kept(told(listener, [idle, busy]))
            assert listener.expired == [idle, busy]
            assert listener.heard_at[busy] >= touched + app.lasts_s - CLOCKS_S
            assert len(listener.attributes[busy]) == 5
            return True

    until("a touched session lives", attempt)


def deleted_ones_are_told_as_deleted():
    """Of many who log a user out at once one does it; it is told as deleted, and nothing of it expires later."""
    app = Repository("logout", lasts_s=60)
    with Listener(app) as listener:
        sessions = [app.create("bob") for _ in range(10)]
        assert client.smembers(app.index_of("bob")) == set(sessions)
        for session in sessions[:5]:
            assert together(8, lambda number, each=session: app.delete(each, "bob")).count(True) == 1
        until("it is told", lambda: len(listener.deleted) >= 5)
        kept(told(listener, sessions[:5], "deleted"))
        assert not listener.expired
        assert client.smembers(app.index_of("bob")) == set(sessions[5:])
        assert not any(app.attributes(session) for session in sessions[:5])
        assert all(app.alive(session) and app.attributes(session) == {"principal": "bob"} for session in sessions[5:])


def swept_ones_are_told_once_too():
    """Sweepers of many applications look at what ends while it ends: still one message for each."""
    app = Repository("sweep", lasts_s=1)
    with Listener(app) as listener:
        sessions = [app.create("cat") for _ in range(30)]

        def sweep(number):
            end = time.monotonic() + PATIENCE_S / 2
            while len(listener.expired) < 30 and time.monotonic() < end:
                for session in sessions:
                    app.alive(session)
                time.sleep(0.005)

        together(4, sweep)
        kept(told(listener, sessions))
        minutes = [int(name.rsplit(":", 1)[1]) for name in client.scan_iter(app.set_of("*"), count=1000)]
        together(4, lambda number: [app.sweep(minute) for minute in minutes])
        assert list(client.scan_iter(app.set_of("*"), count=1000)) == []
        kept(told(listener, sessions))


def by_a_sorted_set():
    """The newer shape: one sorted set of sessions by their end. Cleaners take what is due, each session is taken by one."""
    key = "spring:session:sorted:sessions:expirations"
    due = {f"s{number}": now_ms() - 1000 - number for number in range(200)}
    client.zadd(key, {**due, "later": now_ms() + 600_000})

    def clean(number):
        taken = []
        while True:
            ready = client.zrevrangebyscore(key, now_ms(), 0, start=0, num=25)
            if not ready:
                return taken
            taken += [session for session in ready if client.zrem(key, session)]

    taken = together(6, clean)
    kept(once_each(list(due), [session for some in taken for session in some]))
    assert client.zrange(key, 0, -1) == ["later"]


# As such applications set it at their start.
client.config_set("notify-keyspace-events", "Egx")
assert collections.Counter(client.config_get("notify-keyspace-events")["notify-keyspace-events"]) == collections.Counter("Egx")
for each in (no_attribute_is_lost, an_end_is_told_once, a_touched_one_lives_on, deleted_ones_are_told_as_deleted,
             swept_ones_are_told_once_too, by_a_sorted_set):
    test(each.__name__, each)
finish()

"""One client under load: pipelines of requests on keys of its own and on shared ones, each reply put into the knowledge."""
import random
import select
import threading

from collections_load import Collections
from shim import Closed, Connection, Error, Timeout
from history import ABSENT, ANY, Gone, Op, SharedToken, consumed, done, pending, plain
from lib.resp import Nil, as_dict, encode

# An error that says "not done": the state stays what it was.
NOT_DONE = ("MISCONF", "OOM", "LOADING", "BUSY")
LONG = "864000"              # seconds: no step of the clock by two days ends such a life
LEASE = "500000000"          # milliseconds
OPEN = ("pending", "failed", "plain")  # states that something can be done about


def text(reply):
    return None if isinstance(reply, Nil) else bytes(reply).decode("latin-1") if isinstance(reply, bytes) else reply


class Worker(threading.Thread):
    def __init__(self, number, incarnation, knowledge, seed, native, depth):
        super().__init__(daemon=True)
        self.prefix = f"w{number}:"
        self.name = f"w{number}"
        self.k, self.native, self.depth = knowledge, native, depth
        self.random = random.Random(seed)
        self.serial = 0
        self.incarnation = incarnation
        self.stopping = threading.Event()
        self.unsure = []        # after the end: requests without a reply, in order
        self.refused = 0        # "not done" replies
        self.problem = None
        self.port = None
        self.open = [key for key, state in knowledge.keys.items() if key.startswith(self.prefix) and
                     not isinstance(state, Gone) and state[0] in OPEN]
        self.known = set(self.open)  # all that are or were in `open`
        self.collections = Collections(self)

    # --- the run
    def run(self):
        try:
            connection = Connection(self.port, timeout=60.0)
        except (OSError, Closed, Timeout):
            return
        try:
            while not self.stopping.is_set():
                batch = self.batch()
                self.unsure = list(batch)
                connection.send_raw(b"".join(b"".join(encode(w) for w in self.requests(op)) for op in batch))
                for op in batch:
                    replies = [connection.read() for _ in range(op.replies)]
                    self.take(op, replies)
                    self.unsure.pop(0)
                    with self.k.lock:
                        self.k.acknowledged += 1
        except (Closed, OSError):
            pass
        except Timeout:
            self.problem = "no reply within 60 s"
        except AssertionError as problem:
            self.problem = str(problem)
        finally:
            connection.close()

    @staticmethod
    def requests(op):
        return op.words if op.replies > 1 else [op.words]

    def batch(self):
        ops, busy = [], set()
        for _ in range(self.random.randint(1, self.depth)):
            op = self.draw(busy)
            busy.update(op.before)
            ops.append(op)
        return ops

    def fresh(self, kind):
        self.serial += 1
        return f"{self.prefix}{kind}:{self.incarnation}.{self.serial}"

    def pick(self, busy, kinds):
        """One of our keys in such a state, that nothing is on its way to."""
        for _ in range(8):
            if not self.open:
                return None
            i = self.random.randrange(len(self.open))
            key = self.open[i]
            state = self.k.keys.get(key, ABSENT)
            if isinstance(state, Gone) or state[0] not in OPEN:
                self.open[i] = self.open[-1]
                self.open.pop()
                self.known.discard(key)
                continue
            if key not in busy and state[0] in kinds and key.split(":")[1] != "v":
                return key
        return None

    # --- drawing
    def draw(self, busy):
        r = self.random
        if self.native:
            draws = (self.token, self.token, self.set_token, self.consume, self.consume, self.consume_by, self.reserve,
                     self.reserve, self.complete, self.complete, self.release, self.fail, self.again, self.checkpoint,
                     self.transition, self.version, self.fleeting, self.delete, self.two, self.two_reserved,
                     self.share, self.race, self.race, self.look, self.look_done)
        else:
            draws = (self.set_token, self.set_token, self.version, self.fleeting, self.delete, self.delete, self.two,
                     self.look)
        for _ in range(20):
            op = self.collections.draw(busy) if r.random() < 0.35 else r.choice(draws)(busy)
            if op is not None:
                return op
        return self.write(plain("x"), self.fresh("p"))

    def write(self, state, key, *options):
        value = state.value if isinstance(state, Gone) else state[1]
        op = Op(("SET", key, value) + options, {key: self.k.keys.get(key, ABSENT)}, {key: state})
        op.took = lambda reply: self.expect(op, reply, "OK")
        return op

    def token(self, busy):
        value = f"u{self.random.randrange(1000)}"
        op = Op(("IDEM.TOKEN", self.prefix + "t:", "VALUE", value, "EX", LONG), {}, {})

        def took(reply):
            key = self.prefix + "t:" + self.expect_text(op, reply, 32)
            op.after = {key: plain(value)}
        op.took = took
        return op

    def set_token(self, busy):
        key = self.fresh("s")
        return self.write(plain("1" * self.random.choice((1, 8, 200, 3000))), key, "EX", LONG)

    def consume(self, busy):
        key = self.pick(busy, ("plain",))
        if key is None or key.split(":")[1] not in "ts":
            return None
        op = Op(("IDEM.CONSUME", key, "REASON"), {key: self.k.keys[key]}, {key: ABSENT})

        def took(reply):
            self.expect(op, reply, "CONSUMED")
            self.k.consumed.append((key, key.split(":")[1] == "t"))
        op.took = took
        return op

    def consume_by(self, busy):
        key = self.pick(busy, ("plain",))
        if key is None or key.split(":")[1] not in "ts":
            return None
        by = f"by{self.random.randrange(1 << 30)}"
        op = Op(("IDEM.CONSUME", key, "BY", by), {key: self.k.keys[key]}, {key: consumed(by)})
        op.took = lambda reply: self.expect(op, reply, 1)
        return op

    def claim(self, key, attempt, checkpoint):
        claim = f"c{self.random.randrange(1 << 40)}"
        before = self.k.keys.get(key, ABSENT)
        op = Op(("IDEM.RESERVE", key, "CLAIM", claim, "LEASE", LEASE, "EX", LONG), {key: before},
                {key: pending(ANY, claim, attempt, checkpoint)})
        above = self.k.fence_max

        def took(reply):
            self.check(op, isinstance(reply, list) and text(reply[0]) == "RESERVED" and reply[2] == attempt, reply)
            self.k.see_fence(reply[1], above)
            op.after = {key: pending(reply[1], claim, attempt, checkpoint)}
        op.took = took
        return op

    def reserve(self, busy):
        return self.claim(self.fresh("r"), 1, None)

    def again(self, busy):
        key = self.pick(busy, ("failed",))
        if key is None:
            return None
        _, _, _, attempt, checkpoint = self.k.keys[key]
        return self.claim(key, attempt + 1, checkpoint)

    def fenced(self, busy, make, states=("pending",)):
        key = self.pick(busy, states)
        state = key and self.k.keys[key]
        if key is None or state[1] is ANY:
            return None
        words, after, reply = make(key, state)
        op = Op(words, {key: state}, {key: after})
        op.took = lambda got: self.expect(op, got, reply)
        return op

    def complete(self, busy):
        result, code = "r" * self.random.choice((1, 20, 700)), self.random.randrange(3) * 100
        return self.fenced(busy, lambda key, s: (("IDEM.COMPLETE", key, s[1], result, "CODE", code),
                                                 done(s[1], result, code), "OK"))

    def release(self, busy):
        """Of a first attempt without a checkpoint: the key is gone, as though never reserved."""
        key = self.pick(busy, ("pending",))
        state = key and self.k.keys[key]
        if key is None or state[1] is ANY or state[3] != 1 or state[4] is not None:
            return None
        op = Op(("IDEM.RELEASE", key, state[1]), {key: state}, {key: ABSENT})
        op.took = lambda got: self.expect(op, got, 1)
        return op

    def fail(self, busy):
        return self.fenced(busy, lambda key, s: (("IDEM.FAIL", key, s[1]), ("failed", s[1], s[2], s[3], s[4]), "OK"))

    def checkpoint(self, busy):
        data = f"half-way {self.random.randrange(100)}"
        return self.fenced(busy, lambda key, s: (("IDEM.CHECKPOINT", key, s[1], data),
                                                 pending(s[1], s[2], s[3], data), "OK"))

    def transition(self, busy):
        key = f"{self.prefix}o:{self.random.randrange(20)}"
        if key in busy:
            return None
        before = self.k.keys.get(key, ABSENT)
        now = int(before[1]) if before != ABSENT else -1
        op = Op(("IDEM.TRANSITION", key, str(now + 1), "FROM", "1", str(now), "INIT"), {key: before},
                {key: plain(str(now + 1))})
        op.took = lambda reply: self.check(op, isinstance(reply, list) and text(reply[0]) == "MOVED", reply)
        return op

    def version(self, busy):
        """A counter that others look at: what anybody was shown must not go back."""
        key = f"{self.prefix}v:{self.random.randrange(5)}"
        if key in busy:
            return None
        before = self.k.keys.get(key, ABSENT)
        return self.write(plain(str(int(before[1]) + 1 if before != ABSENT else 1)), key)

    def fleeting(self, busy):
        state = Gone("soon")
        return self.write(state, self.fresh("f"), "PX", str(self.random.choice((20, 100, 400))))

    def delete(self, busy):
        key = self.pick(busy, ("plain", "pending", "failed"))
        if key is None:
            return None
        op = Op(("DEL", key), {key: self.k.keys[key]}, {key: ABSENT})
        op.took = lambda reply: self.expect(op, reply, 1)
        return op

    def two(self, busy):
        """EXEC: both or none."""
        a, b = self.fresh("m"), self.fresh("m")
        op = Op((("MULTI",), ("SET", a, "x"), ("SET", b, "y"), ("EXEC",)), {a: ABSENT, b: ABSENT},
                {a: plain("x"), b: plain("y")}, replies=4)
        op.took = lambda reply: self.check(op, isinstance(reply, list) and [text(r) for r in reply] == ["OK", "OK"], reply)
        return op

    def two_reserved(self, busy):
        a, b = self.fresh("r"), self.fresh("r")
        claim = f"c{self.random.randrange(1 << 40)}"
        op = Op(("IDEM.MRESERVE", "2", a, b, "CLAIM", claim, "LEASE", LEASE, "EX", LONG), {a: ABSENT, b: ABSENT},
                {a: pending(ANY, claim), b: pending(ANY, claim)})
        above = self.k.fence_max

        def took(reply):
            self.check(op, isinstance(reply, list) and text(reply[0]) == "RESERVED", reply)
            for one in reply[1:]:
                self.k.see_fence(one[1], above)
            op.after = {a: pending(reply[1][1], claim), b: pending(reply[2][1], claim)}
        op.took = took
        return op

    # --- shared keys
    def share(self, busy):
        issued = self.random.random() < 0.7
        key = self.fresh("x")
        words = ("IDEM.TOKEN", self.prefix + "x:", "EX", LONG) if issued else ("SET", key, "1", "EX", LONG)
        op = Op(words, {}, {})

        def took(reply):
            name = self.prefix + "x:" + self.expect_text(op, reply, 32) if issued else key
            with self.k.lock:
                self.k.shared[name] = SharedToken(issued)
                self.k.shared_names.append(name)
        op.took = took
        return op

    def race(self, busy):
        """Many go for the newest shared tokens."""
        names = self.k.shared_names
        if not names:
            return None
        key = names[-1 - self.random.randrange(min(len(names), 30))]
        op = Op(("IDEM.CONSUME", key, "REASON"), {}, {})
        refused = self.k.shared[key].refused
        op.took = lambda reply: self.k.shared_reply(key, self.name, self.expect_text(op, reply), refused)
        return op

    def look(self, busy):
        key = f"w{self.random.randrange(4)}:v:{self.random.randrange(5)}"
        op = Op(("GET", key), {}, {})

        def took(reply):
            if isinstance(reply, Nil):
                return
            with self.k.lock:
                self.k.shown_version[key] = max(self.k.shown_version.get(key, 0), int(reply))
        op.took = took
        return op

    def look_done(self, busy):
        """A foreign reservation: an answer that was shown once is there for ever."""
        if not self.k.reserved:
            return None
        key = self.random.choice(self.k.reserved[-50:])
        op = Op(("IDEM.STATUS", key), {}, {})

        def took(reply):
            if isinstance(reply, Nil):
                return
            fields = {name: text(value) for name, value in as_dict(reply).items()}
            if fields["state"] == "done":
                with self.k.lock:
                    self.k.shown_done[key] = done(fields["fence"], fields.get("result"), fields.get("code", 0))
        op.took = took
        return op

    # --- replies
    def take(self, op, replies):
        for reply in replies:
            if isinstance(reply, Error):
                word = reply.code
                self.check(op, word in NOT_DONE or (word == "EXECABORT" and op.replies > 1), reply)
        if isinstance(replies[-1], Error):
            self.refused += 1
            return
        try:
            op.took(replies[-1])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # a reply of another shape than the right one has
            self.check(op, False, replies[-1])
        self.k.keys.update(op.after)
        self.k.touched.update(op.after)
        for key, state in op.after.items():
            if isinstance(state, Gone) or state[0] not in OPEN:
                continue
            if key not in self.known:
                self.known.add(key)
                self.open.append(key)
            if state[0] == "pending":
                self.k.reserved.append(key)

    def check(self, op, good, reply):
        if not good:
            raise AssertionError(f"{self.name}: {op} got {reply!r}; the key held {op.before}")

    def expect(self, op, reply, wanted):
        self.check(op, text(reply) == wanted, reply)

    def expect_text(self, op, reply, size=None):
        word = text(reply)
        self.check(op, isinstance(word, str) and (size is None or len(word) == size), reply)
        return word


class Couple(Worker):
    """One that works and one that waits for the answer: what the waiter is told must be as safe as what the worker is told."""

    def run(self):
        try:
            with Connection(self.port, timeout=60.0) as works:
                while not self.stopping.is_set():
                    with Connection(self.port, timeout=60.0) as waits:
                        while not self.stopping.is_set() and self.together(works, waits):
                            pass
        except (Closed, OSError):
            pass
        except Timeout:
            self.problem = "no reply within 60 s"
        except AssertionError as problem:
            self.problem = str(problem)

    def together(self, works, waits):
        """False: the waiter was left waiting."""
        op = self.reserve(set())
        self.one(works, op)
        key = op.words[1]
        if self.k.keys.get(key, ABSENT) == ABSENT:
            return True
        waits.send("IDEM.RESERVE", key, "CLAIM", "waits", "LEASE", LEASE, "WAIT", "30000")
        if self.random.random() < 0.5:
            self.stopping.wait(0.001)
        fence, result = self.k.keys[key][1], f"r{self.random.randrange(1000)}"
        op = Op(("IDEM.COMPLETE", key, fence, result), {key: self.k.keys[key]}, {key: done(fence, result, 0)})
        op.took = lambda reply: self.expect(op, reply, "OK")
        self.unsure = [op]
        works.send(*op.words)
        answer = None
        if works.sock in select.select([works.sock, waits.sock], [], [], 60)[0]:
            answer = works.read()
            if isinstance(answer, Error):
                self.take(op, [answer])
                self.unsure = []
                return False
        told = waits.read()
        if not isinstance(told, Error):
            self.check(op, [text(part) for part in (told[0], told[5])] == ["DONE", result], told)
            with self.k.lock:
                self.k.shown_done[key] = op.after[key]
        elif told.code not in NOT_DONE:
            self.check(op, False, told)
        self.take(op, [answer or works.read()])
        self.unsure = []
        return True

    def one(self, connection, op):
        self.unsure = [op]
        connection.send(*op.words)
        self.take(op, [connection.read()])
        self.unsure = []

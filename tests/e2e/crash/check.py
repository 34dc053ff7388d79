"""After a restart: compares what the server shows with what clients know for sure."""
import random

from collections_load import MOVING, is_collection, reads, seen_state, texts
from history import ABSENT, Gone, consumed, done, fits, pending, plain
from lib.resp import Error, Nil, as_dict
from worker import LEASE, LONG, text

AT_ONCE = 200
SAMPLE = 1500


def pipeline(connection, commands):
    replies = []
    for i in range(0, len(commands), AT_ONCE):
        replies += connection.pipeline(commands[i : i + AT_ONCE], timeout=60)
    return replies


def state_of(status, value):
    """What IDEM.STATUS and GET say, in the words of history.py."""
    if isinstance(status, Error) or isinstance(value, Error):
        return ("error", repr(status), repr(value))
    if isinstance(status, Nil) or status is None:
        return ABSENT if isinstance(value, Nil) else plain(text(value))
    f = {name: text(field) for name, field in as_dict(status).items()}
    if f["state"] == "issued":
        return plain(text(value))
    if f["state"] == "done":
        return done(f.get("fence"), f.get("result"), f.get("code", 0))
    if f["state"] == "consumed":
        return consumed(f.get("claim"))
    return pending(f.get("fence"), f.get("claim"), f.get("attempt"), f.get("checkpoint"), f["state"])


class Check:
    def __init__(self, knowledge, connection, seed, native):
        self.k, self.c, self.native = knowledge, connection, native
        self.random = random.Random(seed)
        self.looked_at = 0

    def see(self, keys):
        keys = list(keys)
        self.looked_at += len(keys)
        collections, keys = [key for key in keys if is_collection(key)], [key for key in keys if not is_collection(key)]
        values = pipeline(self.c, [("GET", key) for key in keys])
        statuses = pipeline(self.c, [("IDEM.STATUS", key) for key in keys]) if self.native else [None] * len(keys)
        # A key that expires between the two questions is gone.
        seen = {key: ABSENT if isinstance(s, Nil) else state_of(s, v) for key, s, v in zip(keys, statuses, values)}
        questions = [reads(key) for key in collections]
        replies = iter(pipeline(self.c, [words for question in questions for words in question]))
        for key, question in zip(collections, questions):
            seen[key] = seen_state(key, [next(replies) for _ in question])
        return seen

    def all(self, unsure, everything=False):
        """`unsure`: a list of requests without a reply for each worker."""
        for ops in unsure:
            self.prefix(ops)
        self.states(everything)
        self.versions()
        self.moving()
        if self.native:
            self.shown_answers()
            racing = {op.words[1] for ops in unsure for op in ops if op.words[0] == "IDEM.CONSUME" and not op.before}
            self.races(racing)
            self.gone_tokens()
            self.fence()
        self.k.touched.clear()

    def prefix(self, ops):
        """Of one connection's requests in flight, the first so many were done and the others were not."""
        seen = self.see({key for op in ops for key in op.before})
        not_done = None
        for op in ops:
            if not op.before:
                continue
            old = all(fits(state, seen[key]) for key, state in op.before.items())
            new = all(fits(state, seen[key]) for key, state in op.after.items())
            if not old and not new:
                self.k.violation(f"{op} without a reply: {[seen[k] for k in op.before]} is neither {op.before} nor {op.after}")
            elif old and not new:
                not_done = not_done or op
            elif new and not old and not_done is not None:
                self.k.violation(f"{op} was done though {not_done} before it on the same connection was not")
            for key, state in op.after.items():
                if isinstance(state, Gone):
                    self.k.keys[key] = state
                elif seen[key][0] != "lapsed":
                    self.k.keys[key] = seen[key]

    def states(self, everything):
        keys = self.k.touched
        others = [key for key in self.k.keys if key not in keys]
        if not everything and len(others) > SAMPLE:
            others = self.random.sample(others, SAMPLE)
        for key, seen in self.see(list(keys) + others).items():
            state = self.k.keys.get(key, ABSENT)
            if not fits(state, seen):
                self.k.violation(f"{key}: acknowledged as {state}, found {seen}")
            elif isinstance(state, Gone) and seen == ABSENT:
                state.seen_gone = True

    def versions(self):
        for key, reply in zip(self.k.shown_version, pipeline(self.c, [("GET", key) for key in self.k.shown_version])):
            least = self.k.shown_version[key]
            if isinstance(reply, Nil) or int(reply) < least:
                self.k.violation(f"{key}: {least} was shown to somebody, found {reply!r}")

    def moving(self):
        """What all move between two lists is in one of them, once."""
        if not self.k.moving:
            self.k.moving = self.c.call("RPUSH", "moving:a", *MOVING) == len(MOVING)
            return
        found = [one for key in ("moving:a", "moving:b") for one in texts(self.c.call("LRANGE", key, "0", "-1"))]
        if sorted(found) != sorted(MOVING):
            self.k.violation(f"moving:a and moving:b: there should be each of {MOVING[0]} to {MOVING[-1]} once, found {sorted(found)}")

    def shown_answers(self):
        for key, seen in self.see(self.k.shown_done).items():
            if seen != self.k.shown_done[key]:
                self.k.violation(f"{key}: the answer {self.k.shown_done[key]} was shown to somebody, found {seen}")

    def races(self, racing):
        names = self.k.shared_names[-SAMPLE:]
        replies = pipeline(self.c, [("IDEM.CONSUME", key, "REASON") for key in names])
        for key, reply in zip(names, replies):
            token = self.k.shared[key]
            word = text(reply)
            if word != "CONSUMED" and token.won_by is None and not token.refused and key not in racing:
                self.k.violation(f"{key}: a token that nobody consumed is {word}")
            self.k.shared_reply(key, "the check", word, token.refused)

    def gone_tokens(self):
        gone = self.k.consumed[-SAMPLE:]
        for (key, issued), reply in zip(gone, pipeline(self.c, [("IDEM.CONSUME", key, "REASON") for key, _ in gone])):
            if text(reply) != ("DUPLICATE" if issued else "UNISSUED"):
                self.k.violation(f"{key}: consumed for sure, and now {text(reply)}")

    def fence(self):
        key = f"probe:{len(self.k.keys)}:{self.random.randrange(1 << 30)}"
        above = self.k.fence_max
        reply = self.c.call("IDEM.RESERVE", key, "CLAIM", "probe", "LEASE", LEASE, "EX", LONG)
        if isinstance(reply, Error) or text(reply[0]) != "RESERVED":
            return self.k.violation(f"{key}: a new key cannot be reserved: {reply!r}")
        self.k.see_fence(reply[1], above)
        self.k.keys[key] = pending(reply[1], "probe")

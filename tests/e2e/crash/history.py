"""What clients know for sure: the acknowledged state of every key, what may have happened since, and what they were shown."""
import threading

ABSENT = ("absent",)
ANY = object()  # a field that only a lost reply would have told


def plain(value):
    return ("plain", value)


def pending(fence, claim, attempt=1, checkpoint=None, state="pending"):
    return (state, fence, claim, attempt, checkpoint)


def done(fence, result, code):
    return ("done", fence, result, code)


def consumed(by):
    return ("consumed", by)


class Gone:
    """Something, mostly a plain string, with a lifetime that may be over by now: that, or nothing."""

    def __init__(self, value, state=None):
        self.value, self.state, self.seen_gone = value, state or plain(value), False

    def __repr__(self):
        return f"Gone({self.value!r}, seen_gone={self.seen_gone})"


def fits(expected, seen):
    """Whether what a key shows is the expected state."""
    if isinstance(expected, Gone):
        return seen == ABSENT or (not expected.seen_gone and seen == expected.state)
    if expected[0] == "pending" and seen[0] == "lapsed":  # a step of the wall clock across a restart may end a lease
        seen = ("pending",) + seen[1:]
    return len(expected) == len(seen) and all(e is ANY or e == s for e, s in zip(expected, seen))


class Op:
    """One request on its way: what its keys held before, and what they hold if it was done."""

    def __init__(self, words, before, after, replies=1):
        self.words, self.before, self.after, self.replies = words, before, after, replies

    def __repr__(self):
        return " ".join(w if isinstance(w, str) else str(w) for w in self.words[:6])


class SharedToken:
    """A token that many race for."""

    def __init__(self, issued):
        self.issued = issued    # by IDEM.TOKEN; made by SET it reads UNISSUED once it is gone
        self.won_by = None      # who was told CONSUMED
        self.refused = False    # somebody was told that it is gone: who asks after that must not win


class Knowledge:
    """Of all workers together; its life is that of the data directory."""

    def __init__(self):
        self.lock = threading.Lock()
        self.keys = {}          # key -> acknowledged state
        self.consumed = []      # tokens of one worker alone, gone for sure: (key, issued)
        self.touched = set()    # keys changed since the last check
        self.shared = {}        # key -> SharedToken
        self.shared_names = []  # oldest first
        self.reserved = []      # reservations that others may look at
        self.shown_version = {} # version key -> the highest value that anybody was shown
        self.shown_done = {}    # reservation -> the answer that somebody was shown
        self.moving = False     # the two lists that all move between are filled
        self.fence_max = 0
        self.acknowledged = 0
        self.violations = []

    def violation(self, text):
        with self.lock:
            self.violations.append(text)

    def shared_reply(self, key, who, status, refused_before):
        """`refused_before`: somebody had been told that it is gone when this request was sent."""
        with self.lock:
            token = self.shared[key]
            if status == "CONSUMED":
                if token.won_by is not None:
                    self.violations.append(f"{key}: won by {who} after {token.won_by} had won it")
                elif refused_before:
                    self.violations.append(f"{key}: won by {who} after somebody was told that it is gone")
                token.won_by = who
            elif status == "DUPLICATE" or (status == "UNISSUED" and not token.issued):
                token.refused = True
            else:
                self.violations.append(f"{key}: {who} was told {status}")

    def see_fence(self, fence, above):
        with self.lock:
            if fence <= above:
                self.violations.append(f"fence {fence} given out after {above}")
            self.fence_max = max(self.fence_max, fence)

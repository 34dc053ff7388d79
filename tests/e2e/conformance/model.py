"""The contract once more, as a model: what a key holds -> what each command must answer, and what it holds then.

Written from the commands page alone. Time is not modelled: leases are long, and a lapse is a step of its own.
"""
from dataclasses import dataclass, replace
from typing import Optional


@dataclass
class Record:
    state: str  # pending, lapsed, failed, released, done, consumed
    fence: int = 0
    attempt: int = 1
    claim: Optional[str] = None
    fingerprint: Optional[str] = None
    stop: bool = False
    checkpoint: Optional[str] = None
    token: Optional[str] = None  # the value of the token that it was made from
    code: int = 0
    result: Optional[str] = None
    late: bool = False


@dataclass
class Plain:
    value: str


class Unspecified(Exception):
    """The commands page does not say; the walk does not ask."""


class Model:
    def __init__(self):
        self.keys = {}
        self.issued = set()  # keys whose text is a token of ours, in its lifetime
        self.last_fence = 0

    def origin(self, key):
        return "DUPLICATE" if key in self.issued else "UNISSUED"

    # --- RESERVE: [status, fence or 0 or "new", attempt, code, payload]
    def reserve(self, key, claim=None, fingerprint=None, stop=False, issued=False, ifeq=None):
        held = self.keys.get(key)
        nothing = [0, 0, 0, None]
        if held is None:
            if issued:
                return [self.origin(key)] + nothing
            return self.take(key, Record("pending", attempt=0), claim, fingerprint, stop)
        if isinstance(held, Plain):
            if not issued:
                return ["PENDING"] + nothing
            if ifeq is not None and ifeq != held.value:
                return ["REFUSED"] + nothing
            return self.take(key, Record("pending", attempt=0, token=held.value), claim, fingerprint, stop)
        if held.state == "consumed":
            return ["DUPLICATE"] + nothing
        if ifeq is not None:
            if held.token is None:
                raise Unspecified("IFEQ where no token is remembered")
            if ifeq != held.token:
                return ["REFUSED"] + nothing
        if fingerprint is not None and held.fingerprint not in (None, fingerprint):
            return ["MISMATCH", 0, held.attempt, 0, None]
        if held.state == "done":
            return ["DONE", 0, held.attempt, held.code, held.result]
        if held.state == "pending":
            entitled = issued or held.token is None  # without ISSUED a claimed token is PENDING until done
            if entitled and claim is not None and claim == held.claim:
                return ["HELD", held.fence, held.attempt, 0, held.checkpoint]
            return ["PENDING", 0, held.attempt, 0, None]
        if held.state == "lapsed" and held.stop:
            if issued and held.token is None:
                raise Unspecified("ISSUED without a right, under STOP")
            return ["UNKNOWN", 0, held.attempt, 0, held.checkpoint]
        if issued and held.token is None:
            return ["DUPLICATE"] + nothing
        if not issued and held.token is not None:
            return ["PENDING", 0, held.attempt, 0, None]
        return self.take(key, held, claim, fingerprint, stop)

    def take(self, key, before, claim, fingerprint, stop):
        self.keys[key] = replace(before, state="pending", attempt=before.attempt + 1, claim=claim,
                                 fingerprint=before.fingerprint or fingerprint, stop=before.stop or stop)
        return ["RESERVED", "new", before.attempt + 1, 0, before.checkpoint]

    # --- fenced commands
    def fenced(self, key, fence):
        """The record when the fence is its own, else the error's word."""
        held = self.keys.get(key)
        if not isinstance(held, Record):
            return "NOTFOUND"
        if held.state == "consumed":
            return "CONFLICT"
        return held if held.fence == fence else "STALE"

    def complete(self, key, fence, result, code):
        held = self.fenced(key, fence)
        if isinstance(held, str):
            return held
        if held.state == "done":
            same = (result, code) == (held.result, held.code)
            return ("LATE" if held.late else "OK") if same else "CONFLICT"
        if held.state == "released":
            return "STALE"
        late = held.state != "pending"
        self.keys[key] = replace(held, state="done", result=result, code=code, late=late, checkpoint=None)
        return "LATE" if late else "OK"

    def fail(self, key, fence):
        held = self.fenced(key, fence)
        if isinstance(held, str):
            return held
        if held.state in ("done", "released"):
            return {"done": "CONFLICT", "released": "STALE"}[held.state]
        self.keys[key] = replace(held, state="failed")
        return "OK"

    def release(self, key, fence):
        held = self.fenced(key, fence)
        if isinstance(held, str):
            return 0 if held == "NOTFOUND" else held
        if held.state == "done":
            return "CONFLICT"
        if held.state == "released":
            return 1
        if held.state == "failed":
            raise Unspecified("RELEASE after FAIL")
        if held.attempt == 1 and held.checkpoint is None:
            if held.token is None:
                del self.keys[key]
            else:
                self.keys[key] = Plain(held.token)
        else:
            self.keys[key] = replace(held, state="released", attempt=max(1, held.attempt - 1), claim=None)
        return 1

    def renew(self, key, fence, lapse, checkpoint=None):
        """EXTEND and CHECKPOINT; `lapse`: for a moment only."""
        held = self.fenced(key, fence)
        if isinstance(held, str):
            return held
        if held.state in ("done", "released", "failed"):
            return "CONFLICT" if held.state == "done" else "STALE"
        self.keys[key] = replace(held, state="lapsed" if lapse else "pending",
                                 checkpoint=held.checkpoint if checkpoint is None else checkpoint)
        return "OK"

    # --- CONSUME
    def consume(self, key, ifeq=None, by=None):
        held = self.keys.get(key)
        if held is None:
            return self.origin(key)
        if isinstance(held, Plain):
            if ifeq is not None and ifeq != held.value:
                return "REFUSED"
            if by is None:
                del self.keys[key]
            else:
                self.keys[key] = Record("consumed", attempt=0, claim=by, token=held.value)
            return "CONSUMED"
        if held.state != "consumed" or by != held.claim:
            if ifeq is not None:
                raise Unspecified("IFEQ of somebody who has no right")
            return "DUPLICATE"
        return "REFUSED" if ifeq not in (None, held.token) else "CONSUMED"

    # --- TRANSITION
    def transition(self, key, to, listed, init):
        held = self.keys.get(key)
        if isinstance(held, Record):
            return "WRONGTYPE"
        current = held.value if held else None
        if current == to:
            return ["ALREADY", to]
        if current in listed or (current is None and init):
            self.keys[key] = Plain(to)
            return ["MOVED", current]
        return ["REFUSED", current]

    def status(self, key):
        held = self.keys.get(key)
        if held is None:
            return None
        if isinstance(held, Plain):
            return "issued"
        if held.state == "released":
            return "lapsed"
        return "unknown" if held.state == "lapsed" and held.stop else held.state

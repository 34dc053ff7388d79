"""The shop with idemd: every stage asks for its key before it acts, and brings its fence along."""

import collections
import hashlib
import uuid

import redis

LEASE_MS = 1000  # short, because the storm is: a healthy step takes some ten milliseconds

Claim = collections.namedtuple("Claim", "status fence attempt ms code payload")


class OldFence(Exception):
    """The resource refused: another attempt has taken over meanwhile."""


class GuardedShop:
    ONLAPSE = "STOP"  # a charge is never repeated blindly

    def __init__(self, world, strike, url, prefix):
        self.world, self.strike, self.prefix = world, strike, prefix
        self.store = redis.Redis.from_url(url, decode_responses=True)

    # --- the gateway -----------------------------------------------------------------------------

    def allow(self, user):
        """Returns how many milliseconds the user has to wait, 0 for none."""
        limited, _, _, retry_ms, _ = self.store.execute_command(
            "IDEM.THROTTLE", self.prefix + "limit:" + user, 9, 20, 1000
        )
        return retry_ms if limited else 0

    # --- form token, then unique order number ---------------------------------------------------

    def form(self, user):
        prefix = f"{self.prefix}token:{user}:"
        return 200, self.store.execute_command("IDEM.TOKEN", prefix, "EX", 300, "VALUE", user)

    def submit(self, user, token, number):
        form_key = f"{self.prefix}token:{user}:{token}"
        form = self.reserve(form_key, "ISSUED", "IFEQ", user)
        if form.status not in ("RESERVED", "HELD"):
            return answer_of(form)
        key = self.prefix + "number:" + number
        body = hashlib.sha256(f"{user} {number}".encode()).hexdigest()
        order = self.reserve(key, "FOREVER", "FINGERPRINT", body, "WAIT", 300)
        if order.status == "DONE":  # another form brought this number before
            self.fenced("IDEM.COMPLETE", form_key, form.fence, order.payload, "CODE", 200)
            return 200, order.payload
        if order.status not in ("RESERVED", "HELD"):  # this attempt did nothing: the token goes back
            self.fenced("IDEM.RELEASE", form_key, form.fence)
            return answer_of(order)
        if self.strike("order.busy", number) == "busy":  # refused before any effect
            self.fenced("IDEM.RELEASE", key, order.fence)
            self.fenced("IDEM.RELEASE", form_key, form.fence)
            return 503, "the order table is busy"
        self.strike("order.before", number)
        written = self.once("order", number, order)
        self.strike("order.after", number)
        self.move(number, "created", "INIT")
        self.fenced("IDEM.COMPLETE", key, order.fence, written, "CODE", 200)
        self.fenced("IDEM.COMPLETE", form_key, form.fence, written, "CODE", 200)
        self.strike("order.answer", number)
        return 200, written

    # --- payment: an effect that must never be repeated blindly ----------------------------------

    def pay(self, number):
        if self.store.get(self.prefix + "status:" + number) is None:
            return 404, "no such order"
        key = self.prefix + "pay:" + number
        claim = self.reserve(key, "ONLAPSE", self.ONLAPSE)
        if claim.status == "UNKNOWN":  # an attempt died in the dark: somebody has to look
            self.world.call("enqueue", topic="reconcile", body=number)
        if claim.status not in ("RESERVED", "HELD"):
            return answer_of(claim)
        self.strike("charge.before", number)
        charge = self.act("apply", "charge", number, claim.fence)
        self.strike("charge.after", number)
        self.fenced("IDEM.COMPLETE", key, claim.fence, charge, "CODE", 200)
        return 200, charge

    def reconcile(self, number):
        """Asks the bank, which then refuses the lost attempt's fence, and settles the claim."""
        key = self.prefix + "pay:" + number
        flat = self.store.execute_command("IDEM.STATUS", key) or []
        status = dict(zip(flat[::2], flat[1::2]))
        if status.get("state") != "unknown":
            return None
        fence = int(status["fence"])
        charge = self.act("look", "charge", number, fence, close=True)
        if charge:
            self.fenced("IDEM.COMPLETE", key, fence, charge, "CODE", 200)
        else:
            self.fenced("IDEM.FAIL", key, fence)
        return None

    # --- the bank's callback: a transition and its follow-up ------------------------------------

    def paid(self, number):
        verdict, state = self.move(number, "paid", "created")
        if verdict == "REFUSED" and state != "shipped":
            return 409, "not an order that can be paid"
        self.strike("paid.between", number)
        key = self.prefix + "follow:" + number
        claim = self.reserve(key)
        if claim.status not in ("RESERVED", "HELD"):
            return answer_of(claim)
        if claim.payload is None:
            self.once("points", number, claim)
            self.strike("points.after", number)
            self.fenced("IDEM.CHECKPOINT", key, claim.fence, "points given")
        self.world.call("enqueue", topic="ship", body=number)  # twice is harmless, see ship()
        self.fenced("IDEM.COMPLETE", key, claim.fence, "done", "CODE", 200)
        return 200, "done"

    # --- the queue's consumer ---------------------------------------------------------------------

    def ship(self, number):
        """Returns None when the message may be forgotten, else the milliseconds to wait."""
        key = self.prefix + "ship:" + number
        claim = self.reserve(key)
        if claim.status == "DONE":
            return None
        if claim.status not in ("RESERVED", "HELD"):
            return max(claim.ms, 50)
        if self.strike("ship.busy", number) == "busy":
            self.fenced("IDEM.FAIL", key, claim.fence, "AFTER", 100)
            return 120
        if claim.payload is None:
            label = self.once("label", number, claim)
            self.strike("label.after", number)
            self.fenced("IDEM.CHECKPOINT", key, claim.fence, label)
        self.strike("parcel.before", number)
        parcel = self.once("parcel", number, claim)
        self.strike("parcel.after", number)
        self.move(number, "shipped", "paid")
        self.fenced("IDEM.COMPLETE", key, claim.fence, parcel)
        return None

    # --- what the stages share --------------------------------------------------------------------

    def reserve(self, key, *options):
        return Claim(
            *self.store.execute_command(
                "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "LEASE", LEASE_MS, *options
            )
        )

    def fenced(self, command, key, *words):
        """A claim that was lost meanwhile raises OldFence, as the resource would."""
        try:
            return self.store.execute_command(command, key, *words)
        except redis.ResponseError as error:
            if str(error).split()[0] in ("STALE", "CONFLICT", "NOTFOUND"):
                raise OldFence(str(error)) from error
            raise

    def act(self, call, kind, operation, fence, **more):
        answer = self.world.call(call, kind=kind, operation=operation, fence=fence, **more)
        if "refused" in answer:
            raise OldFence(kind)
        return answer["id"]

    def once(self, kind, operation, claim):
        """A first attempt acts; a later one looks first, because an earlier one may have acted."""
        found = self.act("look", kind, operation, claim.fence) if claim.attempt > 1 else None
        return found or self.act("apply", kind, operation, claim.fence)

    def move(self, number, to, *words):
        source = [] if words == ("INIT",) else list(words)
        return self.store.execute_command(
            "IDEM.TRANSITION", self.prefix + "status:" + number, to, "FROM", len(source), *source,
            *(["INIT"] if words == ("INIT",) else []),
        )  # fmt: skip


CODES = {"PENDING": 409, "UNKNOWN": 409, "MISMATCH": 422, "DUPLICATE": 410, "EXPIRED": 410}


def answer_of(claim):
    """What the client is told when the answer is not "go ahead"."""
    if claim.status == "DONE":
        return 200, claim.payload or ""
    return CODES.get(claim.status, 403), claim.status

"""Random commands on a few keys, compared with the model answer by answer; prints its seed and takes IDEMD_SEED."""
import argparse
import os
import random
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from lib.resp import Error, Nil, as_dict  # noqa: E402
from lib.server import Server, find_binary  # noqa: E402
from model import Model, Plain, Record, Unspecified  # noqa: E402

LONG = "1000000"


def text(value):
    if isinstance(value, Nil):
        return None
    return bytes(value).decode("latin-1") if isinstance(value, bytes) else value


def word(reply):
    """An error's word, a status, or the reply."""
    return reply.code if isinstance(reply, Error) else text(reply)


class Walk:
    def __init__(self, server, seed, model=Model, plain_keys=4, tokens=4):
        self.random = random.Random(seed)
        self.client = server.connect(resp=self.random.choice((2, 3)))
        self.model = model()
        self.prefix = f"{model.__name__}{seed}:"
        self.keys = [f"{self.prefix}{i}" for i in range(plain_keys)]
        for i in range(tokens):
            value = f"v{i % 2}"
            key = self.prefix + text(self.client.call("IDEM.TOKEN", self.prefix, "VALUE", value, "EX", "100000"))
            self.keys.append(key)
            self.model.keys[key] = Plain(value)
            self.model.issued.add(key)
        self.fences = [1]
        self.history = []

    def call(self, *words):
        self.history.append(words)
        return self.client.call(*words)

    def maybe(self, *choices):
        return self.random.choice((None,) + choices)

    def fence(self, key):
        held = self.model.keys.get(key)
        if isinstance(held, Record) and held.fence and self.random.random() < 0.85:
            return held.fence
        return self.random.choice(self.fences[-6:]) + self.random.choice((0, 0, 1))

    def same(self, got, expected):
        if got != expected:
            steps = "\n".join("      " + " ".join(map(str, words)) for words in self.history[-25:])
            raise AssertionError(f"expected {expected!r}, got {got!r}, after\n{steps}")

    def step(self):
        key = self.random.choice(self.keys)
        commands = [(self.reserve, 10), (self.complete, 3), (self.fail, 2), (self.release, 2), (self.extend, 2),
                    (self.lapse, 3), (self.checkpoint, 2), (self.consume, 4), (self.transition, 2), (self.status, 2),
                    (self.set, 1), (self.delete, 2), (self.round_trip, 1), (self.rename, 1)]
        step = self.random.choices([c for c, _ in commands], [w for _, w in commands])[0]
        try:
            step(key)
        except Unspecified:
            pass

    # --- each asks the model first, so that what is unspecified is never sent
    def reserve(self, key):
        claim, fingerprint = self.maybe("c1", "c2"), self.maybe("f1", "f2")
        issued, stop = self.random.random() < 0.4, self.random.random() < 0.2
        ifeq = self.maybe("v0", "v1") if issued else None
        expected = self.model.reserve(key, claim, fingerprint, stop, issued, ifeq)
        words = ["IDEM.RESERVE", key, "LEASE", LONG]
        options = [["CLAIM", claim] if claim else [], ["FINGERPRINT", fingerprint] if fingerprint else [],
                   ["ONLAPSE", "STOP"] if stop else [], ["ISSUED"] + (["IFEQ", ifeq] if ifeq else []) if issued else []]
        self.random.shuffle(options)
        reply = self.call(*words, *sum(options, []))
        if isinstance(reply, Error):
            return self.same(reply, expected)
        status, fence, attempt, _, code, payload = map(text, reply)
        if expected[1] == "new" and status == "RESERVED":
            if fence <= self.model.last_fence:
                self.same(fence, f"a fence above {self.model.last_fence}")
            self.model.last_fence = self.model.keys[key].fence = fence
            self.fences.append(fence)
            expected[1] = fence
        self.same([status, fence, attempt, code, payload], expected)

    def complete(self, key):
        fence, result, code = self.fence(key), self.random.choice(("r1", "r2", "")), self.random.choice((0, 0, 7))
        expected = self.model.complete(key, fence, result, code)
        self.same(word(self.call("IDEM.COMPLETE", key, fence, result, *(["CODE", code] if code else []))), expected)

    def fail(self, key):
        fence = self.fence(key)
        expected = self.model.fail(key, fence)
        self.same(word(self.call("IDEM.FAIL", key, fence)), expected)

    def release(self, key):
        fence = self.fence(key)
        expected = self.model.release(key, fence)
        self.same(word(self.call("IDEM.RELEASE", key, fence)), expected)

    def extend(self, key):
        fence = self.fence(key)
        expected = self.model.renew(key, fence, lapse=False)
        reply = self.call("IDEM.EXTEND", key, fence, LONG)
        self.same("OK" if isinstance(reply, int) and reply > 900_000 else word(reply), expected)

    def lapse(self, key):
        held = self.model.keys.get(key)
        fence = held.fence if isinstance(held, Record) and held.fence else self.fence(key)
        expected = self.model.renew(key, fence, lapse=True)
        reply = self.call("IDEM.EXTEND", key, fence, 1)
        self.same("OK" if reply in (0, 1) else word(reply), expected)
        time.sleep(0.003)

    def checkpoint(self, key):
        fence, data = self.fence(key), self.random.choice(("p1", "p2", ""))
        expected = self.model.renew(key, fence, lapse=False, checkpoint=data)
        self.same(word(self.call("IDEM.CHECKPOINT", key, fence, data, "LEASE", LONG)), expected)

    def consume(self, key):
        ifeq, by = self.maybe("v0", "v1"), self.maybe("c1", "c2")
        expected = self.model.consume(key, ifeq, by)
        reason = self.random.random() < 0.6
        words = ["IDEM.CONSUME", key] + (["IFEQ", ifeq] if ifeq else []) + (["BY", by] if by else [])
        reply = word(self.call(*words, *(["REASON"] if reason else [])))
        self.same(reply, expected if reason else int(expected == "CONSUMED"))

    def transition(self, key):
        to, listed, init = self.random.choice(("v0", "v1")), self.random.sample(("v0", "v1"), 1), self.random.random() < 0.3
        expected = self.model.transition(key, to, listed, init)
        reply = self.call("IDEM.TRANSITION", key, to, "FROM", 1, *listed, *(["INIT"] if init else []))
        self.same([text(e) for e in reply] if isinstance(reply, list) else word(reply), expected)

    def status(self, key):
        reply, held = self.call("IDEM.STATUS", key), self.model.keys.get(key)
        if isinstance(reply, Nil):
            return self.same(None, self.model.status(key))
        fields = {name: text(value) for name, value in as_dict(reply).items()}
        self.same(fields["state"], self.model.status(key))
        if isinstance(held, Record) and held.state != "consumed":
            expected = {"fence": held.fence, "attempt": held.attempt, "claim": held.claim, "fingerprint": held.fingerprint,
                        "onlapse": "stop" if held.stop else "take", "result": held.result,
                        "checkpoint": held.checkpoint, "code": held.code if held.state == "done" else None}
            self.same({name: fields.get(name) for name in expected}, expected)

    def set(self, key):
        self.call("SET", key, "v0")
        self.model.keys[key] = Plain("v0")

    def delete(self, key):
        self.same(self.call("DEL", key), int(self.model.keys.pop(key, None) is not None))

    def round_trip(self, key):
        """What GET shows, written by SET, is the same thing."""
        value = self.call("GET", key)
        if not isinstance(value, Nil):
            self.call("SET", key, value)
            self.same(bytes(self.call("GET", key)), bytes(value))

    def rename(self, key):
        other = self.random.choice(self.keys)
        if key in self.model.keys and key != other:
            self.call("RENAME", key, other)
            self.model.keys[other] = self.model.keys.pop(key)


# --- the negative control: models with one rule wrong, each of which must be contradicted soon
class LoosensStop(Model):
    def take(self, key, before, claim, fingerprint, stop):
        reply = super().take(key, before, claim, fingerprint, stop)
        self.keys[key].stop = stop
        return reply


class CountsReleases(Model):
    def release(self, key, fence):
        before = self.keys.get(key)
        reply = super().release(key, fence)
        if reply == 1 and isinstance(self.keys.get(key), Record) and before.state != "released":
            self.keys[key].attempt = before.attempt
        return reply


class ForgetsTheToken(Model):
    def release(self, key, fence):
        reply = super().release(key, fence)
        if isinstance(self.keys.get(key), Plain) and reply == 1:
            del self.keys[key]
        return reply


class NeverLate(Model):
    def complete(self, key, fence, result, code):
        reply = super().complete(key, fence, result, code)
        return "OK" if reply == "LATE" else reply


class ConflictBeforeStale(Model):
    def fenced(self, key, fence):
        held = self.keys.get(key)
        return held if isinstance(held, Record) and held.state == "done" else super().fenced(key, fence)


def unnoticed(server, seed, steps):
    """The wrong models that forty walks did not tell from the server."""
    blind = []
    for wrong in (LoosensStop, CountsReleases, ForgetsTheToken, NeverLate, ConflictBeforeStale):
        for turn in range(40):
            try:
                walk = Walk(server, seed + turn, wrong)
                for _ in range(steps):
                    walk.step()
            except AssertionError:
                break
        else:
            blind.append(wrong.__name__)
    return blind


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--walks", type=int, default=40)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    first = int(os.environ.get("IDEMD_SEED") or random.randrange(10**9))
    passed = failed = 0
    with Server(find_binary(options.build)) as server:
        for name in unnoticed(server, first, options.steps):
            failed += 1
            print(f"BLIND  the walk does not notice a model that is wrong: {name}")
        for seed in range(first, first + options.walks):
            try:
                walk = Walk(server, seed)
                for _ in range(options.steps):
                    walk.step()
                passed += 1
            except AssertionError as problem:
                failed += 1
                print(f"FAILED  seed {seed}: {problem}")
    print(f"seeds {first}..{first + options.walks - 1}, {options.steps} steps each")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

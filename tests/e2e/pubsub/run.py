"""Messages, keyspace events and tracking, beside a stock Redis: the same bytes in the same order; and events in time."""
import argparse
import os
import random
import re
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import event_scenes  # noqa: E402
import scenes  # noqa: E402
from lib.resp import Connection  # noqa: E402
from lib.server import Redis, Server, find_binary, skipped_for_redis  # noqa: E402
from talk import differences  # noqa: E402

# Of an event of a key that expires by itself on an idle server. Measured are 30 ms for half of them and 60 for all; a machine
# that is busy with other things gives neither the server nor this script its processor in time.
LATE_MS_MAX = 2000


class Suite:
    def __init__(self, ours, theirs, seed):
        self.ours, self.theirs, self.seed = ours, theirs, seed
        self.passed = self.failed = 0

    def run(self, name, test, *arguments):
        try:
            problems = list(test(*arguments))
        except Exception:  # noqa: BLE001 a test that breaks has failed, and the others go on
            problems = [traceback.format_exc()]
        self.passed += not problems
        self.failed += bool(problems)
        for problem in problems[:5]:
            print(f"FAILED  {name}: {problem}")

    # --- beside Redis
    def scene(self, text, resp, clean=True):
        steps = [line.strip() for line in text.strip().splitlines()]
        for port in (self.ours, self.theirs):
            with Connection(port) as client:
                client.call("FLUSHALL")
                client.call("CONFIG", "SET", "notify-keyspace-events", "")
        yield from differences(steps, resp, self.ours, self.theirs)

    def events(self, flags, text, resp, listen="PSUBSCRIBE __key*"):
        """Every command's reply and events."""
        steps = [f"b {listen}"]
        in_multi = False
        for line in text.strip().splitlines():
            word = line.split()[0]
            in_multi = word == "MULTI" or (in_multi and word not in ("EXEC", "DISCARD"))
            steps.append(f"a{'?' if in_multi else ''} {line.strip()}")
        for port in (self.ours, self.theirs):
            with Connection(port) as client:
                client.call("FLUSHALL")
                client.call("CONFIG", "SET", "notify-keyspace-events", flags)
        yield from differences(steps, resp, self.ours, self.theirs)

    def random_commands(self, count):
        """As events(), for commands drawn from a seed."""
        rng = random.Random(self.seed)
        keys = ["a", "b", "c", "d"]
        lines = [line.strip() for line in event_scenes.EVENTS.strip().splitlines()]
        words = [line.split() for line in lines
                 if not re.match(r"MULTI|EXEC|DISCARD|SELECT|SCAN|RANDOMKEY|RESTORE|OBJECT|DUMP|P?TTL|P?EXPIRETIME|FLUSH", line)]
        text = []
        for _ in range(count):
            command = list(rng.choice(words))
            for i, word in enumerate(command[1:], 1):
                if re.fullmatch(r"[a-z]|nothing|t2", word):
                    command[i] = rng.choice(keys)
            text.append(" ".join(command))
        yield from self.events("KEAmn", "\n".join(text), 2)

    def settings(self):
        """What notify-keyspace-events takes and shows."""
        for value in ("", "KEA", "A", "K", "g", "gKE", "$lshzxeKE", "KA", "EA", "g$lshzxet", "g$lshzxetd", "m", "Km", "AKEm",
                      "nK", "Q", "KEQ", "KK", "AA"):
            replies = []
            for port in (self.ours, self.theirs):
                with Connection(port) as client:
                    replies.append((client.call("CONFIG", "SET", "notify-keyspace-events", value),
                                    client.call("CONFIG", "GET", "notify-keyspace-events")))
            if replies[0] != replies[1]:
                yield f"{value!r}: {replies[0]!r} instead of {replies[1]!r}"

    # --- by itself
    def expired_in_time(self, count):
        """How long after its deadline the event of a key comes that nobody looks at; another try where the machine is busy."""
        late = min((self.lateness(count) for _ in range(2)), key=lambda each: each[-1])
        print(f"expired events of {count} keys on an idle server: late by {late[len(late) // 2]:.0f} ms (half), "
              f"{late[int(len(late) * 0.99)]:.0f} ms (99 of 100), {late[-1]:.0f} ms (all)")
        if late[-1] > LATE_MS_MAX:
            yield f"an event came {late[-1]:.0f} ms after its deadline"

    def lateness(self, count):
        with Connection(self.ours) as client, Connection(self.ours) as listener:
            client.call("FLUSHALL")
            client.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
            listener.call("SUBSCRIBE", "__keyevent@0__:expired")
            heard = {}

            def listen():
                while len(heard) < count:
                    _, _, key = listener.read(timeout=20)
                    heard[bytes(key).decode()] = time.time() * 1000

            thread = threading.Thread(target=listen)
            thread.start()
            rng = random.Random(self.seed)
            start = int(time.time() * 1000) + 500
            deadlines = {f"late:{i}": start + rng.randrange(2000) for i in range(count)}
            client.pipeline([("SET", key, "x", "PXAT", str(at)) for key, at in deadlines.items()])
            thread.join()
            return sorted(heard[key] - at for key, at in deadlines.items())

    def redis_py(self):
        """A library's own thread for messages, patterns and keyspace events."""
        import redis

        client = redis.Redis(port=self.ours, decode_responses=True)
        client.flushall()
        client.config_set("notify-keyspace-events", "KEA")
        heard, done = [], threading.Event()

        def hear(message):
            heard.append((message["type"], message["channel"], message["data"]))
            if message["data"] == "end":
                done.set()

        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe(**{"plain": hear})
        pubsub.psubscribe(**{"pat*": hear, "__keyspace@0__:r:*": hear})
        thread = pubsub.run_in_thread(sleep_time=0.01)
        try:
            threads = []
            for p in range(4):
                other = redis.Redis(port=self.ours)
                threads.append(threading.Thread(
                    target=lambda p=p, other=other: [other.publish("plain", f"{p}:{i}") for i in range(200)]))
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            client.publish("pattern", "x")
            client.set("r:1", "v")
            client.delete("r:1")
            client.publish("plain", "end")
            if not done.wait(10):
                yield f"the last message did not come; {len(heard)} did"
        finally:
            thread.stop()
            thread.join(5)
        for p in range(4):
            mine = [data for _, _, data in heard if data.startswith(f"{p}:")]
            if mine != [f"{p}:{i}" for i in range(200)]:
                yield f"messages of publisher {p}: {mine[:5]}…"
        rest = [each for each in heard if ":" not in each[2]]
        if rest != [("pmessage", "pattern", "x"), ("pmessage", "__keyspace@0__:r:1", "set"),
                    ("pmessage", "__keyspace@0__:r:1", "del"), ("message", "plain", "end")]:
            yield f"other messages: {rest}"

    def crowd(self):
        """Many subscribers, one unsubscribing after the other: after its confirmation nobody hears a thing."""
        listeners = [Connection(self.ours) for _ in range(50)]
        for listener in listeners:
            listener.call("SUBSCRIBE", "crowd")
        stop = threading.Event()
        sent = [0]

        def publish():
            with Connection(self.ours) as publisher:
                while not stop.is_set():
                    publisher.call("PUBLISH", "crowd", str(sent[0]))
                    sent[0] += 1

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            for i, listener in enumerate(listeners):
                listener.send("UNSUBSCRIBE", "crowd")
                listener.send("PING", f"after{i}")
                numbers = []
                while True:
                    reply = listener.read()
                    if isinstance(reply, list) and bytes(reply[0]) == b"message":
                        numbers.append(int(bytes(reply[2])))
                        continue
                    break
                if numbers != list(range(len(numbers))):
                    yield f"listener {i}: messages out of order: {numbers[:10]}"
                after = listener.read()
                if bytes(after) != f"after{i}".encode():
                    yield f"listener {i}: behind the confirmation came {after!r}"
        finally:
            stop.set()
            thread.join()
            for listener in listeners:
                listener.close()

    def slow_subscriber(self):
        """A subscriber that does not read is closed at its limit, and the others go on."""
        with Connection(self.ours) as client, Connection(self.ours) as slow, Connection(self.ours) as quick:
            client.expect_ok("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1000000 0 0")
            slow.call("SUBSCRIBE", "big")
            quick.call("SUBSCRIBE", "big")
            message = "x" * 100_000
            receivers = 2
            for i in range(500):
                receivers = client.call("PUBLISH", "big", message)
                quick.read()
                if receivers == 1:
                    break
            if receivers != 1:
                yield "a subscriber that reads nothing was not closed"
            client.expect_ok("CONFIG", "SET", "client-output-buffer-limit", "pubsub 33554432 8388608 60")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--commands", type=int, default=600, help="random commands whose events are compared")
    parser.add_argument("--only", default="", help="a part of a test's name")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with Server(find_binary(options.build), appendonly="no", save="") as server, Redis() as redis:
        suite = Suite(server.port, redis.port, options.seed)
        tests = [(f"{name}, RESP{resp}", suite.scene, text, resp)
                 for name, text in scenes.SUBSCRIPTIONS.items() for resp in (2, 3)]
        tests += [("own messages", suite.scene, scenes.OWN_MESSAGES, 3)]
        tests += [(f"tracking, {name}, RESP{resp}", suite.scene, text, resp)
                  for name, text in scenes.TRACKING.items() for resp in (2, 3)]
        tests += [(f"events, RESP{resp}", suite.events, "KEAmn", event_scenes.EVENTS, resp) for resp in (2, 3)]
        tests += [(f"events of {name}", suite.events, "KEAmn", text, 2) for name, text in event_scenes.EVENTS_OF_TYPES.items()]
        tests += [(f"events of {flags}", suite.events, flags, event_scenes.EVENTS, 2)
                  for flags in ("K$", "Eg", "KEm", "En", "Kx", "KE", "A")]
        tests += [("random commands", suite.random_commands, options.commands), ("settings", suite.settings),
                  ("expired events in time", suite.expired_in_time, 500), ("redis-py", suite.redis_py),
                  ("a crowd", suite.crowd), ("a slow subscriber", suite.slow_subscriber)]
        if skipped_for_redis("every message and event"):
            alone = (suite.expired_in_time, suite.redis_py, suite.crowd, suite.slow_subscriber)
            tests = [test for test in tests if test[1] in alone]
        for name, test, *arguments in tests:
            if options.only in name:
                suite.run(name, test, *arguments)
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed or not suite.passed else 0


if __name__ == "__main__":
    sys.exit(main())

"""A real server killed, cut off and given bad disks and clocks under load: nothing that clients know for sure may be lost."""
import argparse
import os
import random
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE.parent))

import shim as s  # noqa: E402
from check import Check  # noqa: E402
from history import Knowledge  # noqa: E402
from lib.server import find_binary  # noqa: E402
from power_cut import Impossible, power_cut  # noqa: E402
from worker import Couple, Worker  # noqa: E402

WORKERS = 4
ROUNDS_PER_WORLD = 8
REWRITE_SMALL = {"auto-aof-rewrite-min-size": "200kb", "auto-aof-rewrite-percentage": "100"}


class World:
    """One data directory, and all that clients know of it, over many rounds."""

    def __init__(self, options, policy, seed, binary=None, sync_mode=s.HONEST):
        self.options, self.policy, self.seed = options, policy, seed
        self.random = random.Random(seed)
        self.place = s.Place(options.shim)
        self.binary = binary or options.binary
        self.sync_mode = sync_mode
        self.knowledge = Knowledge()
        self.unsure = []
        self.process = None
        self.incarnation = 0
        self.settings = {"appendonly": "yes", "appendfsync": policy, "save": ""}
        if self.random.random() < 0.5:
            self.settings.update(REWRITE_SMALL)
        if not options.plain:
            self.settings["io-threads"] = self.random.choice((1, 2, 4))

    def violation(self, text):
        self.knowledge.violation(text)

    # --- starting
    def start(self, kills=0):
        """Until it serves; before that it is killed `kills` times somewhere in its recovery."""
        for _ in range(kills):
            self.place.fail(self.random.choice((s.KILL_BEFORE, s.KILL_INSIDE)), self.random.randint(1, 40),
                            mask=s.CHANGES | s.READ)
            process = s.Process(self.place, self.binary, self.settings)
            try:
                process.until_serving()
                process.kill()  # its recovery makes fewer calls than that
            except s.NotStarted as problem:
                if process.process.returncode != -9:
                    raise s.NotStarted(f"while it was to be killed: {problem}") from None
        self.place.calm()
        self.place.put(sync_mode=self.sync_mode)
        self.process = s.Process(self.place, self.binary, self.settings).until_serving()

    def check(self, everything=False):
        with self.process.connect(timeout=60) as connection:
            check = Check(self.knowledge, connection, self.random.random(), not self.options.plain)
            check.all(self.unsure, everything)
        self.unsure = []
        return check.looked_at

    # --- load
    def load(self):
        self.incarnation += 1
        depth = self.random.choice((1, 4, 16))
        self.workers = [Worker(i, self.incarnation, self.knowledge, self.random.random(), not self.options.plain, depth)
                        for i in range(WORKERS)]
        if not self.options.plain:
            self.workers.append(Couple(WORKERS, self.incarnation, self.knowledge, self.random.random(), True, 1))
        for worker in self.workers:
            worker.port = self.process.port
            worker.start()

    def gather(self):
        for worker in self.workers:
            worker.stopping.set()
            worker.join(90)
            if worker.is_alive():
                self.violation(f"{worker.name} still waits for a reply")
            if worker.problem:
                self.violation(worker.problem)
            self.unsure.append(worker.unsure)

    def pause(self, least=0.05, most=0.5):
        time.sleep(self.random.uniform(least, most))

    def ask(self, *words):
        try:
            with self.process.connect(timeout=10) as connection:
                return connection.call(*words)
        except (OSError, s.Closed, s.Timeout):
            return None

    # --- ends
    def kill(self):
        self.process.kill()
        self.gather()
        return "killed"

    def cut(self):
        self.process.kill()
        self.gather()
        done = power_cut(self.place, self.random.randrange(1 << 60))
        return "power cut: " + "; ".join(done)

    def end(self):
        """A power cut where that must lose nothing, else a kill."""
        return self.cut() if self.policy == "always" and self.random.random() < 0.7 else self.kill()

    # --- rounds
    def round_kill(self):
        self.load()
        self.pause()
        return self.kill()

    def round_cut(self):
        self.load()
        self.pause()
        return self.cut()

    def round_kill_at_call(self):
        """Killed exactly before or inside a call."""
        self.load()
        self.pause(0.02, 0.2)
        if self.random.random() < 0.6:
            self.ask(self.random.choice(("BGREWRITEAOF", "BGSAVE")))
        self.place.fail(self.random.choice((s.KILL_BEFORE, s.KILL_INSIDE)), self.random.randint(1, 300))
        self.pause(0.1, 0.4)
        return "at a call: " + self.end()

    def round_slow(self):
        self.place.put(sync_delay_us=self.random.choice((1000, 5000, 50_000)))
        self.load()
        self.pause(0.2, 0.6)
        return "slow disk: " + self.end()

    def round_clock(self):
        """Steps of the wall clock under load and across the restart."""
        for _ in range(self.random.randint(1, 3)):
            self.place.put(clock_offset_ns=self.random.choice((-2, -1, 0, 1, 2)) * s.DAY_NS)
            if self.incarnation % 2 == 0:
                self.load()
                self.pause(0.05, 0.2)
                self.gather_calm()
        self.load()
        self.pause(0.05, 0.2)
        self.place.put(clock_offset_ns=self.random.choice((-2, -1, 0, 1, 2)) * s.DAY_NS)
        self.pause(0.05, 0.2)
        result = self.end()
        self.place.put(clock_offset_ns=self.random.choice((-2, -1, 0, 1, 2)) * s.DAY_NS)
        return "clock steps: " + result

    def gather_calm(self):
        """The load ends by itself, so nothing is unsure."""
        for worker in self.workers:
            worker.stopping.set()
        for worker in self.workers:
            worker.join(90)
            if worker.problem or worker.unsure:
                self.violation(f"{worker.name}: {worker.problem}, {worker.unsure} without a crash")

    def round_idle(self):
        self.load()
        self.pause(0.05, 0.2)
        self.gather_calm()
        self.workers = []
        self.pause(0.0, 0.3)
        return "idle: " + self.end()

    def round_rewrite(self):
        """On a slow disk much is done between a snapshot's cut and its walk."""
        self.place.put(sync_delay_us=self.random.choice((0, 3000, 20_000)))
        self.load()
        for _ in range(self.random.randint(1, 4)):
            self.pause(0.0, 0.1)
            self.ask("BGREWRITEAOF")
        self.pause(0.0, 0.15)
        return "rewrite: " + self.end()

    def round_snapshot(self):
        self.load()
        for _ in range(self.random.randint(1, 3)):
            self.pause(0.0, 0.1)
            self.ask("BGSAVE")
        self.pause(0.0, 0.15)
        return "snapshot: " + self.end()

    def round_stop(self):
        """A clean stop under load: what was answered stays."""
        self.load()
        self.pause()
        self.process.process.terminate()
        code = self.process.wait(30)
        self.gather()
        if code != 0:
            self.violation(f"a clean stop ended with exit code {code}: {self.process.log_text()}")
        return "clean stop"

    def round_switch(self):
        """From CONFIG SET appendfsync always on, all that was answered before is as safe as what comes after."""
        self.load()
        self.pause(0.05, 0.3)
        reply = self.ask("CONFIG", "SET", "appendfsync", "always")
        if reply is None or bytes(reply) != b"OK":
            self.violation(f"appendfsync cannot be changed: {reply!r}")
        if self.random.random() < 0.5:
            self.pause(0.0, 0.2)
        return "switched to always: " + self.cut()

    def round_waitaof(self):
        """What WAITAOF has waited for is safe whatever the policy."""
        self.load()
        self.pause(0.05, 0.3)
        self.gather_calm()
        self.workers = []
        with self.process.connect(timeout=60) as connection:
            connection.call("SET", "again", "1")
            reply = connection.call("WAITAOF", "1", "0", "30000")
        if reply != [1, 0]:
            self.violation(f"WAITAOF said {reply!r}")
        return "WAITAOF: " + self.cut()

    def round_second(self):
        """`everysec`: a power cut takes what was answered in the last second or two, and nothing older."""
        self.load()
        self.pause(0.05, 0.3)
        self.gather_calm()
        self.workers = []
        if self.policy != "everysec":
            return "quiet: " + self.kill()
        time.sleep(2.1)  # a sync began at most a second ago, and this disk is quick
        return "quiet for two seconds: " + self.cut()

    def round_fault(self):
        """Errors from the n-th call on. A disk that is full is waited for; a failed sync ends the process."""
        self.load()
        self.pause(0.02, 0.1)
        if self.random.random() < 0.4:
            self.ask(self.random.choice(("BGREWRITEAOF", "BGSAVE")))
        fault = self.random.choice((s.EIO, s.ENOSPC, s.SHORT))
        first = self.random.choice((1, self.random.randint(1, 50), self.random.randint(1, 2000)))
        count = self.random.choice((1, 1, 3, 1 << 40))
        mask = s.CHANGES if fault == s.EIO else s.WRITE | s.OPEN | s.RESERVE  # what takes room
        self.place.fail(fault, first, count, mask)
        self.pause(0.2, 0.5)
        faults = self.place.get("faults")
        self.place.calm()
        self.place.put(sync_mode=self.sync_mode)
        what = f"fault {fault} from call {first} on, {count} times, {faults} hit: "
        if self.process.process.poll() is None and faults and fault != s.EIO and not self.writes_again():
            self.violation(f"{what} no write is accepted though the disk has room again: {self.process.log_text()}")
        code = self.process.process.poll()
        if code is None:
            return what + self.end()
        if code != s.EXIT_SYNC_FAILED or (fault != s.EIO and not self.options.plain):
            self.violation(f"{what} exit code {code}: {self.process.log_text()}")
        return what + "exited; " + self.end()

    def writes_again(self):
        give_up = time.monotonic() + 10
        while time.monotonic() < give_up:
            reply = self.ask("SET", "again", "1")
            if reply is None or bytes(reply) == b"OK":
                return True
            time.sleep(0.02)
        return False

    ALWAYS = {"kill": 10, "cut": 25, "kill_at_call": 15, "slow": 6, "clock": 8, "idle": 4, "rewrite": 10, "snapshot": 6,
              "stop": 4, "fault": 12}
    OTHERS = {"kill": 20, "kill_at_call": 15, "clock": 8, "idle": 4, "rewrite": 10, "snapshot": 8, "stop": 5, "fault": 10,
              "switch": 8, "waitaof": 6, "second": 3}

    def run(self, rounds, report, only=None):
        """Returns how many rounds were good; stops at the first bad one, whose directory stays."""
        kinds = dict(self.ALWAYS if self.policy == "always" else self.OTHERS)
        if self.options.plain:
            for kind in ("fault", "switch", "waitaof", "second"):  # a Redis does not recover from what this does to its files
                kinds.pop(kind, None)
        if only:
            kinds = {kind: 1 for kind in only}
        good, history = 0, []
        try:
            for number in range(rounds):
                kind = self.random.choices(list(kinds), list(kinds.values()))[0]
                self.start(self.random.choice((0, 0, 0, 1, 2)) if number else 0)
                self.check()
                history.append(f"{kind}: {getattr(self, 'round_' + kind)()}")
                report(kind)
                if self.knowledge.violations:
                    break
                good += 1
            if not self.knowledge.violations:
                self.start()
                self.check(everything=True)
                if self.options.plain is False and self.process.stop() != 0:
                    self.violation("the last clean stop failed")
        except s.NotStarted as problem:
            self.violation(f"the server does not start: {problem}")
        except (s.Closed, s.Timeout, OSError) as problem:
            self.violation(f"the check got no answer ({problem!r}): {self.process.log_text()}")
        finally:
            if self.process is not None:
                self.process.kill()
        if not self.knowledge.violations:
            self.place.remove()
            return good, None
        lines = [f"seed {self.seed}, appendfsync {self.policy}, {self.settings}, directory {self.place.root}"]
        lines += ["  " + text for text in history[-3:]]
        lines += ["  VIOLATION " + text for text in self.knowledge.violations[:8]]
        return min(good, rounds - 1), "\n".join(lines)


TURNS_MAX = 30  # mostly one or two are enough; whether a turn meets the fault is a matter of luck


def control(options, name, seed, policy, only, **parts):
    """A fault of the kind that this suite is for: true when it was noticed within some rounds."""
    for turn in range(TURNS_MAX):
        world = World(options, policy, seed + turn, **parts)
        _, problem = world.run(4, lambda kind: None, only)
        world.place.remove()
        lost = [v for v in world.knowledge.violations if "does not start" not in v and "got no answer" not in v]
        if lost:
            print(f"control caught: {name}: {lost[0][:200]}")
            return True
    print(f"BLIND  {name} went unnoticed")
    return False


def controls(options, seed):
    good = [control(options, "everysec is not always", seed, "everysec", ["cut"]),
            control(options, "a sync that lies", seed, "always", ["cut"], sync_mode=s.LYING),
            control(options, "a reply before its sync", seed, "always", ["cut"], sync_mode=s.LATE)]
    if not options.plain:
        for name, kind, planted in (("a deletion that is not logged", "kill", "idemd_forgets_deletes"),
                                    ("a set's new members that are not logged", "kill", "idemd_forgets_members"),
                                    ("a snapshot that has collections as they are later", "rewrite", "idemd_saves_late")):
            binary = str(Path(options.planted or Path(options.build or "") / "tests/crash") / planted)
            good.append(control(options, name, seed, "always", [kind], binary=binary))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory (or IDEMD_BIN and IDEMD_SHIM)")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("IDEMD_SEED") or random.randrange(10**9)))
    parser.add_argument("--only", action="append", help="a kind of round")
    parser.add_argument("--policy", choices=("always", "everysec", "no"))
    parser.add_argument("--plain", action="store_true", help="only what a Redis understands, for one under IDEMD_BIN")
    parser.add_argument("--no-controls", action="store_true")
    parser.add_argument("--planted", help="the folder of the servers with planted faults")
    options = parser.parse_args()
    options.binary = find_binary(options.build)
    options.shim = s.find_shim(options.build)
    print(f"IDEMD_SEED={options.seed}", flush=True)
    passed = failed = 0
    kinds, acknowledged = {}, 0

    def report(kind):
        kinds[kind] = kinds.get(kind, 0) + 1

    if not options.no_controls:
        results = controls(options, options.seed)
        passed, failed = results.count(True), results.count(False)
    started, left, number = time.monotonic(), options.rounds, 0
    while left > 0:
        seed = options.seed * 1000 + number
        policy = options.policy or random.Random(seed).choices(("always", "everysec", "no"), (6, 3, 1))[0]
        world = World(options, policy, seed)
        rounds = min(left, ROUNDS_PER_WORLD)
        try:
            good, problem = world.run(rounds, report, options.only)
        except Impossible as problem_of_ours:
            good, problem = 0, f"seed {seed}: the power cut cannot be simulated: {problem_of_ours}"
        acknowledged += world.knowledge.acknowledged
        passed += good
        left -= rounds
        number += 1
        if problem:
            failed += 1
            print(f"FAILED  {problem}", flush=True)
    print(f"{options.rounds} rounds in {time.monotonic() - started:.0f} s, {acknowledged} acknowledged requests; "
          + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

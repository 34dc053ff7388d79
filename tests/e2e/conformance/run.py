"""Runs the conformance cases in RESP2 and RESP3 against a real idemd and prints `N passed, N failed`."""
import argparse
import concurrent.futures
import itertools
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from casefile import load  # noqa: E402
from lib.resp import Closed, Error, Nil, Timeout  # noqa: E402
from lib.server import Server, find_binary  # noqa: E402
from match import Mismatch, Scope, match, show, text_of  # noqa: E402

CALL_TIMEOUT = 15.0
_numbers = itertools.count(1)


class Failed(Exception):
    """The case failed; the text says where and how."""


class Host:
    """A running server and what it can do."""

    def __init__(self, server):
        self.server = server
        self._known = {}
        self._mutex = threading.Lock()

    def supports(self, words):
        """False where the server itself says that it has no such feature yet."""
        with self.server.connect() as client:
            reply = client.call(*words)
        return not (isinstance(reply, Error) and "not supported" in text_of(reply))

    def has(self, name):
        with self._mutex:
            if name not in self._known:
                with self.server.connect() as client:
                    reply = client.call("COMMAND", "INFO", name)
                self._known[name] = isinstance(reply, list) and len(reply) == 1 and not isinstance(reply[0], Nil)
            return self._known[name]


class Run:
    """One case in one protocol."""

    def __init__(self, case, resp, host):
        self.case, self.resp, self.host = case, resp, host
        self.scope = Scope(ns=f"c{next(_numbers)}r{resp}:")
        for name, value in case.variables.items():
            self.scope[name] = self.scope.template(value)
        self.connections, self.ids, self.sent_at, self.took = {}, {}, {}, {}
        self.control = None
        self.snapshot = None

    def run(self):
        try:
            for step in self.case.steps:
                try:
                    getattr(self, "step_" + step.kind)(step)
                except Mismatch as problem:
                    raise Failed(f"{self.case.file}:{step.line}: {step.text}\n      {problem}") from None
                except (Closed, Timeout, OSError) as problem:
                    raise Failed(f"{self.case.file}:{step.line}: {step.text}\n      {problem!r}") from None
        finally:
            for connection in list(self.connections.values()) + ([self.control] if self.control else []):
                connection.close()

    def connection(self, name):
        if name not in self.connections:
            connection = self.host.server.connect(resp=self.resp, timeout=CALL_TIMEOUT)
            self.connections[name] = connection
            if name != "a":
                self.ids[name] = connection.call("CLIENT", "ID")
                self.scope["id_" + name] = self.ids[name]
        return self.connections[name]

    def keeper(self):
        """A connection of the runner's own, for looking without disturbing."""
        if self.control is None:
            self.control = self.host.server.connect(timeout=CALL_TIMEOUT)
        return self.control

    # --- commands
    def step_call(self, step):
        for _ in range(step.times):
            started = time.monotonic()
            reply = self.connection(step.connection).call(*self.scope.words(step.words))
            self.took[step.connection] = (time.monotonic() - started) * 1000
            match(step.expected, reply, self.scope, self.resp)

    def step_do(self, step):
        for _ in range(step.times):
            reply = self.connection(step.connection).call(*self.scope.words(step.words))
            if isinstance(reply, (Error, Nil)):
                raise Mismatch(f"expected success, got {show(reply)}")

    def step_send(self, step):
        self.connection(step.connection).send(*self.scope.words(step.words))
        self.sent_at[step.connection] = time.monotonic()

    def step_read(self, step):
        reply = self.connection(step.connection).read()
        self.took[step.connection] = (time.monotonic() - self.sent_at[step.connection]) * 1000
        match(step.expected, reply, self.scope, self.resp)

    def step_hear(self, step):
        match(step.expected, self.connection(step.connection).hear(), self.scope, self.resp)

    def step_refused(self, step):
        """Each command gets the error, and nothing in the case's namespace changes."""
        before = self.look()
        for number, text, words in step.commands:
            reply = self.connection("a").call(*self.scope.words(words))
            try:
                match(step.expected, reply, self.scope, self.resp)
                self.compare(before)
            except Mismatch as problem:
                raise Failed(f"{self.case.file}:{number}: {text}\n      {problem}") from None

    # --- what the namespace holds
    def look(self):
        """Every key of the case: its string (or type) and deadline."""
        client = self.keeper()
        found = {}
        for key in client.call("KEYS", self.scope["ns"].replace("*", "\\*") + "*"):
            value = client.call("GET", key)
            if isinstance(value, Error):
                value = client.call("TYPE", key)
            found[text_of(key)] = (show(value), client.call("PEXPIRETIME", key))
        return found

    def compare(self, before):
        after = self.look()
        if before != after:
            changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
            raise Mismatch("expected nothing to change, but " + "; ".join(
                f"{key}: {before.get(key, 'absent')} -> {after.get(key, 'absent')}" for key in changed))

    def step_snapshot(self, _):
        self.snapshot = self.look()

    def step_unchanged(self, _):
        self.compare(self.snapshot)

    # --- time, waiting, variables
    def step_sleep(self, step):
        time.sleep(int(step.argument) / 1000)

    def step_check(self, step):
        if not self.scope.evaluate(step.argument):
            known = {k: v for k, v in self.scope.items() if k in step.argument}
            raise Mismatch(f"expected {step.argument} with {known}")

    def step_let(self, step):
        name, _, source = step.argument.partition("=")
        self.scope[name.strip()] = self.scope.evaluate(source)

    def step_blocked(self, step):
        """Waits until the server says that the connection is blocked."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            reply = self.keeper().call("CLIENT", "LIST", "ID", self.ids[step.argument])
            fields = dict(f.split("=", 1) for f in text_of(reply).split() if "=" in f)
            if "b" in fields.get("flags", ""):
                return
            time.sleep(0.005)
        raise Mismatch(f"expected connection {step.argument} to be blocked, got {show(reply)}")

    def step_silent(self, step):
        """`silent b 100`: no reply on b for so many milliseconds."""
        name, ms = step.argument.split()
        try:
            reply = self.connection(name).read(timeout=int(ms) / 1000)
        except Timeout:
            return
        raise Mismatch(f"expected no reply yet on {name}, got {show(reply)}")

    def step_took(self, step):
        """`took b 80..2000`: how long the last reply on b was awaited."""
        name, bounds = step.argument.split()
        low, high = bounds.split("..")
        if not float(low) <= self.took[name] <= float(high):
            raise Mismatch(f"expected the reply after {bounds} ms, got it after {self.took[name]:.1f} ms")

    def step_restart(self, step):
        """Stops the case's own server, or kills it, and starts it again on the same directory."""
        for connection in list(self.connections.values()) + ([self.control] if self.control else []):
            connection.close()
        self.connections, self.control = {}, None
        killed = step.argument == "killed"
        code = self.host.server.kill() if killed else self.host.server.stop()
        if not killed and code != 0:
            raise Mismatch(f"expected the server to stop with 0, got {code}: {self.host.server.log_text()}")
        self.host.server.start()

    def step_close(self, step):
        self.connections.pop(step.argument).close()


def run_case(case, resp, shared, binary):
    """"passed", "skipped", or the failure's text."""
    if case.server is None:
        return run_on(case, resp, shared)
    with Server(binary, **case.server) as server:
        return run_on(case, resp, Host(server))


def run_on(case, resp, host):
    if not all(host.has(name) for name in case.needs):
        return "skipped"
    if case.probe and not host.supports(case.probe):
        return "skipped"
    try:
        Run(case, resp, host).run()
    except Failed as problem:
        return str(problem)
    except Exception as problem:  # a broken case is a failure of that case, not of the run
        return f"{case.file}:{case.line}: {problem!r}"
    if not host.server.alive():
        return f"{case.file}:{case.line}: the server ended: {host.server.log_text()}"
    return "passed"


def run_all(cases, protocols, binary, jobs):
    """[(case, resp, outcome)] in file order."""
    work = [(case, resp) for case in cases for resp in protocols if case.only in (0, resp)]
    with Server(binary) as server:
        shared = Host(server)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            outcomes = list(pool.map(lambda item: run_case(*item, shared, binary), work))
    return [(case, resp, outcome) for (case, resp), outcome in zip(work, outcomes)]


def negative_control(binary, protocols, jobs):
    """Every case of wrong.case expects something wrong: one that passes shows that the runner is blind."""
    results = run_all(load(HERE / "wrong.case"), protocols, binary, jobs)
    blind = [f"{case.name} (RESP{resp})" for case, resp, outcome in results if outcome in ("passed", "skipped")]
    return len(results), blind


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--only", help="a part of the file's or the case's name")
    parser.add_argument("--resp", type=int, choices=(2, 3))
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    cases = [case for path in sorted((HERE / "cases").glob("*.case")) for case in load(path)]
    if options.only:
        cases = [c for c in cases if options.only in c.name or options.only in c.file]
    if options.list:
        print("\n".join(f"{c.file}:{c.line}: {c.name}" for c in cases))
        return 0
    if not cases:
        raise SystemExit("no such case")
    binary = find_binary(options.build)
    protocols = (options.resp,) if options.resp else (2, 3)
    started = time.monotonic()

    wrong, blind = negative_control(binary, protocols, options.jobs)
    for name in blind:
        print(f"BLIND  {name}: a wrong expectation was not noticed")

    results = run_all(cases, protocols, binary, options.jobs)
    failed = [r for r in results if r[2] not in ("passed", "skipped")]
    skipped = [r for r in results if r[2] == "skipped"]
    for case, resp, outcome in failed:
        print(f"FAILED RESP{resp} {case.name}\n    {outcome}")
    missing = sorted({name for case, _, _ in skipped for name in case.needs})
    assert all(case.needs or case.probe for case, _, _ in skipped)
    if skipped:
        print(f"{len(skipped)} skipped: the server lacks some of {', '.join(missing)}")
    print(f"negative control: {wrong - len(blind)} of {wrong} wrong expectations noticed")
    print(f"{len(results) - len(failed) - len(skipped)} passed, {len(failed)} failed"
          f" ({time.monotonic() - started:.1f} s)")
    return 1 if failed or blind else 0


if __name__ == "__main__":
    sys.exit(main())

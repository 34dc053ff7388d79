"""One unit of a Tcl suite in its external mode, against a server that is there: what each of its tests came to.

The suite prints a line for each test. What ends its run early (a test that hangs, a server that dies) costs only the test that was running: it
is failed, and the unit runs once more without it.
"""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

TAGS = "-slow -needs:debug"  # as the suite's own authors run it against a server that they did not start
TRIES_MAX = 8
# The suite looks for a free port for its own control connection, from the one given on.
CONTROL_PORTS = range(22000, 30000)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OUTCOME = re.compile(r"^\[(ok|err|ignore|skip|exception|TIMEOUT)\]:? ?(.*)$")
UNIT_END = re.compile(r"^\[\d+/\d+ done\]: ")
RUNNING = re.compile(r"\(IN PROGRESS\) (.*)$")


class Result:
    """What a unit came to. `failed` maps names to reasons; `early` says why the run did not reach its end, or is empty."""

    def __init__(self):
        self.ok = []
        self.failed = {}
        self.ignored = 0
        self.early = ""
        self.running = None


def parse(text):
    result, detail, ended = Result(), None, False
    for line in COLOUR.sub("", text).splitlines():
        if UNIT_END.match(line) or "The following tests failed" in line:
            ended = ended or bool(UNIT_END.match(line))
            detail = None
            continue
        running = RUNNING.search(line)
        if running:
            result.running = running.group(1).strip()
        match = OUTCOME.match(line)
        if not match:
            if detail is not None and not result.failed[detail]:
                result.failed[detail] = line.strip()
            continue
        kind, rest = match.groups()
        detail = None
        if kind == "ok":
            result.ok.append(re.sub(r" \(\d+ ms\)$", "", rest))
        elif kind == "err":
            detail = re.sub(r" in tests/\S+$", "", rest)
            result.failed[detail] = ""
        elif kind == "ignore":
            result.ignored += 1
        elif kind == "exception":
            result.early = rest
        elif kind == "TIMEOUT":
            result.early = "no progress"
    if not ended and not result.early:
        result.early = "ended early: " + (text.strip().splitlines() or ["no output"])[-1][:200]
    return result


class Suite:
    """A private copy of a tree's tests, because the suite writes beside them and wants to find redis-cli there."""

    def __init__(self, tree, stall_seconds, limit_seconds):
        self.stall_seconds, self.limit_seconds = stall_seconds, limit_seconds
        self.tclsh = shutil.which("tclsh") or shutil.which("tclsh8.6")
        if self.tclsh is None:
            raise SystemExit("no tclsh: ./dev setup installs it")
        self.folder = Path(tempfile.mkdtemp(prefix="idemd-compat-"))
        shutil.copytree(Path(tree) / "tests", self.folder / "tests", ignore=shutil.ignore_patterns("tmp"))
        (self.folder / "tests" / "tmp").mkdir()
        (self.folder / "src").mkdir()
        for program in ("redis-cli", "redis-benchmark"):
            path = shutil.which(program)
            if path:
                (self.folder / "src" / program).symlink_to(path)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def once(self, unit, port, without):
        words = [self.tclsh, "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--single", unit,
                 "--clients", "1", "--durable", "--timeout", str(self.stall_seconds), "--baseport", str(control_port() + 32),
                 "--tags", TAGS]
        for name in without:
            words += ["--skiptest", name]
        process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        late = False
        try:
            output, _ = process.communicate(timeout=self.limit_seconds)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        finally:
            try:  # the suite's own children, which it leaves behind when it is stopped
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        result = parse(output.decode("utf-8", "replace"))
        if late:
            result.early = f"not done after {self.limit_seconds} s"
        return result

    def unit(self, name, start, left_out=()):
        """`start()` gives a fresh server as a context; each try gets its own. Tests that are left out are not begun."""
        hung = {}
        for _ in range(TRIES_MAX):
            with start() as server:
                result = self.once(name, server.port, [*left_out, *hung])
                died = not server.alive()
                log = server.log_text() if died else ""
            # A dead server fails every test after the one that ended it.
            culprit = next(iter(result.failed), result.running) if died else result.running if result.early else None
            if culprit is None or culprit in hung:
                break
            hung[culprit] = "the server ended: " + log[-300:] if died else result.early
        if died and not result.early:
            result.early = "the server ended"
        result.failed.update(hung)
        return result


def control_port():
    for port in random.sample(CONTROL_PORTS, 200):
        try:
            for probed in (port, port + 10000):  # the suite looks at both
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", probed))
            return port
        except OSError:
            continue
    raise RuntimeError("no free port for the suite's control connection")

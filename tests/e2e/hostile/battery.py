"""What every hostile case is held to: the server lives, others' PINGs are answered, and its memory comes back."""
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.resp import Closed, Connection, Timeout  # noqa: E402
from lib.server import Server  # noqa: E402

MIB = 1024 * 1024
PEAK_MAX = 64 * MIB      # over the start, at any time
SETTLED_MAX = 24 * MIB   # over the start, after a kind of cases: buffers and sessions of what is kept
SETTLE_SECONDS = 5.0
PING_SECONDS_MAX = 1.0   # two PINGs after a case, one of them on a new connection
PING_P99_MS = 10.0       # of all PINGs; see Watch.verdict()
LOG_LINES_MAX = 40       # of one kind of cases: whoever may connect must not fill the disk

# Small enough that a client which uses all it may stays far below PEAK_MAX.
SETTINGS = {
    "io_threads": 2,
    "save": "",
    "maxmemory": "16mb",
    "proto_max_bulk_len": "2mb",
    "proto_max_words": "400000",
    "proto_max_reply_len": "8mb",
    "client_query_buffer_limit": "4mb",
    "client_output_buffer_limit": "pubsub 8mb 4mb 10",
    "script_max_memory": "4mb",
}


class Process:
    """Memory and log of a running server."""

    def __init__(self, server):
        self.server = server
        self.pid = server.process.pid

    def _status(self, field):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
        raise RuntimeError(f"no {field}")

    def rss(self):
        return self._status("VmRSS:")

    def address_space(self):
        return self._status("VmSize:")

    def take_peak(self):
        """The highest RSS since the last call."""
        peak = self._status("VmHWM:")
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")
        return peak


class Watch:
    """A process of its own that sends PINGs all the time, on a connection per loop of the server."""

    def __init__(self, port, loops):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "watch.py"), str(port), str(loops)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        text, _ = self.process.communicate("", timeout=60)
        if self.process.returncode != 0:
            raise RuntimeError("the process that sends PINGs has failed")
        return json.loads(text)


class Battery:
    def __init__(self, binary, only=None, verbose=False):
        self.binary = binary
        self.only = only
        self.verbose = verbose
        self.passed = self.failed = 0
        self.highest = (0, "nothing")   # bytes over the start, and in which case
        self.settled = 0
        self.kinds = {}
        self.peak_max = PEAK_MAX
        self.server = self.process = self.steady = None

    # --- a server
    @contextlib.contextmanager
    def serving(self, **settings):
        """Cases run against a server of their own; yields its port."""
        with Server(self.binary, **{**SETTINGS, **settings}) as self.server:
            self.process = Process(self.server)
            self.password = settings.get("requirepass")
            with self.connect() as self.steady:
                self.steady.call("PING")
                self.process.take_peak()
                self.start_rss = self.process.rss()
                self.left = 0
                yield self.server.port
            code = self.server.stop()
            if code != 0:
                self.fail("the end", f"the server ended with {code}: {self.server.log_text()}")

    def connect(self, login=True, **options):
        return self.server.connect(**{"timeout": 5.0, **options}, password=self.password if login else None)

    def raw(self, receive_bytes=None):
        """A socket that says nothing by itself."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(5.0)
        sock.connect(("127.0.0.1", self.server.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    # --- cases
    def fail(self, name, what):
        self.failed += 1
        print(f"FAILED  {name}: {what}", flush=True)

    def wants(self, kind):
        return not self.only or self.only in kind

    def run(self, kind, cases):
        """`cases` yields (name, body); a body raises or returns a text when it was answered wrongly."""
        if not self.wants(kind):
            return
        self.kind_peak = 0
        started, before, lines = time.monotonic(), self.passed + self.failed, len(self.server.log_lines())
        for name, body in cases:
            self.case(f"{kind}: {name}", body)
        left = self.settle(kind)
        written = len(self.server.log_lines()) - lines
        if written > LOG_LINES_MAX:
            self.fail(kind, f"{written} lines in the log, such as {self.server.log_lines()[-1]}")
        self.kinds[kind] = (self.passed + self.failed - before, time.monotonic() - started)
        print(f"{kind:16} {self.kinds[kind][0]:5} cases, {self.kinds[kind][1]:5.1f} s, {written:3} lines in the log; memory over the start: "
              f"peak {self.kind_peak / MIB:.1f} MiB, then {left / MIB:.1f} MiB", flush=True)

    def case(self, name, body):
        try:
            wrong = body()
        except (Closed, Timeout, OSError, AssertionError, ValueError) as error:
            wrong = f"{type(error).__name__} {error}"
        wrong = self.calm() or wrong
        peak = self.process.take_peak() - self.start_rss if self.server.alive() else 0
        if self.peak_max == PEAK_MAX:
            self.highest = max(self.highest, (peak, name))
        self.kind_peak = max(self.kind_peak, peak)
        if peak > self.peak_max:
            wrong = f"{wrong or ''} {peak / MIB:.0f} MiB of memory over the start"
        if wrong:
            self.fail(name, wrong)
        else:
            self.passed += 1
            if self.verbose:
                print(f"ok      {name}: peak {peak / MIB:.1f} MiB")
        if not self.server.alive():
            raise SystemExit(f"the server is gone: {self.server.process.returncode} {self.server.log_text()}")

    def calm(self):
        """What is wrong with the server's answers to others, or nothing."""
        if not self.server.alive():
            return f"the server ended with {self.server.process.returncode}"
        for _ in range(3):  # a machine that is busy with something else is slow once
            started = time.monotonic()
            try:
                if bytes(self.steady.call("PING", timeout=10.0)) != b"PONG":
                    return "another connection's PING got a wrong answer"
                with self.connect(timeout=10.0) as fresh:
                    if bytes(fresh.call("PING")) != b"PONG":
                        return "a new connection's PING got a wrong answer"
            except (Closed, Timeout, OSError) as error:
                return f"nobody else is served: {type(error).__name__} {error}"
            seconds = time.monotonic() - started
            if seconds <= PING_SECONDS_MAX:
                return None
        return f"PINGs took {seconds:.2f} s"

    def settle(self, kind):
        """The data goes, and so must the memory."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            # The allocator gives freed pages back by itself, but takes some seconds.
            for words in (["FLUSHALL"], ["MEMORY", "PURGE"]):
                self.steady.call(*words, timeout=10.0)
            left = self.process.rss() - self.start_rss
            if left <= self.left + MIB or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.settled, self.left = max(self.settled, left), left
        if left > SETTLED_MAX:
            self.fail(kind, f"{left / MIB:.0f} MiB of memory did not come back")
        return left


def reset(sock):
    """Closes with a reset, as a peer does that has gone away."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def drain(sock, seconds=10.0):
    """(what came, whether the server ended the connection) within `seconds`."""
    came = bytearray()
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            data = sock.recv(65536)
        except socket.timeout:
            break
        except ConnectionError:
            return bytes(came), True
        if not data:
            return bytes(came), True
        came += data
    return bytes(came), False

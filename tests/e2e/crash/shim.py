"""A server process under the preloaded shim: its data directory, the shim's notes, and the words that steer it."""
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.resp import Closed, Connection, Error, Timeout  # noqa: E402
from lib.server import ROOT, free_port  # noqa: E402

# As in tests/crash/shim.cc.
WORDS = ("calls", "mask", "fail_from", "fail_count", "fault", "faults", "sync_delay_us", "sync_mode",
         "clock_offset_ns", "syncs")
WRITE, SYNC, OPEN, RENAME, UNLINK, TRUNCATE, RESERVE, SYNC_DIRECTORY, READ = (1 << i for i in range(9))
CHANGES = WRITE | SYNC | OPEN | RENAME | UNLINK | TRUNCATE | RESERVE | SYNC_DIRECTORY
EIO, ENOSPC, SHORT, KILL_BEFORE, KILL_INSIDE = 1, 2, 3, 4, 5
HONEST, LYING, LATE = 0, 1, 2
DAY_NS = 86_400 * 10**9
EXIT_SYNC_FAILED = 75


def find_shim(build):
    """IDEMD_SHIM, else the library in the build directory, else the newest one of the tree."""
    if os.environ.get("IDEMD_SHIM"):
        return os.environ["IDEMD_SHIM"]
    name = "tests/crash/libcrash_shim.so"
    for place in (build, os.environ.get("BUILD")):
        if place and (Path(place) / name).is_file():
            return str(Path(place) / name)
    found = sorted(ROOT.glob(f"build*/**/{name}"), key=lambda p: -p.stat().st_mtime)
    if not found:
        raise SystemExit("build the target `crash_shim` first")
    return str(found[0])


class NotStarted(Exception):
    """The server ended, or did not answer, before it served."""


class Place:
    """Where a server's data live over many starts, and the shim's notes about them."""

    def __init__(self, library, root=None):
        # In memory where there is room: nothing here depends on what a real disk does with a sync.
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.library = library
        self.root = root or tempfile.mkdtemp(prefix="idemd-crash-", dir=base)
        self.data = os.path.join(self.root, "data")
        self.state = os.path.join(self.root, "notes")
        os.makedirs(self.data, exist_ok=True)
        os.makedirs(self.state, exist_ok=True)
        path = os.path.join(self.root, "control")
        with open(path, "wb") as out:
            out.write(bytes(4096))
        with open(path, "r+b") as file:
            self.control = mmap.mmap(file.fileno(), 4096)
        self.environment = dict(os.environ, LD_PRELOAD=library, IDEMD_SHIM_DIR=self.data, IDEMD_SHIM_STATE=self.state,
                                IDEMD_SHIM_CONTROL=path)

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def get(self, word):
        return struct.unpack_from("<q", self.control, 8 * WORDS.index(word))[0]

    def put(self, **words):
        for word, value in words.items():
            struct.pack_into("<q", self.control, 8 * WORDS.index(word), value)

    def calm(self):
        """No faults; the clock stays where it is."""
        self.put(fail_from=0, fail_count=0, mask=0, calls=0, sync_delay_us=0, sync_mode=HONEST)

    def fail(self, fault, first, count=1 << 40, mask=CHANGES):
        """The first-th call of these kinds from now, and the next ones, go wrong."""
        self.put(mask=0, calls=0, fail_count=count, fault=fault, fail_from=first, faults=0)
        self.put(mask=mask)


class Process:
    """One run of a server over a Place."""

    def __init__(self, place, binary, settings, patience=30.0):
        self.place, self.patience = place, patience
        self.port = free_port()
        self.log_path = os.path.join(place.root, "log")
        words = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", place.data]
        for name, value in settings.items():
            words += ["--" + name, str(value)]
        self.log = open(self.log_path, "ab")
        self.log.write(b"---- start\n")
        self.log.flush()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=place.environment)

    def until_serving(self):
        """Waits out the loading. NotStarted when the process ends before."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise NotStarted(f"exit code {self.process.returncode}\n{self.log_text()}")
            try:
                with Connection(self.port, timeout=2.0) as client:
                    reply = client.call("PING")
                    if not isinstance(reply, Error):
                        return self
            except (OSError, Closed, Timeout):
                pass
            time.sleep(0.005)
        self.kill()
        raise NotStarted(f"no answer within {self.patience} s\n{self.log_text()}")

    def connect(self, **options):
        return Connection(self.port, **options)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait(15)

    def wait(self, timeout=15.0):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        return self.process.returncode

    def log_text(self):
        with open(self.log_path, "rb") as log:
            return log.read()[-1000:].decode("latin-1")

"""A real idemd process for a test: started on a free loopback port, ended by its own process id."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .resp import Closed, Connection, Timeout

ROOT = Path(__file__).resolve().parents[3]


def find_binary(build_dir=None):
    """IDEMD_BIN (or IDEMD), else `build_dir`/idemd, else the newest build*/…/idemd of the tree."""
    named = os.environ.get("IDEMD_BIN") or os.environ.get("IDEMD")
    if named:
        return named
    if build_dir:
        path = Path(build_dir)
        return str(path if path.is_file() else path / "idemd")
    found = [p for p in list(ROOT.glob("build*/idemd")) + list(ROOT.glob("build*/*/idemd")) if p.is_file()]
    if not found:
        raise SystemExit("no idemd binary: set IDEMD_BIN or give the build directory")
    return str(max(found, key=lambda p: p.stat().st_mtime))


def _port_range():
    """IDEMD_TEST_PORTS=first-last keeps parallel suites apart; otherwise the system picks."""
    text = os.environ.get("IDEMD_TEST_PORTS")
    if not text:
        return None
    first, last = text.split("-")
    return range(int(first), int(last) + 1)


_next_port = 0


def free_port():
    global _next_port
    ports = _port_range()
    if ports is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]
    for _ in range(len(ports)):
        port = ports[_next_port % len(ports)]
        _next_port += 1
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port in IDEMD_TEST_PORTS")


class Server:
    """with Server(binary, idem_lease=50) as server: server.connect() ... ; settings as keywords, _ for -."""

    def __init__(self, binary=None, unix_socket=False, start_timeout=20.0, **settings):
        self.binary = binary or find_binary()
        self.directory = tempfile.mkdtemp(prefix="idemd-e2e-")
        self.socket_path = os.path.join(self.directory, "idemd.sock") if unix_socket else None
        self.settings = {name.replace("_", "-"): str(value) for name, value in settings.items()}
        self.start_timeout = start_timeout
        self.process = None
        self.port = None

    def start(self):
        for _ in range(3):  # another process may take the port between the look and the start
            self.port = free_port()
            words = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory]
            if self.socket_path:
                words += ["--unixsocket", self.socket_path]
            for name, value in self.settings.items():
                words += ["--" + name, value]
            self.log = open(os.path.join(self.directory, "log"), "wb")
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
            if self._answers():
                return self
        raise RuntimeError(f"idemd did not start: {self.log_text()}")

    def _answers(self):
        deadline = time.monotonic() + self.start_timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            try:
                with Connection(self.port, timeout=2.0) as client:
                    if "requirepass" in self.settings:
                        client.call("AUTH", self.settings["requirepass"])
                    if bytes(client.call("PING")) == b"PONG":
                        return self._is_ours(client)
            except (OSError, Closed, Timeout):
                pass
            time.sleep(0.01)
        self.stop()
        return False

    def _is_ours(self, client):
        """Somebody else may have got the port first; then our process is about to say so, and to end."""
        if b"process_id:%d\r\n" % self.process.pid in bytes(client.call("INFO", "server")):
            return True
        self.process.wait(10)
        return False

    def log_text(self):
        try:
            with open(os.path.join(self.directory, "log"), "rb") as log:
                return log.read()[-4000:].decode("latin-1")
        except OSError:
            return "(no log)"

    def log_lines(self):
        with open(os.path.join(self.directory, "log"), "rb") as log:
            return log.read().decode("latin-1").splitlines()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def connect(self, **options):
        return Connection(self.port, **options)

    def stop(self):
        """Ends the process; returns its exit code (negative: the signal that ended it)."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self._note_commands()
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        code = self.process.returncode
        self.log.close()
        return code

    def _note_commands(self):
        """Appends the commands that were answered without an error to the file IDEMD_COMMANDS_SEEN, for compat/page.py."""
        file = os.environ.get("IDEMD_COMMANDS_SEEN")
        if not file or "requirepass" in self.settings:
            return
        try:
            with Connection(self.port, timeout=5.0) as client:
                lines = bytes(client.call("INFO", "commandstats")).decode("latin-1").splitlines()
        except (OSError, Closed, Timeout):
            return
        calls = re.compile(r"cmdstat_([^:]+):calls=(\d+),.*failed_calls=(\d+)")
        seen = [match.group(1) for match in map(calls.match, lines) if match and int(match.group(2)) > int(match.group(3))]
        with open(file, "a", encoding="utf-8") as out:
            out.writelines(name + "\n" for name in seen)

    def kill(self):
        """Ends the process as a crash would; what it had no time to do is not done."""
        self.process.kill()
        self.process.wait(10)
        self.log.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")


def eventually(condition, what, timeout=5.0, every=0.005):
    """Waits until `condition()` is true; bounded."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(every)
    raise AssertionError(f"not within {timeout} s: {what}")


class Redis:
    """A stock redis-server that keeps nothing."""

    def __enter__(self):
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="idemd-redis-")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", ""],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                with Connection(self.port, timeout=2.0) as client:
                    client.call("PING")
                return self
            except (OSError, Closed, Timeout):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.directory, ignore_errors=True)

    def alive(self):
        return self.process.poll() is None

    def log_text(self):
        return ""


def redis_version():
    """What the redis-server on the PATH is: "7.0.15"; "" where there is none."""
    program = shutil.which("redis-server") or str(ROOT / "build/tools/redis-server")
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return text.split("v=", 1)[1].split()[0] if "v=" in text else ""


def skipped_for_redis(what):
    """Whether replies cannot be compared here, because the redis-server is not of the version whose replies idemd has. Says so."""
    version = redis_version()
    if version.startswith("7.0."):
        return False
    print(f"skipped: {what} is compared with Redis 7.0, and this redis-server is {version or 'not there'}")
    return True

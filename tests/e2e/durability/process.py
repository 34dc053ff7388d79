#!/usr/bin/env python3
"""A process and its directory as an operator sees them: loading, stopping, dumps that fail, who may serve, exit codes.

    process.py [BUILD]
"""
import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.resp import Closed, Connection, Error  # noqa: E402
from lib.server import Server, eventually, find_binary, free_port  # noqa: E402

KEYS = 100_000
DELAY_US = 20  # per key: enough that loading them is seen
LOADING = b"LOADING Redis is loading the dataset in memory"
PATIENCE = 30.0


def info(client, section="persistence"):
    lines = bytes(client.call("INFO", section)).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {got!r}")


def expect_error(reply, text, what):
    if not isinstance(reply, Error) or text not in bytes(reply).decode():
        raise AssertionError(f"{what}: expected an error with {text!r}, got {reply!r}")


def fill(client, keys):
    """SETs in pipelines, through a socket of their own: the values are numbers."""
    for first in range(0, keys, 10_000):
        batch = b"".join(b"*3\r\n$3\r\nSET\r\n$11\r\nkey%08d\r\n$8\r\n%08d\r\n" % (n, n)
                         for n in range(first, min(first + 10_000, keys)))
        client.sock.sendall(batch)
        left = batch.count(b"*3\r\n") * len(b"+OK\r\n")
        while left > 0:
            left -= len(client.sock.recv(min(left, 1 << 16)))


def start_bare(server):
    """Starts the process without waiting until it serves; returns a connection made as soon as it listens."""
    server.port = free_port()
    words = [server.binary, "--port", str(server.port), "--bind", "127.0.0.1", "--dir", server.directory]
    for name, value in server.settings.items():
        words += ["--" + name, value]
    server.log = open(os.path.join(server.directory, "log"), "ab")
    server.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=server.log, stderr=server.log)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return Connection(server.port, timeout=PATIENCE)
        except OSError:
            time.sleep(0.002)
    raise AssertionError("the server does not listen")


def check(binary, directory, word="--check"):
    ran = subprocess.run([binary, word] + ([directory] if directory else []), capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def loading(binary):
    """What clients are told while a log is loaded, and a stop in the middle of it."""
    with Server(binary, save="") as server:
        with server.connect() as client:
            fill(client, KEYS)
            expect(client.call("WAITAOF", 1, 0, 30_000), [1, 0], "WAITAOF")
        server.kill()
        before = check(binary, server.directory)
        server.settings["key-load-delay"] = str(DELAY_US)

        with start_bare(server) as client:
            expect_error(client.call("PING"), LOADING.decode(), "PING while loading")
            server.process.send_signal(signal.SIGTERM)
            expect(server.process.wait(PATIENCE), 0, "the exit code of a stop while loading")
        server.log.close()
        expect(check(binary, server.directory), before, "the directory after a stop while loading")

        with start_bare(server) as client:
            percents = []
            expect_error(client.call("SET", "key00000001", "other"), LOADING.decode(), "SET while loading")
            while True:
                reply = client.call("GET", "key00000001")
                if reply != LOADING:
                    break
                fields = info(client)
                if fields["loading"] == "1":
                    percents.append(float(fields["loading_loaded_perc"]))
                    for field in ("loading_start_time", "loading_total_bytes", "loading_loaded_bytes",
                                  "loading_rdb_used_mem", "loading_eta_seconds"):
                        if not fields[field].isdigit():
                            raise AssertionError(f"{field}:{fields[field]}")
                expect(bytes(client.call("ECHO", "x")), b"x", "ECHO while loading")
            expect(bytes(reply), b"00000001", "a value after loading")
            if not percents or percents != sorted(percents) or percents[-1] > 100:
                raise AssertionError(f"the percents of loading: {percents}")
            expect(client.call("DBSIZE"), KEYS, "DBSIZE after loading")
            fields = info(client)
            expect(fields["loading"], "0", "loading")
            if any(name.startswith("loading_") for name in fields):
                raise AssertionError("INFO still shows the progress of loading")


def failing_dumps(binary):
    """A dump that cannot be written: writes are refused, a stop is refused, and all is well again when it can."""
    with Server(binary, save="3600 1") as server, server.connect() as client:
        dump = os.path.join(server.directory, "dump.rdb")
        expect(bytes(client.call("SET", "a", "1")), b"OK", "SET")
        os.mkdir(dump)  # no file takes the place of a directory
        expect(bytes(client.call("BGSAVE")), b"Background saving started", "BGSAVE")
        eventually(lambda: info(client)["rdb_last_bgsave_status"] == "err", "the dump fails", PATIENCE)
        expect_error(client.call("SET", "a", "2"), "MISCONF Redis is configured to save RDB snapshots", "SET after it")
        expect(bytes(client.call("GET", "a")), b"1", "GET after it")
        expect_error(client.call("SHUTDOWN"), "Errors trying to SHUTDOWN. Check logs.", "SHUTDOWN")
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: "SIGTERM received but errors trying to shut down" in server.log_text(), "SIGTERM is refused", PATIENCE)
        expect(bytes(client.call("PING")), b"PONG", "PING after SIGTERM")
        os.rmdir(dump)
        expect(bytes(client.call("SAVE")), b"OK", "SAVE")
        expect(bytes(client.call("SET", "a", "3")), b"OK", "SET after a good dump")
        try:
            raise AssertionError(f"SHUTDOWN was answered: {client.call('SHUTDOWN')!r}")
        except (Closed, OSError):
            pass
        expect(server.process.wait(PATIENCE), 0, "the exit code")
        expect(os.path.isfile(dump), True, "a dump after the stop")


def signals(binary):
    """What SIGTERM and SIGINT do is a setting; without save points neither writes a dump."""
    for settings, number, dumps in (({"save": "3600 1"}, signal.SIGTERM, True),
                                    ({"save": ""}, signal.SIGTERM, False),
                                    ({"save": "", "shutdown_on_sigterm": "save"}, signal.SIGTERM, True),
                                    ({"save": "3600 1", "shutdown_on_sigint": "nosave"}, signal.SIGINT, False)):
        with Server(binary, **settings) as server:
            with server.connect() as client:
                expect(bytes(client.call("SET", "a", "1")), b"OK", "SET")
            server.process.send_signal(number)
            expect(server.process.wait(PATIENCE), 0, f"the exit code with {settings}")
            expect(os.path.exists(os.path.join(server.directory, "dump.rdb")), dumps, f"a dump with {settings}")


def one_server_a_directory(binary):
    """A second server on a directory ends with 1, and says why; the first does not notice."""
    with Server(binary) as server, server.connect() as client:
        second = subprocess.run([binary, "--port", str(free_port()), "--bind", "127.0.0.1", "--dir", server.directory],
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        expect(second.returncode, 1, "the second server's exit code")
        if "another idemd serves from this directory" not in second.stdout:
            raise AssertionError(f"the second server said: {second.stdout}")
        expect(bytes(client.call("PING")), b"PONG", "the first one")


def half_a_snapshot(binary):
    """What a server that was killed while a replica joined has left goes at the next start."""
    for log in ("yes", "no"):
        with Server(binary, save="", appendonly=log) as server:
            server.stop()
            left = Path(server.directory, "dump.rdb.replica")
            left.write_bytes(b"REDIS0010")
            server.start()
            expect(left.exists(), False, f"the snapshot for the replica is there, appendonly {log}")


def checking(binary):
    """The exit codes of --check and --repair."""
    expect(check(binary, None)[0], 64, "--check without a directory")
    with Server(binary, save="") as server:
        with server.connect() as client:
            for n in range(100):
                client.call("SET", f"k{n}", "v")
        server.stop()
        expect(check(binary, server.directory)[0], 0, "--check after a clean stop")
        server.start()
        with server.connect() as client:
            for n in range(100):
                client.call("SET", f"k{n}", "w")
        server.kill()
        expect(check(binary, server.directory)[0], 1, "--check after a kill")
        logs = sorted(Path(server.directory, "appendonlydir").glob("*.incr.aof"), key=lambda p: p.stat().st_mtime)
        os.truncate(logs[-1], logs[-1].stat().st_size - 5)
        expect(check(binary, server.directory)[0], 1, "--check of a torn end")
        expect(check(binary, server.directory, "--repair")[0], 0, "--repair of a torn end")
        expect(check(binary, server.directory)[0], 0, "--check after --repair")
        server.start()
        with server.connect() as client:
            expect(client.call("DBSIZE"), 100, "DBSIZE after --repair")
            expect(bytes(client.call("GET", "k0")), b"w", "what was before the torn end")
            expect(bytes(client.call("GET", "k99")), b"v", "what was torn")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    binary = find_binary(parser.parse_args().build)
    passed = failed = 0
    for case in (loading, failing_dumps, signals, one_server_a_directory, half_a_snapshot, checking):
        try:
            case(binary)
            passed += 1
            print(f"ok   {case.__doc__}")
        except (AssertionError, OSError, Closed, subprocess.TimeoutExpired) as fault:
            failed += 1
            print(f"FAIL {case.__doc__}\n     {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

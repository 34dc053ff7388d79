#!/usr/bin/env python3
"""idemd-bench against a real idemd and a real Redis: every test runs clean, every fault is told, and the keys are gone afterwards.

    run.py BUILD
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.resp import Closed, Connection, Timeout  # noqa: E402
from lib.server import Server, free_port  # noqa: E402

BUILD = Path(sys.argv[1])
BENCH = str(BUILD / "bench" / "idemd-bench")
NATIVE = ["token", "consume", "consume_absent", "token_cycle", "reserve", "reserve_pending", "reserve_done", "complete",
          "reserve_cycle", "retry_storm"]
LUA = ["lua_token", "lua_token_absent", "lua_token_cycle", "lua_reserve", "lua_reserve_pending", "lua_reserve_done", "lua_complete",
       "lua_reserve_cycle", "lua_retry_storm", "lua_reserve_hash"]


class Redis:
    """A stock redis-server without persistence on a free port; ended with the block."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="idemd-e2e-")
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                         "--dir", self.directory], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                with Connection(self.port, timeout=2.0) as client:
                    if client.call("PING") == b"PONG":
                        return self
            except (OSError, Closed, Timeout):
                time.sleep(0.02)
        raise RuntimeError("redis-server did not start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self):
        return Connection(self.port)


class LyingServer:
    """Answers every request with the same bytes, and hangs up after so many."""

    def __init__(self, reply, hang_up_after):
        self.reply, self.hang_up_after = reply, hang_up_after
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        answered = 0
        with client:
            while True:
                data = client.recv(65536)
                if not data:
                    return
                for _ in range(data.count(b"*1\r\n")):
                    if answered == self.hang_up_after:
                        return
                    client.sendall(b"+PONG\r\n" if answered == 0 else self.reply)
                    answered += 1

    def close(self):
        self.listener.close()


def bench(port, *words):
    """Its exit code, what its JSON says, and what it said on standard error."""
    ran = subprocess.run([BENCH, "-p", str(port), "--json", "-", *words], capture_output=True, text=True, timeout=120, check=False)
    try:
        return ran.returncode, json.loads(ran.stdout), ran.stderr
    except ValueError:
        return ran.returncode, [], ran.stderr


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in what))


def every_test_is_clean(server, tests):
    """Each with three pipelines, keys of each kind, and one or two threads."""
    for kind, pipeline, threads in (("redis", 1, 1), ("uuid", 16, 2), ("token", 64, 1), ("name", 7, 2)):
        code, said, text = bench(server.port, "-t", ",".join(tests), "-n", "3000", "-r", "500", "-P", str(pipeline), "--threads",
                                 str(threads), "--key-space", kind, "--prefix", "p:", "--server-pid", str(server.process.pid))
        check(code == 0, code, text)
        check([test["test"] for test in said] == tests, said)
        for test in said:
            check(test["clean"] and test["replies"] == test["requests"] >= 500, test)
            check(test["server_cpu_us"] > 0 and test["latency_ms"]["max"] >= test["latency_ms"]["p50"] > 0, test)


def leaves_nothing(server, tests):
    with server.connect() as client:
        client.call("FLUSHALL")
        for test in tests:
            code, _, text = bench(server.port, "-t", test, "-n", "1000", "-r", "200", "-P", "4")
            check(code == 0, test, text)
            check(client.call("DBSIZE") == 0, test, "left", client.call("DBSIZE"))
            # Stopped by the clock long before its last request.
            code, said, text = bench(server.port, "-t", test, "-n", "400000", "-r", "200", "-c", "2", "--seconds", "0.02")
            check(code == 0 and said[0]["requests"] < 400_000, test, text)
            check(client.call("DBSIZE") == 0, test, "left", client.call("DBSIZE"))


def idemd_runs_every_test_clean(idemd, _redis):
    every_test_is_clean(idemd, ["ping_inline", "ping", "load", "get", "set", "incr", "set_ex", "set_nx", "set_nx_get",
                                "set_nx_get_taken", "del", "mixed"])
    every_test_is_clean(idemd, NATIVE)


def redis_runs_the_equivalents_clean(_idemd, redis):
    every_test_is_clean(redis, ["ping_inline", "ping", "load", "get", "set", "incr", "set_ex", "set_nx", "set_nx_get",
                                "set_nx_get_taken", "del", "mixed"])
    every_test_is_clean(redis, LUA)


def tests_take_away_what_they_made(idemd, redis):
    leaves_nothing(idemd, NATIVE + ["set_nx", "set_nx_get", "set_nx_get_taken", "del"])
    leaves_nothing(redis, LUA)


def outcomes_are_what_the_commands_say(idemd, _redis):
    code, said, _ = bench(idemd.port, "-t", "retry_storm", "-n", "20000", "--duplicates", "75", "--key-space", "uuid")
    counts = {head["head"]: head["times"] for head in said[0]["replies_by_head"]}
    check(code == 0 and set(counts) == {"RESERVED", "PENDING"}, counts)
    check(abs(counts["PENDING"] - 15_000) < 500, counts)
    code, said, _ = bench(idemd.port, "-t", "load,get", "-n", "5000", "-r", "1000", "-d", "7")
    check([head["head"] for head in said[1]["replies_by_head"]] == ["xxxxxxx"], said[1])
    with idemd.connect() as client:
        client.call("FLUSHALL")


def an_open_loop_keeps_its_rate(idemd, _redis):
    code, said, text = bench(idemd.port, "-t", "mixed", "-r", "1000", "--rate", "2000", "--seconds", "2", "-c", "10", "--threads", "2")
    check(code == 0, text)
    check(3900 <= said[0]["requests"] <= 4000, said[0])
    check(said[0]["latency_ms"]["p50"] > 0 and said[0]["late_ms"]["max"] > 0, said[0])


def a_pause_is_charged_to_all_who_wait(idemd, _redis):
    """A server that is stopped for a second under 1 000 requests a second: some thousand requests wait half a second on average."""
    running = subprocess.Popen([BENCH, "-p", str(idemd.port), "-t", "get", "--rate", "1000", "--seconds", "3", "--json", "-"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(1)
    idemd.process.send_signal(19)
    time.sleep(1)
    idemd.process.send_signal(18)
    said = json.loads(running.communicate(timeout=60)[0])[0]
    check(said["clean"] and said["requests"] >= 2900, said)
    check(said["latency_ms"]["max"] >= 900, said)
    check(said["latency_ms"]["mean"] >= 100, said)  # with the omission: 50 connections' worth, about 20


def errors_are_counted_and_told(idemd, redis):
    code, said, text = bench(redis.port, "-t", "consume_absent", "-n", "1000")
    check(code == 1 and said[0]["errors"] == 1000 and "unknown command" in text, code, text)
    code, said, text = bench(idemd.port, "-n", "500", "INCR", "__data__", "1")
    check(code == 1 and said[0]["errors"] == 500 and "wrong number" in text, code, text)


def outcomes_that_no_one_expects_are_faults(idemd, _redis):
    words = ["-t", "reserve", "-n", "100", "--first", "7000000", "--keep"]
    code, said, text = bench(idemd.port, *words)
    check(code == 0, text)
    code, said, text = bench(idemd.port, *words)
    check(code == 1 and said[0]["unexpected"] == 100 and not said[0]["clean"], said)


def a_server_that_hangs_up_or_lies_is_told(_idemd, _redis):
    for reply, after, word in ((b"+PONG\r\n", 10, "hung up"), (b"what\r\n", 1000, "no reply"), (b"+PONG\r\n+PONG\r\n", 1000, "no request")):
        liar = LyingServer(reply, after)
        code, said, text = bench(liar.port, "-t", "ping", "-c", "2", "-n", "100000", "--seconds", "5")
        liar.close()
        check(code == 1 and word in text, reply, code, text)
        check(said[0]["lost_connections"] == 2, said)


def nobody_there_is_told(_idemd, _redis):
    code, _, text = bench(1, "-t", "ping")
    check(code == 1 and "127.0.0.1:1" in text, code, text)
    code, _, text = bench(1, "-t", "nothing")
    check(code == 2 and "nothing" in text, code, text)


def it_knows_passwords_databases_and_resp3(idemd, _redis):
    with idemd.connect() as client:
        client.expect_ok("CONFIG", "SET", "requirepass", "secret")
        try:
            code, _, text = bench(idemd.port, "-t", "ping")
            check(code == 1 and "NOAUTH" in text, text)
            code, _, text = bench(idemd.port, "-a", "wrong", "-t", "ping")
            check(code == 1 and "WRONGPASS" in text, text)
            code, said, text = bench(idemd.port, "-a", "secret", "--user", "default", "--dbnum", "3", "-3", "-t", "load,reserve_done",
                                     "-r", "10", "-n", "100")
            check(code == 0, text)
        finally:
            client.expect_ok("CONFIG", "SET", "requirepass", "")
        client.call("SELECT", 3)
        check(client.call("DBSIZE") == 10, client.call("DBSIZE"))
        client.call("FLUSHDB")


def a_unix_socket_does_and_files_are_written(idemd, _redis):
    folder = tempfile.mkdtemp(prefix="idemd-e2e-")
    try:
        svg, out = os.path.join(folder, "a.svg"), os.path.join(folder, "a.json")
        ran = subprocess.run([BENCH, "-s", idemd.socket_path, "-t", "ping,get", "-n", "1000", "--csv", "--svg", svg, "--json", out],
                             capture_output=True, text=True, check=False)
        check(ran.returncode == 0, ran.stderr)
        lines = ran.stdout.splitlines()
        check(len(lines) == 3 and lines[0].startswith('"test","rps"') and lines[2].startswith('"get"'), lines)
        check(all(line.count(",") == lines[0].count(",") for line in lines), lines)
        check(len(json.load(open(out))) == 2, "the JSON")
        check("</svg>" in open(svg).read(), "the SVG")
    finally:
        shutil.rmtree(folder)


TESTS = [idemd_runs_every_test_clean, redis_runs_the_equivalents_clean, tests_take_away_what_they_made,
         outcomes_are_what_the_commands_say, an_open_loop_keeps_its_rate, a_pause_is_charged_to_all_who_wait,
         errors_are_counted_and_told, outcomes_that_no_one_expects_are_faults, a_server_that_hangs_up_or_lies_is_told,
         nobody_there_is_told, it_knows_passwords_databases_and_resp3, a_unix_socket_does_and_files_are_written]


def main():
    failed = 0
    with Server(str(BUILD / "idemd"), unix_socket=True, appendonly="no", save="") as idemd, Redis() as redis:
        for test in TESTS:
            try:
                test(idemd, redis)
                print("ok  ", test.__name__)
            except Exception as fault:  # a test that falls is one that failed
                failed += 1
                print("FAIL", test.__name__, repr(fault)[:2000])
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""TLS as clients see it: redis-cli, redis-py and sockets of our own against a real idemd, with good and bad certificates,
handshakes that go wrong, and certificates that change while it runs.

    run.py [BUILD] [--only NAME]
"""
import argparse
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib.resp import Closed, encode  # noqa: E402
from lib.server import eventually, find_binary, redis_version  # noqa: E402
from sealed import Authority, Sealed, TlsRedis, TlsServer, refused  # noqa: E402

HANDSHAKE_FAILED = "Error accepting a client connection"
UPDATE_FAILED = b"Unable to update TLS configuration. Check server logs."


class Certificates:
    """What the tests share: making keys takes longer than using them."""

    def __init__(self):
        self.ours, self.strangers = Authority("ours"), Authority("strangers")
        self.server = self.ours.issue("server")
        self.next_server = self.ours.issue("next-server")
        self.client = self.ours.issue("client")
        self.expired = self.ours.issue("expired", expired=True)
        self.stranger = self.strangers.issue("stranger")

    def close(self):
        self.ours.close()
        self.strangers.close()


def ended_by_server(sock, seconds=10):
    """True when the peer hangs up; what it says before is dropped."""
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def clients_connected(server):
    with server.connect() as client:
        return int(bytes(client.call("INFO", "clients")).split(b"connected_clients:")[1].split(b"\r\n")[0])


# --- clients that others have written

def redis_cli_speaks_tls(binary, c):
    with TlsServer(binary, c.ours, c.server, tls_auth_clients="yes", tls_ca_cert_file=c.ours.certificate) as server:
        def cli(*words, pair=c.client, input=None):
            shown = [] if pair is None else ["--cert", str(pair[0]), "--key", str(pair[1])]
            return subprocess.run(["redis-cli", "-p", str(server.tls_port), "--tls", "--cacert", str(c.ours.certificate), *shown,
                                   *words], input=input, capture_output=True, text=True, timeout=30)
        assert cli("PING").stdout == "PONG\n"
        assert cli("SET", "k", "a value").stdout == "OK\n"
        assert cli("GET", "k").stdout == "a value\n"
        assert cli("-3", "PING").stdout == "PONG\n"
        big = "".join(f"SET key:{i} {'v' * 100}\r\n" for i in range(2000))
        assert "errors: 0, replies: 2000" in cli("--pipe", input=big).stdout
        assert cli("DBSIZE").stdout == "2001\n"
        assert "PONG" not in cli("PING", pair=None).stdout


def redis_py_speaks_tls(binary, c):
    import redis
    with TlsServer(binary, c.ours, c.server, tls_auth_clients="optional", tls_ca_cert_file=c.ours.certificate) as server:
        options = {"port": server.tls_port, "ssl": True, "ssl_ca_certs": str(c.ours.certificate), "ssl_check_hostname": True,
                   "socket_timeout": 20}
        client = redis.Redis(**options)
        assert client.ping()
        assert client.set("k", b"\x00\xff" * 1000) and client.get("k") == b"\x00\xff" * 1000
        pipe = client.pipeline(transaction=True)
        for i in range(1000):
            pipe.incr("n")
        assert pipe.execute() == list(range(1, 1001))
        shows = redis.Redis(**options, ssl_certfile=str(c.client[0]), ssl_keyfile=str(c.client[1]))
        assert shows.get("n") == b"1000"
        late = redis.Redis(**options, ssl_certfile=str(c.expired[0]), ssl_keyfile=str(c.expired[1]))
        try:
            late.ping()
            raise AssertionError("an expired certificate was let in")
        except (redis.ConnectionError, ConnectionError, ssl.SSLError):
            pass
        heard = client.pubsub(ignore_subscribe_messages=True)
        heard.subscribe("news")
        heard.get_message(timeout=10)
        shows.publish("news", "x" * 100_000)
        message = heard.get_message(timeout=10)
        assert message and message["data"] == b"x" * 100_000


# --- who is let in

def a_certificate_opens_the_door(binary, c):
    with TlsServer(binary, c.ours, c.server, tls_auth_clients="yes", tls_ca_cert_file=c.ours.certificate) as server:
        good = c.ours.context(c.client)
        assert not refused(server.tls_port, good)
        for i, context in enumerate([c.ours.context(), c.ours.context(c.expired), c.ours.context(c.stranger)], 1):
            assert refused(server.tls_port, context)
            eventually(lambda: server.lines(HANDSHAKE_FAILED) == i, f"failure {i} in the log, once")
        with server.connect() as client:
            client.expect_ok("CONFIG", "SET", "tls-auth-clients", "optional")
            assert not refused(server.tls_port, c.ours.context())
            assert refused(server.tls_port, c.ours.context(c.expired))
            client.expect_ok("CONFIG", "SET", "tls-auth-clients", "no")
            assert not refused(server.tls_port, c.ours.context(c.stranger))
        assert not refused(server.tls_port, good)
        # Neither does the client let a server in that it does not know.
        try:
            Sealed(server.tls_port, c.strangers.context())
            raise AssertionError("a server of another authority was taken")
        except Closed:
            pass


def the_tls_port_alone_serves(binary, c):
    with TlsServer(binary, c.ours, c.server, plain=False, requirepass="secret") as server, server.sealed() as client:
        assert b"NOAUTH" in client.call("GET", "k")
        client.expect_ok("AUTH", "secret")
        assert b"tcp_port:%d\r\n" % server.tls_port in client.call("INFO", "server")
        line = bytes(client.call("CLIENT", "INFO"))
        assert b" laddr=127.0.0.1:%d " % server.tls_port in line, line
        assert client.call("CONFIG", "GET", "port") == [b"port", b"0"]


def strangers_from_elsewhere_are_refused_in_protected_mode(binary, c):
    found = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    others = [address for address in found if "." in address and not address.startswith("127.")]
    if not others:
        return
    context = c.ours.context()
    context.check_hostname = False
    with TlsServer(binary, c.ours, c.server, bind=f"127.0.0.1 {others[0]}") as server:
        with Sealed(server.tls_port, context, host=others[0]) as client:
            assert b"DENIED" in client.read()
            assert client.closed_by_server()
        with server.connect() as client:
            client.expect_ok("CONFIG", "SET", "requirepass", "secret")
        with Sealed(server.tls_port, context, host=others[0]) as client:
            client.expect_ok("AUTH", "secret")


def a_locked_key_is_opened_and_its_password_is_not_told(binary, c):
    locked = c.ours.locked(c.next_server, "open-sesame")
    with TlsServer(binary, c.ours, c.server, slowlog_log_slower_than=0) as server, server.connect() as client:
        before = server.sealed().certificate()
        assert UPDATE_FAILED in client.call("CONFIG", "SET", "tls-cert-file", str(locked[0]), "tls-key-file", str(locked[1]))
        assert UPDATE_FAILED in client.call("CONFIG", "SET", "tls-cert-file", str(locked[0]), "tls-key-file", str(locked[1]),
                                            "tls-key-file-pass", "wrong-word")
        assert server.sealed().certificate() == before
        client.expect_ok("CONFIG", "SET", "tls-cert-file", str(locked[0]), "tls-key-file", str(locked[1]), "tls-key-file-pass",
                         "open-sesame")
        assert server.sealed().certificate() != before
        told = repr(client.call("SLOWLOG", "GET", "-1")) + server.log_text()
        assert "open-sesame" not in told and "wrong-word" not in told


# --- certificates that change

def certificates_are_renewed_without_a_restart(binary, c):
    with TlsServer(binary, c.ours, c.server) as server, server.connect() as plain, server.sealed() as old:
        first = old.certificate()
        plain.expect_ok("CONFIG", "SET", "tls-cert-file", str(c.next_server[0]), "tls-key-file", str(c.next_server[1]))
        with server.sealed() as fresh:
            second = fresh.certificate()
            assert second != first
            assert old.call("PING") == b"PONG" and fresh.call("PING") == b"PONG"
        nonsense = c.ours.directory / "nonsense.pem"
        nonsense.write_text("no certificate at all\n")
        for name, value in [("tls-cert-file", "/nonexistent"), ("tls-cert-file", nonsense), ("tls-key-file", c.client[1]),
                            ("tls-ca-cert-file", nonsense), ("tls-dh-params-file", "/nonexistent"), ("tls-protocols", "TLSv9"),
                            ("tls-ciphers", "nonsense"), ("tls-ciphersuites", "nonsense"), ("tls-auth-clients", "yes")]:
            was = plain.call("CONFIG", "GET", name)
            assert UPDATE_FAILED in plain.call("CONFIG", "SET", name, str(value)), name
            assert plain.call("CONFIG", "GET", name) == was
            with server.sealed() as fresh:
                assert fresh.certificate() == second
        # The same names, other contents.
        pair = c.ours.issue("renewed")
        plain.expect_ok("CONFIG", "SET", "tls-cert-file", str(pair[0]), "tls-key-file", str(pair[1]))
        with server.sealed() as fresh:
            third = fresh.certificate()
        again = c.ours.issue("renewed-again")
        for new, place in zip(again, pair):
            os.replace(new, place)
        with server.sealed() as fresh:
            assert fresh.certificate() == third
        plain.expect_ok("CONFIG", "SET", "tls-cert-file", str(pair[0]))
        with server.sealed() as fresh:
            assert fresh.certificate() not in (first, second, third)
        assert old.call("PING") == b"PONG"


def protocols_and_ciphers_are_those_that_are_set(binary, c):
    with TlsServer(binary, c.ours, c.server) as server, server.connect() as plain:
        def spoken(minimum=None, maximum=None):
            context = c.ours.context()
            context.minimum_version = minimum or context.minimum_version
            context.maximum_version = maximum or context.maximum_version
            with server.sealed(context) as client:
                return client.sock.version(), client.sock.cipher()[0]
        v12, v13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        assert spoken()[0] == "TLSv1.3" and spoken(maximum=v12)[0] == "TLSv1.2"
        plain.expect_ok("CONFIG", "SET", "tls-protocols", "TLSv1.2", "tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384")
        assert spoken() == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
        try:
            spoken(minimum=v13)
            raise AssertionError("TLS 1.3 was spoken")
        except Closed:
            pass
        plain.expect_ok("CONFIG", "SET", "tls-protocols", "TLSv1.3", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
        assert spoken() == ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256")


# --- much at once

def large_values_and_pipelines_go_both_ways(binary, c):
    with TlsServer(binary, c.ours, c.server) as server, server.sealed() as client, server.connect() as plain:
        for size in (0, 1, 16383, 16384, 16385, 65536, 300_000, 8_000_000):
            value = random.Random(size).randbytes(size)
            client.expect_ok("SET", "big", value)
            assert client.call("GET", "big") == value and plain.call("GET", "big") == value, size
        # Much larger than what sockets hold.
        commands = [("SET", f"k{i}", b"%d" % i * 20_000) if i % 2 == 0 else ("GET", f"k{i - 1}") for i in range(400)]
        client.send_while_reading(b"".join(encode(words) for words in commands))
        for i in range(400):
            assert client.read() == (b"OK" if i % 2 == 0 else b"%d" % (i - 1) * 20_000), i
        # A reader who takes its time: what waits is bounded, and all of it comes.
        client.send_raw(encode(["GET", "big"]) * 8)
        time.sleep(0.5)
        assert plain.call("PING") == b"PONG"
        for _ in range(8):
            assert client.read() == value
        # In pieces that have nothing to do with requests or records.
        request = encode(["ECHO", "piecemeal"]) * 20
        for i in range(0, len(request), 7):
            client.send_raw(request[i:i + 7])
        assert [client.read() for _ in range(20)] == [b"piecemeal"] * 20


def subscribers_hear_each_message_whole_and_in_order(binary, c):
    with TlsServer(binary, c.ours, c.server) as server, server.connect() as speaker:
        hearers = [server.sealed(resp=3 if i % 2 else 2) for i in range(8)] + [server.connect() for _ in range(4)]
        for hearer in hearers:
            hearer.send("SUBSCRIBE", "news")
            assert hearer.hear()[0] == b"subscribe"
        rng = random.Random(7)
        messages = [b"%d:" % i + b"m" * rng.choice([0, 10, 3000, 50_000]) for i in range(500)]
        sender = threading.Thread(target=lambda: speaker.pipeline([("PUBLISH", "news", m) for m in messages], timeout=30))
        sender.start()
        for hearer in hearers:
            for message in messages:
                assert hearer.hear(timeout=30) == [b"message", b"news", message]
        sender.join()
        for hearer in hearers:
            hearer.close()


def many_come_at_once(binary, c):
    with TlsServer(binary, c.ours, c.server, io_threads=2) as server:
        problems = []

        def come(number):
            try:
                mine = [server.sealed() for _ in range(10)]
                for i, client in enumerate(mine):
                    client.send("SET", f"{number}:{i}", "x" * 1000)
                for client in mine:
                    assert client.read() == b"OK"
                for client in mine:
                    client.close()
            except Exception:  # noqa: BLE001
                problems.append(traceback.format_exc())
        threads = [threading.Thread(target=come, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems, problems[0]
        with server.connect() as client:
            assert client.call("DBSIZE") == 200
        eventually(lambda: clients_connected(server) == 1, "all have gone", timeout=20)


# --- what goes wrong

def unfinished_handshakes_cost_little_and_end(binary, c):
    with TlsServer(binary, c.ours, c.server, tls_handshake_timeout=4) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            c.ours.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = outgoing.read()
        cuts = [1, 5, 6, 40, len(hello) - 1, len(hello)]
        for cut in cuts:
            with socket.create_connection(("127.0.0.1", server.tls_port)) as sock:
                sock.sendall(hello[:cut])
                sock.shutdown(socket.SHUT_WR)
                assert ended_by_server(sock), cut
        eventually(lambda: server.lines(HANDSHAKE_FAILED) == len(cuts), "each that was half closed is in the log, once")
        waiting = []
        for cut in cuts:
            sock = socket.create_connection(("127.0.0.1", server.tls_port))
            sock.sendall(hello[:cut])
            waiting.append(sock)
        eventually(lambda: clients_connected(server) == 1 + len(waiting), "those that wait count")
        assert not refused(server.tls_port, server.context)
        for sock in waiting:
            assert ended_by_server(sock)
            sock.close()
        eventually(lambda: server.lines("not finished in time") == len(waiting), "each that took too long, once")
        assert server.lines(HANDSHAKE_FAILED) == 2 * len(cuts)
        eventually(lambda: clients_connected(server) == 1, "those that took too long have gone")
        assert not refused(server.tls_port, server.context)


def handshakes_count_as_clients(binary, c):
    with TlsServer(binary, c.ours, c.server, maxclients=3) as server:
        with server.connect() as plain:
            eventually(lambda: b"connected_clients:1" in plain.call("INFO", "clients"), "who asked whether the server is up has gone")
            silent = [socket.create_connection(("127.0.0.1", server.tls_port)) for _ in range(2)]
            eventually(lambda: b"connected_clients:3" in plain.call("INFO", "clients"), "both count")
            assert refused(server.tls_port, server.context)
            for sock in silent:
                sock.close()
            eventually(lambda: b"connected_clients:1" in plain.call("INFO", "clients"), "neither counts")
            assert not refused(server.tls_port, server.context)
            assert b"rejected_connections:1\r\n" in plain.call("INFO", "stats")


def bytes_of_the_wrong_kind_end_a_connection(binary, c):
    with TlsServer(binary, c.ours, c.server) as server:
        rng = random.Random(3)
        strange = [b"PING\r\n", encode(["SET", "k", "v"]), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 64, b"\x16\x03\x01\xff\xff" * 9,
                   b"\x15\x03\x01\x00\x02\x01\x00", b"\x17\x03\x03\x00\x05hello"] + [b"\xff" + rng.randbytes(200) for _ in range(3)]

        def fail(data=b"PING\r\n"):
            with socket.create_connection(("127.0.0.1", server.tls_port)) as sock:
                sock.sendall(data)
                assert ended_by_server(sock), data

        def failures():
            return [line for line in server.log_lines() if HANDSHAKE_FAILED in line][len(strange):]

        for i, data in enumerate(strange, 1):
            fail(data)
            eventually(lambda: server.lines(HANDSHAKE_FAILED) == i, f"{data[:20]} in the log, once")
        many = 100
        for _ in range(many):  # sooner than lines may come
            fail()
        before = len(failures())
        time.sleep(1.5)
        fail()
        eventually(lambda: len(failures()) == before + 1, "the log goes on")
        lines = failures()
        left_out = sum(int(told) for line in lines for told in re.findall(r"\((\d+) lines like this were left out", line))
        assert 0 < len(lines) <= many // 2 and len(lines) + left_out == many + 1, (len(lines), left_out)
        assert not refused(server.tls_port, server.context)
        for i in range(1, 4):
            try:
                Sealed(server.port, server.context)
                raise AssertionError("the plain port spoke TLS")
            except Closed:
                pass
            eventually(lambda: server.lines("does not speak TLS") == i, "a TLS hello on the plain port in the log, once")
        with server.connect() as client:
            assert client.call("DBSIZE") == 0
            # Only the first bytes of a connection are looked at like that.
            assert b"unknown command" in client.call(b"\x16\x03\x01")


def changed_and_broken_off_records_end_a_connection(binary, c):
    with TlsServer(binary, c.ours, c.server) as server:
        for damage in ("changed", "junk", "cut"):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = server.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            with socket.create_connection(("127.0.0.1", server.tls_port), timeout=10) as sock:
                while True:
                    try:
                        tls.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        sock.sendall(outgoing.read())
                        incoming.write(sock.recv(65536))
                sock.sendall(outgoing.read())
                tls.write(encode(["SET", damage, "v"]))
                sealed = bytearray(outgoing.read())
                if damage == "changed":
                    sealed[-1] ^= 1
                elif damage == "junk":
                    sealed = b"\xff" * 100
                else:
                    sealed = sealed[:-1]
                sock.sendall(sealed)
                if damage == "cut":
                    sock.shutdown(socket.SHUT_WR)
                assert ended_by_server(sock), damage
        with server.connect() as client:
            assert client.call("DBSIZE") == 0


def goodbyes_are_said(binary, c):
    with TlsServer(binary, c.ours, c.server) as server:
        def said_goodbye(sock):
            try:
                while True:
                    if sock.recv(4096) == b"":
                        return True
            except ssl.SSLError:
                return False
        context = c.ours.context()
        with server.sealed(context) as client:
            client.send("QUIT")
            assert client.read() == b"OK" and said_goodbye(client.sock)
        with server.sealed(context) as client, server.connect() as plain:
            number = client.call("CLIENT", "ID")
            assert plain.call("CLIENT", "KILL", "ID", str(number)) == 1
            assert said_goodbye(client.sock)
        with server.sealed(context) as client:
            client.send_raw(b"*1\r\n$-5\r\n")
            assert b"Protocol error" in client.read() and said_goodbye(client.sock)
        with server.sealed(context) as client:  # what was asked before the goodbye is answered
            client.send("INCR", "n")
            assert client.read() == 1
            raw = client.sock.unwrap()
            raw.close()
        with server.sealed(context) as client, server.connect() as plain:
            assert client.call("PING") == b"PONG"
            plain.send("SHUTDOWN", "NOSAVE")
            assert said_goodbye(client.sock)


# --- beside Redis

def settings_answer_as_those_of_redis(binary, c):
    if not redis_version().startswith("7.0."):
        return
    calls = [("tls-cert-file", "/nonexistent"), ("tls-key-file", ""), ("tls-protocols", "SSLv2"), ("tls-protocols", "tlsv1.2 TLSv1.3"),
             ("tls-protocols", ""), ("tls-ciphers", "nonsense"), ("tls-ciphersuites", "nonsense"), ("tls-port", "70000"),
             ("tls-port", "x"), ("tls-auth-clients", "maybe"), ("tls-session-caching", "perhaps"), ("tls-session-cache-size", "-1"),
             ("tls-session-cache-size", "10"), ("tls-session-cache-timeout", "60"), ("tls-prefer-server-ciphers", "yes"),
             ("tls-dh-params-file", "/nonexistent"), ("tls-ca-cert-file", "/nonexistent"), ("tls-ca-cert-dir", "/"),
             ("tls-ca-cert-dir", ""), ("tls-key-file-pass", "unused")]
    with TlsRedis(c.ours, c.server) as redis, TlsServer(binary, c.ours, c.server, plain=False) as server:
        with redis.sealed() as theirs, server.sealed() as ours:
            for name, value in calls:
                expected, got = theirs.call("CONFIG", "SET", name, value), ours.call("CONFIG", "SET", name, value)
                assert (type(got), got) == (type(expected), expected), (name, value, expected, got)
            def shown(client):
                reply = [bytes(word).decode() for word in client.call("CONFIG", "GET", "tls-*")]
                return {name: value for name, value in zip(reply[::2], reply[1::2]) if name != "tls-port"}
            mine = shown(ours)
            assert mine.pop("tls-handshake-timeout") == "10"
            assert mine == shown(theirs)


def a_redis_follows_over_tls(binary, c):
    with TlsServer(binary, c.ours, c.server) as server, server.sealed() as client:
        client.expect_ok("SET", "before", "x" * 100_000)
        with TlsRedis(c.ours, c.next_server, "--tls-replication", "yes", "--tls-ca-cert-file", c.ours.certificate, "--replicaof",
                      "127.0.0.1", server.tls_port, "--repl-diskless-load", "disabled") as redis, redis.sealed() as theirs:
            eventually(lambda: theirs.call("GET", "before") == b"x" * 100_000, "what was there is copied", timeout=20)
            client.pipeline([("SET", f"k{i}", "v" * i) for i in range(1000)])
            eventually(lambda: theirs.call("DBSIZE") == 1001, "what is written follows", timeout=20)
            assert theirs.call("GET", "k999") == b"v" * 999


TESTS = [redis_cli_speaks_tls, redis_py_speaks_tls, a_certificate_opens_the_door, the_tls_port_alone_serves,
         strangers_from_elsewhere_are_refused_in_protected_mode, a_locked_key_is_opened_and_its_password_is_not_told,
         certificates_are_renewed_without_a_restart, protocols_and_ciphers_are_those_that_are_set,
         large_values_and_pipelines_go_both_ways, subscribers_hear_each_message_whole_and_in_order, many_come_at_once,
         unfinished_handshakes_cost_little_and_end, handshakes_count_as_clients, bytes_of_the_wrong_kind_end_a_connection,
         changed_and_broken_off_records_end_a_connection, goodbyes_are_said, settings_answer_as_those_of_redis,
         a_redis_follows_over_tls]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--only")
    options = parser.parse_args()
    binary = find_binary(options.build)
    certificates = Certificates()
    tests = [test for test in TESTS if options.only in (None, test.__name__)]
    failed = 0
    for test in tests:
        began = time.monotonic()
        try:
            test(binary, certificates)
            print(f"ok   {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"FAIL {test.__name__}\n{traceback.format_exc()}", flush=True)
    certificates.close()
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())

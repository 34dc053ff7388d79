"""Who does not speak the protocol, and who has not logged in."""
import random
import time

from battery import drain, reset
from lib.resp import Error, encode
from lib.server import eventually
from peers import connected, send_until_stuck
from wire import refused

MIB = 1024 * 1024
TLS_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(32)) + b"\x20" + bytes(range(32)) + b"\x00\x08\x13\x02\x13\x03\x13\x01\x00\xff"
HTTP = {
    "GET": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: curl\r\n\r\n",
    "GET without a host": b"GET / HTTP/1.0\r\n\r\n",
    "GET, its first line": b"GET /index.html HTTP/1.1\r\n",
    "HEAD": b"HEAD / HTTP/1.1\r\n",
    "POST": b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nSET http 1\r\n",
    "PUT": b"PUT /x HTTP/1.1\r\n\r\nSET http 1\r\n",
    "OPTIONS": b"OPTIONS * HTTP/1.1\r\n",
    "DELETE": b"DELETE / HTTP/1.1\r\n",
    "CONNECT": b"CONNECT example.org:443 HTTP/1.1\r\n",
    "PATCH": b"PATCH / HTTP/1.1\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header": b"Host: 127.0.0.1\r\n",
    "POST as an array": encode(["POST", "/"]),
}
BINARY = {
    "a TLS 1.3 hello": TLS_HELLO,
    "the first bytes of a TLS hello": TLS_HELLO[:2],
    "an SSLv2 hello": bytes.fromhex("802e0100020015000000100100"),
    "PostgreSQL": bytes.fromhex("0000000804d2162f"),
    "RDP": bytes.fromhex("0300002f2ae00000000000"),
    "SMB": bytes.fromhex("00000085ff534d4272"),
    "zeros": bytes(1000),
    "ones": b"\xff" * 1000,
    "a gzip stream": bytes.fromhex("1f8b0800000000000003"),
    "an ELF file": b"\x7fELF\x02\x01\x01\x00",
    "a byte": b"\x80",
    "a byte after a request": encode(["PING"]) + b"\x16\x03\x01",
    "a byte in a line": b"  \x01PING\r\n",
}


def closed_at_once(battery, data):
    """The connection ends within a moment, though we keep our side open; nothing is carried out."""
    with battery.raw() as sock:
        started = time.monotonic()
        sock.sendall(data)
        came, closed = drain(sock, 3.0)
        seconds = time.monotonic() - started
    if not closed or seconds > 1.0:
        return f"not closed at once ({seconds:.1f} s, closed: {closed}); {came[:100]!r}"
    if battery.steady.call("EXISTS", "http"):
        return "its body was carried out"
    return None


def other_protocols(battery):
    for name, data in HTTP.items():
        yield name, lambda d=data: closed_at_once(battery, d)
    for name, data in BINARY.items():
        yield name, lambda d=data: closed_at_once(battery, d)

    def many(data, count):
        for _ in range(count):
            with battery.raw() as sock:
                sock.sendall(data)
                drain(sock, 1.0)
        return None

    yield "300 HTTP requests", lambda: many(HTTP["GET"], 300)
    yield "300 TLS hellos", lambda: many(TLS_HELLO, 300)

    def logged(data, count):
        """One stranger, one line."""
        time.sleep(3)  # what was left out above is due again
        before = len(battery.server.log_lines())
        many(data, 1)
        eventually(lambda: len(battery.server.log_lines()) > before, "a line in the log")
        lines = battery.server.log_lines()[before:]
        return None if len(lines) == count else f"{lines}"

    yield "one line for HTTP", lambda: logged(HTTP["GET"], 1)
    yield "one line for TLS", lambda: logged(TLS_HELLO, 1)

    def not_taken_for_http():
        with battery.connect() as client:
            client.expect_ok("SET", "GET / HTTP/1.1", "HTTP/1.1")
            client.expect_ok("SET", "k", "HTTP/1.1")
            if not isinstance(client.call("GET", "k", "HTTP/1.1"), Error):
                return "no error"
            client.send_raw(b"SET k HTTP/1.1\r\n")
            return None if bytes(client.read()) == b"OK" else "an inline SET is refused"

    yield "values that look like it", not_taken_for_http


# --- before the login

PASSWORD = "a password"
NOT_YET = [["GET", "k"], ["PING"], ["ECHO", "x"], ["INFO"], ["COMMAND"], ["SUBSCRIBE", "c"], ["MULTI"], ["EXEC"], ["MONITOR"], ["SHUTDOWN"], ["HELLO"],
           ["HELLO", "3"], ["EVAL", "return 1", "0"], ["CONFIG", "GET", "*"], ["CLIENT", "LIST"], ["DEBUG", "SLEEP", "0"], ["SYNC"],
           ["PSYNC", "?", "-1"], ["RESET", "x"], ["IDEM.RESERVE", "k"], ["IDEM.CONSUME", "k"]]


def unauthenticated(battery):
    many = b"unauthenticated multibulk length"
    long = b"unauthenticated bulk length"
    for count in (11, 12, 100, 1000, 2147483647):
        yield f"{count} words", lambda n=count: refused(battery, b"*%d\r\n" % n, many)
    for size in (16385, 100_000, 2 * MIB):
        yield f"a word of {size} bytes", lambda n=size: refused(battery, b"*2\r\n$4\r\nAUTH\r\n$%d\r\n" % n, long)

    def not_allowed(words):
        with battery.connect(login=False) as client:
            reply = client.call(*words)
            if not isinstance(reply, Error):
                return f"{reply!r}"[:100]
            client.send("AUTH", PASSWORD)
            return None if bytes(client.read()) == b"OK" else "no login after it"

    for words in NOT_YET:
        yield " ".join(words), lambda w=words: not_allowed(w)

    def guesses(count):
        with battery.connect(login=False) as client:
            for reply in client.pipeline([["AUTH", f"guess{i}"] for i in range(count)]):
                if not isinstance(reply, Error) or reply.code != "WRONGPASS":
                    return repr(reply)
        return None

    yield "1 000 guesses", lambda: guesses(1000)

    def never_reads(data, count=64):
        socks = [battery.raw(receive_bytes=4096) for _ in range(count)]
        send_until_stuck(socks, data, MIB)
        peak = battery.process.rss() - battery.start_rss
        with battery.connect() as client:
            waiting = [int(word[5:]) for line in bytes(client.call("CLIENT", "LIST")).decode().splitlines()
                       for word in line.split() if word.startswith("omem=")]
        for sock in socks:
            sock.close()
        if max(waiting) > 100_000:
            return f"{max(waiting)} bytes wait for one of them"
        return f"{peak / MIB:.0f} MiB for {count}" if peak > count * MIB // 4 else None

    yield "64 that never read", lambda: never_reads(encode(["GET", "k" * 1000]))
    yield "64 that never read, with short words", lambda: never_reads(b"x\r\n")
    yield "64 words that do not end", lambda: never_reads(b"*10\r\n" + b"$16384\r\n" + b"x" * 16384 + b"\r\n")

    def too_many(count=400, allowed=100):
        """Strangers do not keep others out: the oldest of them has to go."""
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "unauthenticated-max-clients", allowed)
            socks = [battery.raw() for _ in range(count)]
            eventually(lambda: connected(client) <= allowed + 5, f"no more than {allowed} strangers")
            with battery.connect() as late:
                late.call("PING")
            gone = sum(drain(sock, 0.001)[1] for sock in socks)
            for sock in socks:
                reset(sock)
            client.expect_ok("CONFIG", "SET", "unauthenticated-max-clients", "1000")
        return None if gone >= count - allowed else f"only {gone} had to go"

    yield "400 strangers", too_many

    def too_late():
        """Whoever does not log in in time has to go, whoever has may stay."""
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "unauthenticated-max-seconds", "1")
            stranger = battery.raw()
            busy = battery.raw()
            closed, until = False, time.monotonic() + 6
            while not closed and time.monotonic() < until:
                try:
                    busy.sendall(encode(["PING"]))
                    closed = drain(busy, 0.1)[1]
                except ConnectionError:
                    closed = True
            came, gone = drain(stranger, 3)
            client.expect_ok("CONFIG", "SET", "unauthenticated-max-seconds", "60")
            stranger.close()
            busy.close()
        return None if closed and gone and b"NOAUTH" in came else f"closed: {closed}, {gone}; {came!r}"

    yield "no login in time", too_late

    def junk(seed):
        rng = random.Random(seed)
        with battery.raw() as sock:
            try:
                for _ in range(20):
                    sock.sendall(rng.choice([b"*", b"$", b"\r\n", b"AUTH ", b"9", b"-1"]) * rng.randrange(1, 2000))
            except ConnectionError:
                pass
            drain(sock, 0.05)
        return None

    for seed in range(30):
        yield f"junk {seed}", lambda s=seed: junk(s)


def cases(battery):
    battery.run("other protocols", other_protocols(battery))


def cases_before_login(battery):
    with battery.serving(requirepass=PASSWORD):
        battery.run("before the login", unauthenticated(battery))

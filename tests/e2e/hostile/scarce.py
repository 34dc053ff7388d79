"""Bounds that are set low, and a server that may have little more memory than it started with."""
import resource
import time

from battery import drain
from lib.resp import Error, encode
from lib.server import eventually

MIB = 1024 * 1024
SPARE = 256 * MIB  # what fails is much larger than what must not: without memory for a little the server ends


def number(client, section, field):
    for line in bytes(client.call("INFO", section)).decode().splitlines():
        if line.startswith(field + ":"):
            return int(line.split(":")[1])
    raise AssertionError(f"no {field}")


def bounds(battery):
    def waiters_of_a_key(allowed=5, count=12):
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "idem-max-waiters-per-key", allowed)
            client.call("IDEM.RESERVE", "held", "LEASE", "60000")
            socks = [battery.raw() for _ in range(count)]
            for sock in socks:
                sock.sendall(encode(["IDEM.RESERVE", "held", "CLAIM", "x", "WAIT", "60000"]))
            told = sum(b"PENDING" in drain(sock, 0.2)[0] for sock in socks)
            for sock in socks:  # the loops may have let in any of them
                sock.close()
            # Those who left make room, once the server has heard of it.
            eventually(lambda: number(client, "clients", "blocked_clients") == 0, "nobody waits")
            with battery.connect() as late:
                late.send("IDEM.RESERVE", "held", "CLAIM", "y", "WAIT", "60000")
                eventually(lambda: number(client, "clients", "blocked_clients") == 1, "one who waits")
                client.call("DEL", "held")
                answer = bytes(late.read()[0])
            client.expect_ok("CONFIG", "SET", "idem-max-waiters-per-key", "10000")
        return None if told == count - allowed and answer == b"RESERVED" else f"{told} told at once, {answer!r}"

    def tokens():
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "idem-max-tokens", "10")
            refused = isinstance(client.call("IDEM.TOKEN", "t:", "COUNT", "11"), Error)
            made = client.call("IDEM.TOKEN", "t:", "COUNT", "10")
            client.expect_ok("CONFIG", "SET", "idem-max-tokens", "1000")
        return None if refused and len(made) == 10 else f"{refused}, {made!r}"

    def memory_of_clients(limit=8 * MIB):
        """Half a word of a megabyte from each of many: those who hold most have to go, whoever is served stays."""
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "maxmemory-clients", limit)
            before = number(client, "stats", "evicted_clients")
            socks, highest = [], 0
            for _ in range(40):
                socks.append(battery.raw())
                try:
                    socks[-1].sendall(b"*2\r\n$4\r\nECHO\r\n$1900000\r\n" + b"x" * MIB)
                except ConnectionError:
                    pass
                highest = max(highest, number(client, "memory", "mem_clients_normal"))
            evicted = number(client, "stats", "evicted_clients") - before
            for sock in socks:
                sock.close()
            client.expect_ok("CONFIG", "SET", "maxmemory-clients", "0")
        if highest > limit + 4 * MIB:
            return f"{highest} bytes at one time"
        return None if evicted >= 25 else f"{evicted} had to go"

    yield "waiters of a key", waiters_of_a_key
    yield "tokens of a call", tokens
    yield "the memory of all clients", memory_of_clients


def scarce(battery):
    """The system refuses memory: an error or an end of the connection, and what was there stays."""
    def refused(*words, before=()):
        with battery.connect(timeout=20) as client:
            client.expect_ok("SET", "here", b"x" * 100_000)
            for command in before:
                client.call(*command)
            state = digest(client)
            reply = client.call(*words)
            if not isinstance(reply, Error):
                return f"taken: {reply!r}"[:100]
            if digest(client) != state:
                return "it was carried out in part"
            client.expect_ok("SET", "other", "v")
        return None

    def digest(client):
        return sorted((bytes(key), client.call("STRLEN", key) if client.call("TYPE", key) == b"string" else 0) for key in client.call("KEYS", "*"))

    big = 400 * MIB
    yield "SETRANGE of a new string", lambda: refused("SETRANGE", "k", str(big), "x")
    yield "SETRANGE of a string that is there", lambda: refused("SETRANGE", "here", str(big), "x")
    yield "SETRANGE of one that is edited in place", lambda: refused("SETRANGE", "e", str(big), "x", before=[["SETRANGE", "e", "100", "x"]])
    yield "SETBIT", lambda: refused("SETBIT", "k", str(big * 8), "1")
    yield "BITFIELD", lambda: refused("BITFIELD", "k", "SET", "u8", f"#{big}", "1")
    yield "a reply of a script", lambda: refused("EVAL", f"return string.rep('x', {big})", "0")
    yield "an argument of a script", lambda: refused("EVAL", f"return redis.call('set', 'k', string.rep('x', {big}))", "0")

    def deaf(count=40):
        """Long replies that nobody reads."""
        with battery.connect(timeout=20) as client:
            client.expect_ok("SET", "big", b"x" * (16 * MIB))
        socks = [battery.raw(receive_bytes=4096) for _ in range(count)]
        for sock in socks:
            sock.sendall(encode(["GET", "big"]))
        time.sleep(0.5)
        wrong = battery.calm()
        for sock in socks:
            sock.close()
        with battery.connect(timeout=20) as client:
            if not wrong and client.call("STRLEN", "big") != 16 * MIB:
                return "the value is another one"
        return wrong

    yield "replies that nobody reads", lambda: deaf()

    def long_word(count):
        """Words of which there is no room for half: closed or kept waiting, and everybody else is served."""
        head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % big
        socks = [battery.raw() for _ in range(count)]
        ended = 0
        for sock in socks:
            sock.sendall(head)
        for _ in range(2 * SPARE // MIB // count):
            for sock in socks:
                try:
                    sock.sendall(b"x" * MIB)
                except ConnectionError:
                    ended += 1
        wrong = battery.calm()
        for sock in socks:
            sock.close()
        return wrong or (None if ended else "nobody was refused")

    yield "a long word", lambda: long_word(2)


def cases(battery):
    battery.run("bounds", bounds(battery))


def cases_with_little_memory(battery):
    if not battery.wants("scarce"):
        return
    no_limits = {"maxmemory": "0", "proto_max_bulk_len": "512mb", "proto_max_reply_len": "1gb", "client_query_buffer_limit": "1gb"}
    with battery.serving(**no_limits):
        size = battery.process.address_space() + SPARE
        resource.prlimit(battery.process.pid, resource.RLIMIT_AS, (size, size))
        battery.peak_max = SPARE  # what the settings allow is more than there is
        battery.run("scarce", scarce(battery))

"""Hostile bytes: wrong lengths and counts, requests cut off at every byte, in pieces, interleaved and garbled."""
import random
import socket
import time

from battery import drain, reset
from lib.resp import encode

PING = encode(["PING"])
PONG = b"+PONG\r\n"
WRONG_NUMBERS = [
    b"", b" ", b"-", b"+", b"+4", b" 4", b"4 ", b"04", b"0x4", b"4.0", b"1e1", b"nan", b"inf", b"four", b"\x00", b"4\x00", b"--4",
    b"-0", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809",
    b"18446744073709551615", b"18446744073709551616", b"99999999999999999999999999999999", b"\xff\xfe", b"4\n4", b"4,4",
]
# Redis takes these counts as "no words at all".
EMPTY_COUNTS = [b"0", b"-1", b"-2", b"-2147483648", b"-9223372036854775808"]


def refused(battery, data, why=b"Protocol error"):
    """An error that says why, and the connection ends."""
    with battery.raw() as sock:
        try:
            sock.sendall(data)
        except ConnectionError:
            pass
        came, closed = drain(sock)
    if not closed:
        return f"the connection stays open; {came[:100]!r} came"
    if why not in came:
        return f"closed with {came[:100]!r}"
    return None


def ends(battery, data):
    """The connection ends after these bytes and the end of input, whatever is answered."""
    with battery.raw() as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        came, closed = drain(sock)
    return None if closed else f"{data[:200]!r}: not closed after the end of input; {came[:100]!r}"


def answered(battery, data, reply):
    """The bytes are answered with `reply`, and the connection serves on."""
    with battery.raw() as sock:
        sock.sendall(data + PING)
        came = b""
        while not came.endswith(PONG):
            more = sock.recv(65536)
            if not more:
                return f"closed after {came[:100]!r}"
            came += more
    right = reply(came) if callable(reply) else came == reply + PONG
    return None if right else f"answered with {came[:200]!r}"


def waits(battery, data, patience=0.03):
    """Nothing to say yet: the request is not whole."""
    with battery.raw() as sock:
        sock.sendall(data)
        came, closed = drain(sock, patience)
    return f"{came[:100]!r} came, closed: {closed}" if came or closed else None


def is_error(came):
    return came.startswith(b"-ERR")


def lengths(battery):
    bulk_max = 2 * 1024 * 1024
    for number in WRONG_NUMBERS + [b"-1", b"-2", b"-9223372036854775808", b"%d" % (bulk_max + 1)]:
        yield f"a word of {number!r} bytes", lambda n=number: refused(battery, b"*1\r\n$%s\r\n" % n)
        yield f"a second word of {number!r} bytes", lambda n=number: refused(battery, b"*2\r\n$3\r\nGET\r\n$%s\r\n" % n)
    yield "the longest word that may be promised", lambda: waits(battery, b"*1\r\n$%d\r\n" % bulk_max)
    yield "a length that does not end", lambda: refused(battery, b"*1\r\n$" + b"1" * 70000)
    yield "a length of zeros that does not end", lambda: refused(battery, b"*1\r\n$" + b"0" * 70000)
    yield "a word without its line end", lambda: answered(battery, b"*2\r\n$4\r\nECHO\r\n$1\r\nxyz", b"$1\r\nx\r\n")
    yield "an empty command", lambda: answered(battery, b"*1\r\n$0\r\n\r\n", is_error)
    for kind in b"*+-:%~_(,>#|!=(^@\x00\xff \r\n":
        yield f"a word that begins with {bytes([kind])!r}", lambda k=kind: refused(battery, b"*1\r\n%c4\r\nPING\r\n" % k)


def counts(battery):
    for number in WRONG_NUMBERS + [b"2147483648", b"4294967296", b"2147483647"]:
        if number == b"-0":
            continue
        yield f"{number!r} words", lambda n=number: refused(battery, b"*%s\r\n" % n)
    for number in EMPTY_COUNTS:
        yield f"{number!r} words", lambda n=number: answered(battery, b"*%s\r\n" % n, b"")
    yield "a million requests of no words", lambda: answered(battery, b"*0\r\n" * 250_000 + b"*-1\r\n" * 250_000, b"")
    yield "a million empty lines", lambda: answered(battery, b"\r\n" * 500_000, b"")
    yield "a count that does not end", lambda: refused(battery, b"*" + b"1" * 70000)
    yield "many words promised, none sent", lambda: waits(battery, b"*400000\r\n")
    yield "many empty words", lambda: many_words(battery, 200_000)
    yield "as many words as there may be", lambda: many_words(battery, 399_999, patience=10.0)
    for kind in b"+-:%~_(,>#|!=^@$":
        yield f"a request that begins with {bytes([kind])!r}", lambda k=kind: answered(battery, b"%c1\r\n" % k, is_error)
    yield "an array in an array", lambda: refused(battery, b"*1\r\n*1\r\n$4\r\nPING\r\n")
    yield "arrays in arrays, deep", lambda: refused(battery, b"*1\r\n" * 100_000)


def many_words(battery, count, patience=5.0):
    with battery.raw() as sock:
        sock.settimeout(patience)
        sock.sendall(b"*%d\r\n$3\r\nDEL\r\n" % (count + 1) + b"$0\r\n\r\n" * count + PING)
        came = b""
        while not came.endswith(PONG):
            more = sock.recv(65536)
            if not more:
                return f"closed after {came[:100]!r}"
            came += more
    return None if came == b":0\r\n" + PONG else f"{came[:100]!r}"


def inline(battery):
    yield "a line that does not end", lambda: refused(battery, b"A" * 70000)
    yield "a line of 70 000 bytes", lambda: refused(battery, b"ECHO " + b"A" * 70000 + b"\r\n")
    for quotes in (b'ECHO "', b"ECHO '", b'ECHO "a"b', b"ECHO 'a'b", b'ECHO "\\', b'"', b"'", b'ECHO "a\\"'):
        yield f"unbalanced quotes {quotes!r}", lambda q=quotes: refused(battery, q + b"\r\n")
    yield "20 000 words", lambda: answered(battery, b"DEL" + b" k" * 20_000 + b"\r\n", b":0\r\n")
    yield "blanks only", lambda: answered(battery, b" " * 60_000 + b"\r\n", b"")
    yield "every byte as an argument", lambda: every_byte(battery)
    yield "escapes", lambda: answered(battery, b'ECHO "\\x00\\xff\\n"\r\n', b"$3\r\n\x00\xff\n\r\n")
    yield "half an escape", lambda: answered(battery, b'ECHO "\\x0"\r\n', b"$2\r\nx0\r\n")


def every_byte(battery):
    with battery.connect() as client:
        for byte in range(256):
            word = bytes([byte]) * 3
            if bytes(client.call("ECHO", word)) != word:
                return f"byte {byte}"
    return None


REQUESTS = {
    "SET": (encode(["SET", "k", "value", "PX", "50000"]), b"+OK\r\n"),
    "ECHO with line ends": (encode(["ECHO", "\r\n$3\r\n*1\r\n"]), b"$10\r\n\r\n$3\r\n*1\r\n\r\n"),
    "EVAL": (encode(["EVAL", "return ARGV[1]", "1", "k", "a"]), b"$1\r\na\r\n"),
    "a transaction": (b"".join(map(encode, (["MULTI"], ["INCR", "n{1}"], ["DEL", "n{1}"], ["EXEC"]))),
                      b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n"),
    "IDEM.CONSUME": (encode(["IDEM.CONSUME", "nobody", "REASON"]), b"+UNISSUED\r\n"),
    "an inline line": (b"  ECHO \"a b\\x41\"  \r\n", b"$4\r\na bA\r\n"),
    "a mix": (b"*0\r\n\r\n" + encode(["ECHO", "x"]) + b"ECHO y\r\n*-1\r\n", b"$1\r\nx\r\n$1\r\ny\r\n"),
}


def truncated(battery):
    """Each request cut off at each byte: the end of input, a reset, or silence come next."""
    for name, (data, _) in REQUESTS.items():
        for at in range(1, len(data)):
            def body(part=data[:at], how=at % 3):
                sock = battery.raw()
                sock.sendall(part)
                if how == 0:
                    reset(sock)
                elif how == 1:
                    sock.shutdown(socket.SHUT_WR)
                    came, closed = drain(sock)
                    sock.close()
                    if not closed:
                        return f"not closed after the end of input; {came!r}"
                else:
                    sock.close()
                return None
            yield f"{name} at byte {at}", body


def in_pieces(battery):
    """Each request in two reads, cut at each byte, and byte by byte: the same replies."""
    def whole(sock, reply):
        came = b""
        while len(came) < len(reply):
            more = sock.recv(4096)
            if not more:
                break
            came += more
        return None if came == reply else f"{came!r} and not {reply!r}"

    def cut(data, reply):
        with battery.raw() as sock:
            for at in range(1, len(data)):
                sock.sendall(data[:at])
                time.sleep(0.0005)
                sock.sendall(data[at:])
                wrong = whole(sock, reply)
                if wrong:
                    return f"cut at {at}: {wrong}"
        return None

    def single(data, reply):
        with battery.raw() as sock:
            for i in range(len(data)):
                sock.sendall(data[i:i + 1])
            return whole(sock, reply)

    for name, (data, reply) in REQUESTS.items():
        yield f"{name} in two reads", lambda d=data, r=reply: cut(d, r)
        yield f"{name} byte by byte", lambda d=data, r=reply: single(d, r)


def interleaved(battery, rng):
    """Many connections, each request in random pieces, the pieces in random order among them: nobody gets another's reply."""
    def body(count):
        socks = [battery.raw() for _ in range(count)]
        left, expected = [], []
        for i in range(count):
            words = [f"{i}-{j}" * rng.randrange(1, 40) for j in range(20)]
            left.append(b"".join(encode(["ECHO", word]) for word in words))
            expected.append(b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
        while any(left):
            i = rng.randrange(count)
            size = rng.choice((1, 2, 7, 100, 1000))
            socks[i].sendall(left[i][:size])
            left[i] = left[i][size:]
        for sock, reply in zip(socks, expected):
            came = b""
            while len(came) < len(reply):
                more = sock.recv(65536)
                if not more:
                    return "closed"
                came += more
            sock.close()
            if came != reply:
                return f"{came[:100]!r} and not {reply[:100]!r}"
        return None

    for count in (2, 3, 8, 50):
        yield f"{count} connections", lambda n=count: body(n)


def garbled(battery, rng, count):
    """Valid requests with bytes flipped, left out, doubled or replaced: a reply, an error or silence, and nothing else."""
    numbers = [b"0", b"-1", b"1", b"2147483648", b"9223372036854775807", b"1000000"]

    def garble(data):
        data = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            at, what = rng.randrange(len(data)), rng.randrange(6)
            if what == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif what == 1:
                del data[at:at + rng.randrange(1, 5)]
            elif what == 2:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
            elif what == 3:
                data[at:at] = data[at:at + 20]
            elif what == 4:
                data[at:at + 1] = rng.choice(numbers)
            else:
                data[at] = rng.choice(b"\r\n*$\x00\xff")
            if not data:
                data = bytearray(b"*")
        return bytes(data)

    requests = [data for data, _ in REQUESTS.values()]
    for i in range(count):
        data = b"".join(garble(rng.choice(requests)) for _ in range(rng.randrange(1, 4)))
        yield f"{i} {data[:60]!r}", lambda d=data: ends(battery, d)


def junk(battery, rng, count):
    """Random bytes of all kinds."""
    for i in range(count):
        size = rng.choice((1, 2, 10, 100, 5000, 70000))
        data = rng.randbytes(size)
        if i % 3 == 0:
            data = bytes(rng.choice(b"*$0123456789\r\n-") for _ in range(min(size, 5000)))
        yield f"{i}, {size} bytes", lambda d=data: ends(battery, d)


def cases(battery, seed):
    rng = random.Random(seed)
    battery.run("lengths", lengths(battery))
    battery.run("counts", counts(battery))
    battery.run("inline", inline(battery))
    battery.run("truncated", truncated(battery))
    battery.run("in pieces", in_pieces(battery))
    battery.run("interleaved", interleaved(battery, rng))
    battery.run("garbled", garbled(battery, rng, 300))
    battery.run("junk", junk(battery, rng, 100))

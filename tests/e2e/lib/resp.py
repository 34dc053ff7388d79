"""A RESP2/RESP3 client that keeps the wire type of every reply, so that tests can tell "OK" from +OK."""
import socket
import time


class Simple(bytes):
    """+OK"""


class Bulk(bytes):
    """$2 OK"""


class Verbatim(bytes):
    """=6 txt:OK"""


class Error(bytes):
    """-ERR ..."""

    @property
    def code(self):
        return bytes(self).split(b" ", 1)[0].decode("latin-1")


class Nil:
    """$-1, *-1 or _; `kind` says which ("bulk", "array", "resp3")."""

    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return f"Nil({self.kind})"


class Map(list):
    """A RESP3 map as a list of (key, value) pairs in the order they came."""


class Set(list):
    """A RESP3 set."""


class Push(list):
    """A RESP3 push message."""


class Bool(int):
    """#t or #f"""


class Double(float):
    """,1.5"""


class Closed(Exception):
    """The server ended the connection."""


class Timeout(Exception):
    """No complete reply within the client's patience."""


def to_bytes(word):
    if isinstance(word, bytes):
        return word
    if isinstance(word, str):
        return word.encode("latin-1")
    if isinstance(word, bool):
        raise TypeError("a bool is no word")
    if isinstance(word, (int, float)):
        return str(word).encode()
    raise TypeError(f"no word: {word!r}")


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = to_bytes(word)
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Connection:
    """One blocking connection; every wait is bounded by `timeout` seconds."""

    def __init__(self, port=None, host="127.0.0.1", path=None, resp=2, timeout=10.0, db=0, password=None):
        if path is not None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout)
            self.sock.connect(path)
        else:
            self.sock = socket.create_connection((host, port), timeout=timeout)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self.buffer = bytearray()
        self.at = 0
        self.resp = resp
        self.pushes = []
        if password is not None:
            self.expect_ok("AUTH", password)
        if resp != 2:
            hello = self.call("HELLO", str(resp))
            if isinstance(hello, Error):
                raise AssertionError(f"HELLO {resp}: {hello!r}")
        if db:
            self.expect_ok("SELECT", str(db))

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- sending
    def send(self, *words):
        self.sock.sendall(encode(words))

    def send_raw(self, data):
        self.sock.sendall(data)

    def call(self, *words, timeout=None):
        self.send(*words)
        return self.read(timeout)

    def pipeline(self, commands, timeout=None):
        self.sock.sendall(b"".join(encode(words) for words in commands))
        return [self.read(timeout) for _ in commands]

    def expect_ok(self, *words):
        reply = self.call(*words)
        if not isinstance(reply, Simple) or reply != b"OK":
            raise AssertionError(f"{words!r}: expected +OK, got {reply!r}")

    # --- reading
    def read(self, timeout=None):
        """The next reply; push messages are put aside in `pushes`."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            reply = self._value(deadline)
            if isinstance(reply, Push):
                self.pushes.append(reply)
                continue
            if self.at > 65536 or self.at == len(self.buffer):
                del self.buffer[: self.at]
                self.at = 0
            return reply

    def hear(self, timeout=None):
        """The next message that answers no request, as a list: a push in RESP3; in RESP2 it looks like a reply."""
        if self.resp == 2:
            return self.read(timeout)
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        if not self.pushes:
            message = self._value(deadline)
            if not isinstance(message, Push):
                raise AssertionError(f"a reply and no push: {message!r}")
            self.pushes.append(message)
        return list(self.pushes.pop(0))

    def closed_by_server(self, timeout=2.0):
        """True when the server ends the connection within `timeout`; bytes that still come are dropped."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                self._fill(deadline)
                self.at = len(self.buffer)
        except Closed:
            return True
        except Timeout:
            return False

    def _fill(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise Timeout()
        self.sock.settimeout(left)
        try:
            data = self.sock.recv(262144)
        except socket.timeout:
            raise Timeout() from None
        except ConnectionError:
            raise Closed() from None
        if not data:
            raise Closed()
        self.buffer += data

    def _line(self, deadline):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = bytes(self.buffer[self.at : end])
                self.at = end + 2
                return line
            self._fill(deadline)

    def _bytes(self, size, deadline):
        while len(self.buffer) - self.at < size + 2:
            self._fill(deadline)
        data = bytes(self.buffer[self.at : self.at + size])
        if self.buffer[self.at + size : self.at + size + 2] != b"\r\n":
            raise AssertionError("a bulk string without its line end")
        self.at += size + 2
        return data

    def _value(self, deadline):
        line = self._line(deadline)
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Simple(rest)
        if kind == b"-":
            return Error(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return Nil("bulk") if rest == b"-1" else Bulk(self._bytes(int(rest), deadline))
        if kind == b"*":
            return Nil("array") if rest == b"-1" else [self._value(deadline) for _ in range(int(rest))]
        if kind == b"_":
            return Nil("resp3")
        if kind == b"%":
            return Map((self._value(deadline), self._value(deadline)) for _ in range(int(rest)))
        if kind == b"~":
            return Set(self._value(deadline) for _ in range(int(rest)))
        if kind == b">":
            return Push(self._value(deadline) for _ in range(int(rest)))
        if kind == b"#":
            return Bool(rest == b"t")
        if kind == b",":
            return Double(rest)
        if kind == b"(":
            return int(rest)
        if kind == b"=":
            return Verbatim(self._bytes(int(rest), deadline)[4:])
        raise AssertionError(f"no RESP type: {line!r}")


def as_dict(reply):
    """A map reply (RESP3 map or RESP2 flat array) as a dict with str keys."""
    if isinstance(reply, Map):
        pairs = list(reply)
    elif isinstance(reply, list):
        if len(reply) % 2:
            raise AssertionError(f"a map with an odd number of elements: {reply!r}")
        pairs = list(zip(reply[::2], reply[1::2]))
    else:
        raise AssertionError(f"no map: {reply!r}")
    return {bytes(key).decode("latin-1"): value for key, value in pairs}

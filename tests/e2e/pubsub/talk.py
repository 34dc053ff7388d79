"""Scenes of several connections, played to any Redis-like server: what each connection got, byte for byte, step by step."""
import re
import socket
import time

from lib.resp import Connection

PATIENCE_S = 10.0


def encode(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Wire:
    """A connection whose bytes are kept as they come."""

    def __init__(self, port, resp):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.markers = 0
        self.closed = False
        self.send([b"CLIENT", b"ID"])
        self.id = self.settle()[1:-2]
        if resp == 3:
            self.send([b"HELLO", b"3"])
            self.settle()

    def send(self, words):
        self.sock.sendall(encode(words))

    def settle(self):
        """All that was sent to this connection so far: a PING with a mark of its own ends it."""
        self.markers += 1
        mark = b"mark-%d" % self.markers
        self.send([b"PING", mark])
        end = mark + b"\r\n"
        deadline = time.monotonic() + PATIENCE_S
        while not self.buffer.endswith(end):
            self._fill(deadline)
            if self.closed:
                raise AssertionError(f"the server closed the connection after {self.buffer!r}")
        got, self.buffer = self.buffer, b""
        for shape in (b"*2\r\n$4\r\npong\r\n$%d\r\n" % len(mark), b"$%d\r\n" % len(mark)):
            if got.endswith(shape + end):
                return got[: -len(shape + end)]
        raise AssertionError(f"no answer to PING: {got[-200:]!r}")

    def wait_for_more(self, than):
        deadline = time.monotonic() + PATIENCE_S
        while len(self.buffer) <= than:
            self._fill(deadline)

    def rest(self):
        """All that comes until the server closes the connection."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.closed:
            self._fill(deadline)
        return self.buffer

    def _fill(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(self.buffer)
        self.sock.settimeout(left)
        data = self.sock.recv(1 << 18)
        if not data:
            self.closed = True
        self.buffer += data

    def close(self):
        self.sock.close()


def without_ids(ids, step, got):
    """Numbers of connections are not the same on two servers."""
    if b"redir" in got or "GETREDIR" in step:
        for name, number in ids.items():
            got = got.replace(b":%s\r\n" % number, b":{%s}\r\n" % name.encode())
    return got


def await_end(port, number):
    """Until the server has noticed that this connection is gone: another thread of it may serve the others meanwhile."""
    deadline = time.monotonic() + 30
    with Connection(port) as client:
        while client.call("CLIENT", "LIST", "ID", number):
            assert time.monotonic() < deadline, f"connection {number} is still there"


def play(port, scene, resp):
    """[(step, {connection: bytes})]. A step is "a COMMAND word ...", or "a? COMMAND ..." where PING gets no answer then: what
    that connection gets is looked at after its next step without a question mark, or when the server has closed it. "a! COMMAND ..." is the same
    for what gets an answer. {b} is the number of connection b."""
    wires, ids, silent, transcript = {}, {}, set(), []
    try:
        for step in scene:
            who, *words = step.split()
            name = who[0]
            for each in (name, *wires):
                if each not in wires:
                    wires[each] = Wire(port, resp)
                    ids[each] = wires[each].id
            words = [word.encode("latin-1").decode("unicode_escape").encode("latin-1") for word in words]
            words = [ids[chr(word[1])] if re.fullmatch(rb"\{[a-z]\}", word) else word for word in words]
            if words == [b"close"]:
                wires.pop(name).close()
                await_end(port, ids[name])
                silent.discard(name)
                continue
            before = len(wires[name].buffer)
            wires[name].send(words)
            silent.add(name) if who[1:] else silent.discard(name)
            if not who.endswith("?"):
                wires[name].wait_for_more(before)
            order = [name] + [other for other in sorted(wires) if other != name]
            transcript.append((step, {each: without_ids(ids, step, wires[each].settle())
                                      for each in order if each not in silent}))
        transcript.append(("the end", {each: wires[each].rest() for each in sorted(silent)}))
    finally:
        for wire in wires.values():
            wire.close()
    return transcript


def differences(scene, resp, ours, theirs):
    """Lines that tell where two servers said something else."""
    for (step, got), (_, expected) in zip(play(ours, scene, resp), play(theirs, scene, resp)):
        for name in got:
            if got[name] != expected[name]:
                yield f"RESP{resp}, at {step!r}: {name} got\n      {got[name]!r}\n    instead of\n      {expected[name]!r}"

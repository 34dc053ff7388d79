"""Certificates made with the openssl program, and connections and servers that speak TLS."""
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.resp import Closed, Connection, Timeout, encode  # noqa: E402
from lib.server import Server, free_port  # noqa: E402

EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def long_ago():
    """Options of `openssl x509` for a certificate that has expired; newer versions take no negative number of days."""
    known = subprocess.run(["openssl", "x509", "-help"], stdin=subprocess.DEVNULL, capture_output=True).stderr
    return ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"] if b"-not_after" in known else ["-days", -1]


class Authority:
    """A directory with an authority's certificate and those that it has signed."""

    def __init__(self, name):
        self.directory = Path(tempfile.mkdtemp(prefix="idemd-tls-"))
        self.certificate, self.key = self.directory / "ca.pem", self.directory / "ca.key"
        openssl("req", "-x509", *EC_KEY, "-keyout", self.key, "-out", self.certificate, "-days", 2, "-subj", f"/CN={name}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, expired=False):
        """(certificate, key)"""
        certificate, key, request = (self.directory / f"{name}.{end}" for end in ("pem", "key", "csr"))
        openssl("req", "-new", *EC_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        names = self.directory / "names"
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                *(long_ago() if expired else ["-days", 2]), "-extfile", names, "-out", certificate)
        return certificate, key

    def locked(self, pair, password):
        """The pair again, its key encrypted."""
        key = pair[1].with_suffix(".locked")
        openssl("pkey", "-in", pair[1], "-aes128", "-passout", f"pass:{password}", "-out", key)
        return pair[0], key

    def context(self, pair=None):
        """A client that trusts this authority, and shows the certificate of `pair`."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        if pair:
            context.load_cert_chain(str(pair[0]), str(pair[1]))
        return context

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


PIECE = 1 << 16


class Sealed(Connection):
    """A connection over TLS; ends of every kind are Closed."""

    def __init__(self, port, context, host="127.0.0.1", resp=2, timeout=20.0):
        raw = socket.create_connection((host, port), timeout=timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout, self.buffer, self.at, self.resp, self.pushes = timeout, bytearray(), 0, resp, []
        try:
            self.sock = context.wrap_socket(raw, server_hostname=host)
        except OSError as error:
            raw.close()
            raise Closed(str(error)) from None
        if resp != 2:
            self.call("HELLO", str(resp))

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except (ssl.SSLError, ConnectionError) as error:
            raise Closed(str(error)) from None

    def send(self, *words):
        self.send_raw(encode(words))

    def send_while_reading(self, data):
        """Sends what may be more than both sides hold, and takes in what comes meanwhile. On one thread: two may not use an SSL
        object at once, and Python did not see to that before 3.13."""
        rest = memoryview(data)
        self.sock.setblocking(False)
        try:
            while rest:
                waits = 0
                try:
                    rest = rest[self.sock.send(rest[:PIECE]):]
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    waits += 1
                try:
                    got = self.sock.recv(PIECE)
                    if not got:
                        raise Closed()
                    self.buffer += got
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    waits += 1
                if waits == 2 and not any(select.select([self.sock], [self.sock], [], self.timeout)):
                    raise Timeout()
        except (ssl.SSLError, ConnectionError) as error:
            raise Closed(str(error)) from None
        finally:
            self.sock.settimeout(self.timeout)

    def _fill(self, deadline):
        try:
            super()._fill(deadline)
        except (ssl.SSLError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise Timeout() from None
            raise Closed(str(error)) from None

    def certificate(self):
        return self.sock.getpeercert(binary_form=True)


def refused(port, context):
    """Whether the server lets nobody in who comes like this; with TLS 1.3 that shows after the handshake."""
    try:
        with Sealed(port, context) as client:
            return client.call("PING") != b"PONG"
    except Closed:
        return True


class TlsServer(Server):
    """An idemd with a plain port and a TLS port; `plain=False`: with the TLS port alone."""

    def __init__(self, binary, authority, pair, plain=True, tls_context=None, **settings):
        self.tls_port = free_port()
        self.plain = plain
        self.context = tls_context or authority.context()
        own = {"tls_port": self.tls_port, "tls_cert_file": pair[0], "tls_key_file": pair[1], "tls_auth_clients": "no"}
        if not plain:
            own["port"] = 0
        super().__init__(binary, **{**own, **settings})

    def _answers(self):
        if self.plain:
            return super()._answers()
        deadline = time.monotonic() + self.start_timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with self.sealed() as client:
                    client.call("PING")
                    return True
            except (OSError, Closed, Timeout):
                time.sleep(0.02)
        return False

    def sealed(self, context=None, **options):
        return Sealed(self.tls_port, context or self.context, **options)

    def lines(self, text):
        """How many lines of the log hold the text."""
        return sum(text in line for line in self.log_lines())


class TlsRedis:
    """A stock redis-server that speaks TLS and keeps nothing; its plain port is off."""

    def __init__(self, authority, pair, *words):
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="idemd-redis-")
        self.context = authority.context()
        self.words = ["redis-server", "--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1", "--dir",
                      self.directory, "--save", "", "--tls-cert-file", str(pair[0]), "--tls-key-file", str(pair[1]),
                      "--tls-auth-clients", "no", *map(str, words)]

    def sealed(self):
        return Sealed(self.port, self.context)

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.sealed() as client:
                    client.call("PING")
                return self
            except (OSError, Closed, Timeout):
                if time.monotonic() > deadline:
                    self.__exit__()
                    raise
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(20)
        shutil.rmtree(self.directory, ignore_errors=True)

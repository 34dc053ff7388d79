"""Calls between the storm's processes: one JSON object a line, over TCP on the loopback."""

import json
import socket
import socketserver
import threading


class Remote:
    """A client. Every thread has its own connection, so that nobody waits behind another's call."""

    def __init__(self, port):
        self.port = port
        self.local = threading.local()

    def call(self, name, **arguments):
        if not hasattr(self.local, "stream"):
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
            self.local.stream = connection.makefile("rwb")
        self.local.stream.write(json.dumps([name, arguments]).encode() + b"\n")
        self.local.stream.flush()
        line = self.local.stream.readline()
        if not line:
            raise ConnectionError("the outside world is gone")
        return json.loads(line)


class Server(socketserver.ThreadingTCPServer):
    """Answers each call with the method of `target` that has its name."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, target):
        self.target = target
        super().__init__(("127.0.0.1", 0), Session)


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            for line in self.rfile:
                name, arguments = json.loads(line)
                answer = getattr(self.server.target, name)(**arguments)
                self.wfile.write(json.dumps(answer).encode() + b"\n")
        except ConnectionError:
            pass  # the caller was killed: what it asked for has been done all the same

"""The shop's processes: a master that forks HTTP workers and queue consumers, and kills some of them.

Started by storm.py. It writes its port on the first line of its output, then reads the port of the
outside world from its input. "calm" ends the random kills; the end of the input ends the shop, and
its last line is a report. Whoever dies is replaced.
"""

import argparse
import http.server
import json
import os
import random
import select
import signal
import socket
import sys
import time
import urllib.parse

import careless
import guarded
import naive
import wire

HTTP_WORKERS, CONSUMERS = 4, 3
STALL_S = 1.6 * guarded.LEASE_MS / 1000


class Handler(http.server.BaseHTTPRequestHandler):
    shop = None

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        words = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
        try:
            code, answer = self.route(words)
        except (guarded.OldFence, naive.OldFence):
            code, answer = 409, "another attempt has taken over"
        body = answer.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def route(self, words):
        if self.path == "/paid":  # the bank's calls are not limited
            return self.shop.paid(words["number"])
        wait_ms = self.shop.allow(words["user"])
        if wait_ms:
            return 429, str(wait_ms)
        if self.path == "/catalogue":
            return 200, "lamp"
        if self.path == "/form":
            return self.shop.form(words["user"])
        if self.path == "/orders":
            return self.shop.submit(words["user"], words["token"], words["number"])
        if self.path == "/pay":
            return self.shop.pay(words["number"])
        return 404, "no such page"

    def log_message(self, *args):
        pass


class HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients hang up all the time
            super().handle_error(request, client_address)


def make_shop(options, world_port):
    world = wire.Remote(world_port)

    def strike(point, operation):
        kind = world.call("strike", point=point, operation=operation)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "stall":
            time.sleep(STALL_S)
        return kind

    if options.mode == "without":
        return naive.NaiveShop(world, strike), world
    kind = careless.CarelessShop if options.mode == "careless" else guarded.GuardedShop
    return kind(world, strike, options.url, options.prefix), world


def run_http(options, world_port, listener):
    Handler.shop, _ = make_shop(options, world_port)
    server = HttpServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener  # shared with the other workers
    server.serve_forever()


def run_consumer(options, world_port):
    shop, world = make_shop(options, world_port)
    while True:
        message = world.call("poll")
        if message is None:
            time.sleep(0.02)
            continue
        receipt, topic, body = message
        try:
            wait_ms = shop.ship(body) if topic == "ship" else shop.reconcile(body)
        except (guarded.OldFence, naive.OldFence):
            wait_ms = 50
        if wait_ms is None:
            world.call("ack", receipt=receipt)
        else:
            world.call("nack", receipt=receipt, ms=wait_ms)


class Master:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(f"{options.seed}:kills")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.listener.setblocking(False)  # a worker that comes too late must not hang in accept
        self.children = {}  # pid -> role
        self.killed = 0

    def fork(self, role, world_port):
        pid = os.fork()
        if pid:
            self.children[pid] = role
            return
        status = 1
        try:
            sys.stdin.close()
            if role == "http":
                run_http(self.options, world_port, self.listener)
            else:
                run_consumer(self.options, world_port)
        except ConnectionError:
            status = 0  # the storm is over
        finally:
            os._exit(status)

    def reap(self, world_port):
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            role = self.children.pop(pid)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                self.killed += 1
            self.fork(role, world_port)

    def run(self):
        print(self.listener.getsockname()[1], flush=True)
        world_port = int(sys.stdin.buffer.raw.readline())
        for role in ["http"] * HTTP_WORKERS + ["consumer"] * CONSUMERS:
            self.fork(role, world_port)
        pause = lambda: time.monotonic() + self.random.uniform(0.5, 1.1)  # noqa: E731
        calm, next_kill = False, pause()
        while True:
            if select.select([0], [], [], 0.01)[0]:
                if not os.read(0, 64):
                    break
                calm = True
            if not calm and time.monotonic() >= next_kill:
                os.kill(self.random.choice(sorted(self.children)), signal.SIGKILL)
                next_kill = pause()
            self.reap(world_port)
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        print(json.dumps({"killed": self.killed}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", required=True)
    parser.add_argument("--url")
    parser.add_argument("--prefix")
    parser.add_argument("--mode", choices=["with", "careless", "without"], required=True)
    Master(parser.parse_args()).run()


if __name__ == "__main__":
    main()

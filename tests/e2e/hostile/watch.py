"""Sends PINGs to a server, a connection per loop, and prints how long they took once its input ends.

In turn with them it pings a process that only echoes: what the machine itself takes when the test keeps it busy.
"""
import json
import os
import select
import socket
import sys
import time

PAUSE_SECONDS = 0.002
REQUEST, ANSWER = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"


def echo_process():
    """A socket whose other end, in another process, sends a PONG for whatever comes."""
    here, there = socket.socketpair()
    if os.fork() != 0:
        there.close()
        return here
    here.close()
    sys.stdin.close()
    while there.recv(1024):
        there.sendall(ANSWER)
    os._exit(0)


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def round_trip(sock):
    started = time.monotonic()
    sock.sendall(REQUEST)
    answer = b""
    while len(answer) < len(ANSWER):
        data = sock.recv(64)
        if not data:
            raise ConnectionError("closed")
        answer += data
    return (time.monotonic() - started) * 1000


def summary(times):
    times.sort()
    return {"count": len(times), "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100],
            "p999": times[len(times) * 999 // 1000], "max": times[-1]}


def main():
    port, loops = int(sys.argv[1]), int(sys.argv[2])
    control = echo_process()
    socks = [connect(port) for _ in range(loops)]  # dealt out to the loops in turn
    of_server, of_machine, lost = [], [], 0
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        for i, sock in enumerate(socks):
            try:
                of_server.append(round_trip(sock))
            except OSError:
                lost += 1
                try:
                    socks[i] = connect(port)
                except OSError:
                    time.sleep(0.1)
        of_machine.append(round_trip(control))
    control.close()
    print(json.dumps({"server": summary(of_server or [0.0]), "machine": summary(of_machine or [0.0]), "lost": lost}))


if __name__ == "__main__":
    main()

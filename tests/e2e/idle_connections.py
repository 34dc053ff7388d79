"""10 000 idle connections: all are served, each PING is answered, and the memory that one costs is printed."""
import argparse
import resource
import select
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib.resp import encode  # noqa: E402
from lib.server import Server, find_binary  # noqa: E402

KILOBYTES_MAX = 32  # more than that for an idle connection is a fault; Redis needs about 20


def raise_file_limit(wanted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def all_ping(sockets, seconds=60):
    """Every connection sends PING, then every answer is awaited; the number of wrong or missing ones."""
    request, answer = encode(["PING"]), b"+PONG\r\n"
    for s in sockets:
        s.send(request)
    poller = select.poll()
    by_fd = {s.fileno(): s for s in sockets}
    got = dict.fromkeys(by_fd, b"")
    for fd in by_fd:
        poller.register(fd, select.POLLIN)
    wrong, deadline = 0, time.monotonic() + seconds
    while got and time.monotonic() < deadline:
        for fd, _ in poller.poll(1000):
            got[fd] += by_fd[fd].recv(64)
            if len(got[fd]) >= len(answer) or not got[fd]:
                wrong += got.pop(fd) != answer
                poller.unregister(fd)
    return wrong + len(got)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    count = options.connections
    limit = raise_file_limit(count + 1000)
    if limit < count + 600:
        raise SystemExit(f"only {limit} open files are allowed, {count + 600} are needed")
    passed = failed = 0

    def check(good, what):
        nonlocal passed, failed
        passed, failed = passed + bool(good), failed + (not good)
        print(f"{'ok' if good else 'FAILED':7} {what}")

    with Server(find_binary(options.build), maxclients=count + 500) as server:
        with server.connect() as control:
            before = server.rss_bytes()
            started = time.monotonic()
            sockets = []
            for _ in range(count):
                s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                s.setblocking(False)
                sockets.append(s)
            print(f"{count} connections in {time.monotonic() - started:.1f} s")
            each = (server.rss_bytes() - before) / count
            check(each <= KILOBYTES_MAX * 1024, f"a connection that never spoke costs {each / 1024:.1f} KiB")
            for turn in ("first", "second"):
                started = time.monotonic()
                wrong = all_ping(sockets)
                check(wrong == 0, f"{turn} PING on {count} connections in {time.monotonic() - started:.1f} s, {wrong} wrong")
            each = (server.rss_bytes() - before) / count
            check(each <= KILOBYTES_MAX * 1024, f"an idle connection that has spoken costs {each / 1024:.1f} KiB")
            reply = bytes(control.call("INFO", "clients")).decode()
            check(f"connected_clients:{count + 1}\r" in reply, "INFO clients counts them all")
            for s in sockets:
                s.close()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and "connected_clients:1\r" not in bytes(control.call("INFO", "clients")).decode():
                time.sleep(0.05)
            check("connected_clients:1\r" in bytes(control.call("INFO", "clients")).decode(), "and all are gone after they closed")
            check(server.alive(), "the server lives")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

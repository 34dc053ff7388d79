"""The idemd that the examples use: a running one, or one started here and ended with the caller."""

import contextlib
import os
import socket
import subprocess
import sys
import time

import redis


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(url, binary, port, directory):
    """Yields the URL. `url` wins over `binary`; port 0 means any; data and log go to `directory`."""
    if url:
        yield url
        return
    if not binary:
        sys.exit("name a running server with IDEMD_URL, or a binary with IDEMD_BIN")
    port = port or free_port()
    data = os.path.join(directory, "idemd")
    os.makedirs(data, exist_ok=True)
    log_path = os.path.join(directory, "idemd.log")
    with open(log_path, "wb") as log:
        child = subprocess.Popen(
            [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", data],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"redis://127.0.0.1:{port}"
        wait_for(url, child, log_path)
        yield url
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_for(url, child, log_path):
    store = redis.Redis.from_url(url)
    for _ in range(400):
        with contextlib.suppress(redis.RedisError):
            if store.ping():
                return
        if child.poll() is not None:
            break
        time.sleep(0.05)
    with open(log_path, encoding="utf-8", errors="replace") as log:
        sys.exit(f"the server does not answer; its log says:\n{log.read()[-2000:]}")

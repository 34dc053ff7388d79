"""Real libraries under concurrency: locks exclude, limits limit, tasks are done once, sessions stay whole and end in time."""
import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.server import ROOT, Redis, Server, find_binary  # noqa: E402

PROGRAMS = ("redlock.mjs", "rate_limits.mjs", "queues.mjs", "sessions.mjs", "redis_py_lock.py", "task_queue.py",
            "redisson_lock.py", "spring_lock.py", "spring_session.py")
LIMIT_S = 400  # of one program, whose tests have their own patience
AT_ONCE = 3  # they mostly wait; each uses keys of its own


def words_for(name, port):
    if name.endswith(".mjs"):
        return ["node", str(HERE / name), str(port)]
    return [os.environ.get("PYTHON", "/usr/bin/python3"), str(HERE / name), str(port)]


def run(name, port):
    """What a program printed, and its exit code (None: it was ended). Asked to end, a program ends what it started."""
    process = subprocess.Popen(words_for(name, port), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    code = None
    try:
        shown, _ = process.communicate(timeout=LIMIT_S)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            shown, _ = process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            shown, _ = process.communicate()
    return shown.decode("utf-8", "replace"), code


def outcome(name, port):
    """(passed, failed) of one program; one that ended badly without naming a failure has failed once."""
    started = time.monotonic()
    shown, code = run(name, port)
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", shown, re.M)
    passed, failed = map(int, counts[-1]) if counts else (0, 0)
    if failed == 0 and (code != 0 or passed == 0):
        failed = 1
    notes = []
    if failed:
        notes += [shown[-6000:]] + ([] if code is not None else [f"{name} was ended after {LIMIT_S} s"])
    took = time.monotonic() - started
    notes.append(f"{'FAILED' if failed else 'ok':7} {name}: {passed} passed, {failed} failed ({took:.1f} s)")
    print("\n".join(notes), flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="build directory (or IDEMD_BIN)")
    parser.add_argument("--only", help="a part of a program's name: " + ", ".join(PROGRAMS))
    parser.add_argument("--redis", action="store_true", help="against a stock redis-server instead")
    options = parser.parse_args()
    if not (HERE / "node_modules").is_dir():
        raise SystemExit(f"run npm ci in {HERE.relative_to(ROOT)} first")
    names = [name for name in PROGRAMS if options.only is None or options.only in name]
    with Redis() if options.redis else Server(find_binary(options.build)) as server, ThreadPoolExecutor(AT_ONCE) as pool:
        counts = list(pool.map(lambda name: outcome(name, server.port), names))
        passed, failed = (sum(column) for column in zip(*counts))
        if not server.alive():
            print(f"FAILED  the server ended: {server.log_text()}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

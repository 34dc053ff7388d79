#!/usr/bin/env python3
"""Runs every example in both languages and the storm in its three modes, and counts what kept its promise.

    IDEMD_BIN=build/idemd examples/run_all.py       starts the server itself
    IDEMD_URL=redis://host:port examples/run_all.py uses a running one

A word on the command line (python, node, shop, docs) runs only that part; --port names the port.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ["docs", "python", "node", "shop"]


def with_redis_py():
    """An interpreter that has redis-py: this one, or the distribution's."""
    for python in [sys.executable, "/usr/bin/python3", shutil.which("python3")]:
        if python and os.path.exists(python):
            if subprocess.run([python, "-c", "import redis"], stderr=subprocess.DEVNULL).returncode == 0:
                return python
    sys.exit("no Python with redis-py: install python3-redis")


class Run:
    def __init__(self, url):
        self.environment = {**os.environ, "IDEMD_URL": url, "PYTHONDONTWRITEBYTECODE": "1"}
        self.passed, self.failed = 0, 0

    def check(self, name, command, directory, seconds, show=False):
        begin = time.monotonic()
        try:
            done = subprocess.run(
                command, cwd=directory, env=self.environment, timeout=seconds,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace",
            )  # fmt: skip
            code, output = done.returncode, done.stdout
        except FileNotFoundError as error:
            code, output = 127, str(error)
        except subprocess.TimeoutExpired as error:
            code, output = 124, (error.stdout or b"").decode(errors="replace") + "\ntook too long"
        good = code == 0
        self.passed += good
        self.failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        if show or not good:
            print(output, flush=True)
        return good


def run_parts(run, parts):
    if "docs" in parts:
        check = HERE.parent / "docs" / "check_snippets.py"
        run.check("docs: snippets are the examples' own", [sys.executable, check], HERE, 30)
    if "python" in parts:
        for example in sorted((HERE / "python").glob("*.py")):
            run.check(f"python: {example.name}", [sys.executable, example], HERE / "python", 60)
    if "node" in parts:
        node = HERE / "node"
        if run.check("node: npm ci", ["npm", "ci", "--no-audit", "--no-fund"], node, 300):
            for example in sorted(node.glob("*.js")):
                run.check(f"node: {example.name}", ["node", example.name], node, 60)
    if "shop" in parts:
        for mode in ([], ["--careless"], ["--without"]):
            name = " ".join(["shop: storm.py", *mode])
            run.check(name, [sys.executable, "storm.py", *mode], HERE / "shop", 120, show=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="|".join(PARTS))
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    python = with_redis_py()
    if python != sys.executable:
        os.execv(python, [python, *sys.argv])

    sys.path.insert(0, str(HERE / "shop"))
    import idemd_process

    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        binary = os.environ.get("IDEMD_BIN")
        url = stack.enter_context(
            idemd_process.running(
                os.environ.get("IDEMD_URL"), binary and os.path.abspath(binary), options.port, directory
            )
        )
        run = Run(url)
        run_parts(run, options.parts or PARTS)
    print(f"{run.passed} passed, {run.failed} failed")
    sys.exit(1 if run.failed or not run.passed else 0)


if __name__ == "__main__":
    main()

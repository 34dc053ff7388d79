"""Redis 7.0.15's own tests against idemd: a fresh server per unit of its Tcl suite, and as many passes as a stock redis-server has.

Prints a row per unit and `N passed, N failed`. A test that did not run, though a stock server passes it, is a failure. Where there are no
tests to be had, it says so and ends with 77, which counts as skipped.

idemd runs with one io-thread here: the units send on one connection without reading the reply, and expect that what they send on another one
afterwards is executed afterwards. A server with several threads orders only what a client has seen the reply of.
"""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from lib.server import Server, find_binary  # noqa: E402
from tcl import Suite  # noqa: E402
from tree import NoTree, find  # noqa: E402

SKIPPED = 77

# A unit of our own that the runner must judge right before it is believed: two tests pass, one is wrong, one hangs.
CONTROL = """
start_server {tags {"control"}} {
    test {control: right} { r set a b; r get a } {b}
    test {control: wrong} { r get a } {c}
    test {control: hangs} { while 1 { after 1000 } }
    test {control: after it} { r ping } {PONG}
    test {control: ignored} { fail "ran" } {} {needs:debug}
}
"""
CONTROL_STALL_SECONDS = 8  # a busy machine needs some of them to start the suite


def table(name):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


class Row:
    """A unit's outcome beside what is expected of it."""

    def __init__(self, unit, of, result, cannot, left_out):
        self.unit, self.of, self.ok = unit, of, len(result.ok)
        self.excused = {name: why for name, why in cannot.items() if name in result.failed or name in left_out}
        self.faults = {name: why for name, why in result.failed.items() if name not in cannot}
        for name in cannot.keys() & set(result.ok):
            self.faults[name] = "passes, though cannot_pass.tsv says that it cannot"
        if result.early:
            self.faults["(the unit)"] = result.early
        self.absent = max(0, of - self.ok - len(result.failed) - len(left_out))
        if self.absent:
            self.faults["(not run)"] = f"{self.absent} tests that a stock server passes"

    def failed(self):
        named = sum(1 for name in self.faults if name != "(not run)" and not (name == "(the unit)" and self.absent))
        return named + self.absent


def control(binary, tree):
    """What the runner judged wrong in CONTROL; empty when it may be believed."""
    suite = Suite(tree, CONTROL_STALL_SECONDS, 60)
    try:
        (suite.folder / "tests" / "unit" / "control.tcl").write_text(CONTROL, encoding="utf-8")
        result = suite.unit("unit/control", lambda: Server(binary, io_threads=1))
    finally:
        suite.close()
    seen = (result.ok, sorted(result.failed), result.ignored, result.early)
    wanted = (["control: right", "control: after it"], ["control: hangs", "control: wrong"], 1, "")
    return "" if seen == wanted else f"{seen} instead of {wanted}"


def keep(rows, seen):
    """The results that page.py puts into docs/compatibility.md."""
    folder = HERE / "ran"
    (folder / "units.tsv").write_text(
        "# Written by run.py --keep. Columns: unit, passed, passed by a stock server.\n"
        + "".join(f"{row.unit}\t{row.ok}\t{row.of}\n" for row in rows), encoding="utf-8")
    names = sorted(set(Path(seen.name).read_text(encoding="utf-8").split()))
    (folder / "by_units.txt").write_text("# Commands that the units called with success; written by run.py --keep.\n"
                                         + "".join(name + "\n" for name in names), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--tree", help="an unpacked source tree (or IDEMD_REDIS_TREE); otherwise it is fetched")
    parser.add_argument("--units", nargs="+", help="these units only, as unit/type/string")
    parser.add_argument("--stall", type=int, default=120, help="seconds without progress that end a unit")
    parser.add_argument("--limit", type=int, default=300, help="seconds that a unit may take")
    parser.add_argument("--keep", action="store_true", help="write what ran into ran/, for page.py")
    options = parser.parse_args()
    if options.keep and options.units:
        raise SystemExit("--keep takes the results of all units")
    binary = find_binary(options.build)
    try:
        tree = find(options.tree)
    except NoTree as reason:
        print(f"SKIPPED: {reason}")
        return SKIPPED
    wrong = control(binary, tree)
    if wrong:
        print(f"FAILED  the runner misjudges its own control: {wrong}\n0 passed, 1 failed")
        return 1
    of = {unit: int(count) for unit, count in table("stock.tsv")}
    for unit in options.units or ():
        if unit not in of:
            raise SystemExit(f"no unit {unit}; there are {', '.join(of)}")

    seen = tempfile.NamedTemporaryFile(prefix="idemd-commands-")
    if options.keep:
        os.environ["IDEMD_COMMANDS_SEEN"] = seen.name
    suite, rows, started = Suite(tree, options.stall, options.limit), [], time.monotonic()
    print(f"{'unit':28} {'ok':>5} {'of':>5} {'s':>6}  failed", flush=True)
    try:
        for unit in options.units or of:
            began = time.monotonic()
            cannot = [(test, how, why) for name, test, how, why in table("cannot_pass.tsv") if name == unit]
            left_out = [test for test, how, _ in cannot if how == "left out"]
            result = suite.unit(unit, lambda: Server(binary, io_threads=1), left_out)
            row = Row(unit, of[unit], result, {test: why for test, _, why in cannot}, left_out)
            rows.append(row)
            if options.keep:
                keep(rows, seen)
            print(f"{unit:28} {row.ok:5} {row.of:5} {time.monotonic() - began:6.1f}", flush=True)
            for name, why in row.faults.items():
                print(f"    FAILED  {name}: {why[:200]}", flush=True)
            for name, why in row.excused.items():
                print(f"    cannot pass  {name}: {why}", flush=True)
    finally:
        suite.close()
    passed, failed = sum(row.ok for row in rows), sum(row.failed() for row in rows)
    print(f"{passed} of {sum(row.of for row in rows)} that a stock server passes, in {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Plants the faults of faults.tsv, one at a time, and sees that the suites notice each of them.

  run.py [NAME ...]      all, or those named

A copy of the tree is built in build/faults; the tree itself is not touched. A fault whose text is no longer in its
source, or that does not compile, is a fault of the list. Ends with "N passed, N failed".
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "build" / "faults"
BUILD = SOURCE / "build" / "release"  # as deep as a build of the tree itself: a compiler cache then knows its objects
COLUMNS = ("name", "source", "text", "becomes", "program", "tests")
LIMIT_S = 300
CAMPAIGNS = {"crash_states": "tests/crash/crash_states"}


def read_list():
    for line in (ROOT / "tests/faults/faults.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            assert len(fields) == len(COLUMNS), line
            fault = dict(zip(COLUMNS, fields))
            fault["text"] = fault["text"].replace("\\n", "\n")
            yield fault


def copy_tree():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    kept = {os.fsdecode(name) for name in files.split(b"\0") if name}
    for name in sorted(kept):
        to, of = SOURCE / name, ROOT / name
        if not of.is_file():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_bytes() != of.read_bytes():
            shutil.copyfile(of, to)
            to.chmod(of.stat().st_mode)


def build(program):
    return subprocess.run(["cmake", "--build", BUILD, "--target", program], capture_output=True, text=True)


def run(fault):
    """How the program ended: a number, or None when it did not end in time."""
    program = BUILD / CAMPAIGNS.get(fault["program"], f"tests/{fault['program']}")
    if fault["program"] in CAMPAIGNS:
        command = [program, fault["tests"]]
    else:
        command = [program, "--gtest_brief=1"] + ([] if fault["tests"] == "-" else [f"--gtest_filter={fault['tests']}"])
    try:
        return subprocess.run(command, cwd=SOURCE, capture_output=True, timeout=LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        return None


def main():
    faults = [fault for fault in read_list() if not sys.argv[1:] or fault["name"] in sys.argv[1:]]
    copy_tree()
    subprocess.run(["cmake", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DIDEMD_BENCH=OFF", "-S", SOURCE, "-B", BUILD,
                    "--log-level=WARNING"], check=True)
    passed = failed = 0
    for program in sorted({fault["program"] for fault in faults}):
        built = build(program)
        if built.returncode != 0:
            print(built.stdout[-3000:])
            sys.exit(f"{program} cannot be built")
    sound = {}
    for fault in faults:  # without the fault the same tests pass
        what = (fault["program"], fault["tests"])
        if what not in sound:
            sound[what] = run(fault) == 0
    for fault in faults:
        path = SOURCE / fault["source"]
        text = path.read_text()
        begin = time.monotonic()
        if text.count(fault["text"]) != 1:
            verdict = f"MISSED: the text stands {text.count(fault['text'])} times in {fault['source']}"
        elif not sound[fault["program"], fault["tests"]]:
            verdict = f"MISSED: {fault['program']} fails without it, too"
        else:
            path.write_text(text.replace(fault["text"], fault["becomes"]))
            try:
                built = build(fault["program"])
                if built.returncode != 0:
                    verdict = "MISSED: it does not compile: " + " ".join(
                        line for line in built.stdout.splitlines() if "error" in line)[:300]
                else:
                    code = run(fault)
                    caught = code != 0
                    verdict = ("caught" if caught else "MISSED") + f" by {fault['program']}" + (" (no end)" if code is None else "")
            finally:
                path.write_text(text)
        passed += verdict.startswith("caught")
        failed += not verdict.startswith("caught")
        print(f"{fault['name']:28} {verdict}  {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

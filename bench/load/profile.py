#!/usr/bin/env python3
"""Where the instructions of a request go, in user space: those of callgrind, by part of the request path.

  profile.py BUILD [--kind get] [--pipelines 1,16,64] [--redis]

Two runs of different length are subtracted, so that start and end do not count. With --redis a stock Redis stands beside it, in all.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))
import instructions  # noqa: E402
from lib.server import find_binary  # noqa: E402

FEW, MANY = 2000, 10000
# The first that matches.
PARTS = [
    ("parse", r"Parser::|ParseInt|SplitLine|RequestSpan|absl::.*string_view.*>::(push|emplace)"),
    ("look-up, table, record", r"storage::|XXH|Epoch|Retire|Slab"),
    ("reply", r"Writer::|FormatInt|string::append|_M_append|_M_replace"),
    ("dispatch, statistics, clock", r"Dispatcher|CallAndCount|RunHandler|Handler|server::\(anonymous namespace\)|clock|ThreadStats|LatencyClasses|Context"),
    ("connection, Asio", r"boost|asio|Connection::|Loop::|epoll|recv|send|Output|ReadBuffer|pthread|eventfd|std::function|shared_ptr|_Sp_counted"),
    ("memory copies and comparisons", r"mem(cpy|move|cmp|set|chr)"),
    ("allocator", r"malloc|free|operator (new|delete)|je_|tcache"),
]


def counts(binary, kind, pipeline, count):
    """Instructions by function."""
    with tempfile.TemporaryDirectory(prefix="idemd-cg-") as directory:
        kept = Path(directory) / "out"
        instructions.instructions(binary, kind, pipeline, count, keep=kept)
        text = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--tree=none", "--inclusive=no", str(kept)], capture_output=True, text=True, check=True).stdout
    by_function = Counter()
    for line in text.splitlines():
        found = re.match(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+(?:[^:]*):(.*)", line)
        if found and "PROGRAM TOTALS" not in line:
            by_function[re.sub(r" \[.*?\]$", "", found[2]).strip()] += int(found[1].replace(",", ""))
    return by_function


def parts(binary, kind, pipeline):
    few, many = counts(binary, kind, pipeline, FEW), counts(binary, kind, pipeline, MANY)
    by_part, rest = Counter(), Counter()
    for function, count in many.items():
        each = (count - few[function]) / (MANY - FEW)
        part = next((name for name, pattern in PARTS if re.search(pattern, function)), "other")
        by_part[part] += each
        if part == "other":
            rest[function] += each
    return by_part, rest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--kind", default="get", choices=instructions.KINDS)
    parser.add_argument("--pipelines", default="1,16,64")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--other", action="store_true", help="name what is in no part")
    options = parser.parse_args()
    binary = find_binary(options.build)
    pipelines = [int(p) for p in options.pipelines.split(",")]
    columns = [parts(binary, options.kind, p) for p in pipelines]
    print("| instructions | " + " | ".join(f"pipeline {p}" for p in pipelines) + " |")
    print("| --- |" + " ---: |" * len(pipelines))
    for name in [name for name, _ in PARTS] + ["other"]:
        print(f"| {name} | " + " | ".join(f"{column[name]:.0f}" for column, _ in columns) + " |")
    print("| all of idemd | " + " | ".join(f"{sum(column.values()):.0f}" for column, _ in columns) + " |")
    if options.redis:
        redis = [instructions.per_request("redis-server", options.kind, p, native=False) for p in pipelines]
        print("| Redis 7.0 | " + " | ".join(f"{count:.0f}" for count in redis) + " |")
    if options.other:
        for _, rest in columns:
            print(rest.most_common(12))


if __name__ == "__main__":
    main()

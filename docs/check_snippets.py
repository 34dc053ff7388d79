#!/usr/bin/env python3
"""Tests that every Python and JavaScript block of the documents stands, line for line, in an example."""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {"python": "*.py", "js": "*.js"}
BLOCK = re.compile(r"^```(python|js)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(pattern):
    return [
        path.read_text(encoding="utf-8").splitlines()
        for path in sorted((ROOT / "examples").rglob(pattern))
        if "node_modules" not in path.parts
    ]


def dedented(lines):
    return textwrap.dedent("\n".join(lines)).splitlines()


def stands_in(block, lines):
    wanted = dedented(block)
    first = wanted[0].strip()
    return any(
        line.strip() == first and dedented(lines[at : at + len(wanted)]) == wanted
        for at, line in enumerate(lines)
    )


def main():
    sources = {language: programs(pattern) for language, pattern in SOURCES.items()}
    checked, missing = 0, 0
    for page in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]):
        if "node_modules" in page.parts:
            continue
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            checked += 1
            if not any(stands_in(text.splitlines(), lines) for lines in sources[language]):
                missing += 1
                print(f"{page.relative_to(ROOT)}: no example has this {language} block:\n{text}")
    print(f"{checked - missing} of {checked} blocks stand in an example")
    sys.exit(1 if missing or not checked else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Holds the tree to its map: what each folder may include, how long a file may be, what no file may name."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES_MAX = 600  # past that a second idea has moved in

CXX = {".cc", ".h"}
SOURCE = CXX | {".py", ".sh", ".js", ".mjs", ".ts", ".cmake"}

# What a folder may include: of our tree, and of other libraries (standard C and C++ headers are free).
# The longest matching folder decides; a folder always may include itself and what lies below it.
ARROWS = {
    "storage": (["storage/"], ["absl/", "xxhash.h"]),
    "storage/snapshot": (["storage/"], ["absl/", "lzf.h"]),
    "storage/collection": (["storage/"], ["absl/", "boost/"]),
    "storage/token": (["storage/"], ["absl/", "xxhash.h", "openssl/"]),
    "protocol": (["protocol/"], ["absl/"]),
    # session.h and clients.h: what one connection is, seen from both sides. It holds what storage calls
    # back: who waits, what was written, which keys are watched.
    "server": (["server/session.h", "server/clients.h", "storage/wait/waiter.h", "storage/effect.h",
                "storage/events.h", "storage/watch.h", "storage/sync/mutex.h"], ["absl/"]),
    # The record library and the token's text are what native commands are made of: any host calls them directly.
    "server/commands": (["protocol/", "storage/store.h", "storage/effect.h", "storage/sync/mutex.h",
                         "storage/wait/waiter.h", "storage/record/", "storage/token/token.h", "storage/clock.h",
                         "storage/collection/", "storage/value/hyperloglog.h",
                         "storage/snapshot/rdb_reader.h", "storage/snapshot/rdb_writer.h", "storage/snapshot/rdb_functions.h", "server/session.h", "server/clients.h", "server/version.h",
                         "server/check.h", "server/steady_time.h",
                         "server/pubsub/", "storage/events.h", "server/admin/", "server/acl/", "server/script/"], ["absl/"]),
    # Messages are encoded once for all who get them, and leave through Peer.
    "server/pubsub": (["protocol/", "storage/effect.h", "storage/emptied.h", "storage/events.h", "storage/sync/mutex.h", "server/session.h",
                       "server/clients.h"], ["absl/"]),
    # Lua: what a script is, does not know what a command does.
    "server/script": (["protocol/", "server/check.h", "server/version.h"], ["absl/", "luajit-2.1/", "openssl/"]),
    "server/journal": (["protocol/", "storage/", "server/commands/dispatch.h",
                        "server/commands/persistence_control.h", "server/admin/log.h", "server/version.h", "server/steady_time.h"], ["absl/", "xxhash.h"]),
    # Locks are storage/sync/mutex.h everywhere. Settings are read with the numbers, patterns and quotes of requests.
    "server/admin": (["storage/stats.h", "storage/sync/mutex.h", "protocol/number.h", "protocol/glob.h",
                      "protocol/resp/split.h"], ["absl/", "openssl/"]),
    # Users and rights: who calls tells it what commands there are.
    "server/acl": (["protocol/glob.h", "storage/sync/mutex.h", "server/check.h", "server/admin/password.h"], ["absl/"]),
    "server/net": (["protocol/", "server/session.h", "server/steady_time.h", "server/check.h", "server/clients.h", "server/commands/dispatch.h",
                    "server/commands/outbound.h", "server/admin/settings.h", "server/admin/stats.h", "server/admin/log.h",
                    "storage/sync/mutex.h"],
                   ["absl/", "boost/", "openssl/", "sys/", "netinet/", "arpa/"]),
}
FREE = ("server/main.cc", "tests/", "bench/", "examples/")
KNOWN_TOP = {"server", "storage", "protocol", "tests", "bench", "examples"}

# Headers of other libraries, and the system's sockets: free nowhere, allowed where ARROWS says so.
LIBRARIES = ("absl/", "boost/", "openssl/", "luajit-2.1/", "xxhash.h", "lzf.h", "gtest/", "gmock/", "benchmark/", "hiredis/",
             "sys/socket.h", "sys/epoll.h", "netinet/", "arpa/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:root|work|home|tmp)/[A-Za-z0-9._-]+")
REGISTRY_HOST = re.compile(r"deb\.debian\.org|archive\.ubuntu\.com|registry\.(?:npmjs|yarnpkg)\.|pypi\.org|"
                           r"files\.pythonhosted\.|proxy\.golang\.org|(?:127\.0\.0\.1|localhost):\d+/(?:npm|debian)")
COMMENT_START = {".cc": "//", ".h": "//", ".py": ("#", '"""'), ".sh": "#", ".cmake": "#",
                 ".js": ("//", "#!", "/*", "'use strict'", "import "), ".mjs": ("//", "#!", "/*"),
                 ".ts": ("//", "/*")}


def files():
    """Tracked files where git can tell; in a copy without git, every file that no build made."""
    found = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False) \
        if (ROOT / ".git").exists() else None
    if found and found.returncode == 0:
        names = [name for name in found.stdout.decode().split("\0") if name]
        return sorted(name for name in names if (ROOT / name).is_file())
    skipped = {".git", "build", "node_modules", "__pycache__", ".cache"}
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if path.is_file() and not skipped & set(path.relative_to(ROOT).parts))


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def folder_rule(name):
    folder = str(pathlib.PurePosixPath(name).parent)
    while folder not in ARROWS and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder, ARROWS.get(folder)


def check_arrows(name, text):
    """An include that the map has no arrow for."""
    if pathlib.PurePosixPath(name).suffix not in CXX or name.startswith(FREE):
        return
    folder, rule = folder_rule(name)
    if rule is None:
        yield f"{name}: the map has no folder '{folder}'"
        return
    ours, libraries = rule
    for number, quoted, header in includes(text):
        of_tree = header.split("/")[0] in KNOWN_TOP and not header.startswith(LIBRARIES)
        if of_tree:
            below = header.startswith(folder + "/") and not (folder == "server" and header.count("/") > 1)
            allowed = below or any(header == arrow or (arrow.endswith("/") and header.startswith(arrow))
                                   for arrow in ours)
        elif header.startswith(LIBRARIES):
            allowed = header.startswith(tuple(libraries))
        else:
            allowed = not quoted  # a header of the system
        if not allowed:
            yield f"{name}:{number}: '{folder}' may not include {header}"


def check_length(name, text):
    """A source file that is too long."""
    lines = text.count("\n")
    path = pathlib.PurePosixPath(name)
    if (path.suffix in SOURCE or name == "dev") and lines > LINES_MAX:
        yield f"{name}: {lines} lines, {LINES_MAX} at most"


def check_first_line(name, text):
    """A source file whose first line does not say its idea."""
    wanted = COMMENT_START.get(pathlib.PurePosixPath(name).suffix)
    if wanted and text.strip() and not text.startswith(wanted):
        yield f"{name}:1: the first line says the file's idea in a comment"


def check_header_guard(name, text):
    """A header without #pragma once."""
    if name.endswith(".h") and "\n#pragma once" not in text:
        yield f"{name}: #pragma once is missing"


def check_machine_names(name, text):
    """A path of somebody's machine, or the host of a package registry."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (MACHINE_PATH, REGISTRY_HOST):
            match = pattern.search(line)
            if match:
                yield f"{name}:{number}: names {match.group(0)}"


def check_drawers(name, _text):
    """A folder for what has no place."""
    for part in pathlib.PurePosixPath(name).parts[:-1]:
        if part in ("util", "utils", "common", "helpers", "misc"):
            yield f"{name}: a helper lives with its only user, not in '{part}'"


def check_links(name, text):
    """A link of a page to a file that is not there."""
    if not name.endswith(".md"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            if "://" not in target and not (ROOT / name).parent.joinpath(target).exists():
                yield f"{name}:{number}: links to {target}"


CHECKS = [check_arrows, check_length, check_first_line, check_header_guard, check_machine_names,
          check_drawers, check_links]

# One file for each check that it must catch, and one that it must let through.
HOST = "registry." + "npmjs.org"
CONTROLS = [
    (check_arrows, "storage/a.cc", '#include "protocol/number.h"\n', '#include "storage/clock.h"\n#include <sys/mman.h>\n'),
    (check_arrows, "storage/a.cc", "#include <openssl/rand.h>\n", '#include "absl/strings/str_cat.h"\n'),
    (check_arrows, "storage/token/a.cc", "#include <boost/asio.hpp>\n", "#include <openssl/rand.h>\n"),
    (check_arrows, "protocol/a.h", '#include "storage/store.h"\n', '#include "protocol/number.h"\n#include <string>\n'),
    (check_arrows, "protocol/a.h", "#include <sys/socket.h>\n", "#include <unistd.h>\n"),
    (check_arrows, "server/commands/a.cc", '#include "storage/table/entry.h"\n', '#include "storage/store.h"\n'),
    (check_arrows, "server/commands/a.cc", "#include <boost/asio.hpp>\n", '#include "server/commands/command.h"\n'),
    (check_arrows, "server/admin/a.cc", '#include "protocol/resp/writer.h"\n', '#include "server/admin/settings.h"\n'),
    (check_arrows, "server/net/a.cc", '#include "storage/store.h"\n', "#include <boost/asio/post.hpp>\n"),
    (check_arrows, "server/net/a.cc", '#include "server/commands/command.h"\n', '#include "server/session.h"\n'),
    (check_arrows, "server/session.h", '#include "server/net/pool.h"\n', '#include "storage/wait/waiter.h"\n'),
    (check_arrows, "server/journal/a.cc", '#include "server/net/server.h"\n', '#include "storage/effect.h"\n'),
    (check_arrows, "extra/a.cc", "", None),
    (check_length, "storage/a.cc", "x\n" * (LINES_MAX + 1), "x\n" * LINES_MAX),
    (check_first_line, "storage/a.cc", "int a;\n", "// Says it.\nint a;\n"),
    (check_header_guard, "storage/a.h", "// Says it.\n", "// Says it.\n#pragma once\n"),
    (check_machine_names, "README.md", "see /ro" + "ot/notes/a\n", "see docs/root/a, /data/a, $HOME/work/a\n"),
    (check_machine_names, "README.md", f"from {HOST}\n", "from the registry\n"),
    (check_drawers, "storage/util/a.h", "", None),
    (check_drawers, "storage/a.h", None, ""),
    (check_links, "README.md", "[a](docs/no-such-page.md#x)\n", "[a](docs/development.md#testing) [b](https://a.b/c)\n"),
]


def controls():
    """The faults that a check failed to see, or saw where there was none."""
    for number, (check, name, bad, good) in enumerate(CONTROLS, 1):
        if bad is not None and not list(check(name, bad)):
            yield f"control {number}: {check.__name__} let a fault through in {name}"
        if good is not None and list(check(name, good)):
            yield f"control {number}: {check.__name__} found a fault in a good {name}"


def main():
    passed = failed = 0
    wrong = list(controls())
    texts = []
    for name in files():
        try:
            texts.append((name, (ROOT / name).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            pass  # pictures and other binaries
    if not any(name.startswith("storage/") for name, _ in texts):
        wrong.append(f"found no sources below {ROOT}")
    for title, found in [("controls", wrong)] + [
            (check.__doc__, [fault for name, text in texts for fault in check(name, text)]) for check in CHECKS]:
        if found:
            failed += 1
            print(f"FAIL {title}")
            print("\n".join(f"  {fault}" for fault in found))
        else:
            passed += 1
            print(f"ok   {title}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

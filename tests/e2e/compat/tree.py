"""Where the tests of Redis 7.0.15 lie: in a tree that somebody names, or in the archive that distributions package, fetched once into build/.

The archive is told by its SHA256, so that it does not matter who serves it; who does, the machine's apt knows: Debian and Ubuntu keep it
in the pool of their sources as long as one of their releases has this version.
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.server import ROOT  # noqa: E402

VERSION = "7.0.15"
SOURCE = ("redis_7.0.15.orig.tar.gz", "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982")
POOLS = ("pool/main/r/redis/", "pool/updates/main/r/redis/", "pool/universe/r/redis/")
FETCHER = "/usr/lib/apt/apt-helper"  # apt's own transport, with the machine's proxies
FETCH_SECONDS = 120


class NoTree(Exception):
    """There are no tests to run; the text says why."""


def is_tree(path):
    return (path / "tests" / "test_helper.tcl").is_file()


def find(named=None):
    """The folder that holds tests/: `named`, or IDEMD_REDIS_TREE, or the one that is fetched."""
    named = named or os.environ.get("IDEMD_REDIS_TREE")
    if not named:
        return fetched()
    if not is_tree(Path(named)):
        raise SystemExit(f"{named} is no unpacked source tree of Redis: it has no tests/test_helper.tcl")
    return Path(named).resolve()


def fetched():
    place = ROOT / "build" / "compat"
    tree = place / f"redis-{VERSION}"
    if is_tree(tree):
        return tree
    place.mkdir(parents=True, exist_ok=True)
    sites = apt_sites()
    source = download(sites, SOURCE, place)
    if source is None:
        raise NoTree(f"{SOURCE[0]} could not be fetched from any of {len(sites)} package sources of this machine; "
                     "name an unpacked tree with --tree or IDEMD_REDIS_TREE")
    fresh = place / "unpacking"
    shutil.rmtree(fresh, ignore_errors=True)
    unpack(source, f"redis-{VERSION}/tests/", fresh)
    (fresh / f"redis-{VERSION}").rename(tree)
    shutil.rmtree(fresh)
    return tree


def apt_sites():
    """The archives of this machine's apt, as URLs that end before `dists/`."""
    try:
        listing = subprocess.run(["apt-get", "--print-uris", "update"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise NoTree(f"apt does not say where it fetches from: {problem}") from None
    sites = re.findall(r"^'([^']+/)dists/", listing, re.MULTILINE)
    return list(dict.fromkeys(sites))


def download(sites, file, place):
    """The file's path, or None when nobody has it."""
    name, sha256 = file
    target = place / name
    for site in sites:
        for pool in POOLS:
            try:
                done = subprocess.run([FETCHER, "download-file", site + pool + name, str(target), "SHA256:" + sha256],
                                      capture_output=True, timeout=FETCH_SECONDS, check=False)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0:
                return target
    return None


def unpack(archive, prefix, into):
    with tarfile.open(archive) as tar:
        wanted = [member for member in tar.getmembers() if member.name.startswith(prefix) and (member.isfile() or member.isdir())]
        for member in wanted:
            if ".." in Path(member.name).parts:
                raise NoTree(f"{archive.name} holds the odd name {member.name}")
        tar.extractall(into, wanted)


if __name__ == "__main__":
    print(find(sys.argv[1] if len(sys.argv) > 1 else None))

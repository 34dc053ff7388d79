"""Writes docs/compatibility.md: each command of Redis 7.0.15, whether idemd has it, what ran it, and where the two differ.

Everything in the page is a fact of one of these, so that it cannot say what is not so:
  commands.tsv      each command of a real redis-server 7.0.15, from its COMMAND and COMMAND DOCS (--facts writes it)
  the idemd built   its COMMAND: what is there, and what is declared otherwise than in Redis
  differences.tsv   kept by hand: what a command does not do, or does otherwise, and why
  ran/              what the suites ran: a row per unit of Redis' own tests, and the commands that were answered
`--check` compares the page with the one committed; it also fails where an absent command has no reason in differences.tsv, where a row there
speaks of an absence that has ended, and where a redis-server 7.0.15 at hand answers otherwise than commands.tsv.
"""
import argparse
import fnmatch
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from lib.resp import Connection, Error  # noqa: E402
from lib.server import ROOT, Server, find_binary, free_port  # noqa: E402
from run import table  # noqa: E402
from tree import VERSION  # noqa: E402

PAGE = ROOT / "docs" / "compatibility.md"
GROUPS = {"generic": "Keys", "string": "Strings", "bitmap": "Bitmaps", "hyperloglog": "HyperLogLogs", "hash": "Hashes", "list": "Lists",
          "set": "Sets", "sorted-set": "Sorted sets", "stream": "Streams", "geo": "Geo", "transactions": "Transactions",
          "scripting": "Scripts and functions", "pubsub": "Pub/sub", "connection": "Connections", "server": "The server", "cluster": "Cluster"}
STATUS = {"absent": "no", "part": "in part", "alone": "refused"}  # of a command with a difference of that kind; else "yes"


# --- facts

def text(value):
    return bytes(value).decode("latin-1")


def declared(client):
    """{command: its declaration} of a running server, subcommands too; names as in COMMAND ("config|get")."""
    found = {}

    def add(entry):
        found[text(entry[0])] = {
            "arity": str(entry[1]), "flags": " ".join(sorted(text(flag) for flag in entry[2])),
            "keys": f"{entry[3]} {entry[4]} {entry[5]}", "categories": " ".join(sorted(text(name) for name in entry[6])),
            "container": bool(entry[9]) and entry[1] == -2}
        for child in entry[9]:
            add(child)

    for entry in client.call("COMMAND"):
        add(entry)
    return found


def groups(client):
    """{command: the group that COMMAND DOCS puts it in}; a subcommand is in that of its container."""
    docs = client.call("COMMAND", "DOCS")
    return {text(name): text(fields[fields.index(b"group") + 1]) for name, fields in zip(docs[::2], docs[1::2])}


def facts_of(client):
    """Rows of commands.tsv."""
    group_of = groups(client)
    rows = []
    for name, fact in sorted(declared(client).items()):
        if not fact["container"]:
            rows.append([name, group_of[name.split("|")[0]], fact["arity"], fact["flags"], fact["keys"], fact["categories"]])
    return rows


def redis_facts():
    """The rows as a redis-server 7.0.15 gives them, or None where the one at hand is another, or none is."""
    program = shutil.which("redis-server")
    if program is None or f"v={VERSION} " not in subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout:
        return None
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        process = subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(500):
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            with Connection(port) as client:
                return facts_of(client)
        finally:
            process.terminate()
            process.wait(20)


# --- what follows from them

def shown(name):
    return name.upper().replace("|", " ")


def words(before, after):
    """What a list of words has more or less than another: "+fast -stale"."""
    before, after = set(before.split()), set(after.split())
    return " ".join([f"+{word}" for word in sorted(after - before)] + [f"-{word}" for word in sorted(before - after)])


def declared_otherwise(row, ours):
    _, _, arity, flags, keys, categories = row
    parts = []
    if ours["arity"] != arity:
        parts.append(f"arity {ours['arity']} for {arity}")
    if ours["keys"] != keys:
        parts.append(f"keys at {ours['keys']} for {keys}")
    for what, theirs in (("flags", flags), ("categories", categories)):
        if ours[what] != theirs:
            parts.append(f"{what} {words(theirs, ours[what])}")
    return "Declared with " + ", ".join(parts) + "." if parts else ""


def names_of(file):
    return {row[0] for row in table("ran/" + file)}


class Page:
    def __init__(self, theirs, client):
        self.theirs, self.client = theirs, client
        self.ours = declared(client)
        self.faults, self.statuses = [], {}
        self.differences, known = {}, [row[0] for row in theirs]
        for pattern, kind, sentence in table("differences.tsv"):
            names = ["*"] if pattern == "*" else fnmatch.filter(known, pattern)
            if not names:
                self.faults.append(f"differences.tsv names {pattern}, which {VERSION} does not have")
            for name in names:
                self.differences.setdefault(name, []).append((kind, sentence))
        self.by_units, self.by_suites = names_of("by_units.txt"), names_of("by_suites.txt")

    def has(self, name):
        return name in self.ours

    def answer(self, row):
        """What a command says when it is called with as many words as it needs."""
        request = row[0].split("|")
        request += ["x"] * (abs(int(row[2])) - len(request))
        reply = self.client.call(*request)
        return bytes(reply) if isinstance(reply, Error) else b""

    def status(self, row):
        name = row[0]
        kinds = {kind for kind, _ in self.differences.get(name, [])}
        if not self.has(name):
            if "absent" not in kinds:
                self.faults.append(f"{name} is absent, and differences.tsv does not say why")
            return "no"
        if "absent" in kinds and b"not supported by this version" not in self.answer(row):
            self.faults.append(f"differences.tsv says that {name} is absent, and it is not")
        if "alone" in kinds and b"cluster support disabled" not in self.answer(row):
            self.faults.append(f"differences.tsv says that {name} is refused, and it is not")
        return next((STATUS[kind] for kind in STATUS if kind in kinds), "yes")

    def line(self, row):
        name = row[0]
        status = self.statuses[name]
        sentences = [sentence for _, sentence in self.differences.get(name, [])]
        if status != "no":
            sentences.append(declared_otherwise(row, self.ours[name]))
        ran = [who for who, names in (("Redis' tests", self.by_units), ("ours", self.by_suites)) if name in names]
        if status == "no":
            ran = []
        return f"| `{shown(name)}` | {status} | {', '.join(ran) or '–'} | {' '.join(filter(None, sentences))} |"

    def units(self):
        yield "| unit | idemd passes | a stock server passes |"
        yield "| --- | --- | --- |"
        rows = table("ran/units.tsv")
        for unit, ok, of in rows:
            yield f"| `{unit}` | {ok} | {of} |"
        yield f"| all | {sum(int(row[1]) for row in rows)} | {sum(int(row[2]) for row in rows)} |"

    def write(self):
        rows = {group: [row for row in self.theirs if row[1] == group] for group in GROUPS}
        assert sum(map(len, rows.values())) == len(self.theirs), "a group that GROUPS does not have"
        self.statuses = {row[0]: self.status(row) for row in self.theirs}
        statuses = list(self.statuses.values())
        out = ["# Compatibility with Redis 7.0.15", "",
               "Made by `tests/e2e/compat/page.py` from what a real redis-server 7.0.15 and idemd say of themselves, from what the suites ran,",
               "and from a list of differences; a suite keeps this page equal to them. What a command does is in [commands.md](commands.md).", "",
               f"Of {len(self.theirs)} commands and subcommands {statuses.count('yes')} are there and {statuses.count('in part')} in part; "
               f"{statuses.count('refused')} are refused with the error that a Redis gives which is in no cluster; {statuses.count('no')} are not there. "
               "A command that only has subcommands is shown by these.", "",
               "The column \"run by\" names who called a command and got an answer that was no error: Redis' own tests (below), or the suites of this tree. "
               "Many of those compare the answer byte for byte with a redis-server's.", "",
               "## Differences in general", ""]
        out += [f"- {sentence}" for _, sentence in self.differences.get("*", [])]
        more = sorted(name for name in self.ours if name not in {row[0] for row in self.theirs}
                      and not self.ours[name]["container"] and not name.startswith(("idem.", "cl.")))
        out += ["- Commands that Redis 7.0.15 does not have, beside the native ones: " + ", ".join(f"`{shown(name)}`" for name in more) + "."]
        for group, title in GROUPS.items():
            out += ["", f"## {title}", "", "| command | idemd | run by | differences |", "| --- | --- | --- | --- |"]
            out += [self.line(row) for row in rows[group]]
        out += ["", "## Redis' own tests", "",
                "`./dev compat` runs the units of Redis' Tcl suite that can be run against a server which is already there, each against a fresh idemd, "
                "and CI does so for each change. Of a stock redis-server 7.0.15 the same run passes the second number.", ""]
        out += list(self.units())
        cannot = table("cannot_pass.tsv")
        if cannot:
            out += ["", "Tests that cannot pass:", ""] + [f"- `{unit}`, \"{test}\": {why}" for unit, test, _, why in cannot]
        return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="build directory or binary (or IDEMD_BIN)")
    parser.add_argument("--check", action="store_true", help="only say whether the committed page is the one that would be written")
    parser.add_argument("--facts", action="store_true", help=f"write commands.tsv anew from a redis-server {VERSION}")
    options = parser.parse_args()
    facts = redis_facts()
    if options.facts:
        if facts is None:
            raise SystemExit(f"no redis-server {VERSION} at hand")
        head = (f"# Each command of redis-server {VERSION} as COMMAND and COMMAND DOCS declare it; written by page.py --facts.\n"
                "# Columns: name, group, arity, flags, first key, last key and step, ACL categories.\n")
        (HERE / "commands.tsv").write_text(head + "".join("\t".join(row) + "\n" for row in facts), encoding="utf-8")
    theirs = table("commands.tsv")
    with Server(find_binary(options.build)) as server, server.connect() as client:
        page = Page(theirs, client)
        written = page.write()
    faults = page.faults
    if facts is not None and facts != theirs:
        faults.append(f"commands.tsv is not what redis-server {VERSION} says: page.py --facts")
    if not options.check:
        PAGE.write_text(written, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != written:
        faults.append("docs/compatibility.md is not what page.py writes: ./dev pages")
    for fault in faults:
        print(f"FAILED  {fault}")
    print(f"{len(theirs)} commands" + ("" if facts else f"; no redis-server {VERSION} to compare commands.tsv with"))
    print(f"{0 if faults else 1} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

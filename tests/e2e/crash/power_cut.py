"""Makes of a data directory what a power cut could have left, from the shim's notes: names and bytes not synced may be lost."""
import json
import os
import random
import shutil
from pathlib import PurePosixPath

SECTOR = 512


class Impossible(Exception):
    """The notes tell of something that the simulation does not understand."""


def parent(path):
    up = str(PurePosixPath(path).parent)
    return "" if up == "." else up


class Notes:
    """What is durable, and what is pending, after a run."""

    def __init__(self, place):
        self.place = place
        self.names, self.sizes, self.directories = {}, {}, set()  # durable
        self.pending = []     # (number, directory, gone, placed, inode); inode None: a directory
        self.truncated = {}   # inode -> [(new size, file with what was cut off)] since its last sync
        base = os.path.join(place.state, "base")
        if os.path.exists(base):
            with open(base) as file:
                told = json.load(file)
            self.names = told["names"]
            self.sizes = {int(inode): size for inode, size in told["sizes"].items()}
            self.directories = set(told["directories"])
        journal = os.path.join(place.state, "journal")
        if os.path.exists(journal):
            with open(journal, "rb") as file:
                for line in file.read().decode("latin-1").split("\n")[:-1]:
                    self.event(line)
        self.add_unknown()

    def event(self, line):
        number, kind, rest = line.split(" ", 2)
        number = int(number)
        if kind == "C":
            inode, path = rest.split(" ", 1)
            self.pending.append((number, parent(path), None, path, int(inode)))
        elif kind == "M":
            self.pending.append((number, parent(rest), None, rest, None))
        elif kind == "R":
            inode, paths = rest.split(" ", 1)
            old, new = paths.split("\t")
            self.pending.append((number, parent(new), old, new, int(inode)))
        elif kind == "U":
            path = rest.split(" ", 1)[1]
            self.pending.append((number, parent(path), path, None, None))
        elif kind == "D":
            before, directory = rest.split(" ", 1)
            for change in [c for c in self.pending if c[1] == directory and c[0] <= int(before)]:
                self.pending.remove(change)
                self.apply(change, self.names, self.directories)
        elif kind == "S":
            inode, size = map(int, rest.split(" "))
            self.sizes[inode] = size
            self.truncated.pop(inode, None)
        elif kind == "T":
            inode, size, cut = map(int, rest.split(" "))
            self.truncated.setdefault(inode, []).append((size, cut))
        else:
            raise Impossible(line)

    @staticmethod
    def apply(change, names, directories):
        _, _, gone, placed, inode = change
        if gone is not None:
            names.pop(gone, None)
        if placed is None:
            return
        if inode is None:
            directories.add(placed)
        else:
            names[placed] = inode

    def add_unknown(self):
        """A file whose creation was cut off before it was noted."""
        known = set(self.names) | {c[3] for c in self.pending}
        for path, entry in walk(self.place.data):
            if path in known:
                continue
            if entry.is_dir(follow_symlinks=False):
                if path not in self.directories:
                    self.pending.append((1 << 60, parent(path), None, path, None))
            else:
                self.pending.append((1 << 60, parent(path), None, path, entry.inode()))

    def contents(self, inode):
        """(durable, current) bytes."""
        path = os.path.join(self.place.state, f"i{inode}")
        if not os.path.exists(path):
            path = next((e.path for _, e in walk(self.place.data) if e.inode() == inode), None)
            if path is None:
                return b"", b""
        with open(path, "rb") as file:
            now = file.read()
        before = now
        for size, cut in reversed(self.truncated.get(inode, [])):
            with open(os.path.join(self.place.state, f"t{cut}"), "rb") as file:
                before = before[:size] + file.read()
        return before[: self.sizes.get(inode, 0)], now


def walk(root, under=""):
    for entry in sorted(os.scandir(os.path.join(root, under)), key=lambda e: e.name):
        path = entry.name if not under else f"{under}/{entry.name}"
        yield path, entry
        if entry.is_dir(follow_symlinks=False):
            yield from walk(root, path)


def draw(durable, now, rng):
    """One legal content, and what was done. Zeros behind what was written were there before, or not yet."""
    written = max(len(now.rstrip(b"\0")), len(durable))
    left, how = draw_written(durable, now[:written], rng)
    return left + bytes(max(0, len(now) - len(left)) * rng.randrange(2)), how


def draw_written(durable, now, rng):
    common = os.path.commonprefix([durable, now])
    if len(common) < len(durable):
        # An unsynced truncation: lost, with all that came after it, or kept and the rest as ever.
        if rng.random() < 0.4:
            return durable, "truncation lost"
        durable = common
    tail = now[len(durable):]
    if not tail:
        return durable, "synced"
    how = rng.choice(("nothing", "all", "zeroed", "garbled", "cut", "cut", "sectors", "sectors", "sectors"))
    if how == "nothing":
        return durable, how
    if how == "all":
        return now, how
    if how == "zeroed":
        return durable + bytes(len(tail)), how
    if how == "garbled":
        return durable + rng.randbytes(len(tail)), how
    if how == "cut":
        return now[: len(durable) + rng.randrange(len(tail) + 1)], how
    out = bytearray(durable)
    size, kept, garble = SECTOR * rng.choice((1, 8)), rng.random(), rng.random() < 0.5
    at = len(durable)
    while at < len(now):
        end = min((at // size + 1) * size, len(now))
        piece = bytearray(now[at:end])
        if rng.random() >= kept:
            if garble and rng.random() < 0.5:
                if rng.random() < 0.25:  # a single wrong bit is harder to see than a wrong sector
                    piece[rng.randrange(len(piece))] ^= 1 << rng.randrange(8)
                else:
                    piece = bytearray(rng.randbytes(len(piece)))
            else:
                piece = bytearray(len(piece))
        out += piece
        at = end
    return bytes(out), how


def power_cut(place, seed):
    """Changes the directory and forgets the notes; returns what was done, for a report."""
    rng = random.Random(seed)
    notes = Notes(place)
    names, directories = dict(notes.names), set(notes.directories)
    percent = rng.choice((0.0, 0.5, 1.0))
    done = []
    for change in notes.pending:
        kept = rng.random() < percent
        done.append(f"{'kept' if kept else 'lost'} {change[2] or ''}->{change[3] or ''}")
        if kept:
            notes.apply(change, names, directories)
    left = {}
    for path, inode in names.items():
        if parent(path) and parent(path) not in directories:
            continue
        durable, now = notes.contents(inode)
        left[path], how = draw(durable, now, rng)
        if how != "synced":
            done.append(f"{path}: {how} ({len(durable)} synced, {len(now)} written, {len(left[path])} left)")
    for entry in list(os.scandir(place.data)):
        shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    for directory in sorted(directories):
        if not parent(directory) or parent(directory) in directories:
            os.makedirs(os.path.join(place.data, directory), mode=0o700, exist_ok=True)
    for path, data in left.items():
        with open(os.path.join(place.data, path), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as out:
            out.write(data)
    settle(place)
    return done


def settle(place):
    """From here on everything in the directory counts as synced."""
    for entry in list(os.scandir(place.state)):
        os.unlink(entry.path)
    names, sizes, directories = {}, {}, []
    for path, entry in walk(place.data):
        if entry.is_dir(follow_symlinks=False):
            directories.append(path)
            continue
        inode = entry.inode()
        names[path], sizes[inode] = inode, entry.stat().st_size
        os.link(entry.path, os.path.join(place.state, f"i{inode}"))
    with open(os.path.join(place.state, "base"), "w") as out:
        json.dump({"names": names, "sizes": sizes, "directories": directories}, out)

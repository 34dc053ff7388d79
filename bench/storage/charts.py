#!/usr/bin/env python3
"""Turns what rivals_bench and lifetimes_bench wrote into SVG charts and a markdown table.

    charts.py RIVALS.json LIFETIMES.json FOLDER

Charts go to FOLDER, the table to standard output. A chart is a grid of panels, one for each operation or figure, and in
each panel a bar for each table: every panel has a scale of its own, since a hit takes nanoseconds and a pause milliseconds. Only the
standard library is used.
"""
import json
import os
import platform
import subprocess
import sys
from html import escape

OURS = "idemd"
COLOURS = {OURS: "#1d6fb8", "absl::flat_hash_map": "#8a9aa9", "tbb::concurrent_hash_map": "#b3a07a",
           "libcuckoo": "#93ad8b"}
SHORT = {"absl::flat_hash_map": "absl flat_hash_map", "tbb::concurrent_hash_map": "TBB concurrent_hash_map"}
OPERATIONS = {"hit": "hit", "miss": "miss", "batch": "hits in batches of 32, each", "fill": "fill from empty, growth included",
              "insert": "insert into a full table", "replace": "replace", "remove": "remove",
              "mixed": "90 % get, 10 % set", "expire": "expire (maps: a full scan), each"}

FONT = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'"
LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH = 178, 210, 92
PANEL_WIDTH = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
BAR_STEP, BAR_HEIGHT, PANEL_HEAD, PANEL_GAP = 21, 14, 30, 22
MARGIN, HEAD = 24, 66
COLUMNS = 2


def figure(value):
    """Three digits, no exponent."""
    if value == int(value) and abs(value) < 100:
        return str(int(value))
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


class Panel:
    """One figure of several tables. `bars` are (table, value); `goal` is the most that ours should be, or None."""

    def __init__(self, title, unit, bars, goal=None):
        self.title, self.unit, self.bars, self.goal = title, unit, bars, goal

    def height(self):
        return PANEL_HEAD + BAR_STEP * len(self.bars)

    def svg(self, x, y):
        top = max([value for _, value in self.bars] + [self.goal or 0]) or 1
        scale = BAR_WIDTH / top
        left = x + LABEL_WIDTH
        out = [text(x, y + 14, self.title, 13, weight="bold"),
               text(x + PANEL_WIDTH - 8, y + 14, self.unit, 11, fill="#5a6570", anchor="end")]
        for i, (table, value) in enumerate(self.bars):
            bar_y = y + PANEL_HEAD + i * BAR_STEP
            width = value * scale
            out.append(text(left - 8, bar_y + 11, SHORT.get(table, table), 11.5, anchor="end",
                            weight="bold" if table == OURS else "normal"))
            out.append(f"<rect x='{left}' y='{bar_y}' width='{width:.1f}' height='{BAR_HEIGHT}' rx='2' "
                       f"fill='{COLOURS.get(table, '#999999')}'/>")
            out.append(text(left + max(width, self.goal_end(table, scale)) + 6, bar_y + 11, figure(value), 11.5))
        if self.goal is not None:
            row = [table for table, _ in self.bars].index(OURS)
            goal_x, bar_y = left + self.goal * scale, y + PANEL_HEAD + row * BAR_STEP
            out.append(f"<line x1='{goal_x:.1f}' x2='{goal_x:.1f}' y1='{bar_y - 3}' y2='{bar_y + BAR_HEIGHT + 3}' "
                       "stroke='#c0392b' stroke-width='2'/>")
        return out

    def goal_end(self, table, scale):
        return self.goal * scale if self.goal is not None and table == OURS else 0


def text(x, y, words, size, fill="#1c2530", anchor="start", weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='{fill}' text-anchor='{anchor}' "
            f"font-weight='{weight}'>{escape(words)}</text>")


def chart(path, title, note, panels):
    """Writes a grid of panels, filled row by row."""
    if not panels:
        return
    rows = [panels[i:i + COLUMNS] for i in range(0, len(panels), COLUMNS)]
    columns = max(len(row) for row in rows)
    width = max(2 * MARGIN + columns * PANEL_WIDTH + (columns - 1) * MARGIN, 2 * MARGIN + 6.6 * len(note), 640)
    body, y = [], HEAD + 14
    for row in rows:
        for i, panel in enumerate(row):
            body += panel.svg(MARGIN + i * (PANEL_WIDTH + MARGIN), y)
        y += max(panel.height() for panel in row) + PANEL_GAP
    head = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{y}' viewBox='0 0 {width:.0f} {y}'>",
            f"<rect width='{width:.0f}' height='{y}' fill='#ffffff'/>",
            text(MARGIN, 32, title, 18, weight="bold"), text(MARGIN, 54, note, 11.5, fill="#5a6570")]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(head + body + ["</svg>"]) + "\n")
    print(f"wrote {path}", file=sys.stderr)


def count(n):
    return f"{n / 1e6:g} M" if n >= 1_000_000 else f"{n:,}".replace(",", " ")


# --- the rivals


def charts_of_rivals(data, folder):
    entries = f"{count(data['keys'])} entries, UUID keys, value 1, all with a deadline; median of {data['rounds']} rounds."
    notes = {1: "CPU time of an operation, shorter is better. " + entries,
             2: "Wall time of an operation on each thread, shorter is better. " + entries}
    for threads, note in notes.items():
        panels = []
        for operation, title in OPERATIONS.items():
            bars = [(r["table"], r["ns"]) for r in data["results"]
                    if r["operation"] == operation and r["threads"] == threads]
            if bars:
                panels.append(Panel(title, "ns", bars))
        chart(os.path.join(folder, f"rivals_{threads}_thread{'s' * (threads > 1)}.svg"),
              f"The table beside its rivals: {'one thread' if threads == 1 else 'two threads'}", note, panels)


def table_of_rivals(data):
    tables = list(dict.fromkeys(r["table"] for r in data["results"]))
    found = {(r["operation"], r["threads"], r["table"]): r["ns"] for r in data["results"]}
    print(f"ns per operation (times {OURS}'s), {count(data['keys'])} entries, UUID keys, median of {data['rounds']} rounds, "
          f"IDEMD_SEED={data['seed']}; one thread: CPU time, two: wall time of each\n")
    print("| operation | threads | " + " | ".join(tables) + " |")
    print("| --- | ---: |" + " ---: |" * len(tables))
    for threads in (1, 2):
        for operation, title in OPERATIONS.items():
            ours = found.get((operation, threads, OURS))
            cells = []
            for table in tables:
                ns = found.get((operation, threads, table))
                ratio = f" ({ns / ours:.2f})" if ns and ours and table != OURS else ""
                cells.append("–" if ns is None else f"{ns:.0f}{ratio}" if ns >= 100 else f"{ns:.1f}{ratio}")
            if any(cell != "–" for cell in cells):
                print(f"| {title} | {threads} | " + " | ".join(cells) + " |")
    for name in data["left_out"]:
        print(f"\nleft out: {name}")
    print()


# --- lifetimes


def panels_of(rows, section):
    """A panel for each metric of a section, with the tables that have it."""
    panels = []
    for metric in dict.fromkeys(r["metric"] for r in rows if r["section"] == section):
        of_metric = [r for r in rows if r["section"] == section and r["metric"] == metric]
        goals = [r["goal"] for r in of_metric if r["goal"] >= 0]
        panels.append(Panel(metric, of_metric[0]["unit"], [(r["subject"], r["value"]) for r in of_metric],
                            goals[0] if goals else None))
    return panels


def charts_of_lifetimes(data, folder):
    rows = data["rows"]
    note = f"{count(data['keys'])} entries, shorter is better; the red mark is idemd's goal."
    for name, title, sections in (
            ("memory", "Memory per entry, by kind of key and value", ["memory"]),
            ("growth", "Growing from nothing: the pauses of single inserts, and memory", ["growth"]),
            ("readers", "A reader beside a writer on the other core", ["readers, hit", "readers, batch of 32, each"]),
            ("expiry", "Expiry: idle, and a storm in which every key falls due within five seconds", ["idle", "storm"])):
        panels = []
        for section in sections:
            for panel in panels_of(rows, section):
                if len(sections) > 1 and ", " in section:
                    panel.title = f"{section.split(', ')[1]}: {panel.title}"
                panels.append(panel)
        chart(os.path.join(folder, name + ".svg"), title, note, panels)


def table_of_lifetimes(data):
    tables = list(dict.fromkeys(r["subject"] for r in data["rows"]))
    print(f"{count(data['keys'])} entries, IDEMD_SEED={data['seed']}\n")
    print("| | figure | unit | goal | " + " | ".join(tables) + " |")
    print("| --- | --- | --- | ---: |" + " ---: |" * len(tables))
    for section in dict.fromkeys(r["section"] for r in data["rows"]):
        for metric in dict.fromkeys(r["metric"] for r in data["rows"] if r["section"] == section):
            of_metric = {r["subject"]: r for r in data["rows"] if r["section"] == section and r["metric"] == metric}
            goal = next((f"≤ {r['goal']:g}" for r in of_metric.values() if r["goal"] >= 0), "")
            cells = []
            for table in tables:
                row = of_metric.get(table)
                missed = row is not None and 0 <= row["goal"] < row["value"]
                cells.append("–" if row is None else figure(row["value"]) + (" (missed)" if missed else ""))
            unit = next(iter(of_metric.values()))["unit"]
            print(f"| {section} | {metric} | {unit} | {goal} | " + " | ".join(cells) + " |")
    print()


def machine():
    """One line: what this was measured on."""
    model = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    try:
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                                check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return f"commit {commit}, {model}, {os.cpu_count()} cores, Linux {platform.release()}"


def main(words):
    if len(words) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(words[1], encoding="utf-8") as rivals, open(words[2], encoding="utf-8") as lifetimes:
        rivals, lifetimes = json.load(rivals), json.load(lifetimes)
    folder = words[3]
    os.makedirs(folder, exist_ok=True)
    charts_of_rivals(rivals, folder)
    charts_of_lifetimes(lifetimes, folder)
    print(f"\n{machine()}\n")
    table_of_rivals(rivals)
    table_of_lifetimes(lifetimes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

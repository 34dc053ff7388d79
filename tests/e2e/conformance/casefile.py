"""Reads .case files: commands and the replies they must get, as data (format: tests/README.md)."""
import itertools
import re
from dataclasses import dataclass, field, replace


class CaseError(Exception):
    """The case file itself is wrong."""


@dataclass
class Step:
    kind: str  # call, do, send, read, hear, refused, and the directives by name
    line: int
    text: str
    connection: str = "a"
    words: list = field(default_factory=list)
    expected: object = None
    commands: list = field(default_factory=list)  # of refused
    argument: str = ""
    times: int = 1


@dataclass
class Case:
    name: str
    file: str
    line: int
    steps: list = field(default_factory=list)
    needs: list = field(default_factory=list)
    probe: list = None  # a command: skipped where its answer is "not supported"
    server: dict = None  # None: the shared server
    variables: dict = field(default_factory=dict)
    only: int = 0  # 2 or 3: only that protocol


WORD = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|(\S+))', re.S)


def split_words(text, where):
    """[(quoted, text)] of a command line; quoted words keep their escapes for templates."""
    words, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = WORD.match(text, at)
        if not match:
            raise CaseError(f"{where}: cannot read words: {text!r}")
        words.append((True, match.group(1)) if match.group(1) is not None else (False, match.group(2)))
        at = match.end()
    return words


# --- expectations: a small tree, matched in match.py
TOKEN = re.compile(
    r"""\s*(?:
      (?P<open>map\[|either\[|\[) | (?P<close>\]) |
      (?P<capture>[a-z_][a-z_0-9]*:=) |
      (?P<regex>-?~"(?:\\.|[^"\\])*") |
      (?P<range>(?:\{[^}]*\}|-?\d+)?\.\.(?:\{[^}]*\}|-?\d+)?) |
      (?P<quoted>[-+]?"(?:\\.|[^"\\])*") |
      (?P<expr>\{[^}]*\}) |
      (?P<word>[^\s\[\]"]+)
    )""",
    re.X | re.S,
)


def parse_expected(text, where):
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise CaseError(f"{where}: cannot read expectation at {text[at:at + 20]!r}")
        tokens.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    position = 0

    def node():
        nonlocal position
        if position >= len(tokens):
            raise CaseError(f"{where}: the expectation ends early: {text!r}")
        kind, value = tokens[position]
        position += 1
        if kind == "capture":
            return ("capture", value[:-2], node())
        if kind == "open":
            children = []
            while position < len(tokens) and tokens[position][0] != "close":
                if value == "map[":
                    key = tokens[position][1]
                    if key.startswith("!"):
                        position += 1
                        children.append((key[1:], None))
                        continue
                    key = node()
                    children.append((key[1] if key[0] == "word" else key, node()))
                else:
                    children.append(node())
            if position >= len(tokens):
                raise CaseError(f"{where}: a bracket is not closed: {text!r}")
            position += 1
            return ({"[": "list", "map[": "map", "either[": "either"}[value], children)
        if kind == "close":
            raise CaseError(f"{where}: a bracket too many: {text!r}")
        if kind == "regex":
            return ("error_regex", value[3:-1]) if value[0] == "-" else ("regex", value[2:-1])
        if kind == "range":
            low, high = value.split("..")
            return ("range", low, high)
        if kind == "quoted":
            if value[0] == "-":
                return ("error_text", value[2:-1])
            return ("simple", value[2:-1]) if value[0] == "+" else ("bulk", value[1:-1])
        if kind == "expr":
            return ("expr", value[1:-1])
        if value in ("nil", "int", "bulk", "any", "simple", "list"):
            return (value + "?",)
        if re.fullmatch(r"-?\d+", value):
            return ("number", int(value))
        if value[0] == "-":
            return ("error_code", value[1:])
        if value[0] == "+":
            return ("simple", value[1:])
        if value[0] == "@":
            return ("bulk", "{ns}" + value[1:])
        if not re.fullmatch(r"[A-Za-z0-9_*-]+", value):
            raise CaseError(f"{where}: no matcher: {value!r}")
        return ("word", value)

    tree = node()
    if position != len(tokens):
        raise CaseError(f"{where}: more than one reply expected: {text!r}")
    return tree


DIRECTIVES = ("sleep", "check", "let", "snapshot", "unchanged", "blocked", "silent", "close", "took", "restart")
COMMAND = re.compile(r"(?:(?P<connection>[a-z])(?P<mode>:|&|<|!)\s*)?(?P<rest>.*)", re.S)


def parse_step(text, line, where):
    word, _, rest = text.partition(" ")
    if word in DIRECTIVES:
        return Step(word, line, text, argument=rest.strip())
    if word == "refused":
        return Step("refused", line, text, expected=parse_expected(rest or "-ERR", where))
    times = 1
    if word == "repeat":
        count, _, text = rest.partition(" ")
        times = int(count)
    kind = "call"
    if text.startswith("do "):
        kind, text = "do", text[3:]
    match = COMMAND.fullmatch(text)
    connection, mode = match.group("connection") or "a", match.group("mode")
    if mode == "&":
        kind = "send"
    elif mode == "<":
        kind = "read"
    elif mode == "!":
        kind = "hear"
    step = Step(kind, line, text, connection, split_words(match.group("rest"), where), times=times)
    if kind not in ("read", "hear") and not step.words:
        raise CaseError(f"{where}: no command")
    return step


def finish(step, lines, where):
    if step is None:
        return
    if step.kind == "refused":
        step.commands = [(number, text, split_words(text, where)) for number, text in lines]
        if not step.commands:
            raise CaseError(f"{where}: refused without commands")
    elif step.kind in ("call", "read", "hear"):
        if not lines:
            raise CaseError(f"{where}: no reply expected for {step.text!r} (use `do` when only success matters)")
        step.expected = parse_expected(" ".join(text for _, text in lines), where)
    elif lines:
        raise CaseError(f"{where}: {step.kind} takes no reply")


def load(path):
    """Every case of a file, `each` lines multiplied out."""
    cases, case, step, expected, each = [], None, None, [], []

    def close_step():
        nonlocal step, expected
        if step is not None:
            finish(step, expected, f"{path.name}:{step.line}")
            case.steps.append(step)
        step, expected = None, []

    def close_case():
        close_step()
        if case is None:
            return
        if not any(s.kind in ("call", "read", "hear", "refused", "check", "unchanged") for s in case.steps):
            raise CaseError(f"{path.name}:{case.line}: a case that cannot fail")
        if case.server is None and any(s.kind == "restart" for s in case.steps):
            raise CaseError(f"{path.name}:{case.line}: restart needs a server of the case's own")
        names = [name for name, _ in each]
        for values in itertools.product(*[values for _, values in each]):
            label = ", ".join(f"{n}={v}" for n, v in zip(names, values))
            cases.append(replace(case, name=case.name + (f" [{label}]" if label else ""),
                                 variables=dict(zip(names, values))))

    for number, raw in enumerate(path.read_text(encoding="latin-1").split("\n"), 1):
        where = f"{path.name}:{number}"
        text = raw.strip()
        if not text or text.startswith("# ") or text == "#":
            continue
        if raw.startswith("case "):
            close_case()
            case, each = Case(text[5:], path.name, number), []
            continue
        if case is None:
            raise CaseError(f"{where}: a line before the first case")
        if raw[0] in " \t":
            if step is None:
                raise CaseError(f"{where}: a reply without a command")
            expected.append((number, text))
            continue
        close_step()
        word, _, rest = text.partition(" ")
        if word == "each":
            name, _, values = rest.partition(":")
            each.append((name.strip(), [value for _, value in split_words(values, where)]))
        elif word == "needs":
            case.needs += rest.split()
        elif word == "probe":
            case.probe = rest.split()
        elif word == "only":
            case.only = {"RESP2": 2, "RESP3": 3}[rest.strip()]
        elif word == "server":
            case.server = dict(pair.split("=", 1) for pair in rest.split())
        else:
            step = parse_step(text, number, where)
    close_case()
    return cases

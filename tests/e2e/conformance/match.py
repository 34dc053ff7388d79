"""Compares one reply with one expectation, types included, and remembers what it captured."""
import base64
import hashlib
import re
import time

from lib.resp import Bulk, Error, Map, Nil, Simple, as_dict


class Mismatch(Exception):
    """The reply is another one than expected."""


class Scope(dict):
    """The variables of one case, and the few functions that expressions may use."""

    FUNCTIONS = {
        "now": lambda: int(time.time() * 1000),
        "token_ms": lambda token: int.from_bytes(base64.urlsafe_b64decode(token[:8]), "big"),
        "sha": lambda text: hashlib.sha256(text.encode("latin-1")).hexdigest(),
        **{f.__name__: f for f in (len, int, str, dict, list, set, min, max, abs, sum, sorted, range, all, any, isinstance)},
    }

    def evaluate(self, source):
        return eval(source, {"__builtins__": {}, **self.FUNCTIONS, **self}, {})  # noqa: S307 our own case files

    def template(self, text, escapes=True):
        """Fills in {expression}; {{ and }} are braces; \\n, \\r, \\t, \\", \\\\ and \\xHH as usual."""
        out, at = [], 0
        while at < len(text):
            char = text[at]
            if text.startswith(("{{", "}}"), at):
                out.append(char)
                at += 2
            elif char == "{":
                end = text.index("}", at)
                value = str(self.evaluate(text[at + 1 : end]))
                out.append(value if escapes else re.escape(value))
                at = end + 1
            elif char == "\\" and escapes:
                code = text[at + 1]
                if code == "x":
                    out.append(chr(int(text[at + 2 : at + 4], 16)))
                    at += 4
                else:
                    out.append({"n": "\n", "r": "\r", "t": "\t", "0": "\0"}.get(code, code))
                    at += 2
            else:
                out.append(char)
                at += 1
        return "".join(out)

    def words(self, parsed):
        """The words of a command: quoted templates, @key, *list of words, {expression} anywhere."""
        out = []
        for quoted, text in parsed:
            if quoted:
                out.append(self.template(text))
            elif text.startswith("*") and len(text) > 1:
                for quoted_inside, word in _split(str(self.evaluate(text[1:]))):
                    key = not quoted_inside and word.startswith("@")
                    out.append(self["ns"] + self.template(word[1:]) if key else self.template(word))
            elif text.startswith("@"):
                out.append(self["ns"] + self.template(text[1:]))
            else:
                out.append(self.template(text))
        return [word.encode("latin-1") for word in out]


def _split(text):
    from casefile import split_words

    return split_words(text, "a list of words")


def text_of(value):
    return bytes(value).decode("latin-1")


def plain(value):
    """What a captured reply is in expressions."""
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, Nil):
        return None
    if isinstance(value, Map):
        return {plain(k): plain(v) for k, v in value}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def show(value):
    """A reply as a person reads it."""
    if isinstance(value, Simple):
        return "+" + text_of(value)
    if isinstance(value, Error):
        return "-" + text_of(value)
    if isinstance(value, bytes):
        text = repr(text_of(value))
        return text if len(text) < 400 else text[:400] + f"… ({len(value)} bytes)"
    if isinstance(value, Nil):
        return "nil"
    if isinstance(value, Map):
        return "map[ " + "  ".join(f"{show(k)} {show(v)}" for k, v in value) + " ]"
    if isinstance(value, list):
        return "[ " + " ".join(show(v) for v in value) + " ]"
    return repr(value)


def match(node, value, scope, resp, nested=False):
    """Raises Mismatch unless `value` is what `node` says."""
    kind = node[0]

    def need(condition, expected):
        if not condition:
            raise Mismatch(f"expected {expected}, got {show(value)}")

    if kind == "capture":
        match(node[2], value, scope, resp, nested)
        scope[node[1]] = plain(value)
    elif kind == "either":
        problems = []
        for child in node[1]:
            try:
                return match(child, value, scope, resp, nested)
            except Mismatch as problem:
                problems.append(str(problem))
        raise Mismatch(" and ".join(problems))
    elif kind == "list":
        need(type(value) is list, "an array")
        need(len(value) == len(node[1]), f"an array of {len(node[1])}")
        for child, element in zip(node[1], value):
            match(child, element, scope, resp, True)
    elif kind == "map":
        need(type(value) is (Map if resp == 3 else list), "a map" if resp == 3 else "a flat array")
        found = as_dict(value)
        for key, child in node[1]:
            if child is None:
                need(key not in found, f"no field {key}")
                continue
            name = key if isinstance(key, str) else scope.template(key[1])
            need(name in found, f"a field {name}")
            try:
                match(child, found[name], scope, resp, True)
            except Mismatch as problem:
                raise Mismatch(f"in field {name}: {problem}") from None
    elif kind == "nil?":
        need(isinstance(value, Nil), "nil")
        need((value.kind == "resp3") == (resp == 3), f"a nil of RESP{resp}")
        need(not (nested and value.kind == "array"), "a bulk nil inside an array")
    elif kind == "int?":
        need(type(value) is int, "an integer")
    elif kind == "bulk?":
        need(isinstance(value, Bulk), "a bulk string")
    elif kind == "simple?":
        need(isinstance(value, Simple), "a simple string")
    elif kind == "list?":
        need(type(value) is list, "an array")
    elif kind == "any?":
        need(not isinstance(value, Error), "no error")
    elif kind == "number":
        need(type(value) is int and value == node[1], str(node[1]))
    elif kind == "range":
        low, high = (scope.evaluate(part.strip("{}")) if part else None for part in node[1:])
        need(type(value) is int, f"an integer in {low}..{high}")
        need((low is None or value >= low) and (high is None or value <= high), f"an integer in {low}..{high}")
    elif kind == "expr":
        wanted = scope.evaluate(node[1])
        if isinstance(wanted, int):
            need(type(value) is int and value == wanted, f"{wanted} ({node[1]})")
        else:
            need(isinstance(value, Bulk) and text_of(value) == wanted, f"{wanted!r} ({node[1]})")
    elif kind == "bulk":
        wanted = scope.template(node[1])
        need(isinstance(value, Bulk) and text_of(value) == wanted, f"the bulk string {wanted!r}")
    elif kind == "simple":
        wanted = scope.template(node[1])
        need(isinstance(value, Simple) and text_of(value) == wanted, f"+{wanted}")
    elif kind == "word":
        wanted = Bulk if nested else Simple
        need(isinstance(value, wanted) and text_of(value) == node[1],
             f"{'the bulk' if nested else 'the simple'} string {node[1]}")
    elif kind == "regex":
        wanted = scope.template(node[1], escapes=False)
        found = re.fullmatch(wanted, text_of(value), re.S) if isinstance(value, Bulk) else None
        need(found, f"a bulk string like {wanted}")
        for name, text in found.groupdict().items():
            scope[name] = int(text) if text and re.fullmatch(r"-?\d+", text) else text
    elif kind == "error_code":
        need(isinstance(value, Error) and value.code == node[1], f"an error {node[1]}")
    elif kind == "error_text":
        wanted = scope.template(node[1])
        need(isinstance(value, Error) and text_of(value) == wanted, f"-{wanted}")
    elif kind == "error_regex":
        wanted = scope.template(node[1], escapes=False)
        need(isinstance(value, Error) and re.fullmatch(wanted, text_of(value), re.S), f"an error like {wanted}")
    else:
        raise AssertionError(f"no matcher {kind}")

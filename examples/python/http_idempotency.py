"""HTTP idempotency middleware: POST with an Idempotency-Key runs once, and its answer is replayed.

Usage: IDEMD_URL=redis://127.0.0.1:6379 python3 http_idempotency.py
docs/http.md has the table of statuses and codes that Idempotent below follows.
"""

import hashlib
import http.client
import http.server
import json
import os
import sys
import threading
import time
import uuid

import redis

store = redis.Redis.from_url(os.environ.get("IDEMD_URL", "redis://127.0.0.1:6379"))
PREFIX = f"http:{uuid.uuid4().hex[:8]}:"

REFUSALS = {
    b"MISMATCH": (422, "this Idempotency-Key came with another request"),
    b"UNKNOWN": (409, "an earlier attempt ended in the dark; it is being looked into"),
    b"DUPLICATE": (409, "this form was already submitted"),
    b"EXPIRED": (410, "this form is too old"),
    b"UNISSUED": (403, "this form is not ours"),
    b"REFUSED": (403, "this form is not yours"),
}


class Idempotent:
    """Wraps handle(method, path, body) -> (code, answer bytes). Answers (code, headers, bytes)."""

    def __init__(self, handle, lease_ms=10_000, keep_s=24 * 3600):
        self.handle, self.lease_ms, self.keep_s = handle, lease_ms, keep_s

    def __call__(self, user, method, path, headers, body):
        try:
            return self.answer(user, method, path, headers, body)
        except redis.RedisError as error:  # OOM, MISCONF, not reachable: refuse, never run unguarded
            return problem(503, f"the idempotency store refuses: {error}", {"Retry-After": "1"})

    def answer(self, user, method, path, headers, body):
        limited, _, _, retry_ms, _ = store.execute_command(
            "IDEM.THROTTLE", PREFIX + "limit:" + user, 9, 10, 60_000
        )
        if limited:
            wait_s = str(-(-retry_ms // 1000))
            return problem(429, "too many requests", {"Retry-After": wait_s})
        name = headers.get("Idempotency-Key", "")
        if not 1 <= len(name) <= 200:
            return problem(400, "Idempotency-Key is missing or too long")
        # The user is part of the key: nobody can ask for another user's answer.
        key = f"{PREFIX}{user}:{method} {path}:{name}"
        digest = hashlib.sha256(body).hexdigest()
        status, fence, attempt, ms, code, payload = store.execute_command(
            "IDEM.RESERVE", key, "CLAIM", str(uuid.uuid4()), "FINGERPRINT", digest,
            "LEASE", self.lease_ms, "EX", self.keep_s, "ONLAPSE", "STOP",
        )  # fmt: skip
        if status == b"DONE":
            return code, {"Idempotency-Replayed": "true"}, payload or b""
        if status == b"PENDING":
            return problem(409, "the first request is still running", {"Retry-After": "1"})
        if status not in (b"RESERVED", b"HELD"):
            return problem(*REFUSALS[status])
        try:
            code, answer = self.handle(method, path, body)
        except NoEffect as refused:  # nothing happened: give the key back, the caller may try again
            store.execute_command("IDEM.RELEASE", key, fence)
            return problem(503, str(refused), {"Retry-After": "1"})
        # Any other exception leaves the claim to lapse into UNKNOWN: who knows what was done?
        store.execute_command("IDEM.COMPLETE", key, fence, answer, "CODE", code)
        return code, {}, answer


def problem(code, text, headers=None):
    body = json.dumps({"title": text}).encode()
    return code, {"Content-Type": "application/problem+json", **(headers or {})}, body


class NoEffect(Exception):
    pass


# --- The service: it knows nothing of idempotency ---------------------------------------------

payments = []


def pay(method, path, body):
    order = json.loads(body)
    if order.get("bank") == "closed":
        raise NoEffect("the bank is closed")
    time.sleep(0.2)
    if order["amount"] > 1000:
        return 402, json.dumps({"title": "not covered"}).encode()  # an answer worth replaying
    payments.append(order)
    return 201, json.dumps({"payment": len(payments), **order}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    service = staticmethod(Idempotent(pay))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        user = self.headers.get("X-User", "")  # a real service reads it from the session
        code, headers, answer = self.service(user, "POST", self.path, self.headers, body)
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


# --- Clients that double-click, retry and try to cheat -----------------------------------------


def promise(kept, text):
    print("kept:  " if kept else "BROKEN:", text)
    if not kept:
        sys.exit(1)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def post(user, name, **order):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(
        "POST", "/payments", json.dumps(order), {"X-User": user, "Idempotency-Key": name}
    )
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    replayed = response.headers.get("Idempotency-Replayed") == "true"
    print(f"  {user}: {response.status}{' replayed' if replayed else ''} {answer.decode()}")
    return response.status, replayed, answer


answers = []
clicks = [
    threading.Thread(target=lambda: answers.append(post("ann", "k1", amount=5))) for _ in range(2)
]
for click in clicks:
    click.start()
for click in clicks:
    click.join()
promise(sorted(a[0] for a in answers) == [201, 409], "a double click: one runs, one is told to wait")
first = next(a for a in answers if a[0] == 201)
promise(post("ann", "k1", amount=5) == (201, True, first[2]), "a retry gets the first answer")
promise(len(payments) == 1, "and pays nothing")
promise(post("ann", "k1", amount=500)[0] == 422, "the same key with another amount is refused")
promise(post("bob", "k1", amount=7)[0] == 201, "another user's k1 is another key")
promise(post("ann", "k2", amount=5000)[:2] == (402, False), "a refusal is an answer")
promise(post("ann", "k2", amount=5000)[:2] == (402, True), "and is replayed like one")
promise(post("ann", "k3", amount=5, bank="closed")[0] == 503, "a request without effect")
promise(post("ann", "k3", amount=5, bank="closed")[0] == 503, "may be tried again")
promise(post("ann", "", amount=5)[0] == 400, "no key, no payment")
codes = [post("carl", f"k{i}", amount=5000)[0] for i in range(11)]
promise(codes == [402] * 10 + [429], "the eleventh request of a user in a row is one too many")
promise(len(payments) == 2, "in the end there are two payments")
server.shutdown()

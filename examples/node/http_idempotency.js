// HTTP idempotency middleware: POST with an Idempotency-Key runs once, and its answer is replayed.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node http_idempotency.js
// docs/http.md has the table of statuses and codes that idempotent() below follows.
import { createHash, randomUUID } from "node:crypto";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379", { maxRetriesPerRequest: 1 });
const PREFIX = `http:${randomUUID().slice(0, 8)}:`;

class NoEffect extends Error {}

const REFUSALS = {
  MISMATCH: [422, "this Idempotency-Key came with another request"],
  UNKNOWN: [409, "an earlier attempt ended in the dark; it is being looked into"],
  DUPLICATE: [409, "this form was already submitted"],
  EXPIRED: [410, "this form is too old"],
  UNISSUED: [403, "this form is not ours"],
  REFUSED: [403, "this form is not yours"],
};

const problem = (code, title, headers = {}) => ({
  code,
  headers: { "Content-Type": "application/problem+json", ...headers },
  body: JSON.stringify({ title }),
});

/** Wraps handle({method, path, body}) -> {code, body}. */
function idempotent(handle, { leaseMs = 10_000, keepS = 24 * 3600 } = {}) {
  return async ({ user, method, path, name, body }) => {
    const [limited, , , retryMs] = await store.call("IDEM.THROTTLE", `${PREFIX}limit:${user}`, 9, 10, 60_000);
    if (limited) return problem(429, "too many requests", { "Retry-After": Math.ceil(retryMs / 1000) });
    if (!name || name.length > 200) return problem(400, "Idempotency-Key is missing or too long");
    // The user is part of the key: nobody can ask for another user's answer.
    const key = `${PREFIX}${user}:${method} ${path}:${name}`;
    const digest = createHash("sha256").update(body).digest("hex");
    const [status, fence, , , code, payload] = await store.call(
      "IDEM.RESERVE", key, "CLAIM", randomUUID(), "FINGERPRINT", digest,
      "LEASE", leaseMs, "EX", keepS, "ONLAPSE", "STOP");
    if (status === "DONE") return { code, headers: { "Idempotency-Replayed": "true" }, body: payload ?? "" };
    if (status === "PENDING") return problem(409, "the first request is still running", { "Retry-After": 1 });
    if (status !== "RESERVED" && status !== "HELD") return problem(...REFUSALS[status]);
    let answer;
    try {
      answer = await handle({ method, path, body });
    } catch (error) {
      if (!(error instanceof NoEffect)) throw error; // the claim lapses into UNKNOWN: who knows what was done?
      await store.call("IDEM.RELEASE", key, fence); // nothing happened: the caller may try again
      return problem(503, error.message, { "Retry-After": 1 });
    }
    await store.call("IDEM.COMPLETE", key, fence, answer.body, "CODE", answer.code);
    return { headers: {}, ...answer };
  };
}

// --- The service: it knows nothing of idempotency ---------------------------------------------

const payments = [];
const service = idempotent(async ({ body }) => {
  const order = JSON.parse(body);
  if (order.bank === "closed") throw new NoEffect("the bank is closed");
  await sleep(200);
  if (order.amount > 1000) return { code: 402, body: '{"title":"not covered"}' }; // an answer worth replaying
  payments.push(order);
  return { code: 201, body: JSON.stringify({ payment: payments.length, ...order }) };
});

const server = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const answer = await service({
    user: request.headers["x-user"] ?? "", // a real service reads it from the session
    method: request.method,
    path: request.url,
    name: request.headers["idempotency-key"],
    body: Buffer.concat(chunks).toString(),
  }).catch((error) => // OOM, MISCONF, not reachable: refuse, never run unguarded
    problem(503, `no answer can be given now: ${error.message}`, { "Retry-After": 1 }));
  response.writeHead(answer.code, { "Content-Type": "application/json", ...answer.headers });
  response.end(answer.body);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

// --- Clients that double-click, retry and try to cheat -----------------------------------------

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

async function post(user, name, order) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/payments`, {
    method: "POST",
    headers: { "X-User": user, ...(name && { "Idempotency-Key": name }) },
    body: JSON.stringify(order),
  });
  const body = await response.text();
  const replayed = response.headers.get("idempotency-replayed") === "true";
  console.log(`  ${user}: ${response.status}${replayed ? " replayed" : ""} ${body}`);
  return { code: response.status, replayed, body };
}

const clicks = await Promise.all([post("ann", "k1", { amount: 5 }), post("ann", "k1", { amount: 5 })]);
const first = clicks.find((a) => a.code === 201);
promise(clicks.map((a) => a.code).sort().join() === "201,409", "a double click: one runs, one is told to wait");
const retry = await post("ann", "k1", { amount: 5 });
promise(retry.code === 201 && retry.replayed && retry.body === first.body, "a retry gets the first answer");
promise(payments.length === 1, "and pays nothing");
promise((await post("ann", "k1", { amount: 500 })).code === 422, "the same key with another amount is refused");
promise((await post("bob", "k1", { amount: 7 })).code === 201, "another user's k1 is another key");
const poor = [await post("ann", "k2", { amount: 5000 }), await post("ann", "k2", { amount: 5000 })];
promise(poor[0].code === 402 && !poor[0].replayed, "a refusal is an answer");
promise(poor[1].code === 402 && poor[1].replayed, "and is replayed like one");
promise((await post("ann", "k3", { amount: 5, bank: "closed" })).code === 503, "a request without effect");
promise((await post("ann", "k3", { amount: 5, bank: "closed" })).code === 503, "may be tried again");
promise((await post("ann", "", { amount: 5 })).code === 400, "no key, no payment");
const codes = [];
for (let i = 0; i < 11; i++) codes.push((await post("carl", `k${i}`, { amount: 5000 })).code);
promise(codes.slice(0, 10).every((c) => c === 402) && codes[10] === 429, "the eleventh request of a user in a row is one too many");
promise(payments.length === 2, "in the end there are two payments");
server.close();
server.closeAllConnections();
await store.quit();

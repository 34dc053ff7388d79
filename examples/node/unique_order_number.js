// Unique order number: many callers bring the same number, one order is written, all get its answer.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node unique_order_number.js
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const url = process.env.IDEMD_URL ?? "redis://127.0.0.1:6379";
const store = new Redis(url);
const PREFIX = `order-number:${randomUUID().slice(0, 8)}:`;

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

class Crash extends Error {} // stands for a process that is gone: nothing after it runs

const orders = []; // the order table; a real one keeps its unique index as the last line of defence

async function insertOrder(number) {
  await sleep(100);
  orders.push(number);
  return JSON.stringify({ id: orders.length, number });
}

function findOrder(number) {
  const at = orders.indexOf(number);
  return at < 0 ? null : JSON.stringify({ id: at + 1, number });
}

/** FOREVER makes the reservation a unique index. */
async function createOrder(number, body, { crashAfterInsert = false, leaseMs = 5000 } = {}) {
  const key = PREFIX + number;
  const digest = createHash("sha256").update(JSON.stringify(body)).digest("hex");
  // WAIT holds up every command behind it, so it goes out on a connection of its own.
  const waiting = store.duplicate();
  const [status, fence, attempt, , , payload] = await waiting.call(
    "IDEM.RESERVE", key, "CLAIM", randomUUID(), "FINGERPRINT", digest,
    "LEASE", leaseMs, "FOREVER", "WAIT", 3000);
  waiting.disconnect();
  if (status !== "RESERVED" && status !== "HELD") return { status, answer: payload };
  // An earlier attempt may have crashed behind its INSERT: look before writing.
  let answer = attempt > 1 ? findOrder(number) : null;
  if (answer === null) {
    answer = await insertOrder(number);
    if (crashAfterInsert) throw new Crash();
  }
  await store.call("IDEM.COMPLETE", key, fence, answer);
  return { status, answer };
}

// Five importers read the same file and bring the same order at the same time.
const body = { item: "lamp", quantity: 2 };
const answers = await Promise.all([1, 2, 3, 4, 5].map(() => createOrder("A-1001", body)));
for (const { status, answer } of answers) console.log(status.padEnd(9), answer);
promise(orders.length === 1, "five callers at once write one order");
promise(answers.map((a) => a.status).sort().join() === "DONE,DONE,DONE,DONE,RESERVED",
  "one writes, four get DONE");
promise(new Set(answers.map((a) => a.answer)).size === 1, "and all five have the same answer");

const other = await createOrder("A-1001", { item: "lamp", quantity: 200 });
promise(other.status === "MISMATCH", "the same number with another body is told apart");
promise(orders.length === 1, "and writes nothing");

try {
  await createOrder("A-1002", body, { crashAfterInsert: true, leaseMs: 300 });
} catch (error) {
  if (!(error instanceof Crash)) throw error;
  console.log("the caller died behind its INSERT, its claim is still held");
}
const next = await createOrder("A-1002", body); // waits until the lease is over
promise(next.status === "RESERVED", "the next caller takes over when the lease is over");
promise(orders.filter((n) => n === "A-1002").length === 1, "finds the order, and does not write it again");
const last = await createOrder("A-1002", body);
promise(last.status === "DONE" && last.answer === next.answer, "and from then on all get its answer");

promise((await store.ttl(PREFIX + "A-1001")) === -1, "the number is taken for ever");
await store.del(PREFIX + "A-1001", PREFIX + "A-1002"); // so that the example leaves nothing behind
await store.quit();

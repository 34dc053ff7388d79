// Queue consumer: a message is delivered twice, fails and crashes half-way, and its effects happen once.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node queue_consumer.js
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379");
const PREFIX = `consumed:${randomUUID().slice(0, 8)}:`;
const LEASE_MS = 1000;

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

class Crash extends Error {} // stands for a process that is gone: nothing after it runs
class TryLater extends Error {} // the carrier's interface is down: nothing happened

let effects = []; // what the outside world saw
async function effect(step, message) {
  effects.push(`${step} ${message}`);
  await sleep(50);
}
const onceEach = (message) => effects.join() === `stock ${message},parcel ${message}`;

/** Returns "ack" or "nack <ms>". `before` is called before each step, and may throw. */
async function consume(message, before = () => {}) {
  const key = PREFIX + message;
  const [status, fence, attempt, ms, , checkpoint] = await store.call(
    "IDEM.RESERVE", key, "CLAIM", randomUUID(), "LEASE", LEASE_MS, "EX", 7 * 86400);
  console.log(`  ${message}: ${status}, attempt ${attempt}, checkpoint ${checkpoint}`);
  if (status === "DONE") return "ack"; // done before: the broker may forget it
  if (status !== "RESERVED" && status !== "HELD") return `nack ${Math.max(ms, 10)}`; // at work, or to be tried later
  try {
    if (checkpoint === null) {
      before("stock");
      await effect("stock", message);
      await store.call("IDEM.CHECKPOINT", key, fence, "stock taken");
    }
    before("parcel");
    await effect("parcel", message);
  } catch (error) {
    if (!(error instanceof TryLater)) throw error;
    await store.call("IDEM.FAIL", key, fence, "AFTER", 100);
    return "nack 100";
  }
  await store.call("IDEM.COMPLETE", key, fence, "shipped");
  return "ack";
}

console.log("one message, two consumers at once:");
const verdicts = await Promise.all([consume("m1"), consume("m1")]);
promise(onceEach("m1"), "each step ran once");
promise(verdicts.filter((v) => v === "ack").length === 1, "the second delivery is put back, not acknowledged");
promise((await consume("m1")) === "ack", "delivered again after the end, it is acknowledged at once");
promise(effects.length === 2, "and nothing ran");

console.log("a step fails before it did anything:");
effects = [];
const carrierIsDown = (step) => {
  if (step === "parcel") throw new TryLater();
};
promise((await consume("m2", carrierIsDown)) === "nack 100", "FAIL puts the message back");
promise((await consume("m2")).startsWith("nack"), "before AFTER is over nobody takes it");
await sleep(200);
promise((await consume("m2")) === "ack", "then the next delivery goes on behind the checkpoint");
promise(onceEach("m2"), "and each step ran once");

console.log("a consumer dies between two steps:");
effects = [];
const powerCut = (step) => {
  if (step === "parcel") throw new Crash();
};
await consume("m3", powerCut).catch((error) => {
  if (!(error instanceof Crash)) throw error;
  console.log("  the consumer is gone, and its claim is still held");
});
promise((await consume("m3")).startsWith("nack"), "until its lease is over nobody takes the message");
await sleep(LEASE_MS + 100);
promise((await consume("m3")) === "ack", "then the redelivery takes over and goes on behind the checkpoint");
promise(onceEach("m3"), "and each step ran once");
await store.quit();

// What no store can promise: a crash after an effect and before its checkpoint. The next attempt
// then has attempt > 1 and no checkpoint, and must ask the warehouse by the message's id before it
// acts. examples/shop does that, with consumers that are really killed.

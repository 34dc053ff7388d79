// Order status: a payment callback comes three times, races a cancellation, and one mail goes out.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node order_status.js
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379");
const PREFIX = `order-status:${randomUUID().slice(0, 8)}:`;

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

class Crash extends Error {} // stands for a process that is gone: nothing after it runs

const mails = []; // the outside effect that follows "paid"
const mailsOf = (order) => mails.filter((m) => m === order).length;

/** Moves the order to `to` from one of the listed states; returns [verdict, other state]. */
const move = (order, to, ...listed) =>
  store.call("IDEM.TRANSITION", PREFIX + order, to, "FROM", listed.length, ...listed, "EX", 86400);

const create = (order) =>
  store.call("IDEM.TRANSITION", PREFIX + order, "created", "FROM", 0, "INIT", "EX", 86400);

/** The callback's handler. ALREADY says that the state is there, not that the mail went out. */
async function onPaid(order, { crashBeforeMail = false } = {}) {
  const [verdict, state] = await move(order, "paid", "created");
  if (verdict === "REFUSED") return [verdict, state];
  if (crashBeforeMail) throw new Crash();
  const key = `${PREFIX}${order}:mail`;
  const waiting = store.duplicate(); // WAIT holds up every command behind it
  const [status, fence] = await waiting.call(
    "IDEM.RESERVE", key, "CLAIM", randomUUID(), "LEASE", 1000, "EX", 86400, "WAIT", 3000);
  waiting.disconnect();
  if (status === "RESERVED" || status === "HELD") {
    await sleep(20);
    mails.push(order);
    await store.call("IDEM.COMPLETE", key, fence, "sent");
  }
  return [verdict, status];
}

console.log("create:", await create("1"));
const three = await Promise.all([1, 2, 3].map(() => onPaid("1")));
console.log("three callbacks:", three);
promise(three.filter(([verdict]) => verdict === "MOVED").length === 1, "one callback moves the order to paid");
promise(mails.join() === "1", "and one mail goes out");
promise((await move("1", "cancelled", "created")).join() === "REFUSED,paid", "a paid order is not cancelled");

await create("2");
const [paid, cancelled] = await Promise.all([onPaid("2"), move("2", "cancelled", "created")]);
console.log("paid against cancelled:", paid, cancelled);
promise([paid, cancelled].filter(([verdict]) => verdict === "MOVED").length === 1,
  "of payment and cancellation exactly one wins");
promise(mailsOf("2") === (paid[0] === "MOVED" ? 1 : 0), "and the mail follows the winner");

await create("3");
try {
  await onPaid("3", { crashBeforeMail: true });
} catch (error) {
  if (!(error instanceof Crash)) throw error;
  console.log("the worker died between the state and the mail");
}
promise(mailsOf("3") === 0 && (await store.get(PREFIX + "3")) === "paid", "the state is ahead of the mail");
promise((await onPaid("3")).join() === "ALREADY,RESERVED", "the next callback finds the mail not done");
promise(mailsOf("3") === 1, "and sends it");

const [verdict, state] = await move("unknown", "paid", "created");
promise(verdict === "REFUSED" && state === null, "an order that was never created does not move");
await store.quit();

// Withdrawal lock: one caller at a time works on an account, and a late one is refused by its fence.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node withdrawal_lock.js
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379");
const PREFIX = `lock:account:${randomUUID().slice(0, 8)}:`;

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

class OldFence extends Error {}
class Busy extends Error {}

/**
 * The resource. It remembers the highest fence it saw and refuses a smaller one.
 * In SQL: UPDATE account SET balance = …, fence = :fence WHERE id = :id AND fence <= :fence.
 */
class Account {
  fence = 0;
  constructor(balance) {
    this.balance = balance;
  }
  write(fence, balance) {
    if (fence < this.fence) throw new OldFence(`fence ${fence} is older than ${this.fence}`);
    this.fence = fence;
    this.balance = balance;
  }
}

/** PX equal to LEASE: the key goes when the lease does, as a SET NX PX lock would. */
async function withLock(name, leaseMs, waitMs, work) {
  const key = PREFIX + name;
  const waiting = store.duplicate(); // WAIT holds up every command behind it
  const [status, fence, , ms] = await waiting.call(
    "IDEM.RESERVE", key, "CLAIM", randomUUID(), "LEASE", leaseMs, "PX", leaseMs, "WAIT", waitMs);
  waiting.disconnect();
  if (status !== "RESERVED" && status !== "HELD") throw new Busy(`${name} is locked, for ${ms} ms at most`);
  try {
    return await work(key, fence);
  } finally {
    // STALE: the lock was lost meanwhile, and its new holder must not be disturbed.
    await store.call("IDEM.RELEASE", key, fence).catch((error) => {
      if (!error.message.startsWith("STALE")) throw error;
    });
  }
}

const account = new Account(100);
const withdraw = (amount) =>
  withLock("ann", 5000, 5000, async (key, fence) => {
    const balance = account.balance; // read, think, write: a race without the lock
    await sleep(10);
    account.write(fence, balance - amount);
  });

await Promise.all([1, 2, 3, 4, 5].map(() => withdraw(10)));
console.log("five withdrawals of 10 from 100 leave", account.balance);
promise(account.balance === 50, "no withdrawal is lost");
promise((await store.exists(PREFIX + "ann")) === 0, "the lock is free again");

// A holder that stalls (a pause, a slow disk, a suspended machine) past its lease.
let resume, entered;
const resumed = new Promise((done) => (resume = done));
const locked = new Promise((done) => (entered = done));
const late = withLock("ann", 300, 0, async (key, fence) => {
  const balance = account.balance;
  entered();
  await resumed; // far longer than the lease
  const extended = await store.call("IDEM.EXTEND", key, fence, 300).catch((error) => error.message);
  try {
    account.write(fence, balance - 10);
    return { extended, written: "written" };
  } catch (error) {
    return { extended, written: `refused: ${error.message}` };
  }
});
await locked;
const refused = await withLock("ann", 5000, 0, async () => "got it").catch((error) => error);
console.log("without WAIT:", refused.message);
promise(refused instanceof Busy, "a caller that does not wait is told so");

await withLock("ann", 5000, 5000, async (key, fence) => { // waits for the lease to lapse
  account.write(fence, account.balance - 20);
  const left = await store.call("IDEM.EXTEND", key, fence, 10_000);
  promise(left > 5000, `the holder extends its lease: ${left} ms left`);
  resume();
  await late;
});
const { extended, written } = await late;
console.log("the stalled holder's EXTEND:", extended);
console.log("the stalled holder's write: ", written);
promise(String(extended).startsWith("STALE"), "the stalled holder learns that the lock is another's");
promise(written.startsWith("refused"), "and the account refuses its old fence");
promise(account.balance === 30, "so nothing is overwritten: 50 - 20");
await store.quit();

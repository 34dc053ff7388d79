// Per-user limit: several gateways share one limit, a refused caller is told how long to wait.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node user_limit.js
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379");
const PREFIX = `limit:${randomUUID().slice(0, 8)}:`;

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

/** Five integers: limited, limit, remaining, retry-after ms, reset-after ms. */
const allow = (gateway, user, burst, count, periodMs, ...options) =>
  gateway.call("IDEM.THROTTLE", PREFIX + user, burst, count, periodMs, ...options);

// Two gateways, each with its own connection: 4 + 1 requests at once, then one every 12 seconds.
const gateways = [store.duplicate(), store.duplicate()];
const replies = await Promise.all(
  gateways.flatMap((gateway) => Array.from({ length: 6 }, () => allow(gateway, "ann", 4, 5, 60_000))));
gateways.forEach((gateway) => gateway.disconnect());
const refused = replies.filter(([limited]) => limited);
console.log(`12 requests of one user through two gateways: ${12 - refused.length} allowed, ${refused.length} refused`);
promise(refused.length === 7, "the burst of 5 is shared by both gateways");
promise(refused.every(([, , , retryMs]) => retryMs > 0 && retryMs <= 12_000), "each refusal says how long to wait");
promise((await allow(store, "bob", 4, 5, 60_000))[0] === 0, "another user is not held up");

const looks = [];
for (let i = 0; i < 3; i++) looks.push((await allow(store, "bob", 4, 5, 60_000, "PEEK"))[2]);
promise(looks.join() === "4,4,4", "PEEK takes nothing");
const heavy = await allow(store, "bob", 4, 5, 60_000, "COST", 6);
promise(heavy[0] === 1 && heavy[3] === -1, "a cost above the limit can never pass: retry-after -1");

// A client that waits as it is told gets through: 1 request, then one every half second.
promise((await allow(store, "carl", 0, 2, 1000))[0] === 0, "the first request passes");
let [limited, , , retryMs] = await allow(store, "carl", 0, 2, 1000);
if (limited) {
  console.log(`the second is refused, retry after ${retryMs} ms`);
  await sleep(retryMs + 1); // Node's timers may fire up to a millisecond early
  [limited] = await allow(store, "carl", 0, 2, 1000);
}
promise(limited === 0, "after the wait it passes");
await store.quit();

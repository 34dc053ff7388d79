// One-shot form token: a form is submitted twice, and only one submit goes through.
//
// Usage: IDEMD_URL=redis://127.0.0.1:6379 node one_shot_token.js
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const store = new Redis(process.env.IDEMD_URL ?? "redis://127.0.0.1:6379");
const PREFIX = `form:${randomUUID().slice(0, 8)}:`; // one namespace for each run of this example

function promise(kept, text) {
  console.log(kept ? "kept:  " : "BROKEN:", text);
  if (!kept) process.exit(1);
}

// --- 1. The page is a gate: whoever consumes the token goes on --------------------------------

/** The server makes the token; the value binds it to the user who asked for the page. */
const showForm = (user) => store.call("IDEM.TOKEN", PREFIX, "EX", 300, "VALUE", user);

/** requestId is made fresh by the code that handles this one submit, for its own resends. */
const submit = (user, token, requestId, service = store) =>
  service.call("IDEM.CONSUME", PREFIX + token, "IFEQ", user, "BY", requestId, "REASON");

let token = await showForm("ann");
const ids = [randomUUID(), randomUUID()];
const services = [store, store.duplicate()]; // two processes, each with its own connection
const answers = await Promise.all(ids.map((id, i) => submit("ann", token, id, services[i])));
services[1].disconnect();
console.log("a double click:", answers);
promise([...answers].sort().join() === "CONSUMED,DUPLICATE", "of two submits at once one goes through");

const winner = ids[answers.indexOf("CONSUMED")];
const loser = ids[answers.indexOf("DUPLICATE")];
promise((await submit("ann", token, winner)) === "CONSUMED", "the winner may ask again: its reply was lost");
promise((await submit("ann", token, loser)) === "DUPLICATE", "the other one may not, however often it asks");

token = await showForm("ann");
promise((await submit("bob", token, randomUUID())) === "REFUSED", "another user's token is refused");
promise((await submit("ann", token, randomUUID())) === "CONSUMED", "and it is still there for its owner");
promise((await submit("ann", "A".repeat(32), randomUUID())) === "UNISSUED", "a forged token is known as such");

token = await store.call("IDEM.TOKEN", PREFIX, "PX", 50, "VALUE", "ann");
await sleep(200);
promise((await submit("ann", token, randomUUID())) === "EXPIRED", "a late submit is told why");

// --- 2. The business step may fail: reserve the token, complete or release it -------------------

class OutOfStock extends Error {}

/** A step that failed before any effect gives the token back. */
async function submitOrder(user, token, createOrder) {
  const key = PREFIX + token;
  const [status, fence, , , , payload] = await store.call(
    "IDEM.RESERVE", key, "CLAIM", randomUUID(), "LEASE", 5000, "ISSUED", "IFEQ", user);
  if (status === "DONE") return { status, answer: payload };
  if (status !== "RESERVED" && status !== "HELD") return { status };
  let answer;
  try {
    answer = await createOrder();
  } catch (error) {
    if (!(error instanceof OutOfStock)) throw error;
    await store.call("IDEM.RELEASE", key, fence); // nothing was written: the user may try again
    return { status: "OUT OF STOCK" };
  }
  await store.call("IDEM.COMPLETE", key, fence, answer);
  return { status, answer };
}

const orders = [];
const refuse = async () => {
  throw new OutOfStock();
};
const create = async () => {
  orders.push(`order ${orders.length + 1}`);
  await sleep(50); // long enough for the second click to arrive
  return orders.at(-1);
};

token = await showForm("ann");
console.log("first submit:", await submitOrder("ann", token, refuse));
promise((await store.exists(PREFIX + token)) === 1, "a submit that failed gives the token back");

console.log("a double click:", await Promise.all([1, 2].map(() => submitOrder("ann", token, create))));
promise(orders.length === 1, "two submits at once create one order");
const reload = await submitOrder("ann", token, create);
console.log("a reload:", reload);
promise(reload.status === "DONE" && reload.answer === "order 1", "later submits get its answer");
promise(orders.length === 1, "and create nothing");
await store.quit();

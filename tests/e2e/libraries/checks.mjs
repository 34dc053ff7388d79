// What the Node programs of this suite share: tests with names, patience, and the checks of the promises that libraries make.
//
// A check returns complaints, one sentence each; an empty list means that the promise was kept. So that no check is
// blind, every program also runs its checks on something that breaks the promise, and expects a complaint.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import Redis from 'ioredis';

export { sleep };
export const port = Number(process.argv[2]);

// Only for what would otherwise never end; no test is slow enough to meet it on a busy machine.
export const PATIENCE_MS = 200_000;
// Server and client read different clocks, both cut to whole milliseconds.
export const CLOCKS_MS = 20;

let passed = 0;
let failed = 0;

export async function test(name, body) {
  let timer;
  const patience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    await Promise.race([body(), patience]);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error?.stack ?? error}`);
  } finally {
    clearTimeout(timer);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

export async function until(what, condition) {
  const end = performance.now() + PATIENCE_MS / 2;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await sleep(5);
  }
}

// So many connections, closed when the body is done.
export async function withClients(count, body, options = {}) {
  const clients = Array.from({ length: count }, () => new Redis({ port, maxRetriesPerRequest: null, connectTimeout: PATIENCE_MS, ...options }));
  try {
    return await body(clients);
  } finally {
    for (const client of clients) client.disconnect();
  }
}

export const kept = (complaints) => assert.deepEqual(complaints, []);
export const broken = (complaints) => assert.notEqual(complaints.length, 0, 'the check did not notice');

// Nobody is inside together with another, and no addition is lost: `hold(contender, work)` runs the work under the lock.
export async function exclusion(contenders, rounds, hold) {
  const complaints = [];
  let inside = 0;
  let total = 0;
  await Promise.all(Array.from({ length: contenders }, async (_, contender) => {
    for (let round = 0; round < rounds; ++round) {
      await hold(contender, async () => {
        inside += 1;
        if (inside !== 1) complaints.push(`${inside} are inside`);
        const seen = total;
        await sleep(1);
        total = seen + 1;
        inside -= 1;
      });
    }
  }));
  if (total !== contenders * rounds) complaints.push(`${total} of ${contenders * rounds} additions were kept`);
  return complaints;
}

// Of all attempts, made at once, exactly so many are let through: `consume(attempt)` says whether it was.
export async function admission(limit, attempts, consume) {
  const answers = await Promise.all(Array.from({ length: attempts }, (_, attempt) => consume(attempt)));
  const through = answers.filter((answer) => answer === true).length;
  return through === limit ? [] : [`${through} of ${attempts} passed, and not ${limit}`];
}

// Everything that was asked for was done, and done once.
export function onceEach(asked, done) {
  const complaints = [];
  const times = new Map(asked.map((id) => [String(id), 0]));
  for (const id of done.map(String)) {
    if (!times.has(id)) complaints.push(`${id} was done, and nobody asked for it`);
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  for (const [id, count] of times) if (count !== 1) complaints.push(`${id} was done ${count} times`);
  return complaints;
}

// These came one after the other, as `before(a, b)` wants it.
export function inOrder(list, before) {
  return list.slice(1).flatMap((next, i) => (before(list[i], next) ? [] : [`${JSON.stringify(next)} came after ${JSON.stringify(list[i])}`]));
}

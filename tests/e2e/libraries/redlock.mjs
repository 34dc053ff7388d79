// redlock with one node: one holder at a time, extended locks last, released and lapsed ones are free, foreign ones are left alone.
//
// usage: node redlock.mjs PORT
import assert from 'node:assert/strict';
import Redlock from 'redlock';
import { CLOCKS_MS, broken, exclusion, finish, kept, port, sleep, test, until, withClients } from './checks.mjs';

const FOR_LONG_MS = 300_000; // longer than any test is awaited: such a lock is only free when it is released
const patient = { retryCount: -1, retryDelay: 8, retryJitter: 8 };
const hasty = { retryCount: 0 };

const refused = (attempt) => assert.rejects(attempt, { name: 'LockError' });

async function hold(redlock, key, work) {
  const lock = await redlock.lock(key, FOR_LONG_MS);
  try {
    await work();
  } finally {
    await lock.unlock();
  }
}

await test('one holder at a time, over one key', () => withClients(10, async (clients) => {
  const locks = clients.map((client) => new Redlock([client], patient));
  kept(await exclusion(10, 15, (contender, work) => hold(locks[contender], 'redlock:one', work)));
  assert.equal(await clients[0].exists('redlock:one'), 0, 'the last holder released it');
}));

await test('one holder at a time, over two keys taken together', () => withClients(8, async (clients) => {
  const locks = clients.map((client) => new Redlock([client], patient));
  const keys = (contender) => (contender % 2 ? ['redlock:a', 'redlock:b'] : ['redlock:b', 'redlock:c']);
  kept(await exclusion(8, 10, (contender, work) => hold(locks[contender], keys(contender), work)));
}));

await test('the check sees two locks that are not the same lock', () => withClients(6, async (clients) => {
  const locks = clients.map((client) => new Redlock([client], patient));
  broken(await exclusion(6, 10, (contender, work) => hold(locks[contender], `redlock:own:${contender % 2}`, work)));
  broken(await exclusion(6, 10, (contender, work) => work()));
}));

await test('of all who try once exactly one gets it', () => withClients(32, async (clients) => {
  const won = await Promise.allSettled(clients.map((client) => new Redlock([client], hasty).lock('redlock:race', FOR_LONG_MS)));
  const winners = won.filter(({ status }) => status === 'fulfilled').map(({ value }) => value);
  assert.equal(winners.length, 1);
  assert.ok(won.filter(({ status }) => status === 'rejected').every(({ reason }) => reason.name === 'LockError'));
  await winners[0].unlock();
  await (await new Redlock([clients[5]], hasty).lock('redlock:race', FOR_LONG_MS)).unlock();
}));

await test('an extended lock outlasts its first time', () => withClients(2, async ([mine, theirs]) => {
  const started = performance.now();
  // Taken anew where the machine was so slow that it had lapsed before it could be extended.
  const lock = await until('a lock is extended in time', async () => {
    const taken = await new Redlock([mine], patient).lock('redlock:long', 1000);
    return taken.extend(FOR_LONG_MS).catch(() => null);
  });
  await sleep(Math.max(0, 1100 - (performance.now() - started)));
  await refused(new Redlock([theirs], hasty).lock('redlock:long', FOR_LONG_MS));
  assert.ok(await mine.pttl('redlock:long') > FOR_LONG_MS / 2);
  await lock.unlock();
  await (await new Redlock([theirs], hasty).lock('redlock:long', FOR_LONG_MS)).unlock();
}));

await test('a lapsed lock is free, not before its time, and its late owner can do nothing', () => withClients(2, async ([mine, theirs]) => {
  const started = performance.now();
  const lapsed = await new Redlock([mine], patient).lock('redlock:lapse', 400);
  const next = await new Redlock([theirs], patient).lock('redlock:lapse', FOR_LONG_MS);
  assert.ok(performance.now() - started >= 400 - CLOCKS_MS, 'the second came too early');
  await refused(lapsed.extend(FOR_LONG_MS));
  await lapsed.unlock().catch(() => {}); // counts as no vote, or as gone already: either way it removes nothing
  await refused(new Redlock([mine], hasty).lock('redlock:lapse', FOR_LONG_MS));
  assert.equal(await theirs.get('redlock:lapse'), next.value);
  await next.unlock();
  assert.equal(await theirs.exists('redlock:lapse'), 0);
}));

finish();

// rate-limiter-flexible: of many at once exactly the allowed number pass, and the next window lets them pass again.
//
// usage: node rate_limits.mjs PORT
import assert from 'node:assert/strict';
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { createClient } from 'redis';
import { CLOCKS_MS, PATIENCE_MS, admission, broken, finish, kept, port, test, until, withClients } from './checks.mjs';

const LONG_S = 600; // a window that no test sees the end of

// true when it passed, false when the limit said no; anything else is an error of the test.
async function passes(limiter, key, points = 1) {
  try {
    await limiter.consume(key, points);
    return true;
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return false;
    throw refusal;
  }
}

const limiters = (clients, options) => clients.map((storeClient) => new RateLimiterRedis({ storeClient, ...options }));

for (const [points, cost] of [[17, 1], [100, 1], [60, 4]]) {
  await test(`${points} points at ${cost} each, 400 at once over 8 connections`, () => withClients(8, async (clients) => {
    const all = limiters(clients, { keyPrefix: `rl:${points}:${cost}`, points, duration: LONG_S });
    kept(await admission(points / cost, 400, (attempt) => passes(all[attempt % 8], 'user', cost)));
    assert.equal((await all[3].get('user')).remainingPoints, 0);
    kept(await admission(points / cost, 100, (attempt) => passes(all[attempt % 8], 'another', cost)));
  }));
}

await test('through node-redis, in RESP2 and RESP3', async () => {
  for (const RESP of [2, 3]) {
    const storeClient = createClient({ RESP, socket: { port, connectTimeout: PATIENCE_MS } });
    await storeClient.connect();
    const limiter = new RateLimiterRedis({ storeClient, useRedisPackage: true, keyPrefix: `rl:n${RESP}`, points: 25, duration: LONG_S });
    kept(await admission(25, 300, () => passes(limiter, 'user')));
    storeClient.destroy();
  }
});

await test('the check sees a limit that is read first and counted later', () => withClients(8, async (clients) => {
  broken(await admission(17, 400, async (attempt) => {
    const client = clients[attempt % 8];
    if (Number(await client.get('rl:naive')) >= 17) return false;
    await client.incr('rl:naive');
    return true;
  }));
}));

await test('the next window is a new one, and not early', () => withClients(4, async (clients) => {
  const all = limiters(clients, { keyPrefix: 'rl:window', points: 5, duration: 1 });
  // A machine that needs a second for six calls gets another window.
  const [asked, left] = await until('the limit is met within a window', async () => {
    for (let i = 0; i < 6; ++i) {
      const before = performance.now();
      const refusal = await all[i % 4].consume('user').then(() => null, (reason) => reason);
      if (refusal) return [before, refusal.msBeforeNext];
    }
    return null;
  });
  assert.ok(left > 0 && left <= 1000, `${left} ms to the next window`);
  await until('the window ends', () => passes(all[1], 'user'));
  assert.ok(performance.now() - asked >= left - CLOCKS_MS, 'the window ended early');
}));

await test('a key is blocked for its time; penalty, reward and delete count', () => withClients(4, async (clients) => {
  const all = limiters(clients, { keyPrefix: 'rl:block', points: 3, duration: LONG_S, blockDuration: LONG_S });
  kept(await admission(3, 50, (attempt) => passes(all[attempt % 4], 'user')));
  assert.ok((await all[0].get('user')).msBeforeNext > LONG_S * 500);
  await all[1].delete('user');
  await Promise.all([all[0].penalty('user', 1), all[1].penalty('user', 2), all[2].reward('user', 1)]);
  assert.equal((await all[3].get('user')).consumedPoints, 2);
  kept(await admission(1, 20, (attempt) => passes(all[attempt % 4], 'user')));
  await all[2].block('other', 1);
  assert.equal(await passes(all[3], 'other'), false);
  await until('the block ends', async () => (await all[0].get('other')) === null);
}));

await test('a burst is let through on top of the limit', () => withClients(2, async ([steady, burst]) => {
  const limiter = new BurstyRateLimiter(
    new RateLimiterRedis({ storeClient: steady, keyPrefix: 'rl:steady', points: 10, duration: LONG_S }),
    new RateLimiterRedis({ storeClient: burst, keyPrefix: 'rl:burst', points: 15, duration: LONG_S }));
  kept(await admission(25, 200, () => passes(limiter, 'user')));
}));

finish();

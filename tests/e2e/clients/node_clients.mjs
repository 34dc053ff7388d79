// ioredis and node-redis against a running idemd: connect options, pipelines, passwords, unix socket, native commands.
//
// usage: node node_clients.mjs PORT SOCKET PASSWORD_PORT PASSWORD
import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';

const [port, socket, passwordPort, password] = process.argv.slice(2);
let passed = 0;
let failed = 0;

async function test(name, body) {
  let timer;
  const patience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('not done in 30 s')), 30_000);
  });
  try {
    await Promise.race([body(), patience]);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  } finally {
    clearTimeout(timer);
  }
}

// A client's own way to send any command, and what it makes of binary and nil.
async function native(call, tag, isMap) {
  const token = String(await call('IDEM.TOKEN', `${tag}t:`, 'VALUE', 'user-1'));
  assert.equal(token.length, 32);
  assert.equal(await call('IDEM.CONSUME', `${tag}t:${token}`, 'IFEQ', 'user-2'), 0);
  assert.equal(await call('IDEM.CONSUME', `${tag}t:${token}`, 'IFEQ', 'user-1'), 1);
  assert.equal(String(await call('IDEM.CONSUME', `${tag}t:${token}`, 'REASON')), 'DUPLICATE');
  const [status, fence, attempt, ms, code, payload] = await call('IDEM.RESERVE', `${tag}job`, 'CLAIM', 'c');
  assert.deepEqual([String(status), attempt, code, payload], ['RESERVED', 1, 0, null]);
  assert.ok(Number.isSafeInteger(fence) && fence > 0, 'a fence is safe in JavaScript');
  assert.ok(ms > 0 && ms <= 30_000);
  assert.equal((await call('IDEM.RESERVE', `${tag}job`, 'CLAIM', 'c'))[1], fence);
  assert.equal(String(await call('IDEM.COMPLETE', `${tag}job`, String(fence), 'ä answer', 'CODE', '201')), 'OK');
  const done = await call('IDEM.RESERVE', `${tag}job`);
  assert.deepEqual([String(done[0]), done[4], String(done[5])], ['DONE', 201, 'ä answer']);
  await assert.rejects(call('IDEM.COMPLETE', `${tag}job`, '1', 'x'), /^[A-Za-z]*Error: STALE/);
  await assert.rejects(call('IDEM.FAIL', `${tag}job`, String(fence)), /CONFLICT/);
  const fields = await call('IDEM.STATUS', `${tag}job`);
  if (isMap) {
    assert.equal(String(fields.state), 'done');
  } else {
    assert.equal(String(fields[fields.findIndex((f) => String(f) === 'state') + 1]), 'done');
  }
  assert.deepEqual(await call('IDEM.THROTTLE', `${tag}r`, '15', '30', '60000'), [0, 16, 15, -1, 2000]);
  const [verdict, first] = await call('IDEM.MRESERVE', '2', `${tag}x`, `${tag}y`);
  assert.deepEqual([String(verdict), String(first[0])], ['RESERVED', 'RESERVED']);
  assert.equal(await call('DEL', `${tag}job`, `${tag}r`, `${tag}x`, `${tag}y`), 4);
}

// --- ioredis: RESP2
async function withIoredis(options, body) {
  const client = new Redis({ lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: null, ...options });
  client.on('error', () => {});
  try {
    await client.connect();
    await body(client);
  } finally {
    client.disconnect();
  }
}

await test('ioredis: strings, native commands, info', () =>
  withIoredis({ port, connectionName: 'io' }, async (client) => {
    assert.equal(await client.set('io:k', 'v', 'PX', 50_000, 'NX'), 'OK');
    assert.equal(await client.set('io:k', 'w', 'NX'), null);
    const bytes = Buffer.from([0, 13, 10, 255]);
    await client.set('io:b', bytes);
    assert.deepEqual(await client.getBuffer('io:b'), bytes);
    await client.set('io:large', 'x'.repeat(5_000_000));
    assert.equal((await client.get('io:large')).length, 5_000_000);
    assert.equal(await client.del('io:k', 'io:b', 'io:large'), 3);
    assert.equal(await client.client('GETNAME'), 'io');
    assert.match(await client.info(), /redis_version:/);
    await native((...words) => client.call(...words), 'io:', false);
  }));

await test('ioredis: unix socket and database', () =>
  withIoredis({ path: socket, db: 3 }, async (client) => {
    await client.set('io:db', '1');
    assert.equal(await client.dbsize(), 1);
    await native((...words) => client.call(...words), 'iou:', false);
    await client.del('io:db');
  }));

await test('ioredis: password', async () => {
  await withIoredis({ port: passwordPort, password }, async (client) => {
    await native((...words) => client.call(...words), 'iop:', false);
  });
  await withIoredis({ port: passwordPort, username: 'default', password }, async (client) => {
    assert.equal(await client.ping(), 'PONG');
  });
  await assert.rejects(withIoredis({ port: passwordPort }, (client) => client.get('k')));
});

await test('ioredis: pipelines, also automatic ones', () =>
  withIoredis({ port, enableAutoPipelining: true }, async (client) => {
    const pipeline = client.pipeline();
    for (let i = 0; i < 3000; ++i) pipeline.set(`io:p${i}`, i);
    for (let i = 0; i < 3000; ++i) pipeline.call('IDEM.CONSUME', `io:p${i}`, 'IFEQ', `${i}`);
    const replies = await pipeline.exec();
    assert.ok(replies.slice(0, 3000).every(([error, reply]) => error === null && reply === 'OK'));
    assert.ok(replies.slice(3000).every(([error, reply]) => error === null && reply === 1));
    const answers = await Promise.all(Array.from({ length: 100 }, () => client.call('IDEM.RESERVE', 'io:auto')));
    assert.equal(answers.filter(([status]) => status === 'RESERVED').length, 1);
    await client.del('io:auto');
  }));

await test('ioredis: a waiter gets the answer', () =>
  withIoredis({ port }, (waiter) =>
    withIoredis({ port }, async (client) => {
      const [, fence] = await client.call('IDEM.RESERVE', 'io:wait');
      const waiting = waiter.call('IDEM.RESERVE', 'io:wait', 'WAIT', 20_000);
      setTimeout(() => client.call('IDEM.COMPLETE', 'io:wait', fence, 'answer'), 100);
      assert.equal((await waiting)[5], 'answer');
      await client.del('io:wait');
    })));

// --- node-redis: RESP2 and RESP3
async function withNodeRedis(options, body) {
  const client = createClient({ ...options, socket: { reconnectStrategy: false, ...options.socket } });
  client.on('error', () => {});
  try {
    await client.connect();
    await body(client);
  } finally {
    if (client.isOpen) client.destroy();
  }
}

for (const RESP of [2, 3]) {
  const label = `node-redis RESP${RESP}`;
  const tag = `n${RESP}:`;
  await test(`${label}: strings, native commands, info`, () =>
    withNodeRedis({ RESP, name: 'node', socket: { port: Number(port) } }, async (client) => {
      assert.equal(await client.set(`${tag}k`, 'v', { NX: true, PX: 50_000 }), 'OK');
      assert.equal(await client.set(`${tag}k`, 'w', { NX: true }), null);
      const bytes = Buffer.from([0, 13, 10, 255]);
      await client.set(`${tag}b`, bytes);
      const raw = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      assert.deepEqual(await raw.get(`${tag}b`), bytes);
      await client.set(`${tag}large`, 'x'.repeat(5_000_000));
      assert.equal((await client.get(`${tag}large`)).length, 5_000_000);
      assert.equal(await client.del([`${tag}k`, `${tag}b`, `${tag}large`]), 3);
      assert.equal(await client.clientGetName(), 'node');
      assert.match(await client.info(), /redis_version:/);
      await native((...words) => client.sendCommand(words), tag, RESP === 3);
    }));

  await test(`${label}: unix socket and database`, () =>
    withNodeRedis({ RESP, database: 4, socket: { path: socket } }, async (client) => {
      await client.set(`${tag}db`, '1');
      assert.equal(await client.dbSize(), 1);
      await native((...words) => client.sendCommand(words), tag, RESP === 3);
      await client.del(`${tag}db`);
    }));

  await test(`${label}: password`, async () => {
    await withNodeRedis({ RESP, password, socket: { port: Number(passwordPort) } }, async (client) => {
      await native((...words) => client.sendCommand(words), tag, RESP === 3);
    });
    await withNodeRedis(
      { RESP, username: 'default', password, socket: { port: Number(passwordPort) } },
      async (client) => assert.equal(await client.ping(), 'PONG'));
    await assert.rejects(
      withNodeRedis({ RESP, password: 'wrong', socket: { port: Number(passwordPort) } }, (client) => client.get('k')));
  });

  await test(`${label}: what is sent in one tick is a pipeline`, () =>
    withNodeRedis({ RESP, socket: { port: Number(port) } }, async (client) => {
      const set = await Promise.all(Array.from({ length: 3000 }, (_, i) => client.set(`${tag}p${i}`, `${i}`)));
      assert.ok(set.every((reply) => reply === 'OK'));
      const won = await Promise.all(
        Array.from({ length: 3000 }, (_, i) => client.sendCommand(['IDEM.CONSUME', `${tag}p${i}`, 'IFEQ', `${i}`])));
      assert.ok(won.every((reply) => reply === 1));
      const keys = [];
      for await (const found of client.scanIterator({ MATCH: `${tag}*` })) keys.push(...[found].flat());
      assert.deepEqual(keys, []);
    }));

  await test(`${label}: a waiter gets the answer`, () =>
    withNodeRedis({ RESP, socket: { port: Number(port) } }, (waiter) =>
      withNodeRedis({ RESP, socket: { port: Number(port) } }, async (client) => {
        const [, fence] = await client.sendCommand(['IDEM.RESERVE', `${tag}wait`]);
        const waiting = waiter.sendCommand(['IDEM.RESERVE', `${tag}wait`, 'WAIT', '20000']);
        setTimeout(() => client.sendCommand(['IDEM.COMPLETE', `${tag}wait`, `${fence}`, 'answer']), 100);
        assert.equal((await waiting)[5], 'answer');
        await client.del(`${tag}wait`);
      })));
}

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

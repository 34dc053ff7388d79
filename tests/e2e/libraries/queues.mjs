// bullmq: every job is done once whatever the concurrency; delays, priorities, retries, locks, limits, flows and events keep their word.
//
// usage: node queues.mjs PORT
import assert from 'node:assert/strict';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { CLOCKS_MS, PATIENCE_MS, broken, finish, inOrder, kept, onceEach, port, sleep, test, until, withClients } from './checks.mjs';

const connection = { port, maxRetriesPerRequest: null, connectTimeout: PATIENCE_MS };
const FOR_LONG_MS = 300_000;

// A queue with what belongs to it, closed when the body is done.
async function withQueue(name, body) {
  const open = [];
  const keep = (thing) => {
    thing.on('error', () => {}); // what a connection says while it is closed; the body looks at results
    open.unshift(thing);
    return thing;
  };
  const queue = keep(new Queue(name, { connection }));
  try {
    await body(queue, {
      worker: (processor, options = {}) => keep(new Worker(name, processor, { connection, ...options })),
      events: () => keep(new QueueEvents(name, { connection, lastEventId: '0-0' })),
      flow: () => keep(new FlowProducer({ connection })),
      queueToo: () => keep(new Queue(name, { connection })),
    });
  } finally {
    for (const thing of open) await thing.close(true);
  }
}

const drained = (queue) => until('the queue is empty', async () => {
  const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized', 'waiting-children', 'paused');
  return Object.values(counts).every((count) => count === 0);
});

await test('200 jobs, three workers of eight each: every job once, every event told', () => withQueue('many', async (queue, its) => {
  const done = [];
  const told = [];
  const events = its.events();
  events.on('completed', ({ jobId, returnvalue }) => told.push([jobId, String(returnvalue)]));
  await events.waitUntilReady();
  for (let i = 0; i < 3; ++i) {
    its.worker(async (job) => {
      done.push(job.id);
      await sleep(job.data.n % 4);
      return job.data.n * 2;
    }, { concurrency: 8 });
  }
  const singly = Array.from({ length: 100 }, (_, n) => queue.add('one', { n }));
  const together = queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'bulk', data: { n: 100 + i } })));
  const jobs = [...await Promise.all(singly), ...await together];
  await drained(queue);
  kept(onceEach(jobs.map(({ id }) => id), done));
  assert.deepEqual(await queue.getJobCounts('completed', 'failed'), { completed: 200, failed: 0 });
  await until('every event came', () => told.length >= 200);
  kept(onceEach(jobs.map(({ id }) => id), told.map(([id]) => id)));
  const results = new Map(told);
  assert.ok(jobs.every(({ id, data }) => results.get(id) === String(data.n * 2)), 'a result belongs to another job');
}));

await test('the checks see a job done twice, one left out and a wrong order', async () => {
  broken(onceEach([1, 2, 3], [1, 2, 2, 3]));
  broken(onceEach([1, 2, 3], [1, 3]));
  broken(onceEach([1], [1, 9]));
  broken(inOrder([1, 3, 2], (a, b) => a <= b));
});

await test('the same job asked for by many at once is one job', () => withQueue('same', async (queue, its) => {
  const queues = [queue, ...Array.from({ length: 5 }, its.queueToo)];
  await Promise.all(Array.from({ length: 60 }, (_, i) => queues[i % 6].add('named', { i }, { jobId: 'the-only-one' })));
  await Promise.all(Array.from({ length: 60 }, (_, i) => queues[i % 6].add('alike', { i }, { deduplication: { id: 'alike' } })));
  const done = [];
  its.worker(async (job) => { done.push(job.name); }, { concurrency: 8 });
  await drained(queue);
  kept(onceEach(['named', 'alike'], done));
}));

await test('delayed jobs are done once and not before their time', () => withQueue('delayed', async (queue, its) => {
  const early = [];
  const done = [];
  for (let i = 0; i < 2; ++i) {
    its.worker(async (job) => {
      done.push(job.id);
      const ms = job.timestamp + job.data.delay - Date.now();
      if (ms > CLOCKS_MS) early.push(`${job.id} is ${ms} ms early`);
    }, { concurrency: 4 });
  }
  const jobs = await Promise.all(Array.from({ length: 30 }, (_, i) => {
    const delay = 100 + 25 * (i % 12);
    return queue.add('later', { delay }, { delay });
  }));
  await drained(queue);
  kept(early);
  kept(onceEach(jobs.map(({ id }) => id), done));
}));

await test('prioritised jobs go by priority, then as they came', () => withQueue('prioritised', async (queue, its) => {
  await queue.pause();
  const jobs = await queue.addBulk(Array.from({ length: 40 }, (_, i) => ({ name: 'p', data: { i, p: 1 + (i * 7) % 5 }, opts: { priority: 1 + (i * 7) % 5 } })));
  const done = [];
  its.worker(async (job) => { done.push({ id: job.id, ...job.data }); });
  await queue.resume();
  await drained(queue);
  kept(inOrder(done, (a, b) => a.p < b.p || (a.p === b.p && a.i < b.i)));
  kept(onceEach(jobs.map(({ id }) => id), done.map(({ id }) => id)));
}));

await test('what fails is tried again, and no more often than it may be', () => withQueue('retries', async (queue, its) => {
  const tries = new Map();
  const failures = [];
  const events = its.events();
  events.on('failed', ({ jobId, failedReason }) => failures.push(`${jobId} ${failedReason}`));
  await events.waitUntilReady();
  its.worker(async (job) => {
    const nth = (tries.get(job.id) ?? 0) + 1;
    tries.set(job.id, nth);
    if (nth < job.data.good) throw new Error(`try ${nth}`);
    return nth;
  }, { concurrency: 5 });
  const often = { attempts: 3, backoff: { type: 'fixed', delay: 30 } };
  const good = await Promise.all(Array.from({ length: 10 }, (_, i) => queue.add('r', { good: 1 + (i % 3) }, often)));
  const bad = await queue.add('r', { good: 99 }, often);
  assert.deepEqual(await Promise.all(good.map((job) => job.waitUntilFinished(events))), good.map(({ data }) => data.good));
  await assert.rejects(bad.waitUntilFinished(events), /try 3/);
  assert.equal(tries.get(bad.id), 3);
  assert.equal(await bad.getState(), 'failed');
  assert.deepEqual(await queue.getJobCounts('completed', 'failed'), { completed: 10, failed: 1 });
  await until('the failure was told', () => failures.includes(`${bad.id} try 3`));
  tries.set(bad.id, 98);
  await bad.retry();
  await until('it is good at last', async () => (await bad.getState()) === 'completed');
}));

await test('a job is its worker\'s while the lock lasts, and another\'s after that', () => withQueue('locks', async (queue, its) => {
  await queue.addBulk([{ name: 'kept', data: {} }, { name: 'lapsed', data: {} }]);
  const mine = its.worker(null, { lockDuration: FOR_LONG_MS });
  const theirs = its.worker(null, { lockDuration: FOR_LONG_MS });
  const first = await mine.getNextJob('mine', { block: false });
  const second = await mine.getNextJob('mine', { block: false });
  assert.deepEqual([first.name, second.name], ['kept', 'lapsed']);
  assert.equal(await theirs.getNextJob('theirs', { block: false }), undefined);
  await assert.rejects(first.moveToCompleted('x', 'theirs', false), /lock/i);
  assert.ok(!await first.extendLock('theirs', FOR_LONG_MS).catch(() => 0), 'a foreign lock was extended');
  assert.equal(await second.extendLock('mine', 300), 1);
  const done = [];
  its.worker(async (job) => { done.push(job.name); }, { stalledInterval: 200, lockDuration: 5000 });
  await until('the lapsed job is done by another', () => done.length > 0);
  kept(onceEach(['lapsed'], done)); // the sweep that found this one saw the other too
  await until('it is completed', async () => (await second.getState()) === 'completed');
  await assert.rejects(second.moveToCompleted('late', 'mine', false));
  await first.moveToCompleted('in time', 'mine', false);
  assert.equal((await queue.getJob(first.id)).returnvalue, 'in time');
}));

await test('two workers share one limit', () => withQueue('limited', async (queue, its) => {
  const windowMs = 400;
  const done = [];
  await queue.addBulk(Array.from({ length: 25 }, (_, i) => ({ name: 'l', data: { i } })));
  const started = performance.now();
  for (let i = 0; i < 2; ++i) {
    its.worker(async (job) => { done.push({ id: job.id, ms: performance.now() - started }); },
      { concurrency: 10, limiter: { max: 10, duration: windowMs } });
  }
  await drained(queue);
  assert.equal(new Set(done.map(({ id }) => id)).size, 25);
  assert.equal(done.length, 25);
  assert.ok(done[10].ms >= windowMs - CLOCKS_MS, `the eleventh came after ${done[10].ms} ms`);
  assert.ok(done[20].ms >= 2 * windowMs - CLOCKS_MS, `the twenty-first came after ${done[20].ms} ms`);
}));

await test('a parent runs once, after all its children, and sees what they made', () => withQueue('flow', async (queue, its) => {
  const done = [];
  its.worker(async (job) => {
    done.push(job.name);
    if (job.name !== 'parent') return job.data.n;
    return Object.values(await job.getChildrenValues()).reduce((sum, n) => sum + n, 0);
  }, { concurrency: 6 });
  const children = Array.from({ length: 20 }, (_, n) => ({ name: `child${n}`, queueName: 'flow', data: { n } }));
  const { job } = await its.flow().add({ name: 'parent', queueName: 'flow', children });
  await until('the parent is done', async () => (await job.getState()) === 'completed');
  assert.equal(done.at(-1), 'parent');
  kept(onceEach(['parent', ...children.map(({ name }) => name)], done));
  assert.equal((await queue.getJob(job.id)).returnvalue, 190);
}));

await test('a schedule set by many at once is one schedule, and each of its turns is one job', () => withQueue('schedule', async (queue, its) => {
  const queues = [queue, ...Array.from({ length: 4 }, its.queueToo)];
  await Promise.all(queues.map((each) => each.upsertJobScheduler('tick', { every: 100, limit: 5 }, { name: 'tick' })));
  assert.equal(await queue.getJobSchedulersCount(), 1);
  const done = [];
  for (let i = 0; i < 3; ++i) its.worker(async (job) => { done.push(job.id); });
  await until('five turns', () => done.length >= 5);
  await drained(queue);
  kept(onceEach([...new Set(done)], done));
  assert.equal(done.length, 5);
}));

await test('what is removed is gone: a queue that was obliterated leaves no key', () => withQueue('gone', async (queue) => {
  await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: 'g', data: { i }, opts: i % 3 ? { priority: i % 7 } : { delay: FOR_LONG_MS } })));
  await queue.drain(true);
  assert.deepEqual(await queue.getJobCounts('waiting', 'delayed', 'prioritized'), { waiting: 0, delayed: 0, prioritized: 0 });
  await queue.obliterate({ force: true });
  assert.deepEqual(await withClients(1, ([client]) => client.keys('bull:gone:*')), []);
}));

finish();

// connect-redis under express-session: a visitor keeps one session under concurrent requests, and an ended one is nobody's.
//
// usage: node sessions.mjs PORT
import assert from 'node:assert/strict';
import http from 'node:http';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { createClient } from 'redis';
import { CLOCKS_MS, PATIENCE_MS, broken, finish, kept, port, test, until } from './checks.mjs';

const COOKIE = 'sid';

// A small site: / shows the session, /set?NAME=VALUE keeps something in it, /login gives it a new id, /logout ends it.
function site(store, cookie) {
  const sessions = session({ store, name: COOKIE, secret: 'a secret', resave: false, saveUninitialized: false, cookie });
  return http.createServer((request, response) => sessions(request, response, (error) => {
    const answer = (problem) => {
      response.statusCode = problem ? 500 : 200;
      response.end(JSON.stringify({ id: request.sessionID, kept: request.session?.kept ?? null, problem: problem && String(problem) }));
    };
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (error) return answer(error);
    if (pathname === '/set') request.session.kept = { ...request.session.kept, ...Object.fromEntries(searchParams) };
    if (pathname === '/login') return request.session.regenerate(answer);
    if (pathname === '/logout') return request.session.destroy(answer);
    return answer();
  }));
}

// A visitor, or a browser with many requests under way: it sends the cookie that it was last given.
function visitor(address) {
  let cookie;
  return (path) => new Promise((resolve, reject) => {
    http.get({ ...address, path, headers: cookie ? { cookie } : {} }, (response) => {
      const given = (response.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]);
      if (given.length) [cookie] = given;
      let body = '';
      response.on('data', (part) => { body += part; });
      response.on('end', () => resolve({ ...JSON.parse(body), given: given.length > 0 }));
    }).on('error', reject);
  });
}

async function withSite(options, body) {
  const server = site(options.store, options.cookie);
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }); // a slow machine is no reason to hang up
  const agent = new http.Agent({ keepAlive: true, maxSockets: 100 });
  await new Promise((listening) => { server.listen(0, '127.0.0.1', listening); });
  try {
    return await body(visitor.bind(null, { agent, host: '127.0.0.1', port: server.address().port }));
  } finally {
    agent.destroy();
    const closed = new Promise((done) => { server.close(done); });
    server.closeAllConnections();
    await closed;
  }
}

// All answers of one visitor are of one session with what it once put there.
function oneSession(answers, id, expected) {
  return answers.flatMap((answer) => {
    if (answer.problem) return [answer.problem];
    if (answer.id !== id || answer.given) return [`another session: ${answer.id}`];
    return JSON.stringify(answer.kept) === JSON.stringify(expected) ? [] : [`it holds ${JSON.stringify(answer.kept)}`];
  });
}

const promised = (store, name) => (...words) => new Promise((resolve, reject) => {
  store[name](...words, (error, result) => (error ? reject(error) : resolve(result)));
});

async function suite(label, client) {
  const exists = (key) => client.exists(key);
  const prefix = `sess:${label}:`;
  const store = new RedisStore({ client, prefix, ttl: 3600 });
  const [get, set, touch, destroy, length, ids, all, clear] =
    ['get', 'set', 'touch', 'destroy', 'length', 'ids', 'all', 'clear'].map((name) => promised(store, name));

  await test(`${label}: 40 visitors, 10 requests of each at once: one session each, and their own`, () => withSite({ store }, async (visit) => {
    const visitors = await Promise.all(Array.from({ length: 40 }, async (_, n) => {
      const go = visit();
      const { id } = await go(`/set?n=${n}`);
      return { go, id, n };
    }));
    const answers = await Promise.all(visitors.map(({ go }) => Promise.all(Array.from({ length: 10 }, () => go('/')))));
    kept(visitors.flatMap(({ id, n }, i) => oneSession(answers[i], id, { n: String(n) })));
    assert.equal(await length(), 40);
    assert.deepEqual((await ids()).sort(), visitors.map(({ id }) => id).sort());
    assert.equal(new Set((await all()).map(({ kept: { n } }) => n)).size, 40);
    broken(oneSession(answers[0], visitors[1].id, { n: '1' }));
    broken(oneSession(answers[0], visitors[0].id, { n: '1' }));
    await clear();
    assert.equal(await length(), 0);
    assert.notEqual((await visitors[0].go('/')).id, visitors[0].id, 'a session that was taken away came back');
  }));

  await test(`${label}: what one request kept, the next one sees; a login changes the id; a logout ends it`, () => withSite({ store }, async (visit) => {
    const go = visit();
    const { id } = await go('/set?a=1');
    for (let i = 0; i < 30; ++i) kept(oneSession([await go(`/set?a=${i}`)], id, { a: String(i) }));
    const after = await go('/login');
    assert.notEqual(after.id, id);
    assert.equal(await exists(prefix + id), 0, 'the session from before the login is still there');
    await go('/set?b=2');
    const last = (await go('/')).id;
    assert.equal(await exists(prefix + last), 1);
    await go('/logout');
    assert.equal(await exists(prefix + last), 0);
    assert.equal((await go('/')).kept, null);
  }));

  await test(`${label}: a touch prolongs, no touch brings an ended session back`, async () => {
    const cookie = { originalMaxAge: null };
    await set('touched', { cookie, n: 1 });
    assert.ok(await client.ttl(prefix + 'touched') > 3500);
    const prolonged = { cookie: { expires: new Date(Date.now() + 7_200_000) }, n: 1 };
    await Promise.all(Array.from({ length: 50 }, () => touch('touched', prolonged)));
    assert.ok(await client.ttl(prefix + 'touched') > 7000);
    assert.deepEqual((await get('touched')).n, 1);
    await Promise.all([destroy('touched'), ...Array.from({ length: 50 }, () => touch('touched', prolonged))]);
    assert.equal(await get('touched') ?? null, null);
    assert.equal(await exists(prefix + 'touched'), 0);
  });

  await test(`${label}: a session that nobody comes back to ends, and not before its time`, () => withSite({ store, cookie: { maxAge: 1500 } }, async (visit) => {
    const go = visit();
    const started = performance.now();
    const { id } = await go('/set?a=1');
    await until('the session ends', async () => (await exists(prefix + id)) === 0);
    assert.ok(performance.now() - started >= 1000 - CLOCKS_MS, 'it ended early'); // the store cuts to whole seconds
    const next = await go('/');
    assert.notEqual(next.id, id);
    assert.equal(next.kept, null);
  }));
}

for (const RESP of [2, 3]) {
  const client = createClient({ RESP, socket: { port, connectTimeout: PATIENCE_MS } });
  await client.connect();
  await suite(`RESP${RESP}`, client);
  client.destroy();
}

finish();

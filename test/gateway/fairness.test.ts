/**
 * The limits of one merchant or one unauthenticated address over HTTP (docs/http.md, "How much"): budgets that refill,
 * body limits that apply before authentication, and their documentation.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import t, { type Test } from 'tap';
import { DEFAULT_FAIRNESS, type Fairness } from '../../gateway/fairness/fairness-settings.js';
import { BUDGETS } from '../../gateway/fairness/over-budget.js';
import { TokenBuckets } from '../../gateway/fairness/token-bucket.js';
import type { Gateway } from '../../gateway/gateway.js';
import { ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import { MERCHANT, openGateway } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import {
  accessToken,
  apiKey,
  callMerchantApi,
  type MerchantAnswer,
  type MerchantCall,
} from '../helpers/http/merchant-call.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** The route that creates a list of users. */
const LIST = '/v2/user/createWithList';

/** A gateway on a manual clock with two merchants, and an API key of each. */
interface FairnessSetup {
  readonly gateway: Gateway;
  readonly clock: ManualClock;
  readonly key: string;
  readonly otherKey: string;
}

async function setUpFairness(test: Test, fairness: Partial<Fairness> = {}): Promise<FairnessSetup> {
  const clock = new ManualClock();
  const settings = { fairness: { ...DEFAULT_FAIRNESS, ...fairness } };
  const gateway = await openGateway(test, tempFolder(test), { httpBudgetClock: clock }, settings);
  for (const name of [MERCHANT, 'Basil']) await gateway.accounts.addMerchant(name);
  return { gateway, clock, key: await apiKey(gateway, MERCHANT), otherKey: await apiKey(gateway, 'Basil') };
}

/** Makes the same call several times, one after another. */
async function statusesOf(count: number, makeCall: () => Promise<MerchantAnswer>): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < count; index += 1) statuses.push((await makeCall()).status);
  return statuses;
}

/** The answer to a call that exceeds a budget; `seconds` is when to try again. */
const rateLimited = (budget: string, seconds: string) => {
  return { status: 429, headers: { 'retry-after': seconds }, body: { code: 'rate-limited', budget } };
};

t.test('a bucket refills at its rate up to its burst, and a larger cost makes it negative', (t) => {
  const clock = new ManualClock();
  const buckets = new TokenBuckets({ perSecond: 2, burst: 4 }, clock);
  t.same(
    [1, 1, 1, 1, 1].map((cost) => buckets.take('a', cost)),
    [0, 0, 0, 0, 500],
  );
  t.equal(buckets.take('b', 1), 0, 'each name has its own bucket');
  clock.advance(Seconds(0.5));
  t.equal(buckets.take('a', 1), 0);
  t.equal(buckets.take('a', 9), 2000, 'a full bucket grants a larger cost');
  clock.advance(Seconds(100));
  t.equal(buckets.take('a', 9), 0);
  t.equal(buckets.take('a', 1), 3000, 'the level is minus five');
  buckets.charge('b', 13);
  t.equal(buckets.take('b', 4), 6500, 'charged work makes the level negative too');
  const unlimited = new TokenBuckets({ perSecond: Number.POSITIVE_INFINITY, burst: Number.POSITIVE_INFINITY }, clock);
  t.same([unlimited.take('a', 10 ** 9), unlimited.take('a', 10 ** 9)], [0, 0]);
  t.end();
});

t.test('a merchant with too many requests gets Retry-After, and other merchants are not affected', async (t) => {
  const { gateway, clock, key, otherKey } = await setUpFairness(t, { requests: { perSecond: 0.5, burst: 3 } });
  const create = (by: string) => callMerchantApi(gateway, '/v1/pet', { key: by, body: { name: 'Rex' } });
  t.same(await statusesOf(3, () => create(key)), [201, 201, 201]);
  t.match(await create(key), rateLimited('requests', '2'));
  t.match(await callMerchantApi(gateway, '/v2/user/logout', { key }), rateLimited('requests', '2'), 'for any request');
  t.match(await create(otherKey), { status: 201 });
  t.match(await callMerchantApi(gateway, '/healthz'), { status: 200 });
  clock.advance(Seconds(2));
  t.match(await create(key), { status: 201 });
  t.match(await create(key), rateLimited('requests', '2'));
});

t.test('the default budget is 200 requests at once, then 50 a second', async (t) => {
  const { gateway, clock, key } = await setUpFairness(t);
  const statuses = await Promise.all(
    Array.from({ length: 203 }, () => callMerchantApi(gateway, '/v2/user/logout', { key })),
  );
  const count = (status: number): number => statuses.filter((each) => each.status === status).length;
  t.same([count(200), count(429)], [200, 3]);
  clock.advance(Seconds(1));
  t.same(new Set(await statusesOf(50, () => callMerchantApi(gateway, '/v2/user/logout', { key }))), new Set([200]));
  t.match(await callMerchantApi(gateway, '/v2/user/logout', { key }), rateLimited('requests', '1'));
});

t.test('a merchant’s bodies have a budget of bytes, with and without a Content-Length', async (t) => {
  const { gateway, clock, key } = await setUpFairness(t, { bytes: { perSecond: 1000, burst: 4000 } });
  // Of 4,000 bytes, one body of some 2,900 leaves too few for another.
  const body = JSON.stringify({ name: 'Rex', x: 'x'.repeat(2900) });
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, body }), { status: 201 });
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, body }), rateLimited('bytes', '2'));
  clock.advance(Seconds(2));
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, body, isChunked: true }), { status: 201 });
  t.match(
    await callMerchantApi(gateway, '/v1/pet', { key, body }),
    rateLimited('bytes', '3'),
    'it was counted afterwards',
  );
});

t.test('a long list of users counts as several requests', async (t) => {
  // 1,000 users count as ten requests, so that one of eleven is left.
  const { gateway, key } = await setUpFairness(t, { requests: { perSecond: 1, burst: 11 } });
  t.match(await callMerchantApi(gateway, LIST, { key, body: Array.from({ length: 1000 }, () => ({})) }), {
    status: 200,
  });
  t.same(await statusesOf(2, () => callMerchantApi(gateway, LIST, { key, body: [{}] })), [200, 429]);
});

t.test('hashed or compared passwords have a budget; an operator’s do not count', async (t) => {
  const { gateway, clock, key, otherKey } = await setUpFairness(t, { passwordHashes: { perSecond: 1 / 60, burst: 2 } });
  const add = (by: string, username: string) =>
    callMerchantApi(gateway, LIST, { key: by, body: [{ username, password: 'x' }] });
  t.match(await add(key, 'ada'), { status: 200 });
  t.match(await add(key, 'ada'), { status: 409 }, 'a user name that is in use costs nothing');
  const login = (): Promise<MerchantAnswer> =>
    callMerchantApi(gateway, '/v2/user/login?username=ada&password=x', { key });
  t.match(await login(), { status: 200 });
  t.match(await login(), rateLimited('password-hashes', '60'));
  t.match(await add(key, 'bo'), rateLimited('password-hashes', '60'));
  t.match(
    await callMerchantApi(gateway, LIST, { key, body: [{ username: 'bo' }] }),
    { status: 200 },
    'a user without a password',
  );
  t.match(await add(otherKey, 'cy'), { status: 200 });
  clock.advance(Minutes(1));
  t.match(await login(), { status: 200 });
});

t.test('strangers of an address share a budget; requests with a key do not use it', async (t) => {
  const { gateway, clock, key } = await setUpFairness(t, { strangers: { perSecond: 1, burst: 7 } });
  const token = await accessToken(gateway, key);
  const calls: readonly (readonly [string, MerchantCall])[] = [
    ['/v1/pet', { key: `${key.slice(0, -1)}x`, body: {} }],
    ['/v1/pet', { body: { name: 'Rex' } }],
    ['/v2/pet', { method: 'PUT', token: 'x', body: {} }],
    ['/test_webhook', { body: { access_token: 'x', mac_addr: 'A4:C1:38:F0:E1:D2' } }],
    ['/nothing', {}],
    ['/v1/pet', { method: 'DELETE' }],
    ['/openapi.json', {}],
  ];
  const statuses: number[] = [];
  for (const [route, options] of calls) statuses.push((await callMerchantApi(gateway, route, options)).status);
  t.same(statuses, [401, 401, 401, 401, 404, 405, 200]);
  for (const [route, options] of calls)
    t.match(await callMerchantApi(gateway, route, options), rateLimited('address', '1'), route);
  t.match(await callMerchantApi(gateway, '/healthz'), { status: 200 }, 'probes have a separate budget');
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } }), { status: 201 });
  const change = { id: 1, name: 'Max', photoUrls: [] };
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: change }), { status: 200 });
  const unknown = { access_token: token, mac_addr: 'A4:C1:38:F0:E1:D2' };
  t.match(
    await callMerchantApi(gateway, '/test_webhook', { body: unknown }),
    { status: 404 },
    'and so do requests with a token in the body',
  );
  t.match(
    await callMerchantApi(gateway, '/nothing', { fromAddress: '127.0.0.2' }),
    { status: 404 },
    'another address has a separate budget',
  );
  clock.advance(Seconds(1));
  t.match(await callMerchantApi(gateway, '/nothing'), { status: 404 });
});

/** Sends the head of a request without its body, of `bytes` bytes. Returns the status of the answer. */
function sendHeadOnly(gateway: Gateway, method: string, route: string, bytes: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': String(bytes) };
    const target = { host: '127.0.0.1', port: gateway.httpPort, method, path: route, agent: false as const };
    const sentRequest = request({ ...target, headers }, (answer) => {
      resolve(answer.statusCode);
      sentRequest.destroy();
    });
    sentRequest.on('error', reject);
    sentRequest.flushHeaders();
  });
}

t.test('a body that is too long for its route is refused before authentication', async (t) => {
  const { gateway, key } = await setUpFairness(t);
  const limits = {
    'POST /test_webhook': 1024,
    'POST /oauth/token': 4096,
    'POST /v1/pet': 16_384,
    'PUT /v2/pet': 16_384,
    [`POST ${LIST}`]: 1024 * 1024,
  };
  for (const [operation, bytes] of Object.entries(limits)) {
    const [method = '', route = ''] = operation.split(' ');
    t.equal(await sendHeadOnly(gateway, method, route, bytes + 1), 413, route);
  }
  const list = JSON.stringify([{ x: 'x'.repeat(100_000) }]);
  const unread = await callMerchantApi(gateway, LIST, { body: list });
  t.match(unread, { status: 401, headers: { connection: 'close' } }, 'a stranger’s long body is not read to its end');
  const long = `{"access_token":"x","mac_addr":"${'x'.repeat(1000)}"}`;
  const chunked = await callMerchantApi(gateway, '/test_webhook', { body: long, isChunked: true });
  t.match(chunked, { status: 413, headers: { connection: 'close' }, body: { detail: /1,024 bytes \(1 KiB\)/ } });
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'x'.repeat(256) } }), { status: 201 });
  for (const member of ['name', 'species', 'breed', 'owner_id']) {
    const body = { name: 'Rex', [member]: '\u{1f512}'.repeat(257) };
    const errors = [{ pointer: `/${member}`, detail: 'expected at most 256 characters' }];
    t.match(await callMerchantApi(gateway, '/v1/pet', { key, body }), { status: 400, body: { errors } }, member);
  }
  const user = { username: 'x'.repeat(257) };
  t.match(await callMerchantApi(gateway, LIST, { key, body: [user] }), { status: 400, body: { errors: [{}] } });
});

t.test('data beyond a quota is refused with the quota’s name', async (t) => {
  const quota = { pets: 1, petBytes: 300, users: 1, bytes: 10_000 };
  const { gateway, key } = await setUpFairness(t, { quota });
  const full = (budget: string) => {
    return { status: 429, headers: { 'retry-after': '3600' }, body: { code: 'quota-full', budget } };
  };
  const pet = () => callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex', species: 'd'.repeat(200) } });
  t.match(await pet(), { status: 201 });
  t.match(await pet(), full('pets'));
  const token = await accessToken(gateway, key);
  const change = { id: 1, name: 'x'.repeat(150), photoUrls: [] };
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: change }), {
    status: 413,
    body: { code: 'pet-too-large' },
  });
  t.match(await callMerchantApi(gateway, LIST, { key, body: [{}, {}] }), full('users'));
  t.match(await callMerchantApi(gateway, LIST, { key, body: [{}] }), { status: 200 });
  t.match(
    await callMerchantApi(gateway, LIST, { key, body: [{ password: 'x' }] }),
    full('users'),
    'before anything is hashed',
  );
});

t.test('the first refusals are answered at once, further ones after a second', async (t) => {
  const { gateway, clock, key } = await setUpFairness(t, { requests: { perSecond: 0.001, burst: 1 } });
  const logOut = () => callMerchantApi(gateway, '/v2/user/logout', { key });
  await logOut();
  t.same(new Set(await statusesOf(100, logOut)), new Set([429]));
  let isAnswered = false;
  const last = logOut().then((answer) => {
    isAnswered = true;
    return answer;
  });
  // Another call is answered meanwhile, so this call has arrived.
  while (clock.pending === 0) await callMerchantApi(gateway, '/healthz');
  t.notOk(isAnswered, 'it waits');
  clock.advance(Seconds(1));
  t.match(await last, rateLimited('requests', '1000'));
});

t.test('docs/http.md and the OpenAPI document name every budget', async (t) => {
  const { gateway } = await setUpFairness(t);
  const [, after = ''] = readFileSync(path.join(root, 'docs/http.md'), 'utf8').split('## How much\n');
  const [section = ''] = after.split('\n## ');
  const rows = [...section.matchAll(/^\| `([a-z-]+)` \| (.+?) \|/gm)].map(([, name, words]) => [name, words]);
  // Only operators send stories (series of test webhooks), so that this budget is not in the merchants' document.
  const merchants = Object.entries(BUDGETS).filter(([name]) => name !== 'story-pings');
  t.strictSame(rows, merchants);
  const { components } = (await callMerchantApi(gateway, '/openapi.json')).body as {
    components: { schemas: { Problem: { properties: { budget: { enum: string[] } } } } };
  };
  t.strictSame(components.schemas.Problem.properties.budget.enum, Object.keys(BUDGETS));
});

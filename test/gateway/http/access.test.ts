/**
 * Access to the merchants' interface over HTTP: API keys and tokens, separation of merchants, test webhooks, wrong
 * methods and paths, pages of other origins, and a store that fails (specification, Authentication and Errors;
 * interfaces.md §2). The operations are called as specified in specification.test.ts; bodies are tested in
 * bodies.test.ts.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import { MAX_KEYS_PER_MERCHANT } from '../../../gateway/store/contract/merchants/access-store.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { TESTS_PER_MINUTE } from '../../../gateway/webhooks/webhook-test.js';
import { Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  accessToken,
  apiKey,
  basicAuthorization,
  callMerchantApi,
  type MerchantAnswer,
  type MerchantCall,
} from '../../helpers/http/merchant-call.js';
import { sqliteError } from '../../helpers/store/store-faults.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The header of an error, which is a problem document (RFC 9457). */
const PROBLEM = { 'content-type': /^application\/problem\+json/ };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** A pet, which the specification lets a merchant store; here a sample of a merchant's own object. */
const PET = { name: 'Rex' };
const PET_CHANGE = { id: 1, name: 'Max', photoUrls: [] };

/** Every stored pet, read from the database file, since no operation shows pets. */
function storedPets(folder: string): unknown[] {
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  try {
    return db.prepare('SELECT merchant_id, id, name FROM pet ORDER BY 1, 2').raw().all();
  } finally {
    db.close();
  }
}

async function setUpGateway(t: Test, options: GatewayOptions = {}): Promise<{ gateway: Gateway; key: string }> {
  const gateway = await testGateway(t, options);
  return { gateway, key: await apiKey(gateway, MERCHANT) };
}

/** Every route that requires an API key, with a call that succeeds with one. */
const CALLS_WITH_KEY: readonly (readonly [string, MerchantCall])[] = [
  ['/v1/pet', { body: PET }],
  ['/v2/user/login?username=a&password=b', {}],
  ['/v2/user/logout', {}],
  ['/v2/user/createWithList', { body: [] }],
  ['/v2/user/createWithArray', { body: [] }],
  ['/oauth/token', { body: 'grant_type=client_credentials', headers: FORM }],
];

t.test('a call without a valid API key is refused', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const token = await accessToken(gateway, key);
  const revoked = await gateway.merchants.apiKeys.create(MERCHANT, 'old');
  await gateway.merchants.apiKeys.revoke(revoked.key.publicId);
  const wrongHeaders = [
    undefined,
    'Basic',
    'Basic ====',
    basicAuthorization(''),
    basicAuthorization('x'),
    basicAuthorization(key.slice(0, -1)),
    basicAuthorization(`${key}x`),
    basicAuthorization(key, 'password'),
    basicAuthorization(revoked.text),
    basicAuthorization(key.replace(/^lgk_.{12}/, 'lgk_000000000000')),
    `Basic ${Buffer.from(key).toString('base64')}`,
    `Bearer ${key}`,
    `Bearer ${token}`,
  ];
  for (const [route, options] of CALLS_WITH_KEY)
    for (const authorization of wrongHeaders) {
      const headers = { ...options.headers, ...(authorization !== undefined && { authorization }) };
      const answer = await callMerchantApi(gateway, route, { ...options, headers });
      const expected = { status: 401, headers: { ...PROBLEM, 'www-authenticate': /^Basic realm="lockgate"/ } };
      t.match(answer, { ...expected, body: { status: 401, code: 'unauthorized' } }, `${route} ${authorization}`);
    }
  t.match(await callMerchantApi(gateway, '/v1/pet', { body: '{' }), { status: 401 }, 'refused before the body is read');
  t.match(
    await callMerchantApi(gateway, '/v1/pet', { key, body: PET }),
    { status: 201, body: { id: 1 } },
    'the refused calls created nothing',
  );
  const lowerCaseScheme = { authorization: basicAuthorization(key).replace('Basic', 'basic') };
  t.match(await callMerchantApi(gateway, '/v1/pet', { body: PET, headers: lowerCaseScheme }), { status: 201 });
});

t.test('updating a pet requires a token with the right scope', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  const put = { method: 'PUT', body: PET_CHANGE };
  const testToken = await accessToken(gateway, key, 'webhooks:test');
  const petToken = await accessToken(gateway, key, 'pets:write');
  for (const authorization of [
    undefined,
    'Bearer',
    'Bearer x',
    basicAuthorization(key),
    `Bearer ${key}`,
    `Bearer ${petToken}x`,
  ]) {
    const answer = await callMerchantApi(gateway, '/v2/pet', {
      ...put,
      ...(authorization && { headers: { authorization } }),
    });
    t.match(answer, { status: 401, headers: { ...PROBLEM, 'www-authenticate': /^Bearer / } }, String(authorization));
  }
  const withoutScope = await callMerchantApi(gateway, '/v2/pet', { ...put, token: testToken });
  t.match(withoutScope, { status: 403, headers: { 'www-authenticate': /insufficient_scope/ } });
  t.match(await callMerchantApi(gateway, '/v2/pet', { ...put, token: petToken }), { status: 200 });
});

t.test('tokens are issued to OAuth clients, and expire or are revoked with their key', async (t) => {
  const clock = new ManualClock(Hours(1));
  const { gateway, key } = await setUpGateway(t, { wallClock: clock });
  const requestToken = (body: string, headers: Record<string, string> = FORM) =>
    callMerchantApi(gateway, '/oauth/token', { key, body, headers });
  const unscoped = await requestToken('grant_type=client_credentials');
  t.match(unscoped, { status: 200, headers: { 'cache-control': 'no-store', pragma: 'no-cache' } });
  t.match(unscoped.body, { token_type: 'Bearer', expires_in: 3600, scope: 'pets:write webhooks:test' });
  const scoped = await requestToken('scope=pets%3Awrite&grant_type=client_credentials', {
    'content-type': `${FORM['content-type']}; charset=UTF-8`,
  });
  t.match(scoped.body, { scope: 'pets:write', access_token: /^lgt_[\w-]{43}$/ });
  const refusals: readonly (readonly [string, string])[] = [
    ['', 'invalid_request'],
    ['scope=pets:write', 'invalid_request'],
    ['grant_type=client_credentials&grant_type=client_credentials', 'invalid_request'],
    ['grant_type=password', 'unsupported_grant_type'],
    ['grant_type=client_credentials&scope=pets:read', 'invalid_scope'],
    ['grant_type=client_credentials&scope=pets:write+x', 'invalid_scope'],
  ];
  for (const [body, error] of refusals)
    t.match(
      await requestToken(body),
      { status: 400, headers: PROBLEM, body: { error, error_description: String } },
      body,
    );
  t.match(await callMerchantApi(gateway, '/oauth/token', { key, body: '{}' }), { status: 415 });
  t.match(await callMerchantApi(gateway, '/oauth/token', { method: 'POST' }), {
    status: 401,
    body: { error: 'invalid_client' },
  });

  const { access_token: token } = unscoped.body as { access_token: string };
  await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  const put = () => callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: PET_CHANGE });
  clock.advance(Hours(1) - 1);
  t.match(await put(), { status: 200 });
  clock.advance(1);
  t.match(await put(), { status: 401, headers: { 'www-authenticate': /error="invalid_token"/ } });
  const youngToken = await accessToken(gateway, key);
  const [{ publicId } = { publicId: '' }] = await gateway.merchants.apiKeys.list(MERCHANT);
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token: youngToken, body: PET_CHANGE }), {
    status: 200,
  });
  await gateway.merchants.apiKeys.revoke(publicId);
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token: youngToken, body: PET_CHANGE }), {
    status: 401,
  });
  t.match(
    await callMerchantApi(gateway, '/v1/pet', { key, body: PET }),
    { status: 401 },
    'a revoked key is refused at once',
  );
});

t.test('a key’s last use is stored once a minute; a merchant has at most 100 keys', async (t) => {
  const clock = new ManualClock(Hours(1));
  const { gateway, key } = await setUpGateway(t, { wallClock: clock });
  const lastUsed = async (): Promise<number | null | undefined> => {
    // Writes are done in order, so this one resolves after the last use is written.
    await gateway.store.writeMetadata('test', '1');
    return (await gateway.merchants.apiKeys.list())[0]?.lastUsedAtMs;
  };
  const use = () => callMerchantApi(gateway, '/v2/user/logout', { key });
  t.equal(await lastUsed(), null);
  await use();
  t.equal(await lastUsed(), Hours(1));
  clock.advance(Seconds(59));
  await use();
  t.equal(await lastUsed(), Hours(1));
  clock.advance(Seconds(1));
  await use();
  t.equal(await lastUsed(), Hours(1) + Minutes(1));
  for (let created = 1; created < MAX_KEYS_PER_MERCHANT; created += 1)
    await gateway.merchants.apiKeys.create(MERCHANT, 'more');
  await t.rejects(gateway.merchants.apiKeys.create(MERCHANT, 'one more'), { code: 'too-many-keys' });
});

t.test('another merchant’s pet gets the same answer as one that does not exist', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const key = await apiKey(gateway, MERCHANT);
  const basil = await apiKey(gateway, (await gateway.accounts.addMerchant('Basil')).name);
  for (let created = 0; created < 3; created += 1) await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  const token = await accessToken(gateway, basil);
  const put = (id: number) =>
    callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { ...PET_CHANGE, id } });
  const [othersPet, missingPet] = [await put(2), await put(999)];
  t.match(othersPet, { status: 404 });
  t.equal(othersPet.text, missingPet.text);
  t.same(
    storedPets(folder),
    [1, 2, 3].map((id) => [1, id, 'Rex']),
    'the pet is unchanged',
  );
  t.match(
    (await callMerchantApi(gateway, '/v1/pet', { key: basil, body: PET })).body,
    { id: 1 },
    'each merchant’s ids start at 1',
  );
  t.match(await put(1), { status: 200, body: { id: 1 } });
  const ownersToken = await accessToken(gateway, key);
  const ownersChange = { method: 'PUT', token: ownersToken, body: { ...PET_CHANGE, id: 3 } };
  t.match(await callMerchantApi(gateway, '/v2/pet', ownersChange), { status: 200 }, 'its merchant can change it');
  const list = [{ id: 1, username: 'ada' }];
  for (const each of [key, basil])
    t.match(
      await callMerchantApi(gateway, '/v2/user/createWithList', { key: each, body: list }),
      { status: 200 },
      'the same for users',
    );
});

t.test('POST /test_webhook answers each outcome, and refuses wrong calls', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const mac = testMac();
  await gateway.accounts.addDevice({ mac, merchant: MERCHANT });
  const token = await accessToken(gateway, key, 'webhooks:test');
  const test = (accessText: unknown, macText: unknown) =>
    callMerchantApi(gateway, '/test_webhook', { body: { access_token: accessText, mac_addr: macText } });
  t.match(await test(token, mac), { status: 409, headers: PROBLEM, body: { code: 'no-webhook-url' } });
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url, merchant: MERCHANT });
  for (const spelling of ['A4C138000001', 'a4:c1:38:00:00:01', 'A4-C1-38-00-00-01', 'a4c1.3800.0001']) {
    const answer = await test(token, spelling);
    const delivery = { url_id: 1, origin: new URL(receiver.url).origin, status: 204, error: null };
    t.match(answer, { status: 200, body: { status: 'success', deliveries: [delivery] } }, spelling);
  }
  t.match(receiver.requests[0]?.json, { test: true, mac_addr: 'A4:C1:38:00:00:01' });
  const missing = await callMerchantApi(gateway, '/test_webhook', { body: {} });
  t.match(missing, { status: 400, body: { errors: [{ pointer: '/access_token' }, { pointer: '/mac_addr' }] } });
  for (const address of ['', 'zz', 'A4C13800000', 7])
    t.match(await test(token, address), { status: 400, body: { errors: [{ pointer: '/mac_addr' }] } }, String(address));
  for (const bad of ['', 'x', key, `${token}x`]) t.match(await test(bad, mac), { status: 401, headers: PROBLEM });
  t.match(await test(await accessToken(gateway, key, 'pets:write'), mac), { status: 403 });
  const basil = await apiKey(gateway, (await gateway.accounts.addMerchant('Basil')).name);
  const [othersLock, missingLock] = [
    await test(await accessToken(gateway, basil), mac),
    await test(await accessToken(gateway, basil), testMac(9)),
  ];
  t.match(othersLock, { status: 404 });
  t.equal(othersLock.text.replace('00:00:01', '00:00:09'), missingLock.text, 'the same answer but for the MAC');
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const failed = await test(token, mac);
  t.match(failed, { status: 502, headers: { 'content-type': /^application\/json/ } });
  t.match(failed.body, { status: 'error', deliveries: [{ status: 500, error: String }] });
  let last: MerchantAnswer | undefined;
  // Four under other spellings, and the failed one; refused calls do not count.
  const testsSoFar = 5;
  for (let sent = testsSoFar; sent <= TESTS_PER_MINUTE; sent += 1) last = await test(token, mac);
  t.match(last, { status: 429, headers: { ...PROBLEM, 'retry-after': /^\d+$/ } }, '30 a minute');
});

t.test('unknown methods get 405 and unknown paths 404', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const allowed = { '/v1/pet': 'POST', '/v2/pet': 'PUT', '/v2/user/login': 'GET', '/test_webhook': 'POST' };
  for (const [route, allow] of Object.entries({ ...allowed, '/oauth/token': 'POST', '/healthz': 'GET, HEAD' }))
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']) {
      if (allow.split(', ').includes(method)) continue;
      const answer = await callMerchantApi(gateway, route, {
        method,
        key,
        ...(method === 'POST' && { body: 'x', headers: FORM }),
      });
      t.match(answer, { status: 405, headers: { allow, ...PROBLEM } }, `${method} ${route}`);
    }
  t.match(await callMerchantApi(gateway, '/healthz', { method: 'HEAD' }), { status: 200, text: '' });
  for (const route of ['/v1/pet/', '/V1/pet', '/v1/pets', '/v2/user', '/v1/pet/1', '/%2e%2e/etc', '/console/'])
    t.match(await callMerchantApi(gateway, route, { key, body: PET }), { status: 404, headers: PROBLEM }, route);
  const badEncoding = await callMerchantApi(gateway, '/v2/user/%zz?password=canary');
  t.match(badEncoding, { status: 400, headers: PROBLEM });
  t.notMatch(badEncoding.text, /canary|zz/);
});

t.test('every answer has a unique id, and reveals nothing about the machine', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const answers = [
    await callMerchantApi(gateway, '/v1/pet', { key, body: PET }),
    await callMerchantApi(gateway, '/v1/pet', { body: PET }),
    await callMerchantApi(gateway, '/nothing', { headers: { origin: 'https://example.com' } }),
    await callMerchantApi(gateway, '/healthz', { headers: { 'x-request-id': 'mine' } }),
  ];
  for (const { headers } of answers) {
    t.match(headers, {
      'x-request-id': /^req_[0-9a-f]{20}$/,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    });
    t.same(
      [headers.server, headers['x-powered-by'], headers['access-control-allow-origin']],
      [undefined, undefined, undefined],
    );
  }
  t.equal(new Set(answers.map(({ headers }) => headers['x-request-id'])).size, answers.length);
});

t.test('only pages of the configured origins may call', async (t) => {
  const origin = 'https://shop.example';
  const gateway = await openGateway(t, tempFolder(t), {}, { httpCorsOrigin: [origin] });
  await gateway.accounts.addMerchant(MERCHANT);
  const key = await apiKey(gateway, MERCHANT);
  /** The headers of the request with which a browser asks whether a page of this origin may call (a preflight). */
  const preflight = (from: string) => ({ origin: from, 'access-control-request-method': 'POST' });
  const allowed = await callMerchantApi(gateway, '/v1/pet', { method: 'OPTIONS', headers: preflight(origin) });
  t.match(allowed, { status: 204, headers: { 'access-control-allow-origin': origin, vary: 'Origin' } });
  t.match(allowed.headers['access-control-allow-headers'], /authorization/);
  const answer = await callMerchantApi(gateway, '/v1/pet', { key, body: PET, headers: { origin } });
  t.match(answer, { status: 201, headers: { 'access-control-allow-origin': origin } });
  for (const other of ['https://shop.example.org', 'http://shop.example', 'null']) {
    const refused = await callMerchantApi(gateway, '/v1/pet', { method: 'OPTIONS', headers: preflight(other) });
    t.match(refused, { status: 405 });
    t.equal(refused.headers['access-control-allow-origin'], undefined, other);
  }
});

t.test('while the store can’t write, a call gets 503 with Retry-After, and no answer says why', async (t) => {
  /** What the store's writes fail with; undefined if they succeed. */
  let writeError: Error | undefined;
  const wrapStore = (store: Store): Store => {
    const addPet: Store['people']['addPet'] = async (...args) => {
      if (writeError !== undefined) throw new StoreFailure('write', writeError);
      return await store.people.addPet(...args);
    };
    return withOverrides(store, { people: withOverrides(store.people, { addPet }) });
  };
  const { gateway, key } = await setUpGateway(t, { wrapStore });
  const create = () => callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  writeError = sqliteError('SQLITE_FULL', 'database or disk is full');
  const full = await create();
  t.match(full, { status: 503, headers: { ...PROBLEM, 'retry-after': /^\d+$/ } });
  const reported = waitForEvents(gateway, 'request', 1, ({ status }) => status === 500);
  writeError = new TypeError('canary: pet.name');
  const broken = await create();
  t.match(broken, { status: 500, headers: PROBLEM, body: { detail: 'an internal error occurred' } });
  t.notMatch(full.text + broken.text, /disk|canary|SQL|node:|\.ts|\.js/i);
  const requestId = broken.headers['x-request-id'];
  t.match(
    await reported,
    [{ requestId, route: '/v1/pet', why: /canary/ }],
    'the log has the reason under the request’s id',
  );
  writeError = undefined;
  t.match(await create(), { status: 201 });
});

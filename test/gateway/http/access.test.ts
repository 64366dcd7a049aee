/**
 * The merchants' interface over HTTP: authentication, separation of merchants, limits, and refusals (specification,
 * Authentication and Errors; interfaces.md §2).
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { MAX_LONG_NUMBERS, MAX_VALUES, readJsonBody } from '../../../gateway/http/merchant/json-body.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import { MAX_KEYS_PER_MERCHANT } from '../../../gateway/store/contract/merchants/access-store.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { root } from '../../helpers/house/our-files.js';
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

const PROBLEM = { 'content-type': /^application\/problem\+json/ };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
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
  t.match(
    await callMerchantApi(gateway, '/v1/pet', {
      body: PET,
      headers: { authorization: basicAuthorization(key).replace('B', 'b') },
    }),
    {
      status: 201,
    },
  );
});

t.test('updating a pet requires a token with the right scope', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  const put = { method: 'PUT', body: PET_CHANGE };
  const tests = await accessToken(gateway, key, 'webhooks:test');
  const pets = await accessToken(gateway, key, 'pets:write');
  for (const authorization of [
    undefined,
    'Bearer',
    'Bearer x',
    basicAuthorization(key),
    `Bearer ${key}`,
    `Bearer ${pets}x`,
  ]) {
    const answer = await callMerchantApi(gateway, '/v2/pet', {
      ...put,
      ...(authorization && { headers: { authorization } }),
    });
    t.match(answer, { status: 401, headers: { ...PROBLEM, 'www-authenticate': /^Bearer / } }, String(authorization));
  }
  const lacks = await callMerchantApi(gateway, '/v2/pet', { ...put, token: tests });
  t.match(lacks, { status: 403, headers: { 'www-authenticate': /insufficient_scope/ } });
  t.match(await callMerchantApi(gateway, '/v2/pet', { ...put, token: pets }), { status: 200 });
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
  const young = await accessToken(gateway, key);
  const [{ publicId } = { publicId: '' }] = await gateway.merchants.apiKeys.list(MERCHANT);
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token: young, body: PET_CHANGE }), {
    status: 200,
  });
  await gateway.merchants.apiKeys.revoke(publicId);
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token: young, body: PET_CHANGE }), {
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
  const [theirs, nobodys] = [await put(2), await put(999)];
  t.match(theirs, { status: 404 });
  t.equal(theirs.text, nobodys.text);
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
  const mine = await accessToken(gateway, key);
  t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token: mine, body: { ...PET_CHANGE, id: 3 } }), {
    status: 200,
  });
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
  const test = (access: unknown, address: unknown) =>
    callMerchantApi(gateway, '/test_webhook', { body: { access_token: access, mac_addr: address } });
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
  const [theirs, nobodys] = [
    await test(await accessToken(gateway, basil), mac),
    await test(await accessToken(gateway, basil), testMac(9)),
  ];
  t.match(theirs, { status: 404 });
  t.equal(theirs.text.replace('00:00:01', '00:00:09'), nobodys.text);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const failed = await test(token, mac);
  t.match(failed, { status: 502, headers: { 'content-type': /^application\/json/ } });
  t.match(failed.body, { status: 'error', deliveries: [{ status: 500, error: String }] });
  let last: MerchantAnswer | undefined;
  for (let asked = 5; asked <= 30; asked += 1) last = await test(token, mac);
  t.match(last, { status: 429, headers: { ...PROBLEM, 'retry-after': /^\d+$/ } }, '30 a minute');
});

t.test('bodies of a wrong type or size, and invalid JSON, are refused', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const pet = (body: string | Buffer, headers: Record<string, string> = {}) =>
    callMerchantApi(gateway, '/v1/pet', { key, body, headers });
  const good = JSON.stringify(PET);
  for (const type of ['application/json; charset=utf-8', 'application/json;charset=UTF-8', 'Application/JSON'])
    t.match(await pet(good, { 'content-type': type, accept: 'application/xml' }), {
      status: 201,
      headers: { 'content-type': /^application\/json/ },
    });
  const types = [
    'text/html',
    'text/plain; charset=utf-16',
    'application/xml',
    'application/json; charset=iso-8859-1',
    'multipart/form-data',
    'x',
    '',
  ];
  for (const type of [...types, FORM['content-type']])
    t.match(await pet(good, { 'content-type': type }), { status: 415, headers: PROBLEM, body: { status: 415 } }, type);
  t.match(await pet(good, { 'content-encoding': 'gzip' }), { status: 415 });
  const plain = { 'content-type': 'text/plain;charset=UTF-8' };
  t.match(await pet(good, plain), { status: 415 });
  const list = (headers: Record<string, string>) =>
    callMerchantApi(gateway, '/v2/user/createWithList', { key, body: '[]', headers });
  t.match(await list(plain), { status: 200 }, 'some generated clients send plain text');
  t.match(await list({ ...plain, origin: 'https://example.com' }), { status: 415 }, 'a page of another origin may not');
  t.match(await callMerchantApi(gateway, '/v1/pet', { key, method: 'POST' }), { status: 400 }, 'an empty body');
  const broken = ['', ' ', '{', '{"name":}', "{'name':'x'}", 'name=Rex', '\u0000', `${good}x`, '{"name":"Rex",}'];
  for (const body of [...broken, `{"name":${good}`, `${good}1e999999999`])
    t.match(await pet(body), { status: 400, headers: PROBLEM, body: { status: 400 } }, JSON.stringify(body));
  t.match(await pet(Buffer.from('{"name":"\xff"}', 'latin1')), { status: 400, body: { detail: /UTF-8/ } });
  const members = ['[]', '1', 'null', '"x"', '{"name":""}', '{"name":1}', '{}', '{"name":"a","species":[]}'];
  for (const body of [...members, '{"name":"\\udc00"}', '{"name":"a","owner":[]}', '{"__proto__":{"name":"a"}}'])
    t.match(await pet(body), { status: 400, body: { errors: [{ pointer: String, detail: String }] } }, body);
  const users = (body: string) => callMerchantApi(gateway, '/v2/user/createWithList', { key, body });
  const nested = (depth: number): string => `[{"x":${'['.repeat(depth)}${']'.repeat(depth)}}]`;
  t.match(await users(nested(500_000)), { status: 400, body: { detail: /64 levels deep/ } });
  t.match(await pet(nested(500_000)), { status: 413 }, 'refused by its size, before its nesting is checked');
  const wide = JSON.stringify({
    username: 'wide',
    ...Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`m${n}`, n])),
  });
  t.match(await users(`[${wide}]`), { status: 200 }, '30,000 unknown members');
  const mebibyte = 1024 * 1024;
  const fill = (size: number, head: string, tail: string) => head + 'x'.repeat(size - head.length - tail.length) + tail;
  const [inArray, scoped] = [['[{"x":"', '"}]'] as const, ['{"name":"Rex","x":"', '"}'] as const];
  t.match(await users(fill(mebibyte, ...inArray)), { status: 200 });
  t.match(await users(fill(mebibyte + 1, ...inArray)), {
    status: 413,
    headers: PROBLEM,
    body: { detail: /1,048,576 bytes \(1 MiB\)/ },
  });
  t.match(await pet(fill(16_384, ...scoped)), { status: 201 });
  t.match(await pet(fill(16_385, ...scoped)), { status: 413, body: { detail: /16,384 bytes \(16 KiB\)/ } });
  t.match(await pet(`{"name":"a","owner_id":"1","owner":{"id":"2"}}`), {
    status: 400,
    body: { errors: [{ pointer: '/owner/id' }] },
  });
  for (const owner of [
    '"owner":{"id":"1","name":"Ada"}',
    '"owner_id":"1","owner":{"id":"1"}',
    '"owner_id":"1","owner":{}',
  ])
    t.match(await pet(`{"name":"a",${owner}}`), { status: 201, body: { owner_id: '1' } }, owner);
});

t.test('the number of values in a body is limited', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const users = (body: string) => callMerchantApi(gateway, '/v2/user/createWithList', { key, body });
  // Three brackets count, and one comma less than there are items.
  const items = (count: number) => `[{"x":[${'1e9,'.repeat(count - 1)}1e9]}]`;
  t.match(await users(items(MAX_VALUES - 2)), { status: 200 });
  t.match(await users(items(MAX_VALUES - 1)), {
    status: 413,
    headers: PROBLEM,
    body: { code: 'too-many-values', detail: /32,768 values/ },
  });
  const long = (count: number) => `[{"x":[${'1e18,'.repeat(count - 1)}1e18]}]`;
  t.match(await users(long(MAX_LONG_NUMBERS)), { status: 200 });
  t.match(await users(long(MAX_LONG_NUMBERS + 1)), { status: 413, body: { detail: /4,096 numbers/ } });
});

t.test('README.md and docs/http.md document the limits of a body', (t) => {
  const [values, numbers] = [MAX_VALUES, MAX_LONG_NUMBERS].map((most) => most.toLocaleString('en'));
  const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8').replaceAll(/\s+/g, ' ');
  t.ok(textOf('README.md').includes(`1 MiB and ${values} values a body`), 'README.md');
  t.ok(textOf('docs/http.md').includes(` ${values} values (`), 'docs/http.md');
  t.ok(textOf('docs/http.md').includes(` ${numbers} numbers of over 15 digits`));
  t.end();
});

t.test('numbers are read exactly, and a long list of them fast enough', async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['[1,-1,0.5,1e2]', [1, -1, 0.5, 100]],
    ['[9007199254740991,9007199254740992]', [9007199254740991, 9007199254740992n]],
    ['{"e":1,"a1e":"12345678901234567890","b":true}', { e: 1, a1e: '12345678901234567890', b: true }],
    ['["\\"1e5","\\\\",1e5]', ['"1e5', '\\', 100000]],
    ['[0.1234567890123456789]', [0.12345678901234568]],
    ['{"a":1e0,"a":2}', { a: 2 }],
    ['{"__proto__":1e0,"a":["x\\\\",1e0]}', JSON.parse('{"__proto__":1,"a":["x\\\\",1]}')],
  ];
  for (const [text, value] of cases) t.same(readJsonBody(Buffer.from(text)), value, text);
  for (const text of [
    '[01e1]',
    '[1e]',
    '[.5e1]',
    '[1e1',
    '[123456789012345678x]',
    '{1e1:2}',
    '[1e1-2]',
    '[012345678901234567]',
  ])
    t.throws(() => readJsonBody(Buffer.from(text)), { code: 'input-json' }, text);
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
  for (const route of ['/', '/v1/pet/', '/V1/pet', '/v1/pets', '/v2/user', '/v1/pet/1', '/%2e%2e/etc', '/console/'])
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
      'content-security-policy': /frame-ancestors 'none'/,
      'referrer-policy': 'no-referrer',
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
  const asks = (from: string) => ({ origin: from, 'access-control-request-method': 'POST' });
  const may = await callMerchantApi(gateway, '/v1/pet', { method: 'OPTIONS', headers: asks(origin) });
  t.match(may, { status: 204, headers: { 'access-control-allow-origin': origin, vary: 'Origin' } });
  t.match(may.headers['access-control-allow-headers'], /authorization/);
  const answer = await callMerchantApi(gateway, '/v1/pet', { key, body: PET, headers: { origin } });
  t.match(answer, { status: 201, headers: { 'access-control-allow-origin': origin } });
  for (const other of ['https://shop.example.org', 'http://shop.example', 'null']) {
    const not = await callMerchantApi(gateway, '/v1/pet', { method: 'OPTIONS', headers: asks(other) });
    t.match(not, { status: 405 });
    t.equal(not.headers['access-control-allow-origin'], undefined, other);
  }
});

t.test('a client that hangs up while its list of users is being added adds none', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const list = (letter: string, length: number) =>
    Array.from({ length }, (_, n) => ({ username: `${letter}${n}`, password: 'x' }));
  const body = JSON.stringify(list('a', 10));
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const answered = new Promise((resolve) => gateway.events.once('request', resolve));
  const head = ['POST /v2/user/createWithList HTTP/1.1', 'host: a', `authorization: ${basicAuthorization(key)}`];
  const rest = ['content-type: application/json', `content-length: ${body.length}`, '', body];
  await new Promise<void>((resolve) => socket.write([...head, ...rest].join('\r\n'), () => resolve()));
  await callMerchantApi(gateway, '/healthz');
  socket.destroy();
  await answered;
  // A longer list is hashed in alternation with the first one, and so finishes after it.
  t.match(await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: list('b', 14) }), { status: 200 });
  const users = await gateway.store.people.listUsers({ merchant: MERCHANT, afterId: null, limit: 99 });
  t.same(
    users.map(({ username }) => username?.[0]),
    new Array(14).fill('b'),
  );
});

t.test('while the store can’t write, a call gets 503 with Retry-After and no reason', async (t) => {
  let disk: Error | undefined;
  const wrapStore = (store: Store): Store => {
    const addPet: Store['people']['addPet'] = async (...args) => {
      if (disk !== undefined) throw new StoreFailure('write', disk);
      return await store.people.addPet(...args);
    };
    return withOverrides(store, { people: withOverrides(store.people, { addPet }) });
  };
  const { gateway, key } = await setUpGateway(t, { wrapStore });
  const create = () => callMerchantApi(gateway, '/v1/pet', { key, body: PET });
  disk = sqliteError('SQLITE_FULL', 'database or disk is full');
  const full = await create();
  t.match(full, { status: 503, headers: { ...PROBLEM, 'retry-after': /^\d+$/ } });
  const reported = waitForEvents(gateway, 'request', 1, ({ status }) => status === 500);
  disk = new TypeError('canary: pet.name');
  const broken = await create();
  t.match(broken, { status: 500, headers: PROBLEM, body: { detail: 'an internal error occurred' } });
  t.notMatch(full.text + broken.text, /disk|canary|SQL|node:|\.ts|\.js/i);
  const requestId = broken.headers['x-request-id'];
  t.match(
    await reported,
    [{ requestId, route: '/v1/pet', why: /canary/ }],
    'the log has the reason under the request’s id',
  );
  disk = undefined;
  t.match(await create(), { status: 201 });
});

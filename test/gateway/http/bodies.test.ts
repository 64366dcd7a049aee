/**
 * Bodies of requests to the merchants' port: wrong types and sizes, the limits on values, exact numbers, and a client
 * that disconnects (specification, Errors; interfaces.md §2).
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { MAX_LONG_NUMBERS, MAX_VALUES, readJsonBody } from '../../../gateway/http/merchant/json-body.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { apiKey, basicAuthorization, callMerchantApi } from '../../helpers/http/merchant-call.js';

/** The header of an error, which is a problem document (RFC 9457). */
const PROBLEM = { 'content-type': /^application\/problem\+json/ };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const PET = { name: 'Rex' };

async function setUpGateway(t: Test, options: GatewayOptions = {}): Promise<{ gateway: Gateway; key: string }> {
  const gateway = await testGateway(t, options);
  return { gateway, key: await apiKey(gateway, MERCHANT) };
}

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
  const wrongPets = ['[]', '1', 'null', '"x"', '{"name":""}', '{"name":1}', '{}', '{"name":"a","species":[]}'];
  for (const body of [...wrongPets, '{"name":"\\udc00"}', '{"name":"a","owner":[]}', '{"__proto__":{"name":"a"}}'])
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
  /** A body of this size in bytes: these texts with a filling between them. */
  const fill = (size: number, head: string, tail: string) => head + 'x'.repeat(size - head.length - tail.length) + tail;
  const [userList, petBody] = [['[{"x":"', '"}]'] as const, ['{"name":"Rex","x":"', '"}'] as const];
  t.match(await users(fill(mebibyte, ...userList)), { status: 200 });
  t.match(await users(fill(mebibyte + 1, ...userList)), {
    status: 413,
    headers: PROBLEM,
    body: { detail: /1,048,576 bytes \(1 MiB\)/ },
  });
  t.match(await pet(fill(16_384, ...petBody)), { status: 201 });
  t.match(await pet(fill(16_385, ...petBody)), { status: 413, body: { detail: /16,384 bytes \(16 KiB\)/ } });
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
  // Numbers of over 15 digits are read exactly, which takes longer.
  const longNumbers = (count: number) => `[{"x":[${'1e18,'.repeat(count - 1)}1e18]}]`;
  t.match(await users(longNumbers(MAX_LONG_NUMBERS)), { status: 200 });
  t.match(await users(longNumbers(MAX_LONG_NUMBERS + 1)), { status: 413, body: { detail: /4,096 numbers/ } });
});

t.test('the guide and docs/http.md document the limits of a body', (t) => {
  const [values, numbers] = [MAX_VALUES, MAX_LONG_NUMBERS].map((maximum) => maximum.toLocaleString('en'));
  const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8').replaceAll(/\s+/g, ' ');
  t.ok(textOf('docs/guide/call-over-http.md').includes(`1 MiB and ${values} values a body`), 'the guide');
  t.ok(textOf('docs/http.md').includes(` ${values} values (`), 'docs/http.md');
  t.ok(textOf('docs/http.md').includes(` ${numbers} numbers of over 15 digits`));
  t.end();
});

t.test('numbers are read exactly, and numbers that are not valid JSON are refused', async (t) => {
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

t.test('a client that hangs up while its list of users is being added adds none', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const list = (letter: string, length: number) =>
    Array.from({ length }, (_, n) => ({ username: `${letter}${n}`, password: 'x' }));
  const body = JSON.stringify(list('a', 10));
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const answered = new Promise((resolve) => gateway.events.once('request', resolve));
  const request = [
    ...['POST /v2/user/createWithList HTTP/1.1', 'host: a', `authorization: ${basicAuthorization(key)}`],
    ...['content-type: application/json', `content-length: ${body.length}`, '', body],
  ];
  await new Promise<void>((resolve) => socket.write(request.join('\r\n'), () => resolve()));
  // When this later call is answered, the gateway has read the first one.
  await callMerchantApi(gateway, '/healthz');
  socket.destroy();
  await answered;
  // A longer list is hashed in alternation with the first one, and so finishes after it.
  t.match(await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: list('b', 14) }), { status: 200 });
  const users = await gateway.store.people.listUsers({ merchantId: 1, afterId: null, limit: 99 });
  t.same(
    users.map(({ username }) => username?.[0]),
    new Array(14).fill('b'),
  );
});

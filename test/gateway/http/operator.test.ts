/**
 * The operators' interface over HTTP: authentication, secrets, wrong input, and addresses on which it can't listen.
 * `callOperator` sends the gateway's own token if no other is given. Roles are tested in operator-roles.test.ts.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import type { Method } from 'got';
import t from 'tap';
import { exitCodeOf } from '../../../cli/terminal/exit-codes.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { OPERATOR_ROUTES } from '../../../gateway/http/operator/server.js';
import { LockgateError } from '../../../proto/errors.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, openGateway, testGateway } from '../../helpers/gateway/test-gateway.js';
import { apiKey, basicAuthorization } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const PROBLEM = 'application/problem+json';

t.test('a call without the token is refused, and only the file’s owner can read the token', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  t.equal(statSync(path.join(folder, 'operator-token')).mode & 0o777, 0o600);
  t.equal(statSync(path.join(folder, 'key')).mode & 0o777, 0o600);
  for (const token of ['x', `${gateway.operatorToken}x`, gateway.operatorToken.slice(1), ''])
    t.match(await callOperator(gateway, 'GET', '/status', undefined, token), { status: 401, type: PROBLEM });
  t.match(
    await callOperator(gateway, 'GET', '/nothing', undefined, 'x'),
    { status: 401 },
    'unknown paths are not revealed',
  );
  t.match(await callOperator(gateway, 'GET', '/status'), { status: 200, body: { mqtt: { connected: 0 } } });
});

t.test('an address or a folder that can’t be used stops the start with a sentence', async (t) => {
  // 192.0.2.1 is an address for documentation (RFC 5737): no machine has it.
  for (const setting of ['mqttHost', 'httpHost', 'operatorHost']) {
    const start = openGateway(t, tempFolder(t), {}, { [setting]: '192.0.2.1' });
    await t.rejects(start, { code: 'input-address', message: /can't listen on 192\.0\.2\.1:0: / }, setting);
  }
  const file = path.join(tempFolder(t), 'file');
  writeFileSync(file, '');
  for (const data of [file, path.join(file, 'below')])
    await t.rejects(openGateway(t, data), { code: 'input-data', message: /file.* can't be created: E/ }, data);
});

t.test('merchants and users with long names are reached by their names', async (t) => {
  const gateway = await testGateway(t);
  const [merchant, username] = ['m'.repeat(200), 'ü'.repeat(256)];
  const call = async (method: Method, path: string, body?: unknown): Promise<void> => {
    const { status } = await callOperator(gateway, method, path, body);
    t.ok(status === 200 || status === 201, `${method} ${path.slice(0, 30)}: ${status}`);
  };
  await call('POST', '/merchants', { name: merchant });
  await call('POST', '/users', { username, merchant: MERCHANT });
  await call('PATCH', `/users/${encodeURIComponent(username)}`, { merchant: MERCHANT, dashboard: 'staff' });
  await call('DELETE', `/users/${encodeURIComponent(username)}?merchant=${MERCHANT}`);
  await call('POST', `/merchants/${merchant}/close`);
  await call('POST', `/merchants/${merchant}`, { name: 'Short' });
});

t.test('a caller’s mistake is answered with a problem with a code and a sentence', async (t) => {
  const gateway = await testGateway(t);
  type Mistake = readonly [method: Method, path: string, body: unknown, status: number, detail: RegExp];
  const cases: readonly Mistake[] = [
    ['GET', '/nothing', undefined, 404, /nothing at this path/],
    ['POST', '/merchants', {}, 400, /name/],
    ['POST', '/merchants', { name: 7 }, 400, /name|string/],
    ['POST', '/merchants', { name: '   ' }, 400, /1 to 200 characters/],
    ['POST', '/merchants', [], 400, /object/],
    ['POST', '/merchants', { name: 'Amber' }, 409, /already/],
    ['POST', '/devices', { mac: 'zz' }, 400, /12 hex digits/],
    ['POST', '/devices', { mac: 'A4C138F0E1D2', merchant: 'Nobody' }, 404, /no merchant named "Nobody"/],
    ['GET', '/devices/A4C138F0E1D2', undefined, 404, /no device A4:C1:38:F0:E1:D2/],
    ['POST', '/devices/A4C138F0E1D2/rotate-secret', {}, 404, /no device/],
    ['POST', '/webhooks', { url: 'http://a/', headers: { Host: 'b' } }, 400, /Host can't be set/],
  ];
  for (const [method, path, body, status, detail] of cases) {
    const answer = await callOperator(gateway, method, path, body);
    t.match(answer, { status, type: PROBLEM, body: { status, detail } }, `${method} ${path} ${JSON.stringify(body)}`);
  }
});

t.test('a secret is returned once, and never shown again', async (t) => {
  const gateway = await testGateway(t);
  const device = await callOperator(gateway, 'POST', '/devices', { mac: 'A4C138F0E1D2' });
  const headers = { Authorization: 'Bearer merchant-secret' };
  const webhook = await callOperator(gateway, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', headers });
  t.match([device, webhook], [{ status: 201 }, { status: 201 }]);
  const secrets = [device, webhook].map(({ body }) => (body as { secret: string }).secret);
  const answers = await Promise.all(
    ['/devices', '/devices/A4C138F0E1D2', '/webhooks', '/merchants', '/status'].map((path) =>
      callOperator(gateway, 'GET', path),
    ),
  );
  for (const secret of [...secrets, 'merchant-secret']) t.notMatch(JSON.stringify(answers), secret);
});

interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Sends a request with any headers, also those that HTTP clients refuse to send. */
function send(gateway: Gateway, method: string, path: string, headers: Record<string, string>): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const target = { host: '127.0.0.1', port: gateway.operatorPort, method, path: path, agent: false };
    const clientRequest = request({ ...target, headers }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (chunk) => (body += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body }));
    });
    clientRequest.on('error', reject);
    clientRequest.end();
  });
}

t.test('only the token in the Authorization header is accepted, and all refusals are the same', async (t) => {
  const gateway = await testGateway(t);
  const token = gateway.operatorToken;
  const key = await apiKey(gateway, MERCHANT);
  const fromPage = { origin: 'https://evil.example', referer: 'https://evil.example/' };
  type Attempt = readonly [what: string, method: string, path: string, headers: Record<string, string>];
  const attempts: readonly Attempt[] = [
    ['no token', 'GET', '/status', {}],
    ['a wrong token', 'GET', '/status', { authorization: `Bearer ${'x'.repeat(token.length)}` }],
    ['the beginning of the token', 'GET', '/status', { authorization: `Bearer ${token.slice(0, -1)}` }],
    ['the token with a character appended', 'GET', '/status', { authorization: `Bearer ${token}x` }],
    ['two tokens', 'GET', '/status', { authorization: `Bearer x ${token}` }],
    ['no scheme', 'GET', '/status', { authorization: token }],
    ['in the query', 'GET', `/status?token=${token}&access_token=${token}`, {}],
    ['as a cookie', 'GET', '/status', { cookie: `token=${token}` }],
    ['as another header', 'GET', '/status', { 'x-api-key': token, 'proxy-authorization': `Bearer ${token}` }],
    ['as a user', 'GET', '/status', { authorization: basicAuthorization(token) }],
    ['as a password', 'GET', '/status', { authorization: basicAuthorization('operator', token) }],
    ['a merchant’s key', 'GET', '/status', { authorization: `Bearer ${key}` }],
    ['a merchant’s key as a user', 'GET', '/status', { authorization: basicAuthorization(key) }],
    ['another site’s page', 'POST', '/merchants', { ...fromPage, 'content-type': 'text/plain' }],
    ['a browser’s preflight request', 'OPTIONS', '/status', { ...fromPage, 'access-control-request-method': 'GET' }],
    ['a name that leads here (DNS rebinding)', 'GET', '/status', { host: 'evil.example', ...fromPage }],
    ['a caller that claims to be local', 'GET', '/status', { 'x-forwarded-for': '127.0.0.1', host: 'localhost' }],
    ['metrics', 'GET', '/metrics', {}],
    ['health', 'GET', '/readyz', {}],
    ['the document', 'GET', '/openapi.json', {}],
    ['streams', 'GET', '/events', {}],
    ['an unknown path', 'GET', '/no/such/path', {}],
    ...OPERATOR_ROUTES.map(({ method, path }) => [`${method} ${path}`, method, path, {}] as const),
  ];
  const [first, ...others] = await Promise.all(
    attempts.map(async ([what, method, path, headers]) => {
      const answer = await send(gateway, method, path, headers);
      return { what, ...answer, headers: { ...answer.headers, date: undefined } };
    }),
  );
  t.match(first, { status: 401, headers: { 'content-type': PROBLEM, 'www-authenticate': 'Bearer' } });
  for (const { what, ...answer } of others) t.same({ what, ...answer }, { ...first, what }, what);
  t.notOk(
    Object.keys(first?.headers ?? {}).some((name) => name.startsWith('access-control')),
    'no web page may read the answer',
  );
  const valid = { authorization: `bearer   ${token}` };
  t.match(await send(gateway, 'GET', '/status', { ...valid, host: 'gateway.example' }), { status: 200 });
  t.match(await send(gateway, 'GET', '/%zz', valid), { status: 400, body: /the path is not valid/ });
  t.match(
    await callOperator(gateway, 'GET', '/audit'),
    { body: { entries: [] } },
    'a refused caller leaves no audit entry',
  );
  // No test can measure this, so it reads the code.
  const code = readFileSync(new URL('../../../../gateway/http/operator/token.ts', import.meta.url), 'utf8');
  t.match(code, /timingSafeEqual\(hashOf\(sentToken\), /, 'hashes of equal length are compared in constant time');
});

t.test('null is the same as absent for an optional member', async (t) => {
  const gateway = await testGateway(t);
  const mac = 'A4C138F0E1D2';
  t.match(await callOperator(gateway, 'POST', '/devices', { mac, merchant: null, simulated: null }), { status: 201 });
  const command = { macs: [mac], merchant: null, all: null, type: 'unlock', parameters: null, not_before: null };
  t.match(await callOperator(gateway, 'POST', '/commands', command), { status: 201 });
  t.match(await callOperator(gateway, 'POST', '/users', { username: 'ada', password: null, email: null }), {
    status: 201,
  });
  t.match(
    await callOperator(gateway, 'POST', '/users', { username: null }),
    { status: 400 },
    'but not for a required member',
  );
});

t.test('the error for wrong input names each member and what was expected', async (t) => {
  const gateway = await testGateway(t);
  const users = { username: 'ada', password: 'canary-1' };
  type Mistake = readonly [method: Method, path: string, body: unknown, code: string, pointer: string, detail: RegExp];
  const cases: readonly Mistake[] = [
    ['POST', '/merchants', {}, 'input-body', '/name', /^it is missing$/],
    ['POST', '/merchants', { name: 7 }, 'input-body', '/name', /^expected a string$/],
    ['POST', '/merchants', { name: '' }, 'input-body', '/name', /not empty/],
    ['POST', '/merchants', { name: 'x'.repeat(201) }, 'input-body', '/name', /at most 200 characters/],
    ['POST', '/merchants', { name: 'x', nmae: 'y' }, 'input-body', '/nmae', /no such member/],
    ['POST', '/merchants', 'x', 'input-body', '', /^expected an object$/],
    ['POST', '/merchants', undefined, 'input-body', '', /^expected an object$/],
    ['POST', '/users', { ...users, password: [users.password] }, 'input-body', '/password', /^expected a string$/],
    [
      'POST',
      '/devices',
      { mac: 'A4C138F0E1D2', simulated: 'no' },
      'input-body',
      '/simulated',
      /^expected true or false/,
    ],
    ['POST', '/devices/import', { devices: [{ mac: 7 }] }, 'input-body', '/devices/0/mac', /^expected a string$/],
    ['POST', '/webhooks/1', { state: 'off' }, 'input-body', '/state', /^expected active, disabled$/],
    ['POST', '/webhooks/1', { set_headers: { 'a/b': 1 } }, 'input-body', '/set_headers/a~1b', /^expected a string$/],
    ['POST', '/notices/read', { ids: [0] }, 'input-body', '/ids/0', /^expected a number, 1 or more$/],
    [
      'POST',
      '/devices/A4C138F0E1D2/rotate-secret',
      { keep_old_seconds: -1 },
      'input-body',
      '/keep_old_seconds',
      /0 or/,
    ],
    ['GET', '/audit?limit=0', undefined, 'input-query', '/limit', /^limit is "0": expected a number, 1 to 500$/],
    ['GET', '/audit?limit=1&limit=2', undefined, 'input-query', '/limit', /^limit is \["1","2"\]: expected/],
    ['GET', '/notices?kind=x', undefined, 'input-query', '/kind', /^kind is "x": expected url-disabled, circuit-open/],
    ['GET', '/notices?knd=x', undefined, 'input-query', '/knd', /no "knd" here: expected unread, kind, since/],
    ['GET', '/status?x=1', undefined, 'input-query', '/x', /no "x" here: expected nothing/],
    ['GET', '/trace?until=1&mac=x&mc=y', undefined, 'input-query', '/mc', /expected mac, since, until/],
    ['GET', '/deliveries?mac=x&mac=y', undefined, 'input-query', '/mac', /expected a string/],
  ];
  for (const [method, path, body, code, pointer, detail] of cases) {
    const answer = await callOperator(gateway, method, path, body);
    const errors = [{ pointer, detail }];
    t.match(
      answer,
      { status: 400, type: PROBLEM, body: { code, errors } },
      `${method} ${path} ${JSON.stringify(body)}`,
    );
    t.notMatch(JSON.stringify(answer.body), /canary/, 'the error does not quote the body');
    t.equal(exitCodeOf(new LockgateError(code, '')), 2, 'the command line exits with the code for wrong input');
  }
});

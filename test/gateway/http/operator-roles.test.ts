/**
 * Operators' named tokens (interfaces.md §4), each with a role: every route of the operators' interface with every
 * role, and how tokens are created, expire, are revoked and are named in the audit log. `callOperator` without a token
 * uses the gateway's own, which may do everything.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import got, { type Method } from 'got';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { DOCUMENTED_ROUTES } from '../../../gateway/http/operator/server.js';
import {
  MAX_OPERATOR_TOKENS,
  MAX_REVOKED_TOKENS,
  OPERATOR_ROLES,
  type OperatorRole,
} from '../../../gateway/store/contract/operators/operator-token-store.js';
import { Days, ManualClock, systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { openGateway, testGateway } from '../../helpers/gateway/test-gateway.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The roles that may call these routes, from interfaces.md §4 and not from the code. */
const ALLOWED: Readonly<Record<string, readonly OperatorRole[]>> = {
  'GET /metrics': ['metrics', 'read', 'operate', 'admin'],
  'GET /backup': ['admin'],
  'GET /config': ['admin'],
  'POST /console/links': ['read', 'operate', 'admin'],
  'GET /trace': ['admin'],
};

/** The first parts of the paths at which the role `operate` may make changes. */
const OPERATE_PATHS = new Set(['commands', 'devices', 'webhooks', 'deliveries', 'events', 'users', 'invitations']);

/** Whether a role may call a route, by interfaces.md §4. */
function mayCall(role: OperatorRole, method: string, where: string): boolean {
  const allowed = ALLOWED[`${method} ${where}`];
  if (allowed !== undefined) return allowed.includes(role);
  if (method === 'GET') return role !== 'metrics';
  return role === 'admin' || (role === 'operate' && OPERATE_PATHS.has(where.split('/')[1] ?? ''));
}

/** Creates a token, by default named as its role. */
async function makeToken(gateway: Gateway, role: OperatorRole, name: string = role): Promise<string> {
  const { status, body } = await callOperator(gateway, 'POST', '/tokens', { name, role });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return (body as { token: string }).token;
}

/** The status and error code of a call; a stream is not read to its end. */
async function statusOf(gateway: Gateway, method: string, where: string, token: string): Promise<[number, string]> {
  const stream = got.stream(`http://127.0.0.1:${gateway.operatorPort}${where}`, {
    method: method as Method,
    headers: { authorization: `Bearer ${token}` },
    throwHttpErrors: false,
    retry: { limit: 0 },
    ...(method !== 'GET' && { json: {} }),
  });
  return await new Promise((resolve, reject) => {
    stream.on('error', reject);
    stream.on('response', ({ statusCode }: { statusCode: number }) => {
      if (statusCode < 400) {
        resolve([statusCode, '']);
        stream.destroy();
        return;
      }
      let text = '';
      stream.on('data', (chunk) => {
        text += String(chunk);
      });
      stream.on('end', () => resolve([statusCode, (JSON.parse(text) as { code?: string }).code ?? '']));
    });
  });
}

t.test('a call that its token’s role does not allow gets 403, on every route and with every role', async (t) => {
  const gateway = await testGateway(t);
  for (const role of OPERATOR_ROLES) {
    const token = await makeToken(gateway, role);
    for (const { method, path: route } of DOCUMENTED_ROUTES) {
      const where = route.replace(':mac', 'A4C138F0E1D9').replace(':id', '999').replace(':name', 'nobody');
      const [status, code] = await statusOf(gateway, method, where, token);
      const isRefused = status === 403 && code === 'insufficient-role';
      t.equal(isRefused, !mayCall(role, method, route), `${role}: ${method} ${route}: ${status}`);
      t.not(status, 401, `${role}: ${method} ${route}`);
    }
  }
  t.match(await statusOf(gateway, 'GET', '/healthz', 'lgo_x'), [401], 'an unknown token is refused everywhere');
});

t.test('a token is created with a role and an expiry, shown once, and named in the audit log', async (t) => {
  const folder = tempFolder(t);
  let nowMs = Date.UTC(2026, 10, 20);
  const machine = { wall: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const gateway = await openGateway(t, folder, { machine });
  const terms = { name: 'ada', role: 'operate', expires_at: '2026-11-21T00:00:00Z' };
  const made = await callOperator(gateway, 'POST', '/tokens', terms);
  t.match(made, { status: 201, body: { ...terms, expires_at: '2026-11-21T00:00:00.000Z', last_used_at: null } });
  const { token } = made.body as { token: string };
  t.match(token, /^lgo_[\w-]{43}$/);
  const add = { username: 'bo', merchant: 'Nobody' };
  t.match(await callOperator(gateway, 'POST', '/users', add, token), { status: 404 });
  t.match(await callOperator(gateway, 'POST', '/merchants', { name: 'Amber' }, token), { status: 403 });
  const { body } = await callOperator(gateway, 'GET', '/audit');
  t.match(body, {
    entries: [
      { action: 'merchant.add', outcome: 'refused', code: 'insufficient-role', token: 'ada' },
      { action: 'user.add', token: 'ada', actor: 'operator' },
      { action: 'token.create', object: 'ada', after: { role: 'operate' }, token: /^[0-9a-f]{8}$/ },
    ],
  });
  const list = async () => ((await callOperator(gateway, 'GET', '/tokens')).body as { tokens: unknown[] }).tokens;
  t.match(await list(), [{ name: 'ada', state: 'active', last_used_at: '2026-11-20T00:00:00.000Z' }]);
  t.notMatch(JSON.stringify([await list(), body]), token);
  nowMs += Days(1);
  const expired = await callOperator(gateway, 'GET', '/merchants', undefined, token);
  t.match(expired, { status: 401 });
  t.same(expired.body, (await callOperator(gateway, 'GET', '/merchants', undefined, 'x')).body);
  t.match(await list(), [{ name: 'ada', state: 'expired' }]);
  await gateway.close();
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.notMatch(JSON.stringify(db.prepare('SELECT * FROM operator_token').all()), token);
  db.close();
});

t.test('a revoked token stops working at once, and its streams close', async (t) => {
  const gateway = await testGateway(t);
  const [token, other] = [await makeToken(gateway, 'read', 'map'), await makeToken(gateway, 'read', 'other')];
  const open = async (bearer: string) => {
    const stream = got.stream(`http://127.0.0.1:${gateway.operatorPort}/events`, {
      headers: { authorization: `Bearer ${bearer}` },
    });
    await new Promise((resolve) => stream.once('response', resolve));
    stream.resume();
    return stream;
  };
  const [stream, otherStream] = [await open(token), await open(other)];
  const ended = new Promise((resolve) => stream.once('end', resolve));
  t.match(await callOperator(gateway, 'POST', '/tokens/map/revoke', {}), { status: 200, body: { state: 'revoked' } });
  await ended;
  t.notOk(otherStream.readableEnded, 'another token’s stream stays open');
  otherStream.destroy();
  t.match(await callOperator(gateway, 'GET', '/merchants', undefined, token), { status: 401 });
  t.match(await callOperator(gateway, 'POST', '/tokens/map/revoke', {}), {
    status: 404,
    body: { code: 'no-such-token' },
  });
  await makeToken(gateway, 'admin', 'map');
  t.match(await callOperator(gateway, 'GET', '/tokens'), {
    body: { tokens: [{ state: 'revoked' }, { name: 'other' }, { name: 'map', role: 'admin', state: 'active' }] },
  });
});

t.test('a stream closes when its token expires', async (t) => {
  const gateway = await testGateway(t);
  const { token } = (
    await callOperator(gateway, 'POST', '/tokens', {
      name: 'map',
      role: 'read',
      expires_at: new Date(systemClock.now() + 2_000).toISOString(),
    })
  ).body as { token: string };
  const stream = got.stream(`http://127.0.0.1:${gateway.operatorPort}/events`, {
    headers: { authorization: `Bearer ${token}` },
  });
  stream.resume();
  await new Promise((resolve) => stream.once('end', resolve));
  t.match(await callOperator(gateway, 'GET', '/merchants', undefined, token), { status: 401 });
});

t.test('a stream that waits for days for the end of its token adds nothing to its connection each day', async (t) => {
  const wallClock = new ManualClock(Date.parse('2026-11-20T12:00:00Z'));
  const gateway = await testGateway(t, { wallClock });
  const { body } = await callOperator(gateway, 'POST', '/tokens', {
    name: 'map',
    role: 'read',
    expires_at: '2026-12-20T12:00:00Z',
  });
  // Node.js warns of the eleventh listener for the same event.
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', note);
  t.teardown(() => process.off('warning', note));
  const stream = got.stream(`http://127.0.0.1:${gateway.operatorPort}/events`, {
    headers: { authorization: `Bearer ${(body as { token: string }).token}` },
  });
  await new Promise((resolve) => stream.once('response', resolve));
  const ended = new Promise((resolve) => stream.resume().once('end', resolve));
  for (let day = 0; day < 29; day += 1) wallClock.advance(Days(1));
  // Warnings are emitted in a later turn of the event loop.
  await callOperator(gateway, 'GET', '/merchants');
  t.strictSame(warnings, []);
  wallClock.advance(Days(1));
  await ended;
});

// In the audit log the gateway's own token has eight hex digits instead of a name.
t.test('a token’s name is unique, has only plain letters, digits and signs, and is not eight hex digits', async (t) => {
  const gateway = await testGateway(t);
  await makeToken(gateway, 'read', 'map');
  const create = (name: string, role = 'read', expiry?: string) =>
    callOperator(gateway, 'POST', '/tokens', { name, role, ...(expiry !== undefined && { expires_at: expiry }) });
  t.match(await create('map'), { status: 409, body: { code: 'token-exists' } });
  for (const wrong of ['a b', '-x', 'é', 'x'.repeat(61), '0123abcd'])
    t.match(await create(wrong), { status: 400, body: { code: 'input-name' } }, wrong);
  t.match(await create('b', 'owner'), { status: 400, body: { errors: [{ pointer: '/role' }] } });
  t.match(await create('b', 'read', '2020-01-01T00:00:00Z'), { status: 400, body: { code: 'input-expiry' } });
});

t.test('the numbers of valid and of revoked tokens are limited', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  const { operatorTokens } = store;
  const add = (number: number) => {
    const tokenHash = Buffer.from(String(number));
    return operatorTokens.add({ name: `t${number}`, role: 'read', tokenHash, expiresAtMs: null, nowMs: number });
  };
  for (let number = 0; number < MAX_OPERATOR_TOKENS; number += 1) await add(number);
  await t.rejects(add(1_000), { code: 'too-many-tokens' });
  for (let number = 0; number < MAX_REVOKED_TOKENS; number += 1) await operatorTokens.revoke(`t${number}`, number);
  await add(2_000);
  await operatorTokens.revoke('t2000', 2_000);
  const revoked = (await operatorTokens.list()).filter(({ revokedAtMs }) => revokedAtMs !== null);
  t.equal(revoked.length, MAX_REVOKED_TOKENS);
  t.notOk(
    revoked.some(({ name }) => name === 't0'),
    'the token that was revoked first is deleted',
  );
});

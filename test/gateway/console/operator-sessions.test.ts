/**
 * Sessions of the operators' console (console.md, Login): one-time links, the rights of the token that created the
 * link, protection against calls from other sites, and what ends a session. For each refused call there is a call that
 * differs only in the refused part and succeeds.
 */
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { PAGE_CSP } from '../../../gateway/console/pages.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { resetOperatorToken } from '../../../gateway/http/operator/token.js';
import {
  MAX_CONSOLE_LINKS,
  MAX_CONSOLE_SESSIONS,
} from '../../../gateway/store/contract/operators/console-session-store.js';
import { Hours, ManualClock, Minutes, systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { addUser, Dashboard, pageHeaders } from '../../helpers/console/dashboard.js';
import { MERCHANT, openGateway, testGateway } from '../../helpers/gateway/test-gateway.js';
import { StreamClient } from '../../helpers/http/stream-client.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

const NOT_LOGGED_IN = { status: 401, body: { code: 'not-logged-in' } };
const WRONG_LINK = { status: 401, body: { code: 'wrong-link' }, headers: { 'set-cookie': undefined } };

/** Calls the operators' port with the headers of the page. A header given as '' is not sent. */
function callPage(
  gateway: Gateway,
  where: string,
  call: {
    readonly method?: string;
    readonly body?: unknown;
    readonly cookie?: string;
    readonly headers?: Record<string, string>;
  } = {},
): Promise<Answer> {
  const { body, cookie = '', method = body === undefined ? 'GET' : 'POST' } = call;
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  const allHeaders = { ...pageHeaders(gateway.operatorPort, cookie), ...content, ...call.headers };
  const headers = Object.fromEntries(Object.entries(allHeaders).filter(([, value]) => value !== ''));
  return new Promise((resolve, reject) => {
    const target = { host: '127.0.0.1', port: gateway.operatorPort, path: where, method, headers };
    const request = httpRequest({ ...target, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => {
        const isJson = String(answer.headers['content-type']).includes('json');
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: isJson ? JSON.parse(text) : text });
      });
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The one-time token of a new link to the console, created with an operator's token, by default the admin's. */
async function makeLink(gateway: Gateway, token?: string): Promise<string> {
  const { status, body } = await callOperator(gateway, 'POST', '/console/links', undefined, token);
  if (status !== 201) throw new Error(JSON.stringify(body));
  return (body as { token: string }).token;
}

/** Logs in with a link's token. */
const redeem = (gateway: Gateway, token: string, headers: Record<string, string> = {}) =>
  callPage(gateway, '/console/login', { body: { token }, headers });

/** The cookie of a new session, whose link was created with this operator's token. */
async function openSession(gateway: Gateway, token?: string): Promise<string> {
  const { headers } = await redeem(gateway, await makeLink(gateway, token));
  return String(headers['set-cookie']).split(';')[0] ?? '';
}

/** Creates a further operator's token. Its sessions have its role. */
async function makeToken(gateway: Gateway, name: string, role: string, expiresAt?: string): Promise<string> {
  const body = { name, role, ...(expiresAt !== undefined && { expires_at: expiresAt }) };
  return ((await callOperator(gateway, 'POST', '/tokens', body)).body as { token: string }).token;
}

/** Opens the streams of the operators' port that the console's session may read, of both kinds. */
async function openStreams(t: Test, gateway: Gateway, cookie: string): Promise<readonly StreamClient[]> {
  const headers = pageHeaders(gateway.operatorPort, cookie);
  const paths = ['/stream?only=locks', '/events'];
  const streams = await Promise.all(paths.map((path) => StreamClient.open(t, gateway.operatorPort, path, headers)));
  for (const { status } of streams) t.equal(status, 200);
  return streams;
}

/** Resolves when all of the streams have ended. */
const allEnded = (streams: readonly StreamClient[]) => Promise.all(streams.map(({ ended }) => ended));

t.test('the page and its files need no token, everything else does', async (t) => {
  const gateway = await testGateway(t);
  const anonymous = { 'x-lockgate-console': '', origin: '' };
  const get = (where: string, method = 'GET') => callPage(gateway, where, { method, headers: anonymous });
  const page = await get('/');
  t.match(page, { status: 200, headers: { 'content-type': /^text\/html/, 'content-security-policy': PAGE_CSP } });
  const files = [...String(page.body).matchAll(/"(\/console\/[^"]+)"/g)].map(([, file = '']) => file);
  t.ok(files.length > 3);
  for (const file of files) t.match(await get(file), { status: 200, headers: { 'cache-control': /immutable/ } }, file);
  t.match(await get('/console/nothing.js'), { status: 404 });
  const withInvalidCookie = await callPage(gateway, '/', { cookie: `lockgate_operator=lgc_${'x'.repeat(43)}` });
  t.match(withInvalidCookie, { status: 200 }, 'an invalid cookie does not matter');
  for (const where of [
    '/devices',
    '/stream',
    '/console/session',
    '/console/sessions',
    '/m/x',
    '/openapi.json',
    '/metrics',
  ])
    t.match(await get(where), { status: 401 }, where);
  t.match(await get('/', 'POST'), { status: 401 });
  t.match(await get('/console/links', 'POST'), { status: 401 });
});

t.test('a link opens one session, once, within five minutes', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 20, 6));
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder, { wallClock: clock });
  const link = await makeLink(gateway);
  const answer = await redeem(gateway, link);
  t.match(answer, { status: 200, body: { session: { role: 'admin', current: true } } });
  t.match(
    String(answer.headers['set-cookie']),
    /^lockgate_operator=lgc_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  const cookie = String(answer.headers['set-cookie']).split(';')[0] ?? '';
  t.match(await callPage(gateway, '/merchants', { cookie }), { status: 200 });
  t.match(await redeem(gateway, link), WRONG_LINK, 'a second use');
  t.match(await redeem(gateway, `${link.slice(0, -1)}_`), WRONG_LINK, 'another token');
  t.match(await callPage(gateway, '/console/login', { body: {} }), WRONG_LINK);
  t.match(await redeem(gateway, gateway.operatorToken), WRONG_LINK, 'the operator’s token is no link');
  const [lateLink, linkInTime] = [await makeLink(gateway), await makeLink(gateway)];
  clock.advance(Minutes(5) - 1);
  t.match(await redeem(gateway, linkInTime), { status: 200 });
  clock.advance(1);
  t.match(await redeem(gateway, lateLink), WRONG_LINK, 'expired');
  clock.advance(Hours(12) - Minutes(5));
  t.match(await callPage(gateway, '/merchants', { cookie }), NOT_LOGGED_IN, 'a session ends after 12 hours');
  const lastCookie = await openSession(gateway);
  const unusedLink = await makeLink(gateway);
  await gateway.close();
  const file = path.join(folder, 'lockgate.sqlite');
  const db = new SqliteDatabase(file, { readonly: true });
  const linkCount = db.prepare("SELECT count(*) FROM console_session WHERE kind = 'link'").pluck().get();
  t.equal(linkCount, 1, 'used and expired links are deleted');
  // Sessions are found by an index, however many there are: by their token, and by their user.
  for (const query of [
    "SELECT * FROM console_session WHERE token_hash = x'00'",
    "SELECT * FROM console_session WHERE kind = 'user' AND merchant_id = 1 AND user_id = 1 ORDER BY id DESC",
  ])
    t.match(JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${query}`).all()), /SEARCH console_session USING INDEX/);
  db.close();
  const stored = readFileSync(file);
  const withoutPrefix = unusedLink.slice('lgl_'.length);
  t.notOk(stored.includes(withoutPrefix), 'the store has only the hash of a link');
  const session = lastCookie.split('lgc_')[1] ?? '';
  t.equal(session.length, 43);
  t.notOk(stored.includes(session), 'the store has only the hash of a session');
});

t.test('one link more than the maximum ends the oldest one', async (t) => {
  const gateway = await testGateway(t);
  const [oldest, second] = [await makeLink(gateway), await makeLink(gateway)];
  for (let count = 2; count <= MAX_CONSOLE_LINKS; count += 1) await makeLink(gateway);
  t.match(await redeem(gateway, oldest), WRONG_LINK);
  t.match(await redeem(gateway, second), { status: 200 });
});

// The token of one port's session, in the cookie of the other port: both ports have one table of sessions.
t.test('a session opens only the page of its own port', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const tokenIn = (cookie: string) => cookie.split('=')[1] ?? '';
  const operators = await openSession(gateway);
  const merchants = await Dashboard.open(gateway, MERCHANT, 'ada');
  const asMerchant = new Dashboard(gateway, `lockgate_merchant=${tokenIn(operators)}`);
  for (const where of ['/console/session', '/v1/locks', '/console/keys'])
    t.match(await asMerchant.call(where), NOT_LOGGED_IN, `an operator’s session: ${where}`);
  const asOperator = `lockgate_operator=${tokenIn(merchants.cookie)}`;
  for (const where of ['/console/session', '/merchants', '/console/sessions'])
    t.match(await callPage(gateway, where, { cookie: asOperator }), NOT_LOGGED_IN, `a user’s session: ${where}`);
  t.match(await merchants.call('/console/session'), { status: 200 });
  t.match(await callPage(gateway, '/console/session', { cookie: operators }), { status: 200 });
});

// Answers have tokens that are shown once, and the secrets of webhooks.
t.test('no browser keeps, frames or guesses the type of an answer', async (t) => {
  const gateway = await testGateway(t);
  const cookie = await openSession(gateway);
  const answers = {
    data: await callPage(gateway, '/merchants', { cookie }),
    change: await callPage(gateway, '/tokens', { cookie, body: { name: 'map', role: 'read' } }),
    login: await redeem(gateway, await makeLink(gateway)),
    refusal: await callPage(gateway, '/merchants'),
    unknown: await callPage(gateway, '/nothing', { cookie }),
  };
  for (const [name, { headers }] of Object.entries(answers))
    t.match(
      headers,
      {
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      },
      name,
    );
});

t.test('a session has the rights of its token, and ends with it', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 20, 6));
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder, { wallClock: clock });
  await gateway.accounts.addMerchant(MERCHANT);
  const readToken = await makeToken(gateway, 'map', 'read');
  const revokedToken = await makeToken(gateway, 'old', 'operate');
  const expiringToken = await makeToken(gateway, 'short', 'read', new Date(clock.now() + Hours(1)).toISOString());
  const [reader, sessionOfRevoked, sessionOfExpiring] = [
    await openSession(gateway, readToken),
    await openSession(gateway, revokedToken),
    await openSession(gateway, expiringToken),
  ];
  const opened = await redeem(gateway, await makeLink(gateway, expiringToken));
  t.match(String(opened.headers['set-cookie']), /; Max-Age=3600;/, 'the cookie ends with its token');
  t.match(await callPage(gateway, '/merchants', { cookie: reader }), { status: 200 });
  t.match(await callPage(gateway, '/config', { cookie: reader }), { status: 403, body: { code: 'insufficient-role' } });
  t.match(await callPage(gateway, '/merchants', { cookie: reader, body: { name: 'Basil' } }), { status: 403 });
  t.match(
    await callPage(gateway, '/console/links', { cookie: reader, method: 'POST' }),
    { status: 403 },
    'a session can’t create a link',
  );
  t.match(await callPage(gateway, '/merchants', { cookie: sessionOfRevoked }), { status: 200 });
  const linkOfRevoked = await makeLink(gateway, revokedToken);
  await callOperator(gateway, 'POST', '/tokens/old/revoke', {});
  t.match(await callPage(gateway, '/merchants', { cookie: sessionOfRevoked }), NOT_LOGGED_IN, 'the token was revoked');
  const lateSession = String((await redeem(gateway, linkOfRevoked)).headers['set-cookie']).split(';')[0] ?? '';
  t.match(
    await callPage(gateway, '/merchants', { cookie: lateSession }),
    NOT_LOGGED_IN,
    'an unused link of the revoked token opens no valid session',
  );
  t.match(await callPage(gateway, '/merchants', { cookie: sessionOfExpiring }), { status: 200 });
  clock.advance(Hours(1) - Minutes(1));
  const linkOfExpiring = await makeLink(gateway, expiringToken);
  clock.advance(Minutes(1));
  t.match(await redeem(gateway, linkOfExpiring), WRONG_LINK, 'a link of the token that expired opens no session');
  t.match(await callPage(gateway, '/merchants', { cookie: sessionOfExpiring }), NOT_LOGGED_IN, 'the token expired');
  const [admin, oldLink] = [await openSession(gateway), await makeLink(gateway)];
  resetOperatorToken(folder);
  t.match(await callPage(gateway, '/merchants', { cookie: admin }), NOT_LOGGED_IN, 'the token was replaced');
  t.match(await redeem(gateway, oldLink), WRONG_LINK, 'a link of the replaced token is not valid');
  t.match(await callPage(gateway, '/merchants', { cookie: reader }), { status: 200 }, 'another token’s session stays');
});

t.test('only the gateway’s own page can use a session, for reads and changes', async (t) => {
  const gateway = await testGateway(t);
  const cookie = await openSession(gateway);
  const port = gateway.operatorPort;
  const foreignHost = `evil.example:${port}`;
  // An address of this machine, but not the one of the connection.
  const otherAddress = `127.0.0.9:${port}`;
  const refusals: readonly [name: string, headers: Record<string, string>, code: string][] = [
    ['no Origin', { origin: '' }, 'cross-site'],
    ['another origin', { origin: 'https://evil.example' }, 'cross-site'],
    ['the merchants’ port', { origin: `http://127.0.0.1:${gateway.httpPort}` }, 'cross-site'],
    ['no header of the page', { 'x-lockgate-console': '' }, 'cross-site'],
    ['a form of another site', { 'sec-fetch-site': 'same-site' }, 'cross-site'],
    [
      'a host name of a stranger that resolves to this address',
      { host: foreignHost, origin: `http://${foreignHost}` },
      'wrong-host',
    ],
    ['another address', { host: otherAddress, origin: `http://${otherAddress}` }, 'wrong-host'],
  ];
  for (const [name, headers, code] of refusals) {
    const changed = await callPage(gateway, '/merchants', { cookie, headers, body: { name: 'Basil' } });
    t.match(changed, { status: 403, body: { code } }, name);
    t.match(await redeem(gateway, await makeLink(gateway), headers), { status: 403, body: { code } }, `login: ${name}`);
  }
  const fromEvil = { origin: 'https://evil.example' };
  for (const [method, where] of [
    ['PATCH', '/devices/A4C138F0E1D9'],
    ['DELETE', '/console/sessions/1'],
  ] as const) {
    const refused = await callPage(gateway, where, { cookie, method, headers: fromEvil });
    t.match(refused, { status: 403, body: { code: 'cross-site' } }, method);
  }
  t.match(await callPage(gateway, '/merchants', { cookie, headers: { host: foreignHost } }), { status: 403 });
  t.match(await callPage(gateway, '/merchants', { cookie, body: { name: 'Basil' } }), { status: 201 }, 'the page');
  const underDashboardsName = cookie.replace('operator', 'merchant');
  t.match(
    await callPage(gateway, '/merchants', { cookie: underDashboardsName }),
    NOT_LOGGED_IN,
    'a session in the dashboard’s cookie is not read',
  );
  const anonymous = await callPage(gateway, '/merchants');
  t.match(anonymous, NOT_LOGGED_IN);
  t.equal(anonymous.headers['www-authenticate'], undefined);
  const program = await callPage(gateway, '/merchants', { headers: { 'x-lockgate-console': '' } });
  t.equal(program.headers['www-authenticate'], 'Bearer', 'the answer names the scheme that a program needs');
});

t.test('sessions are listed and ended, and their streams with them', async (t) => {
  // The clock stands still, so that no regular check ends a stream: only the end of its session does.
  const gateway = await testGateway(t, { wallClock: new ManualClock(Date.UTC(2026, 10, 20, 6)) });
  const reader = await openSession(gateway, await makeToken(gateway, 'map', 'read'));
  const admin = await openSession(gateway);
  const listOf = async (cookie: string) =>
    ((await callPage(gateway, '/console/sessions', { cookie })).body as { data: { id: number; token: string }[] }).data;
  t.match(await listOf(reader), [{ token: 'map', role: 'read', current: true }], 'a reader sees only its own session');
  const allSessions = await listOf(admin);
  t.equal(allSessions.length, 2, 'an admin sees all');
  const readersId = allSessions.find(({ token }) => token === 'map')?.id;
  const adminsId = allSessions.find(({ token }) => token !== 'map')?.id;
  const streams = await openStreams(t, gateway, reader);
  const end = (cookie: string, id: number | undefined) =>
    callPage(gateway, `/console/sessions/${id}`, { cookie, method: 'DELETE' });
  t.match(await end(reader, adminsId), { status: 404 }, 'a reader can’t end another session');
  t.match(await end(admin, readersId), { status: 204 });
  await allEnded(streams);
  t.match(await callPage(gateway, '/console/session', { cookie: reader }), NOT_LOGGED_IN);
  t.match(await callPage(gateway, '/console/session', { cookie: admin }), { body: { session: { role: 'admin' } } });
  const logout = await callPage(gateway, '/console/logout', { cookie: admin, method: 'POST' });
  t.match(String(logout.headers['set-cookie']), /^lockgate_operator=; Path=\/; Max-Age=0/);
  t.match(await callPage(gateway, '/merchants', { cookie: admin }), NOT_LOGGED_IN);
  t.match(await callOperator(gateway, 'GET', '/console/sessions'), { status: 401 }, 'a token has no session');
  const { body } = await callOperator(gateway, 'GET', '/audit');
  const audit = JSON.stringify(body);
  for (const action of ['console.link', 'session.open', 'session.end']) t.match(audit, action);
  t.notMatch(audit, /lg[cl]_/, 'the audit log has no session and no link');
});

t.test('streams end with the session that opened them, whatever ends it', async (t) => {
  const wallClock = new ManualClock(Date.UTC(2026, 10, 20, 6));
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder, { wallClock });
  const bystander = await openStreams(
    t,
    gateway,
    await openSession(gateway, await makeToken(gateway, 'other', 'read')),
  );
  const admin = await openSession(gateway);
  const reader = async (name: string, life?: number) => {
    const expiresAt = life === undefined ? undefined : new Date(wallClock.now() + life).toISOString();
    return await openSession(gateway, await makeToken(gateway, name, 'read', expiresAt));
  };
  const loggedOut = await reader('logged-out');
  const streams = await openStreams(t, gateway, loggedOut);
  await callPage(gateway, '/console/logout', { cookie: loggedOut, method: 'POST' });
  await allEnded(streams);

  const ofRevoked = await openStreams(t, gateway, await reader('revoked'));
  await callOperator(gateway, 'POST', '/tokens/revoked/revoke', {});
  await allEnded(ofRevoked);

  const ofExpiring = await openStreams(t, gateway, await reader('expiring', Hours(1)));
  wallClock.advance(Hours(1));
  await allEnded(ofExpiring);

  const ofReplaced = await openStreams(t, gateway, admin);
  resetOperatorToken(folder);
  await callPage(gateway, '/merchants');
  await allEnded(ofReplaced);
  for (const stream of bystander) t.notOk(stream.hasEnded, 'the streams of another session go on');
});

t.test('streams end with a session that another gateway with the same store ended', async (t) => {
  const gateway = await testGateway(t);
  const streams = await openStreams(t, gateway, await openSession(gateway));
  const { consoleSessions } = gateway.store;
  const [session] = await consoleSessions.list('operators', systemClock.now());
  await consoleSessions.end(session?.id ?? 0, 'operators');
  await allEnded(streams);
});

t.test('one session more than the maximum ends the oldest, and all of its streams', async (t) => {
  // The clock stands still, so that no regular check ends a stream: only the end of its session does.
  const gateway = await testGateway(t, { wallClock: new ManualClock(Date.UTC(2026, 10, 20, 6)) });
  const oldest = await openSession(gateway);
  const headers = pageHeaders(gateway.operatorPort, oldest);
  const open = (path: string) => StreamClient.open(t, gateway.operatorPort, path, headers);
  const streams = [await open('/stream?only=locks'), await open('/events')];
  for (const { status } of streams) t.equal(status, 200);
  const second = await openSession(gateway);
  const streamOfSecond = await StreamClient.open(
    t,
    gateway.operatorPort,
    '/stream',
    pageHeaders(gateway.operatorPort, second),
  );
  for (let count = 2; count < MAX_CONSOLE_SESSIONS; count += 1) await openSession(gateway);
  t.match(await callPage(gateway, '/merchants', { cookie: oldest }), { status: 200 }, 'the maximum is open');
  await openSession(gateway);
  await Promise.all(streams.map(({ ended }) => ended));
  t.match(await callPage(gateway, '/merchants', { cookie: oldest }), NOT_LOGGED_IN);
  t.match(await callPage(gateway, '/merchants', { cookie: second }), { status: 200 });
  t.notOk(streamOfSecond.hasEnded, 'the stream of the next session goes on');
});

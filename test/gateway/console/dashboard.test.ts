/**
 * Sessions of the merchants' dashboard (a web page): login, cookies, protection against calls from other sites, roles
 * on every operation, API keys, and what ends a session (console.md, Login). `Dashboard` and `logIn` call as the page
 * does, with its cookie and headers; users have the password PASSWORD. For each refused call there is a call that
 * differs only in the refused part and succeeds.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { CONSOLE_ROUTES } from '../../../gateway/http/merchant/console/routes.js';
import { MERCHANT_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { DASHBOARD_ROLES, type DashboardRole } from '../../../gateway/store/contract/merchants/dashboard-roles.js';
import { MAX_CONSOLE_SESSIONS } from '../../../gateway/store/contract/operators/console-session-store.js';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { Hours, ManualClock, Minutes, systemClock } from '../../../proto/clock.js';
import { addUser, cookieOf, Dashboard, logIn, PASSWORD, pageHeaders } from '../../helpers/console/dashboard.js';
import { MERCHANT, openGateway, testGateway, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { basicAuthorization, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../../helpers/http/own-data/calls.js';
import { ownDataSite } from '../../helpers/http/own-data/site.js';
import { StreamClient } from '../../helpers/http/stream-client.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The id of MERCHANT, the first merchant. */
const MERCHANT_ID = 1;
const NOT_LOGGED_IN = { status: 401, body: { code: 'not-logged-in' }, headers: { 'www-authenticate': undefined } };

t.test('a user with a role logs in and out; a user without a role or with a wrong password is refused', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  await addUser(gateway, MERCHANT, 'bo', null);
  const answer = await logIn(gateway, MERCHANT, 'Ada');
  t.match(answer, {
    status: 200,
    body: { session: { merchant: MERCHANT, username: 'ada', role: 'owner', current: true } },
  });
  t.match(
    String(answer.headers['set-cookie']),
    /^lockgate_merchant=lgc_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    'no script can read the cookie, and no other site can send it',
  );
  t.notMatch(answer.text, /lgc_/);
  const page = new Dashboard(gateway, cookieOf(answer));
  t.match(await page.call('/console/session'), { status: 200, body: { session: { username: 'ada' } } });
  const wrong = { status: 401, body: { code: 'wrong-login' }, headers: { 'set-cookie': undefined } };
  t.match(await logIn(gateway, MERCHANT, 'ada', { password: 'wrong' }), wrong);
  t.match(await logIn(gateway, MERCHANT, 'nobody'), wrong);
  t.match(await logIn(gateway, 'No such merchant', 'ada'), wrong);
  t.match(await logIn(gateway, MERCHANT, 'bo'), { status: 403, body: { code: 'no-role' } });
  const logoutAnswer = await page.call('/console/logout', { method: 'POST' });
  t.match(logoutAnswer, { status: 204, headers: { 'set-cookie': [/^lockgate_merchant=; Path=\/; Max-Age=0/] } });
  t.match(await page.call('/console/session'), NOT_LOGGED_IN, 'the cookie is no longer valid');
});

t.test('guesses at a password are limited', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  for (let guess = 0; guess < 10; guess += 1) await logIn(gateway, MERCHANT, 'ada', { password: `${guess}` });
  // Also with the right password.
  t.match(await logIn(gateway, MERCHANT, 'ada'), {
    status: 429,
    headers: { 'retry-after': /^\d+$/ },
    body: { budget: 'login-guesses' },
  });
  // Otherwise the 429 would say which merchants there are.
  for (let guess = 0; guess < 10; guess += 1) t.match(await logIn(gateway, 'No such merchant', 'ada'), { status: 401 });
  t.match(await logIn(gateway, 'No such merchant', 'ada'), { status: 429, body: { budget: 'login-guesses' } });
});

t.test('only the gateway’s own page can use a session, for reads and changes', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const page = await Dashboard.open(gateway, MERCHANT, 'ada');
  const port = gateway.httpPort;
  const change = { method: 'POST', body: { name: 'till' } };
  const refusals: readonly [name: string, headers: Record<string, string>, code: string][] = [
    ['no Origin', { origin: '' }, 'cross-site'],
    ['another origin', { origin: 'https://evil.example' }, 'cross-site'],
    ['another port of this host', { origin: `http://127.0.0.1:${port + 1}` }, 'cross-site'],
    ['another scheme', { origin: `https://127.0.0.1:${port}` }, 'cross-site'],
    ['an opaque origin', { origin: 'null' }, 'cross-site'],
    ['no header of the page', { 'x-lockgate-console': '' }, 'cross-site'],
    ['a form of another site', { 'sec-fetch-site': 'cross-site' }, 'cross-site'],
    [
      'a host name of a stranger that resolves to this address',
      { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
      'wrong-host',
    ],
    [
      'an address that is not that of the connection',
      { host: `127.0.0.9:${port}`, origin: `http://127.0.0.9:${port}` },
      'wrong-host',
    ],
  ];
  for (const [name, headers, code] of refusals)
    t.match(await page.call('/console/keys', { ...change, headers }), { status: 403, body: { code } }, name);
  const fromEvil = { origin: 'https://evil.example' };
  for (const [method, path] of [
    ['PATCH', '/console/keys/x'],
    ['DELETE', '/console/sessions/1'],
  ] as const)
    t.match(
      await page.call(path, { method, headers: fromEvil }),
      { status: 403, body: { code: 'cross-site' } },
      method,
    );
  t.match(await page.call('/console/keys', change), { status: 201 }, 'the page itself');
  const crossSite = { 'sec-fetch-site': 'cross-site' };
  const foreignHost = { host: 'evil.example' };
  t.match(await page.call('/v1/locks', { headers: crossSite }), { status: 403, body: { code: 'cross-site' } });
  t.match(await page.call('/v1/locks', { headers: foreignHost }), { status: 403, body: { code: 'wrong-host' } });
  t.match(await logIn(gateway, MERCHANT, 'ada', { headers: { origin: 'https://evil.example' } }), {
    status: 403,
    headers: { 'set-cookie': undefined },
  });
  const withoutPageHeaders = { headers: { origin: '', 'x-lockgate-console': '' } };
  t.match(await page.call('/v1/locks', withoutPageHeaders), { status: 200 }, 'a read needs no header of the page');
});

t.test(
  'over plain HTTP only the loopback interface has sessions; over HTTPS the cookie is marked secure',
  async (t) => {
    const gateway = await openGateway(
      t,
      tempFolder(t),
      {},
      { trustedProxies: [parseRange('127.0.0.2/32')], consoleHosts: ['locks.example.com'] },
    );
    await gateway.accounts.addMerchant(MERCHANT);
    await addUser(gateway, MERCHANT, 'ada', 'owner');
    const body = { merchant: MERCHANT, username: 'ada', password: PASSWORD };
    const host = 'locks.example.com';
    const forwarded = { 'x-forwarded-for': '198.51.100.7' };
    const remoteHeaders = { host, origin: `http://${host}`, 'x-lockgate-console': '1', ...forwarded };
    // 127.0.0.2 is the trusted proxy.
    const proxied = { fromAddress: '127.0.0.2', body };
    t.match(await callMerchantApi(gateway, '/console/login', { ...proxied, headers: remoteHeaders }), {
      status: 403,
      body: { code: 'insecure', detail: /TLS proxy/ },
    });
    const localName = { ...remoteHeaders, host: 'localhost', origin: 'http://localhost' };
    t.match(
      await callMerchantApi(gateway, '/console/login', { ...proxied, headers: localName }),
      { status: 403, body: { code: 'insecure' } },
      'a Host of this machine does not make a client local',
    );
    const tlsHeaders = { ...remoteHeaders, origin: `https://${host}`, 'x-forwarded-proto': 'https' };
    t.match(
      await callMerchantApi(gateway, '/console/login', { body, headers: tlsHeaders }),
      { status: 403, body: { code: 'insecure' } },
      'a proxy that is not trusted can’t claim HTTPS',
    );
    const answer = await callMerchantApi(gateway, '/console/login', { ...proxied, headers: tlsHeaders });
    t.match(
      String(answer.headers['set-cookie']),
      /^__Host-lockgate_merchant=lgc_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
    const cookie = cookieOf(answer);
    const call = { fromAddress: '127.0.0.2', headers: { ...tlsHeaders, cookie } };
    t.match(await callMerchantApi(gateway, '/console/session', call), { status: 200 });
    const loopbackHeaders = { ...pageHeaders(gateway.httpPort), cookie: cookie.replace('__Host-', '') };
    t.match(
      await callMerchantApi(gateway, '/console/session', { headers: loopbackHeaders }),
      { status: 200 },
      'the same session, over loopback under the cookie’s plain name',
    );
    t.match(
      await callMerchantApi(gateway, '/console/session', { headers: { ...loopbackHeaders, cookie } }),
      NOT_LOGGED_IN,
      'over plain HTTP the cookie named __Host- is ignored',
    );
  },
);

/** The roles that may call the operations with each scope, from console.md and not from the code. */
const MAY_CALL: Readonly<Record<string, readonly DashboardRole[]>> = {
  'locks:read': ['owner', 'staff', 'viewer'],
  'locks:write': ['owner', 'staff'],
  commands: ['owner', 'staff'],
  'webhooks:read': ['owner', 'staff', 'viewer'],
  'webhooks:resend': ['owner', 'staff'],
  'billing:read': ['owner'],
  users: ['owner'],
  spec: [],
};

// OWN_DATA_CALLS has for each operation on a merchant's data a call, its status, and its status for other merchants.
t.test('each operation is open to the roles that may call it, and only for the user’s own merchant', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const pages = new Map<DashboardRole, Dashboard>();
  for (const role of DASHBOARD_ROLES) {
    await addUser(gateway, amber.merchant, `a ${role}`, role);
    pages.set(role, await Dashboard.open(gateway, amber.merchant, `a ${role}`));
  }
  await addUser(gateway, basil.merchant, 'other', 'owner');
  const otherMerchantsPage = await Dashboard.open(gateway, basil.merchant, 'other');
  for (const { method, path, keyScope, scheme } of MERCHANT_ROUTES) {
    const row = OWN_DATA_CALLS[`${method} ${path}`];
    const [callPath, terms] = row?.callFor(amber) ?? [path, {}];
    for (const [role, page] of pages) {
      const { status } = await page.call(callPath, { method, ...terms });
      const name = `${role}: ${method} ${path}`;
      if (row === undefined) {
        // An operation of the specification, such as POST /v1/pet: no session may call it.
        t.ok(status >= 400 && status < 500, `${name} is refused: ${status}`);
        if (scheme === 'api-key') t.equal(status, 403, name);
      } else t.equal(status, MAY_CALL[keyScope]?.includes(role) ? row.status : 403, name);
    }
    if (row === undefined) continue;
    const otherAnswer = await otherMerchantsPage.call(callPath, { method, ...terms });
    t.equal(otherAnswer.status, row.statusForOthers, `another merchant’s owner: ${method} ${path}`);
    t.notMatch(otherAnswer.text, amber.mac);
  }
  // The operations of the dashboard itself. Only owners manage API keys; everything else is for every role.
  for (const { method, path } of CONSOLE_ROUTES.filter((each) => each.isLogin !== true)) {
    const [callPath, name] = [path.replace('{id}', '99999'), `${method} ${path}`];
    const withApiKey = await callMerchantApi(gateway, callPath, { method, key: amber.key });
    t.match(withApiKey, NOT_LOGGED_IN, `${name} is not for API keys`);
    // A logout would end the session that the next calls need.
    if (path === '/console/logout') continue;
    for (const [role, page] of pages) {
      const body = method === 'POST' && path === '/console/keys' ? { body: { name: 'x' } } : {};
      const { status } = await page.call(callPath, { method, ...body });
      const isRefused = path.startsWith('/console/keys') && role !== 'owner';
      t.equal(status === 403, isRefused, `${role}: ${name}: ${status}`);
    }
  }
});

t.test('a dashboard session can’t call the specification’s operations, nor their sessions the dashboard', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const page = await Dashboard.open(gateway, MERCHANT, 'ada');
  t.match(await page.call('/v1/pet', { body: { name: 'Rex' } }), { status: 403 });
  t.match(await page.call('/v2/user/logout'), { status: 403 });
  const query = new URLSearchParams({ username: 'ada', password: PASSWORD });
  const login = await callMerchantApi(gateway, `/v2/user/login?${query}`, { key });
  const apiSession = /lgu_[\w-]+/.exec(login.text)?.[0] ?? '';
  t.not(apiSession, '');
  const pageWithApiSession = new Dashboard(gateway, `lockgate_merchant=${apiSession}`);
  t.match(await pageWithApiSession.call('/console/session'), NOT_LOGGED_IN);
  t.match(await pageWithApiSession.call('/v1/locks'), NOT_LOGGED_IN);
  const dashboardSession = page.cookie.split('=')[1] ?? '';
  t.equal(await gateway.merchants.users.findSession(MERCHANT_ID, dashboardSession), null);
});

t.test('owners create keys with names and scopes, and revoke them; other merchants’ keys are unknown', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const { key: foreign } = await gateway.merchants.apiKeys.create('Basil', 'foreign');
  const audited = waitForEvents(gateway, 'audited', 4);
  const page = await Dashboard.open(gateway, MERCHANT, 'ada');
  const created = await page.call('/console/keys', { body: { name: 'till', scopes: ['locks:read'] } });
  t.match(created, { status: 201, body: { name: 'till', scopes: ['locks:read'], state: 'active', key: /^lgk_/ } });
  const { id, key } = created.body as { id: string; key: string };
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 200 });
  t.match(await callMerchantApi(gateway, '/v1/usage', { key }), { status: 403 });
  const list = await page.call('/console/keys');
  t.match(list.body, { data: [{ id, name: 'till' }] });
  t.notMatch(list.text, /lgk_|foreign/);
  t.match(await page.call(`/console/keys/${foreign.publicId}/revoke`, { method: 'POST' }), { status: 404 });
  const rename = (keyId: string, name: string) =>
    page.call(`/console/keys/${keyId}`, { method: 'PATCH', body: { name } });
  t.match(await rename(id, ' counter '), { status: 200, body: { id, name: 'counter', state: 'active' } });
  t.match((await page.call('/console/keys')).body, { data: [{ id, name: 'counter' }] });
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 200 }, 'a renamed key stays valid');
  t.match(await rename(foreign.publicId, 'mine'), { status: 404 });
  for (const name of ['', '  ', 'x'.repeat(201)]) t.match(await rename(id, name), { status: 400 }, `name ${name}`);
  t.match(await page.call(`/console/keys/${id}/revoke`, { method: 'POST' }), { body: { state: 'revoked' } });
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 401 });
  for (const body of [{ name: '' }, { name: 'x', scopes: ['all'] }, { name: 'x', expires_at: 'soon' }, {}])
    t.match(await page.call('/console/keys', { body }), { status: 400 }, JSON.stringify(body));
  t.strictSame(
    (await audited).map(({ action }) => action),
    ['session.open', 'key.create', 'key.rename', 'key.revoke'],
  );
  // As long as the field on the page allows (dashboard-browser.slow.test.ts).
  const longName = 'é'.repeat(200);
  const long = await page.call('/console/keys', { body: { name: longName } });
  t.match(long, { status: 201, body: { name: longName } });
  const { id: longId } = long.body as { id: string };
  t.match(await rename(longId, longName.replace('é', 'ö')), { status: 200 });
  t.match(await rename(longId, `${longName}é`), { status: 400 }, 'one character more');
  const entries = await gateway.store.audit.list({ limit: 20 });
  for (const entry of entries) t.match(entry, { actor: 'user', user: 'ada', merchant: { name: MERCHANT } });
  t.notMatch(JSON.stringify(entries), /lgc_|lgk_/, 'the audit log has no session and no key');
});

t.test('a session ends when it expires, with its user, role or password, and when a user ends it', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 20, 6));
  const gateway = await testGateway(t, { wallClock: clock });
  await gateway.accounts.addMerchant('Basil');
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  await addUser(gateway, 'Basil', 'eve', 'owner');
  const ids: Record<string, bigint> = {};
  for (const name of ['bo', 'cy', 'di', 'ed']) ids[name] = await addUser(gateway, MERCHANT, name, 'viewer');
  const open = (name: string, merchant = MERCHANT) => Dashboard.open(gateway, merchant, name);
  const [ada, eve] = [await open('ada'), await open('eve', 'Basil')];
  const [bo, cy, di, ed] = [await open('bo'), await open('cy'), await open('di'), await open('ed')];
  const { people } = gateway.store;
  await people.removeUser(MERCHANT_ID, ids.bo ?? 0n);
  t.match(await bo.call('/v1/locks'), NOT_LOGGED_IN, 'removed');
  const absent = { firstName: null, lastName: null, email: null, phone: null, passwordHash: null, userStatus: null };
  const successor = { ...absent, id: ids.bo ?? null, username: 'bea', dashboardRole: 'owner' } as const;
  await people.addUsers(MERCHANT_ID, [successor], clock.now());
  t.match(await bo.call('/v1/locks'), NOT_LOGGED_IN, 'removed, and a new user has its id');
  await people.changeUser(MERCHANT_ID, ids.cy ?? 0n, { dashboardRole: null });
  t.match(await cy.call('/v1/locks'), NOT_LOGGED_IN, 'without a role');
  await people.changeUser(MERCHANT_ID, ids.cy ?? 0n, { dashboardRole: 'viewer' });
  t.match(await cy.call('/v1/locks'), NOT_LOGGED_IN, 'with a role again');
  await people.changeUser(MERCHANT_ID, ids.di ?? 0n, { passwordHash: 'another' });
  t.match(await di.call('/v1/locks'), NOT_LOGGED_IN, 'with a new password');
  await people.changeUser(MERCHANT_ID, ids.ed ?? 0n, { dashboardRole: 'staff' });
  t.match(await ed.call('/console/session'), { body: { session: { role: 'staff' } } }, 'a new role counts at once');

  const listed = (await ada.call('/console/sessions')).body as { data: { id: number; username: string }[] };
  t.strictSame(listed.data.map(({ username }) => username).sort(), ['ada', 'ed'], 'an owner sees all of the merchant');
  t.match(await ed.call('/console/sessions'), { body: { data: [{ username: 'ed', current: true }] } });
  await logIn(gateway, MERCHANT, 'ed', { headers: { 'user-agent': 'x'.repeat(1_000) } });
  const [longest] = ((await ed.call('/console/sessions')).body as { data: { agent: string }[] }).data;
  t.equal(longest?.agent, 'x'.repeat(200), 'a browser’s name is cut');
  const idOf = (name: string) => listed.data.find(({ username }) => username === name)?.id;
  const end = (page: Dashboard, name: string) => page.call(`/console/sessions/${idOf(name)}`, { method: 'DELETE' });
  t.match(await end(ed, 'ada'), { status: 404 }, 'staff can end only their own sessions');
  t.match(await end(eve, 'ada'), { status: 404 }, 'an owner can’t end another merchant’s sessions');
  t.match(await end(ada, 'ed'), { status: 204 });
  t.match(await ed.call('/console/session'), NOT_LOGGED_IN);
  clock.advance(Hours(12) - Minutes(1));
  t.match(await ada.call('/console/session'), { status: 200 });
  clock.advance(Minutes(1));
  t.match(await ada.call('/console/session'), NOT_LOGGED_IN, 'after 12 hours');
});

t.test('users change their password with the present one, and their other sessions end', async (t) => {
  const gateway = await testGateway(t);
  const id = await addUser(gateway, MERCHANT, 'ada', 'viewer');
  await addUser(gateway, MERCHANT, 'bo', 'viewer');
  const open = (name: string) => Dashboard.open(gateway, MERCHANT, name);
  const [page, other, bo] = [await open('ada'), await open('ada'), await open('bo')];
  const change = (body: unknown) => page.call('/console/password', { body });
  const wrong = await change({ present: 'wrong', password: 'new one' });
  t.match(wrong, { status: 403, body: { code: 'wrong-password' } });
  t.match(await other.call('/console/session'), { status: 200 }, 'a refused change ends nothing');
  for (const body of [{ password: 'new one' }, { present: PASSWORD, password: '' }, { present: PASSWORD }])
    t.match(await change(body), { status: 400 }, JSON.stringify(body));
  const crossSite = { body: { present: PASSWORD, password: 'x' }, headers: { origin: 'https://evil.example' } };
  t.match(await page.call('/console/password', crossSite), { status: 403, body: { code: 'cross-site' } });
  const audited = waitForEvents(gateway, 'audited', 1);
  t.match(await change({ present: PASSWORD, password: 'new one' }), { status: 204 });
  t.match(await audited, [{ action: 'user.password', object: String(id), user: 'ada' }]);
  const auditText = JSON.stringify(await gateway.store.audit.list({ limit: 20 }));
  for (const secret of ['new one', PASSWORD]) t.notOk(auditText.includes(secret), 'the audit log has no password');
  t.match(await page.call('/console/session'), { status: 200 }, 'the session that made the change stays');
  t.match(await other.call('/console/session'), NOT_LOGGED_IN, 'the user’s other session has ended');
  t.match(await bo.call('/console/session'), { status: 200 }, 'another user’s session stays');
  t.match(await logIn(gateway, MERCHANT, 'ada'), { status: 401 });
  t.match(await logIn(gateway, MERCHANT, 'ada', { password: 'new one' }), { status: 200 });
});

t.test('guesses at the present password are limited as at a login', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const page = await Dashboard.open(gateway, MERCHANT, 'ada');
  const guess = (present: string) => page.call('/console/password', { body: { present, password: 'mine' } });
  for (let count = 0; count < 10; count += 1) await guess(`${count}`);
  t.match(await guess(PASSWORD), { status: 429, body: { budget: 'login-guesses' } });
  t.match(await page.call('/console/session'), { status: 200 });
});

/** What ends a user's session, and so its stream. */
const SESSION_ENDS: readonly [
  name: string,
  end: (gateway: Gateway, page: Dashboard, userId: bigint) => Promise<unknown>,
][] = [
  ['logout', (_gateway, page) => page.call('/console/logout', { method: 'POST' })],
  ['the user is removed', ({ store }, _page, userId) => store.people.removeUser(MERCHANT_ID, userId)],
  ['the user loses its role', ({ store }, _page, userId) => store.people.changeUser(MERCHANT_ID, userId, NO_ROLE)],
  [
    'the password is changed',
    ({ store }, _page, userId) => store.people.changeUser(MERCHANT_ID, userId, { passwordHash: 'another' }),
  ],
  ['the user opens the maximum of newer sessions', ({ store }, _page, userId) => openSessions(store, userId)],
];
const NO_ROLE = { dashboardRole: null } as const;

/** Adds as many sessions of a user as there may be. */
async function openSessions({ consoleSessions }: Gateway['store'], userId: bigint): Promise<void> {
  const nowMs = systemClock.now();
  const common = { nowMs, expiresAtMs: nowMs + Hours(1), address: '127.0.0.1', agent: null };
  for (let count = 0; count < MAX_CONSOLE_SESSIONS; count += 1)
    await consoleSessions.addForUser(MERCHANT_ID, userId, { ...common, tokenHash: randomBytes(32) });
}

t.test('a stream that a session opened ends with it, whatever ends it', async (t) => {
  const gateway = await testGateway(t);
  const open = async (name: string) => {
    const userId = await addUser(gateway, MERCHANT, name, 'viewer');
    const page = await Dashboard.open(gateway, MERCHANT, name);
    const headers = pageHeaders(gateway.httpPort, page.cookie);
    const stream = await StreamClient.open(t, gateway.httpPort, '/v1/stream', headers);
    t.equal(stream.status, 200);
    await stream.until((event) => event.name === 'snapshot');
    return { userId, page, stream };
  };
  const { stream: otherUsersStream } = await open('other');
  for (const [name, end] of SESSION_ENDS) {
    const { userId, page, stream } = await open(name);
    await end(gateway, page, userId);
    await stream.ended;
    t.match(await page.call('/console/session'), NOT_LOGGED_IN, name);
  }
  t.notOk(otherUsersStream.hasEnded, 'the stream of another user goes on');
});

// A browser that gets WWW-Authenticate would ask the user for a password in a dialog of its own.
t.test('the page’s calls get no WWW-Authenticate; programs do', async (t) => {
  const gateway = await testGateway(t);
  const challenged = { status: 401, headers: { 'www-authenticate': /^Basic / } };
  t.match(await callMerchantApi(gateway, '/v1/locks'), challenged);
  for (const headers of [{ 'x-lockgate-console': '1' }, { 'sec-fetch-site': 'same-origin' }])
    t.match(await callMerchantApi(gateway, '/v1/locks', { headers }), NOT_LOGGED_IN, JSON.stringify(headers));
  const authorization = basicAuthorization('lgk_wrong');
  t.match(await callMerchantApi(gateway, '/v1/locks', { headers: { authorization } }), challenged);
});

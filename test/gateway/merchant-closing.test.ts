/**
 * A closed merchant (docs/operator.md): keys, tokens and sessions are refused at once, locks can't connect, webhooks
 * stop and undelivered events stay stored, and the last month is still billed. Everything works again after reopening.
 */
import path from 'node:path';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { MERCHANT_CLOSED } from '../../gateway/store/contract/merchants/merchant-store.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { migrationProvider, STEPS } from '../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../gateway/store/tables/kysely.js';
import type { Month } from '../../gateway/usage/month.js';
import { Days, ManualClock } from '../../proto/clock.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { within } from '../helpers/clocks/change-signal.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  waitForEvents,
} from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { accessToken, apiKey, callMerchantApi } from '../helpers/http/merchant-call.js';
import { connackCode, TestLock } from '../helpers/mqtt/test-lock.js';
import { openStore } from '../helpers/store/new-store.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** The CONNACK code of a refused login. */
const NOT_AUTHORIZED = 5;
/** The merchants' ids, in the order in which they are added. */
const MERCHANT_ID = 1;
const BASIL_ID = 2;
/** How long sessions may last after the closing. */
const MAX_CLOSE_SECONDS = 5;

const close = (gateway: Gateway) => callOperator(gateway, 'POST', `/merchants/${MERCHANT}/close`);
const reopen = (gateway: Gateway) => callOperator(gateway, 'POST', `/merchants/${MERCHANT}/reopen`);

t.test('if every merchant is closed, an error says so, and not that there is none yet', async (t) => {
  const gateway = await testGateway(t);
  await close(gateway);
  const message = /which merchant\? all are closed: add or reopen one/;
  await t.rejects(gateway.accounts.resolveMerchant(undefined), { code: 'merchant-needed', message });
});

t.test('keys, tokens and sessions are refused at once, and valid again after reopening', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const [key, keyOfBasil] = [await apiKey(gateway, MERCHANT), await apiKey(gateway, 'Basil')];
  const token = await accessToken(gateway, key);
  await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: [{ username: 'ada', password: 'x' }] });
  const login = await callMerchantApi(gateway, '/v2/user/login?username=ada&password=x', { key });
  const session = /lgu_[\w-]+/.exec(login.text)?.[0] ?? '';
  const { invitation, token: invited } = await gateway.merchants.invitations.create(MERCHANT_ID, { role: 'owner' });
  const pet = { method: 'PUT', body: { id: 1, name: 'Rex', photoUrls: [] } };
  const statusesOfCalls = async () => [
    (await callMerchantApi(gateway, '/v1/users', { key })).status,
    (await callMerchantApi(gateway, '/v2/user/login?username=ada&password=x', { key })).status,
    (await callMerchantApi(gateway, '/v2/pet', { ...pet, token })).status,
    (await gateway.merchants.users.findSession(MERCHANT_ID, session)) === null ? 'ended' : 'open',
    (await callMerchantApi(gateway, '/v1/invitations/look-up', { body: { token: invited } })).status,
    (await callMerchantApi(gateway, '/v1/users', { key: keyOfBasil })).status,
  ];
  // A 404 for the pet, which does not exist: the token is accepted.
  t.same(await statusesOfCalls(), [200, 200, 404, 'open', 200, 200]);
  const closed = await close(gateway);
  t.match(closed, { status: 200, body: { name: MERCHANT, closed_at: /^20/, locks: 0, webhooks: 0 } });
  t.same(await statusesOfCalls(), [401, 401, 401, 'ended', 404, 200]);
  t.equal(await accessToken(gateway, key), undefined);
  const listed = await callOperator(gateway, 'GET', `/keys?merchant=${MERCHANT}`);
  t.match(listed, { body: { keys: [{ state: 'closed' }] } });
  t.match(await close(gateway), { status: 409, body: { code: 'merchant-closed' } });
  t.match(await reopen(gateway), { status: 200, body: { closed_at: null } });
  t.same(await statusesOfCalls(), [200, 200, 404, 'open', 200, 200]);
  t.match(await reopen(gateway), { status: 409, body: { code: 'merchant-open' } });
  t.match(await callOperator(gateway, 'POST', '/merchants/Nobody/close'), { status: 404 });
  t.ok(invitation.id);
  const { body } = await callOperator(gateway, 'GET', `/audit?merchant=${MERCHANT}&action=merchant`);
  t.match(body, {
    entries: [
      { outcome: 'refused' },
      { action: 'merchant.reopen' },
      { outcome: 'refused' },
      { action: 'merchant.close' },
    ],
  });
});

t.test('sessions of the dashboard end, and no user can log in to it', async (t) => {
  const gateway = await testGateway(t);
  const user = { username: 'ada', merchant: MERCHANT, password: 'x', dashboard: 'owner' };
  await callOperator(gateway, 'POST', '/users', user);
  const { consoleSessions } = gateway.merchants;
  const logIn = () =>
    consoleSessions.logIn({
      merchant: MERCHANT,
      username: 'ada',
      password: 'x',
      address: '127.0.0.1',
      agent: undefined,
    });
  const login = await logIn();
  const token = login.result === 'logged-in' ? login.token : '';
  t.match(await consoleSessions.find(token), { username: 'ada' });
  await close(gateway);
  t.equal(await consoleSessions.find(token), undefined);
  t.match(await logIn(), { result: 'refused' });
  await reopen(gateway);
  t.match(await consoleSessions.find(token), { username: 'ada' });
});

t.test(
  'locks and phones are disconnected and can’t connect until they are moved or the merchant reopens',
  async (t) => {
    const gateway = await testGateway(t);
    await gateway.accounts.addMerchant('Basil');
    const secrets = new Map<number, string>();
    for (const number of [1, 2, 3]) {
      const merchant = number === 3 ? 'Basil' : MERCHANT;
      const { secret } = await gateway.accounts.addDevice({ mac: testMac(number), merchant });
      secrets.set(number, secret);
    }
    const connect = (number: number) =>
      TestLock.connect(t, gateway.mqttPort, testMac(number), secrets.get(number) ?? '');
    const connackOf = (number: number) => {
      const identity = { clientId: testMac(number), username: testMac(number), password: secrets.get(number) ?? '' };
      return connackCode(gateway.mqttPort, identity);
    };
    const phone = await gateway.accounts.devices.addPhone({ mac: testMac(1), name: 'Ada', expiresAtMs: null });
    const [lock, other] = [await connect(1), await connect(3)];
    const byPhone = await TestLock.connectPhone(t, gateway.mqttPort, testMac(1), 'a', phone.secret);
    const ended = Promise.all([close(gateway), lock.closed, byPhone.closed]);
    const [{ body }] = await within(MAX_CLOSE_SECONDS, () => 'the end of both sessions', ended);
    t.match(body, { locks: 2 });
    t.equal(other.client.connected, true, 'another merchant’s lock stays connected');
    const refused = waitForEvents(gateway, 'refused', 1);
    t.equal(await connackOf(1), NOT_AUTHORIZED);
    t.match(await refused, [{ reason: 'merchant-closed', mac: testMac(1) }]);
    const command = { macs: [testMac(1)], type: 'siren', parameters: { seconds: 3 } };
    t.match(await callOperator(gateway, 'POST', '/commands', command), {
      status: 409,
      body: { code: 'merchant-closed' },
    });
    t.match(await callOperator(gateway, 'PATCH', `/devices/${testMac(2)}`, { merchant: 'Basil' }), { status: 200 });
    t.equal(await connackOf(2), 0, 'a lock that was moved connects');
    t.match(await callOperator(gateway, 'PATCH', `/devices/${testMac(2)}`, { merchant: MERCHANT }), { status: 409 });
    await reopen(gateway);
    t.equal(await connackOf(1), 0);
  },
);

t.test(
  'webhooks stop and undelivered events stay; reopening enables the URLs, and recover sends the events',
  async (t) => {
    const gateway = await testGateway(t);
    const receiver = await testReceiver(t);
    receiver.answer = (_request, response) => response.writeHead(500).end();
    const { url } = await gateway.accounts.addWebhookUrl({ merchant: MERCHANT, url: receiver.url });
    const { url: disabledUrl } = await gateway.accounts.addWebhookUrl({ merchant: MERCHANT, url: receiver.url });
    await gateway.webhooks.settings.set(disabledUrl.id, { state: 'disabled' });
    const { secret } = await gateway.accounts.addDevice({ mac: testMac(1), merchant: MERCHANT });
    const lock = await TestLock.connect(t, gateway.mqttPort, testMac(1), secret);
    const failed = waitForEvents(gateway, 'delivery', 1);
    await lock.send(testBytes(1));
    await failed;
    t.match(await close(gateway), { body: { webhooks: 1 } });
    t.match(await gateway.store.webhooks.find(url.id), { state: 'disabled', disabledWhy: MERCHANT_CLOSED });
    const enable = await callOperator(gateway, 'POST', `/webhooks/${url.id}`, { state: 'active' });
    t.match(enable, { status: 409, body: { code: 'merchant-closed' } });
    t.same(
      await gateway.notices.list({ limit: 9, kind: 'url-disabled' }),
      [],
      'an operator who closes a merchant needs no notice',
    );
    t.match(await reopen(gateway), { body: { webhooks: 1 } });
    t.match(await gateway.store.webhooks.find(url.id), { state: 'active' });
    t.match(
      await gateway.store.webhooks.find(disabledUrl.id),
      { state: 'disabled' },
      'a URL that an operator had disabled stays disabled',
    );
    const sent = waitForEvents(gateway, 'delivery', 1);
    const recovered = await callOperator(gateway, 'POST', '/deliveries/recover', { since: '2020-01-01T00:00:00Z' });
    t.match(recovered, { body: { urls: [{ url_id: url.id, events: 1 }, { events: null }] } });
    t.match(await sent, [{ urlId: url.id }]);
  },
);

t.test('locks of a closed merchant come last where trouble comes first', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  for (const [mac, merchant] of [
    [testMac(1), MERCHANT],
    [testMac(2), 'Basil'],
  ] as const)
    await callOperator(gateway, 'POST', '/devices', { mac, merchant });
  const order = async (query = '') => {
    const { body } = await callOperator(gateway, 'GET', `/devices${query}`);
    return (body as { devices: { merchant: string }[] }).devices.map(({ merchant }) => merchant);
  };
  t.same(await order(), [MERCHANT, 'Basil']);
  await close(gateway);
  t.same(await order(), ['Basil', MERCHANT]);
  t.same(await order('?sort=mac'), [MERCHANT, 'Basil']);
  const page = (await callOperator(gateway, 'GET', '/devices?limit=1')).body as { next_cursor: string };
  t.same(await order(`?limit=1&cursor=${page.next_cursor}`), [MERCHANT], 'the cursor has the same order');
  await reopen(gateway);
  t.same(await order(), [MERCHANT, 'Basil']);
});

t.test('a closed merchant gets no new locks, keys, users or URLs, and its name stays taken', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  await close(gateway);
  const merchant = MERCHANT;
  const closed = { status: 409, body: { code: 'merchant-closed' } };
  for (const [route, body] of Object.entries({
    '/keys': { name: 'till', merchant },
    '/users': { username: 'ada', merchant },
    '/invitations': { dashboard: 'owner', merchant },
    '/devices': { mac: 'A4C138F0E1D2', merchant },
    '/webhooks': { url: 'http://127.0.0.1:9/', merchant },
  }))
    t.match(await callOperator(gateway, 'POST', route, body), closed, route);
  const imported = { devices: [{ mac: 'A4C138F0E1D3', merchant }] };
  t.match(await callOperator(gateway, 'POST', '/devices/import', imported), closed, 'an import');
  t.match(await callOperator(gateway, 'POST', '/merchants', { name: merchant }), { status: 409 });
  const key = await callOperator(gateway, 'POST', '/keys', { name: 'till' });
  t.match(key, { status: 201, body: { merchant: 'Basil' } }, 'the only open merchant need not be named');
  for (const route of [`/users?merchant=${merchant}`, `/usage?merchant=${merchant}`, `/keys?merchant=${merchant}`])
    t.match(await callOperator(gateway, 'GET', route), { status: 200 }, route);
});

t.test('a merchant gets another name, and nothing else changes', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const key = await apiKey(gateway, MERCHANT);
  await gateway.accounts.addDevice({ mac: testMac(1), merchant: MERCHANT });
  const rename = (from: string, name: string) => callOperator(gateway, 'POST', `/merchants/${from}`, { name });
  t.match(await rename(MERCHANT, 'Basil'), { status: 409, body: { code: 'merchant-exists' } });
  t.match(await rename('Nobody', 'Cargo'), { status: 404 });
  t.match(await rename(MERCHANT, ' '), { status: 400, body: { code: 'input-name' } });
  t.match(await rename(MERCHANT, ' Cargo '), { status: 200, body: { name: 'Cargo', closed_at: null } });
  t.match(await rename('Cargo', 'Cargo'), { status: 200 }, 'the same name again');
  t.match(await callMerchantApi(gateway, '/v1/users', { key }), { status: 200 });
  const { body } = await callOperator(gateway, 'GET', `/devices/${testMac(1)}`);
  t.match(body, { merchant: 'Cargo' });
  const audit = await callOperator(gateway, 'GET', '/audit?merchant=Cargo&action=merchant.set&limit=2');
  t.match(audit.body, { entries: [{}, { object: MERCHANT, after: { name: ' Cargo ' }, merchant: 'Cargo' }] });
  await callOperator(gateway, 'POST', '/merchants/Cargo/close');
  t.match(await callOperator(gateway, 'GET', '/merchants'), { body: { merchants: [{ name: 'Basil' }] } });
  const all = await callOperator(gateway, 'GET', '/merchants?all=true');
  t.match(all.body, {
    merchants: [
      { name: 'Cargo', closed_at: /^20/ },
      { name: 'Basil', closed_at: null },
    ],
  });
  t.match(
    await rename('Cargo', 'Cargo (closed)'),
    { status: 200 },
    'a closed merchant can be renamed too, which frees its name',
  );
  t.match(await rename('Basil', 'Cargo'), { status: 200 });
});

t.test('the month of the closing is the last billed month until the month of the reopening', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 9, 20));
  const folder = tempFolder(t);
  const clocks = { wallClock: clock, usageClock: clock };
  const gateway = await openGateway(t, folder, clocks);
  await gateway.accounts.addMerchant(MERCHANT);
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addDevice({ mac: testMac(1), merchant: MERCHANT });
  await gateway.store.usage.activate([{ mac: testMac(1), atMs: clock.now() }]);
  await close(gateway);
  clock.advance(Days(60));
  await gateway.usage.close();
  const months = async (): Promise<string[]> => (await gateway.store.usage.readClosedMonths(MERCHANT_ID)).sort();
  t.same(await months(), ['2026-10']);
  t.match(await gateway.usage.statements('2026-10' as Month, MERCHANT), [{ merchantName: MERCHANT }]);
  t.same((await gateway.store.usage.readClosedMonths(BASIL_ID)).sort(), ['2026-10', '2026-11'], 'an open merchant');
  await reopen(gateway);
  await gateway.usage.close();
  t.same(await months(), ['2026-10'], 'no month in which it was closed');
  clock.advance(Days(20));
  await gateway.usage.close();
  t.same(await months(), ['2026-10', '2026-12']);
});

t.test('merchants of an older store are open', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  const before = STEPS[STEPS.findIndex((step) => step.endsWith('-merchant-closing')) - 1] ?? '';
  t.notOk((await new Migrator({ db: tables, provider: migrationProvider }).migrateTo(before)).error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, '${MERCHANT}', 1)`);
  db.close();
  const store = await openStore(folder);
  t.match(await store.listMerchants(), [{ name: MERCHANT, closedAtMs: null, reopenedAtMs: null }]);
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});

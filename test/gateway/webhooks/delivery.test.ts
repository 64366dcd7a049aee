/**
 * Delivery of stored pings to a merchant's receiver, with a manual clock: signing, retries, order, refused addresses,
 * and restarts (interfaces.md §3).
 */
import { rmSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { afterThisTurn, ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  waitForEvents,
} from '../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { NO_JITTER, readDeliveries } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

/** In a new store, the first merchant and the first webhook URL have this id. */
const FIRST_ID = 1;
const MAC = testMac();

/** A gateway on a manual clock, without jitter, with a receiver as its merchant's URL. */
async function setUpReceiver(t: Teardown): Promise<Setup> {
  const clock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { deliveryClock: clock, random: NO_JITTER });
  const receiver = await testReceiver(t);
  const { secret } = await gateway.accounts.addWebhookUrl({ url: receiver.url, headers: { 'X-Team': 'bikes' } });
  return { clock, gateway, receiver, secret };
}

interface Setup {
  readonly clock: ManualClock;
  readonly gateway: Gateway;
  readonly receiver: TestReceiver;
  readonly secret: string;
}

t.test('a ping arrives once, signed, with the custom headers', async (t) => {
  const { gateway, receiver, secret } = await setUpReceiver(t);
  const lock = await connectedLock(t, gateway, MAC);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await lock.send(testBytes(1));
  t.match(await delivered, [{ number: 1, status: 204, outcome: 'delivered', nextAttemptAtMs: null }]);
  t.equal(receiver.requests.length, 1, 'the repeat is no event');
  const [request] = receiver.requests;
  t.match(request?.headers, {
    'x-team': 'bikes',
    'user-agent': /^lockgate\/\d+\.\d+\.\d+$/,
    'content-type': 'application/json',
    'webhook-id': request?.json.event_id,
  });
  new Webhook(secret).verify(request?.body ?? '', request?.headers as Record<string, string>);
  t.match(request?.json, { mac_addr: 'A4:C1:38:00:00:01', boot: 1, sequence: 1, test: false, simulated: false });
});

t.test('an endpoint that was down for three attempts gets every event once it is back', async (t) => {
  const { clock, gateway, receiver, secret } = await setUpReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end('sorry');
  const lock = await connectedLock(t, gateway, MAC);
  let attempted = waitForEvents(gateway, 'delivery', 3);
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  for (const [index, wait] of [Seconds(5), Minutes(5)].entries()) {
    // `{}` matches any attempt: there are three events.
    t.match(await attempted, [{ number: index + 1, status: 500, outcome: 'pending' }, {}, {}]);
    attempted = waitForEvents(gateway, 'delivery', 3);
    await waitForTimer(clock);
    clock.advance(wait);
  }
  t.match(await attempted, [{ number: 3, status: 500, outcome: 'pending' }, {}, {}]);
  await waitForTimer(clock);
  receiver.answer = (_request, response) => void response.writeHead(200).end();
  const delivered = waitForEvents(gateway, 'delivery', 3);
  clock.advance(Minutes(30));
  t.match(await delivered, [{ number: 4, outcome: 'delivered' }, {}, {}]);
  const ids = receiver.requests.map(({ headers }) => headers['webhook-id']);
  t.equal(ids.length, 12, 'four attempts at three events');
  t.equal(new Set(ids).size, 3, 'all attempts of an event have the same id');
  for (const { body, headers } of receiver.requests)
    t.doesNotThrow(() => verifyAtAnyTime(secret, body, headers as Record<string, string>));
});

/**
 * Signs the request again and compares: the library's `verify` would refuse timestamps of the manual clock.
 * @throws Error if the signature does not match
 */
function verifyAtAnyTime(secret: string, body: string, headers: Record<string, string>): void {
  const signedAt = new Date(Number(headers['webhook-timestamp']) * 1000);
  const expected = new Webhook(secret).sign(headers['webhook-id'] ?? '', signedAt, body);
  if (expected !== headers['webhook-signature']) throw new Error('the signature does not match');
}

/** Waits until the URL's worker has set its timer, some turns of the event loop after the attempt was announced. */
async function waitForTimer(clock: ManualClock): Promise<void> {
  while (clock.pending === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
}

t.test('redirects are failures and never followed; Retry-After is honoured', async (t) => {
  const { clock, gateway, receiver } = await setUpReceiver(t);
  const lock = await connectedLock(t, gateway, MAC);
  receiver.answer = (_request, response) => void response.writeHead(301, { location: '/elsewhere' }).end();
  let attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  t.match(await attempted, [{ status: 301, outcome: 'pending', nextAttemptAtMs: clock.now() + Seconds(5) }]);
  receiver.answer = (_request, response) => void response.writeHead(503, { 'retry-after': '600' }).end();
  attempted = waitForEvents(gateway, 'delivery', 1, ({ number: attempt }) => attempt === 1);
  await lock.send(testBytes(2));
  t.match(await attempted, [{ status: 503, nextAttemptAtMs: clock.now() + Minutes(10) }]);
  t.equal(receiver.requests.length, 2, 'no redirect was followed');
});

t.test('a 410 disables the URL, and its events stay stored', async (t) => {
  const { gateway, receiver } = await setUpReceiver(t);
  const lock = await connectedLock(t, gateway, MAC);
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const disabled = waitForEvents(gateway, 'url-disabled', 1);
  await lock.send(testBytes(1));
  t.match(await disabled, [{ why: /410/ }]);
  await lock.send(testBytes(2));
  const [url] = await gateway.store.listWebhookUrls();
  t.equal(url?.state, 'disabled');
  const afterCursor = await gateway.store.readEvents(FIRST_ID, url?.cursor ?? LOG_START, 9);
  t.match(afterCursor, [{ sequence: 2 }], 'the event after the disabling is stored');
  t.equal(receiver.requests.length, 1, 'nothing is sent after the 410');
});

t.test('a lock’s events arrive in order, and a failing event does not delay later ones', async (t) => {
  const { gateway, receiver } = await setUpReceiver(t);
  const lock = await connectedLock(t, gateway, MAC);
  receiver.answer = ({ json }, response) => void response.writeHead(json.sequence === 3 ? 500 : 204).end();
  const attempted = waitForEvents(gateway, 'delivery', 20);
  for (let sequence = 1; sequence <= 20; sequence++) await lock.send(testBytes(sequence));
  await attempted;
  t.same(
    receiver.requests.map(({ json }) => json.sequence),
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
});

t.test('a lock with many waiting events does not delay another lock', async (t) => {
  const { gateway, receiver } = await setUpReceiver(t);
  const [busy, other] = [await connectedLock(t, gateway, MAC), await connectedLock(t, gateway, testMac(2))];
  const heldAnswers: (() => void)[] = [];
  receiver.answer = ({ json }, response) => {
    if (json.mac_addr === 'A4:C1:38:00:00:01') heldAnswers.push(() => void response.writeHead(204).end());
    else response.writeHead(204).end();
  };
  const sent: Promise<void>[] = [];
  for (let sequence = 1; sequence <= 600; sequence++) sent.push(busy.send(testBytes(sequence)));
  await Promise.all(sent);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await other.send(testBytes(1));
  t.match(await delivered, [{ mac: testMac(2), outcome: 'delivered' }]);
  t.equal(heldAnswers.length, 1, 'the busy lock’s first event still waits for its answer');
  heldAnswers[0]?.();
});

t.test('an event with a damaged row is not attempted, and later events are delivered', async (t) => {
  const folder = tempFolder(t);
  const first = await openGateway(t, folder);
  await first.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await first.accounts.addWebhookUrl({ url: receiver.url });
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  await first.close();
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  // The bytes of this ping do not match its digest.
  const columns =
    'device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes, received_at_ms, buffered';
  const values = [1, 1, 1, 1, 1, Buffer.alloc(8), 1, Buffer.from('damage'), 1, 0];
  db.prepare(`INSERT INTO uplink (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(...values);
  db.close();
  // The file with the store's checksums, which would show that another program wrote to the store.
  rmSync(path.join(folder, 'lockgate.sqlite.sums'));
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const second = await openGateway(t, folder);
  const lock = await TestLock.connect(t, second.mqttPort, MAC, secret);
  const attempted = waitForEvents(second, 'delivery', 1, ({ outcome }) => outcome === 'delivered');
  await lock.send(testBytes(2));
  t.match(await attempted, [{ outcome: 'delivered' }]);
  t.same(await second.store.readDueDeliveries(FIRST_ID, Number.MAX_SAFE_INTEGER, 9), []);
  t.match(await readDeliveries(second, ['damaged']), [{ uplink: { sequence: 1 }, attempts: [] }]);
});

t.test('internal addresses are refused unless the operator allows them', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder, {}, { allowWebhookRange: [] });
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  const { port } = new URL(receiver.url);
  // All of them lead to this machine.
  const hosts = ['127.0.0.1', 'localhost', '0x7f.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '0'];
  for (const host of hosts) await gateway.accounts.addWebhookUrl({ url: `http://${host}:${port}/` });
  const lock = await connectedLock(t, gateway, MAC);
  const attempted = waitForEvents(gateway, 'delivery', hosts.length);
  await lock.send(testBytes(1));
  for (const { error, status } of await attempted) t.match({ error, status }, { error: /not allowed/, status: null });
  t.equal(receiver.requests.length, 0, 'nothing was sent');
});

t.test('events that were not delivered before a restart are delivered after it', async (t) => {
  const folder = tempFolder(t);
  const first = await openGateway(t, folder, { deliveryClock: new ManualClock(systemClock.now()) });
  await first.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await first.accounts.addWebhookUrl({ url: receiver.url });
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, first.mqttPort, MAC, secret);
  const failed = waitForEvents(first, 'delivery', 2);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  await failed;
  await first.close();
  receiver.answer = (_request, response) => void response.writeHead(200).end();
  await openGateway(t, folder, { deliveryClock: new ManualClock(systemClock.now() + Minutes(1)) });
  await receiver.waitForRequests(4);
  const ids = receiver.requests.map(({ headers }) => headers['webhook-id']);
  t.same(new Set(ids.slice(2)), new Set(ids.slice(0, 2)), 'the same events as before the restart');
});

t.test('wrong settings of a new URL are refused with a code', async (t) => {
  const gateway = await testGateway(t);
  const { accounts } = gateway;
  for (const url of ['', 'ftp://a/', 'nonsense', 'http://user:pass@a/', 'file:///etc/passwd'])
    await t.rejects(accounts.addWebhookUrl({ url }), { code: 'input-url' }, url);
  const longUrl = `http://a/${'x'.repeat(2048)}`;
  const tooLong = { code: 'input-url', message: /at most 2048 characters, and this one has 2057/ };
  await t.rejects(accounts.addWebhookUrl({ url: longUrl }), tooLong);
  for (const name of ['webhook-id', 'Webhook-Signature', 'Host', 'content-length', 'Connection', 'User-Agent', 'a b'])
    await t.rejects(
      accounts.addWebhookUrl({ url: 'http://a/', headers: { [name]: 'x' } }),
      { code: 'input-header' },
      name,
    );
  await t.rejects(accounts.addWebhookUrl({ url: 'http://a/', headers: { a: 'x\r\ny: z' } }), { code: 'input-header' });
  for (const name of ['Content-Encoding', 'content-language', 'Content-MD5', 'Date', 'Accept-Encoding', 'Range'])
    await t.rejects(
      accounts.addWebhookUrl({ url: 'http://a/', headers: { [name]: 'x' } }),
      { code: 'input-header', message: new RegExp(`the header ${name} can't be set`) },
      name,
    );
  await t.rejects(
    accounts.addWebhookUrl({ url: 'http://a/', headers: { 'X-Team': 'bikes', 'x-team': 'scooters' } }),
    { code: 'input-header', message: /X-Team and x-team are the same header/ },
    'names that differ only in case',
  );
  await t.rejects(accounts.addWebhookUrl({ url: 'http://a/', merchant: 'Nobody' }), { code: 'no-such-merchant' });
});

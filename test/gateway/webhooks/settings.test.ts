/**
 * What operators set for a webhook URL, and its effect on deliveries: address, headers, state, secrets, removal, and
 * the event with which a new URL starts (interfaces.md §3, §4). A delivery that was not made because the URL was
 * disabled has the state `kept`.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Hours, ManualClock, Minutes, systemClock } from '../../../proto/clock.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type ReceivedRequest, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries, receivedSequences, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();

t.test('a new address and new headers apply from the next event on', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t, { headers: { 'X-Team': 'bikes', 'X-Old': '1' } });
  const other = await testReceiver(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  const { settings } = gateway.webhooks;
  const changes = { url: other.url, setHeaders: { 'x-team': 'scooters' }, removeHeaders: ['x-old'] };
  const { url } = await settings.set(urlId, changes);
  t.same(Object.keys(url.headersSealed), ['x-team']);
  await lock.send(testBytes(2));
  await other.waitForRequests(1);
  t.same([receivedSequences(receiver), receivedSequences(other)], [[1], [2]]);
  t.equal(other.requests[0]?.headers['x-team'], 'scooters');
  t.notOk(other.requests[0]?.headers['x-old']);
});

t.test('wrong settings are refused with a sentence and change nothing', async (t) => {
  const { gateway, urlId } = await setUpWebhooks(t, { headers: { 'X-Team': 'bikes' } });
  const { settings } = gateway.webhooks;
  const before = await gateway.store.webhooks.find(urlId);
  const missingUrl = 9;
  await t.rejects(settings.set(missingUrl, { ordered: true }), { code: 'no-such-webhook' });
  await t.rejects(settings.set(urlId, {}), { code: 'input-webhook' });
  await t.rejects(settings.set(urlId, { url: 'ftp://a/' }), { code: 'input-url' });
  await t.rejects(settings.set(urlId, { setHeaders: { 'webhook-id': '1' } }), { code: 'input-header' });
  await t.rejects(settings.set(urlId, { setHeaders: { 'X-A': '1', 'x-a': '2' } }), { code: 'input-header' });
  await t.rejects(settings.set(urlId, { setHeaders: { Range: 'bytes=0-1' } }), { code: 'input-header' });
  await t.rejects(settings.set(urlId, { removeHeaders: ['X-Nobody'] }), { code: 'input-header' });
  await t.rejects(settings.rotateSecret(urlId, -1), { code: 'input-grace' });
  await t.rejects(settings.rotateSecret(urlId, Hours(24 * 31)), { code: 'input-grace' });
  await t.rejects(settings.remove(missingUrl), { code: 'no-such-webhook' });
  t.same(await gateway.store.webhooks.find(urlId), before);
});

t.test('a disabled URL gets no events, and after enabling it gets new events', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const { settings } = gateway.webhooks;
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  await settings.set(urlId, { state: 'disabled' });
  t.match(await gateway.store.listWebhookUrls(), [{ state: 'disabled', disabledWhy: /operator/ }]);
  await lock.send(testBytes(2));
  await lock.send(testBytes(3));
  t.match(await readDeliveries(gateway, ['kept']), [{ uplink: { sequence: 3 } }, { uplink: { sequence: 2 } }]);
  await settings.set(urlId, { state: 'active' });
  await lock.send(testBytes(4));
  await receiver.waitForRequests(2);
  t.same(receivedSequences(receiver), [1, 4], 'events stored meanwhile are not sent automatically');
  t.match(await readDeliveries(gateway, ['kept']), [{ uplink: { sequence: 3 } }, { uplink: { sequence: 2 } }]);
});

t.test('a URL can be disabled and enabled repeatedly, also before its first event', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  for (const round of [1, 2, 3]) {
    await gateway.webhooks.settings.set(urlId, { state: 'disabled' });
    await lock.send(testBytes(round * 2));
    await gateway.webhooks.settings.set(urlId, { state: 'active' });
    await lock.send(testBytes(round * 2 + 1));
    await receiver.waitForRequests(round);
  }
  t.same(receivedSequences(receiver), [3, 5, 7]);
  t.equal((await readDeliveries(gateway, ['kept'])).length, 3, 'one in each round');
});

/** Whether one of the request's signatures is valid for this secret, by the library standardwebhooks. */
function isSignedBy(secret: string, { headers, body }: ReceivedRequest): boolean {
  const sent = new Date(Number(headers['webhook-timestamp']) * 1000);
  const expected = new Webhook(secret).sign(String(headers['webhook-id']), sent, body);
  return String(headers['webhook-signature']).split(' ').includes(expected);
}

t.test('during a rotation each attempt is signed with both secrets, then only with the new one', async (t) => {
  const { clock, gateway, receiver, urlId, secret } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  const rotated = await gateway.webhooks.settings.rotateSecret(urlId, Hours(1));
  t.same(rotated.reading.oldSecretsUntilMs, [clock.now() + Hours(1)]);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  clock.advance(Hours(1));
  await lock.send(testBytes(2));
  await receiver.waitForRequests(2);
  const [both, newOnly] = receiver.requests as [ReceivedRequest, ReceivedRequest];
  t.same(
    [both, newOnly].map((request) => [isSignedBy(secret, request), isSignedBy(rotated.secret, request)]),
    [
      [true, true],
      [false, true],
    ],
  );
  t.doesNotThrow(() => new Webhook(secret).verify(both.body, both.headers as Record<string, string>));
  t.equal(String(both.headers['webhook-signature']).split(' ').length, 2, 'a signature for each secret');
});

t.test('a rotation survives a restart; without grace it ends all older secrets', async (t) => {
  const folder = tempFolder(t);
  const options = { deliveryClock: new ManualClock(systemClock.now()) };
  const first = await openGateway(t, folder, options);
  await first.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  const { url, secret } = await first.accounts.addWebhookUrl({ url: receiver.url });
  const second = await first.webhooks.settings.rotateSecret(url.id);
  await first.close();
  const gateway = await openGateway(t, folder, options);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  const third = await gateway.webhooks.settings.rotateSecret(url.id, 0);
  t.same(third.reading.oldSecretsUntilMs, []);
  await lock.send(testBytes(2));
  await receiver.waitForRequests(2);
  const signers = receiver.requests.map((request) =>
    [secret, second.secret, third.secret].map((each) => isSignedBy(each, request)),
  );
  t.same(signers, [
    [true, true, false],
    [false, false, true],
  ]);
});

t.test('the store has no secret in plain text, and the number of valid secrets is limited', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const { url, secret } = await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/' });
  const secrets = [secret];
  const { settings } = gateway.webhooks;
  for (let index = 0; index < 4; index++) secrets.push((await settings.rotateSecret(url.id)).secret);
  await t.rejects(settings.rotateSecret(url.id), { code: 'webhook-secrets' });
  await settings.rotateSecret(url.id, 0);
  await gateway.close();
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  const rows = ['webhook_url', 'webhook_old_secret'].flatMap((table) => db.prepare(`SELECT * FROM ${table}`).all());
  db.close();
  const stored = rows.flatMap((row) => Object.values(row as object).map((value) => Buffer.from(String(value))));
  const partOf = (each: string) => each.slice('whsec_'.length, 30);
  for (const each of secrets) t.notOk(stored.some((value) => value.includes(partOf(each))));
});

t.test('a removed URL gets no more events, and only its rows are deleted', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url });
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await connectedLock(t, gateway, MAC);
  const attempted = waitForEvents(gateway, 'delivery', 2);
  await lock.send(testBytes(1));
  await attempted;
  await gateway.webhooks.settings.remove(urlId);
  await lock.send(testBytes(2));
  await other.waitForRequests(2);
  t.equal(receiver.requests.length, 1, 'nothing after the removal');
  t.match(await gateway.store.listWebhookUrls(), [{ id: 2 }]);
  t.equal(await gateway.store.nextDueAtMs(urlId), null);
  t.same(await gateway.store.readOutcomesAfter(urlId, LOG_START), []);
  await eventually('both are recorded', async () => (await readDeliveries(gateway, ['delivered'])).length === 2);
});

t.test('a URL whose receiver hangs can be removed', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  receiver.answer = () => undefined;
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  await gateway.webhooks.settings.remove(urlId);
  t.same(await gateway.store.listWebhookUrls(), []);
});

t.test('a new URL starts with events from a given time, or from now', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  /** When the three events were received. */
  const receivedAtMs: number[] = [];
  for (const sequence of [1, 2, 3]) {
    const uplink = waitForEvents(gateway, 'uplink', 1);
    await lock.send(testBytes(sequence));
    receivedAtMs.push((await uplink)[0]?.atMs ?? 0);
    // The next ping is received at a later millisecond.
    await eventually('the next millisecond', () => gateway.clock.now() > (receivedAtMs.at(-1) ?? 0));
  }
  await receiver.waitForRequests(3);
  const expectedByStart: [sinceMs: number | undefined, sequences: number[]][] = [
    [receivedAtMs[1], [2, 3, 4]],
    [(receivedAtMs[2] ?? 0) + 1, [4]],
    [undefined, [4]],
    [0, [1, 2, 3, 4]],
    [receivedAtMs[0], [1, 2, 3, 4]],
    [gateway.clock.now() + Minutes(99), [4]],
  ];
  const receivers = await Promise.all(expectedByStart.map(() => testReceiver(t)));
  for (const [index, { url }] of receivers.entries())
    await gateway.accounts.addWebhookUrl({ url, sinceMs: expectedByStart[index]?.[0] });
  await lock.send(testBytes(4));
  for (const [index, each] of receivers.entries()) {
    const sequences = expectedByStart[index]?.[1] ?? [];
    await each.waitForRequests(sequences.length);
    t.same(receivedSequences(each), sequences, `start ${index} of the list`);
  }
});

/**
 * Test webhooks, which operators and merchants send to try a receiver (interfaces.md §3): they are sent and signed like
 * events but marked as tests, change nothing, and reveal nothing about internal addresses. A canary is a receiver that
 * must get nothing.
 */
import t from 'tap';
import { TESTS_PER_MINUTE } from '../../../gateway/webhooks/webhook-test.js';
import { ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { readDeliveries, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();

t.test('a test sends the lock’s latest ping to every active URL, signed, marked and with a new id', async (t) => {
  const { gateway, receiver, secret } = await setUpWebhooks(t, { headers: { 'X-Team': 'bikes' } });
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url });
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  await Promise.all([receiver.waitForRequests(2), other.waitForRequests(2)]);
  const { eventId, deliveries } = await gateway.webhooks.tester.test(MAC);
  t.match(deliveries, [
    { urlId: 1, origin: new URL(receiver.url).origin, status: 204, error: null },
    { urlId: 2, status: 204, error: null },
  ]);
  // After the two pings.
  const [first, second] = [receiver.requests[2], other.requests[2]];
  const { event_id: _id, test: _test, ...members } = receiver.requests[1]?.json ?? {};
  t.same(first?.json, { ...members, event_id: eventId, test: true }, 'otherwise the same body as the ping’s');
  t.match(first?.headers, { 'webhook-id': eventId, 'x-team': 'bikes', 'user-agent': /^lockgate\// });
  t.doesNotThrow(() => new Webhook(secret).verify(first?.body ?? '', first?.headers as Record<string, string>));
  t.equal(second?.json.event_id, eventId);
  t.notOk(
    receiver.requests.slice(0, 2).some(({ json }) => json.event_id === eventId),
    'no event had this id',
  );
  t.equal((await readDeliveries(gateway)).length, 4, 'the test is not an event');
});

t.test('a test of a lock that never sent anything uses a plausible ping', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  await gateway.accounts.addDevice({ mac: MAC });
  await gateway.webhooks.tester.test(MAC);
  t.match(receiver.requests[0]?.json, {
    mac_addr: 'A4:C1:38:00:00:01',
    ping_type: 'cellular',
    lock_state: 'locked',
    date: new Date(clock.now()).toISOString(),
    test: true,
  });
});

t.test('every URL’s answer is returned; a disabled URL is tested if named', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const { tester, settings } = gateway.webhooks;
  await gateway.accounts.addDevice({ mac: MAC });
  // Nothing listens on port 9.
  const unreachable = await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/secret-path' });
  receiver.answer = (_request, response) => void response.writeHead(302, { location: '/' }).end();
  const { deliveries } = await tester.test(MAC);
  t.match(deliveries, [
    { urlId, status: 302, durationMs: Number, error: /302/ },
    { urlId: unreachable.url.id, origin: 'http://127.0.0.1:9', status: null, error: /refused/ },
  ]);
  t.notMatch(JSON.stringify(deliveries), /secret-path/);
  t.equal(receiver.requests.length, 1, 'no redirect is followed');
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  t.match(await tester.test(MAC, urlId), { deliveries: [{ status: 410 }] });
  t.equal((await gateway.store.webhooks.find(urlId))?.state, 'active', 'a test disables nothing');
  for (const id of [urlId, unreachable.url.id]) await settings.set(id, { state: 'disabled' });
  await t.rejects(tester.test(MAC), { code: 'no-webhook-url' });
  receiver.answer = (_request, response) => void response.writeHead(200).end();
  t.match(await tester.test(MAC, urlId), { deliveries: [{ status: 200, error: null }] });
  await t.rejects(tester.test(MAC, 99), { code: 'no-such-webhook' });
  await t.rejects(tester.test(testMac(9)), { code: 'no-such-device' });
});

t.test('another merchant’s URLs get no test', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  await gateway.accounts.addMerchant('Birch');
  const other = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: other.url, merchant: 'Birch' });
  await gateway.accounts.addDevice({ mac: MAC, merchant: MERCHANT });
  await gateway.webhooks.tester.test(MAC);
  await t.rejects(gateway.webhooks.tester.test(MAC, url.id), { code: 'no-such-webhook' });
  t.same([receiver.requests.length, other.requests.length], [1, 0]);
});

t.test('a refused address always has the same error and no duration', async (t) => {
  const gateway = await openGateway(t, tempFolder(t), {}, { allowWebhookRange: [] });
  await gateway.accounts.addMerchant(MERCHANT);
  const canary = await testReceiver(t);
  const { port } = new URL(canary.url);
  for (const host of [`127.0.0.1:${port}`, '127.0.0.1:9', `localhost:${port}`, `0x7f.1:${port}`, '10.0.0.1:80'])
    await gateway.accounts.addWebhookUrl({ url: `http://${host}/` });
  await gateway.accounts.addDevice({ mac: MAC });
  const { deliveries } = await gateway.webhooks.tester.test(MAC);
  const results = deliveries.map(({ status, durationMs, error }) => ({ status, durationMs, error }));
  t.same(results, Array(5).fill({ status: null, durationMs: null, error: 'the address is not allowed' }));
  t.equal(canary.requests.length, 0, 'nothing was sent');
});

t.test('a merchant may send at most 30 tests in any minute', async (t) => {
  const clock = new ManualClock(systemClock.now());
  const { gateway } = await setUpWebhooks(t, {}, { deliveryClock: clock });
  await gateway.accounts.addDevice({ mac: MAC });
  const { tester } = gateway.webhooks;
  await tester.test(MAC);
  clock.advance(Seconds(30));
  for (let count = 1; count < TESTS_PER_MINUTE; count++) await tester.test(MAC);
  await t.rejects(tester.test(MAC), { code: 'rate-limited' });
  clock.advance(Seconds(30));
  // The first test is a minute old now, so one more is allowed.
  await tester.test(MAC);
  await t.rejects(tester.test(MAC), { code: 'rate-limited' });
  await gateway.accounts.addMerchant('Birch');
  await gateway.accounts.addDevice({ mac: testMac(2), merchant: 'Birch' });
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url, merchant: 'Birch' });
  t.match(await tester.test(testMac(2)), { deliveries: [{ status: 204 }] }, 'another merchant is not limited');
  clock.advance(Minutes(1));
  await tester.test(MAC);
});

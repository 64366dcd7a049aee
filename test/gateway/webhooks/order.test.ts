/**
 * Ordered URLs, at which a lock's events wait for its earlier failed event, and the circuit breaker, which stops
 * attempts at a URL that keeps failing except for single probes (interfaces.md §3).
 */
import t from 'tap';
import { Circuit, FAILURES_TO_OPEN, FIRST_PROBE_WAIT, MAX_PROBE_WAIT } from '../../../gateway/webhooks/url/circuit.js';
import { Days, ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  NO_JITTER,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);

const failing: Answer = (_request, response) => void response.writeHead(500).end();
const succeeding: Answer = (_request, response) => void response.writeHead(204).end();

t.test(
  'at an ordered URL a lock’s later events wait for its failed event, and other locks’ events do not',
  async (t) => {
    const { clock, gateway, receiver } = await setUpWebhooks(t, { ordered: true });
    const [lock, other] = [await connectedLock(t, gateway, MAC), await connectedLock(t, gateway, OTHER_MAC)];
    receiver.answer = (request, response) => (request.json.sequence === 1 ? failing : succeeding)(request, response);
    for (const sequence of [1, 2, 3, 4]) await lock.send(testBytes(sequence));
    for (const sequence of [11, 12]) await other.send(testBytes(sequence));
    await eventually('four are pending', async () => (await readDeliveries(gateway, ['pending'])).length === 4);
    await eventually('the other lock’s events have arrived', () => receiver.requests.length === 3);
    t.same(new Set(receivedSequences(receiver)), new Set([1, 11, 12]));
    t.equal(await advanceToNextTimer(clock), Seconds(5), 'events that wait for order set no timer');
    await receiver.waitForRequests(4);
    receiver.answer = succeeding;
    t.equal(await advanceToNextTimer(clock), Minutes(5));
    await receiver.waitForRequests(8);
    t.same(receivedSequences(receiver).slice(3), [1, 1, 2, 3, 4], 'then the waiting events follow in order');
    await eventually('all are delivered', async () => (await readDeliveries(gateway, ['delivered'])).length === 6);
    await lock.send(testBytes(5));
    await receiver.waitForRequests(9);
    const [newest] = await readDeliveries(gateway);
    t.match(newest, { uplink: { sequence: 5 } });
  },
);

t.test('at a URL that is not ordered no event waits for another', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  receiver.answer = (request, response) => (request.json.sequence === 1 ? failing : succeeding)(request, response);
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(3);
  t.same(receivedSequences(receiver), [1, 2, 3]);
});

// A delivery is dead after its eighth failed attempt.
t.test(
  'events that wait at an ordered URL still wait after a restart, and are delivered in order when the first is dead',
  async (t) => {
    const folder = tempFolder(t);
    const clock = new ManualClock(systemClock.now());
    const options = { deliveryClock: clock, random: NO_JITTER };
    const beforeRestart = await openGateway(t, folder, options);
    await beforeRestart.accounts.addMerchant(MERCHANT);
    const receiver = await testReceiver(t);
    receiver.answer = (request, response) => (request.json.sequence === 1 ? failing : succeeding)(request, response);
    await beforeRestart.accounts.addWebhookUrl({ url: receiver.url, ordered: true });
    const { secret } = await beforeRestart.accounts.addDevice({ mac: MAC });
    const lock = await TestLock.connect(t, beforeRestart.mqttPort, MAC, secret);
    for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
    await eventually('three are pending', async () => (await readDeliveries(beforeRestart, ['pending'])).length === 3);
    await beforeRestart.close();
    const gateway = await openGateway(t, folder, options);
    const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
    await reconnected.send(testBytes(4));
    await eventually('four are pending', async () => (await readDeliveries(gateway, ['pending'])).length === 4);
    const attempted = waitForEvents(gateway, 'delivery', 10);
    for (let retry = 0; retry < 7; retry++) {
      await receiver.waitForRequests(retry + 1);
      await eventually('the attempt is stored', async () => {
        const [delivery] = (await readDeliveries(gateway, ['pending'])).slice(-1);
        return delivery?.attempts.length === retry + 1;
      });
      await advanceToNextTimer(clock);
    }
    const outcomes = (await attempted).map(({ number, outcome }) => [number, outcome]);
    const failedRetries = 6;
    t.same(outcomes.slice(failedRetries), [
      [8, 'dead'],
      [1, 'delivered'],
      [1, 'delivered'],
      [1, 'delivered'],
    ]);
    t.same(receivedSequences(receiver).slice(8), [2, 3, 4]);
  },
);

t.test('the circuit opens after repeated failures, probes at growing intervals, and closes at a success', async (t) => {
  const circuit = new Circuit();
  for (let failure = 1; failure < FAILURES_TO_OPEN; failure++) t.notOk(circuit.failed(1000));
  t.notOk(circuit.isOpen);
  t.notOk(circuit.succeeded());
  for (let failure = 1; failure < FAILURES_TO_OPEN; failure++)
    t.notOk(circuit.failed(1000), 'a success resets the count');
  t.ok(circuit.failed(1000));
  t.equal(circuit.probeAtMs, 1000 + FIRST_PROBE_WAIT);
  t.notOk(circuit.failed(1001), 'an attempt that was running when the circuit opened');
  t.equal(circuit.probeAtMs, 1000 + FIRST_PROBE_WAIT, 'does not count as a probe');
  const waits: number[] = [];
  for (let probe = 0; probe < 9; probe++) {
    const nowMs = circuit.probeAtMs ?? 0;
    circuit.failed(nowMs);
    waits.push((circuit.probeAtMs ?? 0) - nowMs);
  }
  t.same(
    waits,
    [10, 20, 40, 80, 160, 300, 300, 300, 300].map((seconds) => Seconds(seconds)),
  );
  t.equal(waits.at(-1), MAX_PROBE_WAIT);
  t.ok(circuit.succeeded());
  t.notOk(circuit.isOpen);
});

// Events that were never tried have no row in the table of deliveries: they are read from the log in their turn.
t.test('while the circuit is open only one probe runs at a time, and only failed deliveries have a row', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url });
  receiver.answer = failing;
  const opened = waitForEvents(gateway, 'circuit', 1);
  const lock = await connectedLock(t, gateway, MAC);
  for (let sequence = 1; sequence <= 40; sequence++) await lock.send(testBytes(sequence));
  t.match(await opened, [{ urlId: 1, state: 'opened', why: /500/ }]);
  await other.waitForRequests(40);
  t.equal(receiver.requests.length, FAILURES_TO_OPEN, 'one lock has one first attempt at a time');
  t.equal(await advanceToNextTimer(clock), FIRST_PROBE_WAIT);
  await receiver.waitForRequests(FAILURES_TO_OPEN + 1);
  await eventually('the probe is stored', async () => {
    return (await readDeliveries(gateway, ['pending'])).some(({ attempts }) => attempts.length === 2);
  });
  await eventually('the next probe is planned', () => (clock.nextDueMs ?? 0) > clock.now());
  t.equal(receiver.requests.length, FAILURES_TO_OPEN + 1, 'one probe, though ten retries were due');
  const pending = await readDeliveries(gateway, ['pending']);
  t.equal(
    pending.filter(({ nextAttemptAtMs }) => nextAttemptAtMs !== null).length,
    FAILURES_TO_OPEN,
    'only failed deliveries have a row in the table, with a due time',
  );
  t.equal(pending.length, 40, 'all wait');
  receiver.answer = succeeding;
  const closed = waitForEvents(gateway, 'circuit', 1);
  await advanceToNextTimer(clock);
  t.match(await closed, [{ urlId: 1, state: 'closed' }]);
  clock.advance(Minutes(5));
  await eventually('everything is delivered', async () => {
    return (await readDeliveries(gateway, ['delivered'])).filter(({ urlId }) => urlId === 1).length === 40;
  });
});

t.test('changing a URL closes its circuit, so that a repaired URL gets attempts at once', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const workingReceiver = await testReceiver(t);
  receiver.answer = failing;
  const opened = waitForEvents(gateway, 'circuit', 1);
  const lock = await connectedLock(t, gateway, MAC);
  for (let sequence = 1; sequence <= 20; sequence++) await lock.send(testBytes(sequence));
  await opened;
  await eventually('the operator sees it', async () => {
    const url = await gateway.store.webhooks.find(urlId);
    return url !== null && (await gateway.webhooks.settings.read(url)).isCircuitOpen;
  });
  await gateway.webhooks.settings.set(urlId, { url: workingReceiver.url });
  await workingReceiver.waitForRequests(20 - FAILURES_TO_OPEN);
  const firstUnsent = FAILURES_TO_OPEN + 1;
  t.same(
    receivedSequences(workingReceiver),
    Array.from({ length: 20 - FAILURES_TO_OPEN }, (_, index) => firstUnsent + index),
  );
});

t.test('a URL is disabled after failing for five days; a success resets the time', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  let sequence = 0;
  const attempt = async (answer: Answer): Promise<void> => {
    receiver.answer = answer;
    const attempted = waitForEvents(gateway, 'delivery', 1, ({ number: attempt }) => attempt === 1);
    await lock.send(testBytes(++sequence));
    await attempted;
  };
  await attempt(failing);
  t.equal((await gateway.store.webhooks.find(urlId))?.failingSinceMs, clock.now());
  clock.advance(Days(3));
  await attempt(succeeding);
  t.equal((await gateway.store.webhooks.find(urlId))?.failingSinceMs, null);
  await attempt(failing);
  clock.advance(Days(5) - 1);
  receiver.answer = failing;
  await eventually('its retry is stored', async () => {
    return (await readDeliveries(gateway, ['pending'])).some(({ attempts }) => attempts.length === 2);
  });
  t.match(await gateway.store.webhooks.find(urlId), { state: 'active' });
  clock.advance(1);
  const disabled = waitForEvents(gateway, 'url-disabled', 1);
  await attempt(failing);
  t.match(await disabled, [
    { urlId, why: /every attempt failed for 5 days; the last error: the receiver answered 500/ },
  ]);
  t.match(await gateway.store.webhooks.find(urlId), { state: 'disabled' });
  const before = receiver.requests.length;
  await lock.send(testBytes(++sequence));
  t.match(await readDeliveries(gateway, ['kept']), [{ uplink: { sequence } }], 'events are still stored');
  t.equal(receiver.requests.length, before);
});

t.test('a retry starts at its time although another retry hangs', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  const [lock, other] = [await connectedLock(t, gateway, MAC), await connectedLock(t, gateway, OTHER_MAC)];
  receiver.answer = failing;
  let attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await attempted;
  clock.advance(Seconds(1));
  attempted = waitForEvents(gateway, 'delivery', 1);
  await other.send(testBytes(2));
  await attempted;
  receiver.answer = () => undefined;
  let finishedAttempts = 0;
  gateway.events.on('delivery', () => {
    finishedAttempts += 1;
  });
  await advanceToNextTimer(clock);
  await receiver.waitForRequests(3);
  await advanceToNextTimer(clock);
  await receiver.waitForRequests(4);
  t.equal(finishedAttempts, 0, 'the first retry still hangs');
  t.same(receivedSequences(receiver), [1, 2, 1, 2]);
});

t.test('events delivered after a failing or hanging one are not delivered again after a stop', async (t) => {
  const folder = tempFolder(t);
  const options = { deliveryClock: new ManualClock(systemClock.now()) };
  const beforeRestart = await openGateway(t, folder, options);
  await beforeRestart.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  // The first event's answer never comes; the gateway's stop aborts the attempt.
  receiver.answer = ({ json }, response) => {
    if (json.sequence !== 1) response.writeHead(204).end();
  };
  await beforeRestart.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, beforeRestart, MAC);
  const other = await connectedLock(t, beforeRestart, OTHER_MAC);
  await lock.send(testBytes(1));
  const delivered = waitForEvents(beforeRestart, 'delivery', 5);
  for (const sequence of [2, 3, 4, 5, 6]) await other.send(testBytes(sequence));
  await delivered;
  await beforeRestart.close();
  receiver.answer = succeeding;
  const second = await openGateway(t, folder, options);
  await receiver.waitForRequests(7);
  await eventually('all is delivered', async () => (await readDeliveries(second, ['delivered'])).length === 6);
  t.same(receivedSequences(receiver), [1, 2, 3, 4, 5, 6, 1]);
});

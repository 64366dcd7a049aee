/**
 * How long the gateway waits before it sends to a URL (interfaces.md §3): after a Retry-After, and if the machine's
 * clock is set forward or back, while the gateway runs or between two starts.
 */
import t from 'tap';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { FAILURES_TO_OPEN, FIRST_PROBE_WAIT } from '../../../gateway/webhooks/url/circuit.js';
import { Days, Hours, ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { SteppedClock } from '../../helpers/clocks/stepped-clock.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  NO_JITTER,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
/** The id of the only webhook URL. */
const URL_ID = 1;

const failing: Answer = (_request, response) => void response.writeHead(500).end();
const succeeding: Answer = (_request, response) => void response.writeHead(204).end();

/** Answers 503 with this Retry-After. */
function answerRetryAfter(retryAfter: string): Answer {
  return (_request, response) => void response.writeHead(503, { 'retry-after': retryAfter }).end();
}

/**
 * A manual clock for timers, a clock for dates that the test can also set forward or back, and the gateway's options
 * that use both.
 */
function makeClocks(): { clock: ManualClock; dates: SteppedClock; options: GatewayOptions } {
  const clock = new ManualClock(systemClock.now());
  const dates = new SteppedClock(clock);
  return { clock, dates, options: { deliveryClock: clock, deliveryDates: dates } };
}

interface RestartSetup {
  readonly receiver: TestReceiver;
  /** Opens a gateway on the folder with this clock and its lock connected. The previous gateway must be closed. */
  readonly open: (clock: ManualClock) => Promise<{ gateway: Gateway; lock: TestLock }>;
}

/** A folder whose gateway is started several times. */
async function setUpRestarts(test: Teardown): Promise<RestartSetup> {
  const folder = tempFolder(test);
  const receiver = await testReceiver(test);
  let secret: string | undefined;
  const open: RestartSetup['open'] = async (clock) => {
    const gateway = await openGateway(test, folder, { deliveryClock: clock, random: NO_JITTER });
    if (secret === undefined) {
      await gateway.accounts.addMerchant(MERCHANT);
      await gateway.accounts.addWebhookUrl({ url: receiver.url });
      secret = (await gateway.accounts.addDevice({ mac: MAC })).secret;
    }
    return { gateway, lock: await TestLock.connect(test, gateway.mqttPort, MAC, secret) };
  };
  return { receiver, open };
}

// After FAILURES_TO_OPEN failures in a row a URL's circuit is open: it gets only single attempts, called probes.
t.test('a clock set back by an hour delays neither a probe nor a new ping at an open circuit', async (t) => {
  const { clock, dates, options } = makeClocks();
  const { gateway, receiver } = await setUpWebhooks(t, {}, options);
  receiver.answer = failing;
  const opened = waitForEvents(gateway, 'circuit', 1);
  const lock = await connectedLock(t, gateway, MAC);
  for (let sequence = 1; sequence <= FAILURES_TO_OPEN + 2; sequence++) await lock.send(testBytes(sequence));
  await opened;
  receiver.answer = succeeding;
  dates.step(-Hours(1));
  await lock.send(testBytes(99));
  clock.advance(FIRST_PROBE_WAIT);
  await eventually('the probe', () => receiver.requests.length > FAILURES_TO_OPEN);
  await eventually('everything is delivered', async () => {
    return (await readDeliveries(gateway, ['delivered'])).length === FAILURES_TO_OPEN + 3;
  });
});

t.test('a clock set back between two starts makes no retry wait longer than its scheduled wait', async (t) => {
  const { open, receiver } = await setUpRestarts(t);
  const first = await open(new ManualClock(systemClock.now() + Hours(5)));
  receiver.answer = failing;
  const attempted = waitForEvents(first.gateway, 'delivery', 1);
  await first.lock.send(testBytes(1));
  await attempted;
  await first.gateway.close();
  const clock = new ManualClock(systemClock.now());
  const { gateway } = await open(clock);
  receiver.answer = succeeding;
  const waitMs = await advanceToNextTimer(clock);
  // 5 s, and at most a tenth more: the gateway does not know the jitter with which the stored time was made.
  t.ok(waitMs <= Seconds(5.5), `the retry waits ${waitMs} ms`);
  await eventually('it is delivered', async () => (await readDeliveries(gateway, ['delivered'])).length === 1);
});

t.test('a clock step of 5 days between two failures disables no URL', async (t) => {
  const { clock, dates, options } = makeClocks();
  const { gateway, receiver, urlId } = await setUpWebhooks(t, {}, { ...options, random: NO_JITTER });
  receiver.answer = failing;
  const lock = await connectedLock(t, gateway, MAC);
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await attempted;
  await eventually('the retry is planned', () => clock.nextDueMs === clock.now() + Seconds(5));
  dates.step(Days(5));
  clock.advance(Seconds(5));
  await eventually('the retry is noted', async () => (await readDeliveries(gateway))[0]?.attempts.length === 2);
  t.match(await gateway.store.webhooks.find(urlId), { state: 'active' });
});

t.test('days without a running gateway don’t count as failing time, and earlier failing time stays', async (t) => {
  const { open, receiver } = await setUpRestarts(t);
  receiver.answer = failing;
  const start = systemClock.now();
  const clock = new ManualClock(start);
  const first = await open(clock);
  const fail = async ({ gateway, lock }: typeof first, sequence: number): Promise<void> => {
    const attempted = waitForEvents(gateway, 'delivery', 1, ({ number: attempt }) => attempt === 1);
    await lock.send(testBytes(sequence));
    await attempted;
  };
  await fail(first, 1);
  clock.advance(Days(3));
  await fail(first, 2);
  await first.gateway.close();
  const laterClock = new ManualClock(start + Days(10));
  const second = await open(laterClock);
  await fail(second, 3);
  t.match(await second.gateway.store.webhooks.find(URL_ID), { state: 'active' });
  // The failing time is stored once a minute: a stop may lose up to a minute of it.
  laterClock.advance(Days(2) - Minutes(2));
  await fail(second, 4);
  t.match(await second.gateway.store.webhooks.find(URL_ID), { state: 'active' });
  laterClock.advance(Minutes(3));
  const disabled = waitForEvents(second.gateway, 'url-disabled', 1);
  await second.lock.send(testBytes(5));
  t.match(await disabled, [{ why: /every attempt failed for 5 days/ }]);
});

t.test('before Retry-After has passed neither a retry nor a new event goes to the URL', async (t) => {
  for (const retryAfterFor of [
    (_nowMs: number) => '3600',
    (nowMs: number) => new Date(nowMs + Hours(1)).toUTCString(),
  ]) {
    const { clock, gateway, receiver } = await setUpWebhooks(t);
    // A date in the header has whole seconds, so it is rounded up.
    receiver.answer = answerRetryAfter(retryAfterFor(systemClock.now() + 999));
    const lock = await connectedLock(t, gateway, MAC);
    const attempted = waitForEvents(gateway, 'delivery', 1);
    await lock.send(testBytes(1));
    await attempted;
    receiver.answer = succeeding;
    for (const sequence of [2, 3, 4]) await lock.send(testBytes(sequence));
    for (let minute = 1; minute < 59; minute++) {
      clock.advance(Minutes(1));
      // Gives the gateway time for an attempt, which must not be made.
      await gateway.store.webhooks.find(URL_ID);
    }
    t.same(receivedSequences(receiver), [1]);
    clock.advance(Minutes(3));
    await receiver.waitForRequests(5);
    t.same(receivedSequences(receiver).slice(1).sort(), [1, 2, 3, 4]);
  }
});

t.test('an open circuit’s probe waits for Retry-After', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  receiver.answer = failing;
  const opened = waitForEvents(gateway, 'circuit', 1);
  const lock = await connectedLock(t, gateway, MAC);
  for (let sequence = 1; sequence <= FAILURES_TO_OPEN + 1; sequence++) await lock.send(testBytes(sequence));
  await opened;
  receiver.answer = answerRetryAfter('7200');
  await advanceToNextTimer(clock);
  await receiver.waitForRequests(FAILURES_TO_OPEN + 1);
  // Until then the next timer is the time limit of the attempt, 15 s.
  await eventually('the next is planned', () => (clock.nextDueMs ?? 0) > clock.now() + Seconds(15));
  t.equal(await advanceToNextTimer(clock), Hours(2));
  await receiver.waitForRequests(FAILURES_TO_OPEN + 2);
});

t.test('Retry-After survives a restart, for at most 24 h, whatever the clock shows', async (t) => {
  const start = systemClock.now();
  // How long the URL is held after the restart, by the requested wait and the clock at the restart.
  const cases = [
    { requestedSeconds: '3600', startsAfter: Minutes(20), expectedWait: Minutes(40) },
    { requestedSeconds: '3600', startsAfter: -Days(400), expectedWait: Hours(1) },
    { requestedSeconds: '9999999', startsAfter: -Days(400), expectedWait: Hours(24) },
    { requestedSeconds: '9999999', startsAfter: Hours(1), expectedWait: Hours(23) },
  ];
  for (const { requestedSeconds, startsAfter, expectedWait } of cases) {
    const { open, receiver } = await setUpRestarts(t);
    const first = await open(new ManualClock(start));
    receiver.answer = answerRetryAfter(requestedSeconds);
    const attempted = waitForEvents(first.gateway, 'delivery', 1);
    await first.lock.send(testBytes(1));
    await attempted;
    await first.gateway.close();
    receiver.answer = succeeding;
    const clock = new ManualClock(start + startsAfter);
    const { lock } = await open(clock);
    await lock.send(testBytes(2));
    t.equal(receiver.requests.length, 1, 'nothing is sent during the wait');
    await eventually('it waits', () => clock.nextDueMs !== undefined);
    t.equal(await advanceToNextTimer(clock), expectedWait, `${requestedSeconds} s, started after ${startsAfter} ms`);
    await receiver.waitForRequests(3);
    t.same(receivedSequences(receiver).slice(1).sort(), [1, 2]);
  }
});

t.test('an operator’s test ignores a Retry-After, and a change of the address ends it', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const other = await testReceiver(t);
  receiver.answer = answerRetryAfter('3600');
  const lock = await connectedLock(t, gateway, MAC);
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await attempted;
  await lock.send(testBytes(2));
  await gateway.webhooks.tester.test(MAC, urlId);
  t.equal(receiver.requests.length, 2, 'the URL gets only the test until its wait is over');
  t.match(receiver.requests[1]?.json, { test: true });
  await gateway.webhooks.settings.set(urlId, { url: other.url });
  await other.waitForRequests(1);
  t.same(receivedSequences(other), [2]);
});

/**
 * Receivers that hang, dawdle, fail, redirect, flood and reset beside good ones (quality.md §2), on a clock that stands
 * still: the good ones get everything, in order, while the bad ones hold no more than their share. The long form is
 * test/long/bad-receivers.test.ts; the bench has the times.
 */
import t from 'tap';
import { testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

const LOCKS = 24;
const PINGS = 15;
/**
 * Attempts under way at once to one URL, as long as none was answered well
 * (gateway/webhooks/url/concurrency-limiter.ts).
 */
const LEAST_AT_ONCE = 4;
const PIECE = Buffer.alloc(64 * 1024, 'x');

const BAD: Readonly<Record<string, Answer>> = {
  hang: () => undefined,
  // The clock stands still, so 14.9 s are never over.
  slow: () => undefined,
  500: (_request, response) => void response.writeHead(500).end(),
  redirect: (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
  gigabyte: (_request, response) => {
    const pour = (): void => {
      while (!response.destroyed && response.write(PIECE));
    };
    response.on('drain', pour).on('error', () => undefined);
    response.writeHead(200, { 'content-length': '1000000000' });
    pour();
  },
  reset: (_request, response) => void response.socket?.resetAndDestroy(),
};

t.test('bad receivers do not affect good ones and use no more than their share', async (t) => {
  const { gateway, receiver: good } = await setUpWebhooks(t);
  const bad = new Map<string, TestReceiver>();
  for (const [manner, answer] of Object.entries(BAD)) {
    const receiver = await testReceiver(t);
    receiver.answer = answer;
    await gateway.accounts.addWebhookUrl({ url: receiver.url });
    bad.set(manner, receiver);
  }
  const locks = [];
  for (let number = 1; number <= LOCKS; number++) locks.push(await connectedLock(t, gateway, testMac(number)));
  const opened = waitForEvents(gateway, 'circuit', 3, ({ state }) => state === 'opened');
  for (let sequence = 1; sequence <= PINGS; sequence++)
    await Promise.all(locks.map((lock) => lock.send(testBytes(sequence))));
  await good.waitForRequests(LOCKS * PINGS);
  for (let number = 1; number <= LOCKS; number++) {
    const mac = testMac(number).match(/../g)?.join(':');
    t.same(
      good.requests.filter(({ json }) => json.mac_addr === mac).map(({ json }) => json.sequence),
      Array.from({ length: PINGS }, (_, index) => index + 1),
    );
  }
  t.equal(good.requests.length, LOCKS * PINGS, 'each once');
  await opened;
  for (const manner of ['hang', 'slow'])
    t.equal(bad.get(manner)?.requests.length, LEAST_AT_ONCE, `${manner}: as many attempts as may run at once`);
  for (const manner of ['500', 'redirect', 'reset']) {
    // Ten failures open the circuit; attempts that were running by then still fail.
    const { length } = bad.get(manner)?.requests ?? [];
    t.ok(length >= 10 && length < 10 + LEAST_AT_ONCE, `${manner}: ${length} attempts`);
  }
  await eventually('the flood is cut, each time', async () => {
    const delivered = await readDeliveries(gateway, ['delivered']);
    return delivered.length >= 2 * LOCKS * PINGS || delivered.length >= 500;
  });
});

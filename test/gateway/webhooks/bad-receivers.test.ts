/**
 * One good receiver next to receivers that hang, answer late, fail, redirect, send a gigabyte, or reset the connection:
 * the good receiver gets every webhook, in order, and each bad one gets a limited number of attempts. The clock is
 * frozen, so no time limit is ever reached. test/long/bad-receivers.test.ts runs longer; test/bench measures the
 * delays.
 */
import t from 'tap';
import { testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

const LOCKS = 24;
const PINGS = 15;
/**
 * The maximum number of concurrent attempts at a URL without a success so far; only successes raise it
 * (gateway/webhooks/url/concurrency-limiter.ts).
 */
const MAX_CONCURRENT_ATTEMPTS = 4;
/** After this many failures in a row the gateway opens the URL's circuit: it stops sending except for probes. */
const FAILURES_TO_OPEN_CIRCUIT = 10;
/** What the receiver of a gigabyte writes again and again. */
const CHUNK = Buffer.alloc(64 * 1024, 'x');

const BAD_ANSWERS: Readonly<Record<string, Answer>> = {
  hang: () => undefined,
  // In the bench this receiver answers after 14.9 s. On the frozen clock that time never passes.
  slow: () => undefined,
  500: (_request, response) => void response.writeHead(500).end(),
  redirect: (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
  gigabyte: (_request, response) => {
    const writeUntilFull = (): void => {
      while (!response.destroyed && response.write(CHUNK));
    };
    response.on('drain', writeUntilFull).on('error', () => undefined);
    response.writeHead(200, { 'content-length': '1000000000' });
    writeUntilFull();
  },
  reset: (_request, response) => void response.socket?.resetAndDestroy(),
};

t.test('bad receivers do not affect a good one, and the attempts at each are limited', async (t) => {
  const { gateway, receiver: good } = await setUpWebhooks(t);
  const bad = new Map<string, TestReceiver>();
  const urlIds = new Map<string, number>();
  for (const [behaviour, answer] of Object.entries(BAD_ANSWERS)) {
    const receiver = await testReceiver(t);
    receiver.answer = answer;
    const added = await gateway.accounts.addWebhookUrl({ url: receiver.url });
    bad.set(behaviour, receiver);
    urlIds.set(behaviour, added.url.id);
  }
  const locks = [];
  for (let number = 1; number <= LOCKS; number++) locks.push(await connectedLock(t, gateway, testMac(number)));
  // Of the receivers that answer 500, redirect and reset.
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
  t.equal(good.requests.length, LOCKS * PINGS, 'the good receiver got each ping once');
  await opened;
  for (const behaviour of ['hang', 'slow'])
    t.equal(bad.get(behaviour)?.requests.length, MAX_CONCURRENT_ATTEMPTS, `${behaviour}: the maximum number at a time`);
  for (const behaviour of ['500', 'redirect', 'reset']) {
    // Attempts that were running when the circuit opened still fail.
    const { length } = bad.get(behaviour)?.requests ?? [];
    const maximum = FAILURES_TO_OPEN_CIRCUIT + MAX_CONCURRENT_ATTEMPTS;
    t.ok(length >= FAILURES_TO_OPEN_CIRCUIT && length < maximum, `${behaviour}: ${length} attempts`);
  }
  // A body of a gigabyte is cut off and counts as a success, so this receiver gets every event too.
  const gigabyteUrlId = urlIds.get('gigabyte') as number;
  await eventually('every event is delivered to the gigabyte receiver', async () => {
    const delivered = await readDeliveries(gateway, ['delivered'], [gigabyteUrlId]);
    return delivered.length === LOCKS * PINGS;
  });
});

/**
 * Failures on the gateway's side of a delivery: no file descriptor left, no name service, a store that can't be read or
 * written. They do not count as failures of the webhook URL, open no circuit (after which a failing URL gets only
 * probes), and do not delay other deliveries (interfaces.md §3).
 */
import type { LookupAddress } from 'node:dns';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import { positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { DeliveryProgress } from '../../../gateway/store/contract/webhooks/delivery.js';
import type { LookupAll } from '../../../gateway/webhooks/sending/name-service.js';
import { FAILURES_TO_OPEN } from '../../../gateway/webhooks/url/circuit.js';
import { ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  NO_JITTER,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { sqliteError } from '../../helpers/store/store-faults.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();

/** A name service that fails as the test says; by default every name resolves to 127.0.0.1. */
class TestNames {
  /** The error code for a name: undefined if the name is found, null if the look-up never returns. */
  failure: (name: string) => string | null | undefined = () => undefined;
  lookups = 0;

  readonly lookUp: LookupAll = (name, _options, callback) => {
    this.lookups += 1;
    const code = this.failure(name);
    const found: LookupAddress[] = [{ address: '127.0.0.1', family: 4 }];
    if (code === undefined) callback(null, found);
    else if (code !== null)
      callback(Object.assign(new Error(`getaddrinfo ${code} ${name}`), { code, syscall: 'getaddrinfo' }), []);
  };
}

/** The URL with this name instead of the address 127.0.0.1. */
function withHostName(url: string, name: string): string {
  return url.replace('127.0.0.1', name);
}

/** The notices of this kind, open and resolved, as operators see them. */
async function noticesOf(gateway: Gateway, kind: string) {
  const notices = await gateway.notices.list({ limit: 99 });
  return notices.filter((notice) => notice.kind === kind);
}

t.test(
  'failures of the gateway’s machine do not count as attempts, open no circuit, and are reported until they end',
  async (t) => {
    // The code of the system's error, and the subject of the notice to operators.
    const cases = [
      ['EMFILE', 'descriptors'],
      ['ENFILE', 'descriptors'],
      ['ENOBUFS', 'memory'],
      ['ENOMEM', 'memory'],
      ['EADDRNOTAVAIL', 'ports'],
      ['EAI_AGAIN', 'name-service'],
      ['ETIMEOUT', 'name-service'],
      ['ECONNREFUSED', 'name-service'],
    ] as const;
    for (const [code, subject] of cases) {
      const names = new TestNames();
      const { clock, gateway, receiver, urlId } = await setUpWebhooks(t, {}, { lookUp: names.lookUp });
      await gateway.webhooks.settings.set(urlId, { url: withHostName(receiver.url, 'merchant.test') });
      names.failure = () => code;
      let circuitCount = 0;
      gateway.events.on('circuit', () => {
        circuitCount += 1;
      });
      const lock = await connectedLock(t, gateway, MAC);
      for (let sequence = 1; sequence <= FAILURES_TO_OPEN + 2; sequence++) await lock.send(testBytes(sequence));
      await eventually('a delivery is tried', () => names.lookups > 0);
      let before = 0;
      for (let attempt = 0; attempt < FAILURES_TO_OPEN + 2; attempt++) {
        before = names.lookups;
        t.ok((await advanceToNextTimer(clock)) <= Seconds(15), 'the next try comes soon');
        await eventually('it is tried again', () => names.lookups > before);
      }
      await eventually('a notice', async () => (await noticesOf(gateway, 'cannot-send')).length > 0);
      t.match(await noticesOf(gateway, 'cannot-send'), [{ subject, resolvedAtMs: null }]);
      t.same(
        (await readDeliveries(gateway)).flatMap(({ attempts }) => attempts),
        [],
        `${code}: no attempt`,
      );
      t.equal(circuitCount, 0, `${code}: no circuit`);
      t.equal(receiver.requests.length, 0, 'no request');
      names.failure = () => undefined;
      await advanceToNextTimer(clock);
      await receiver.waitForRequests(FAILURES_TO_OPEN + 2);
      t.same(
        receivedSequences(receiver),
        Array.from({ length: FAILURES_TO_OPEN + 2 }, (_, index) => index + 1),
      );
      await eventually('the notice is over', async () => {
        return (await noticesOf(gateway, 'cannot-send')).every(({ resolvedAtMs }) => resolvedAtMs !== null);
      });
      await gateway.close();
    }
  },
);

t.test(
  'a name look-up that takes longer than an attempt may last does not count as a failure of the URL',
  async (t) => {
    const names = new TestNames();
    const { clock, gateway, receiver, urlId } = await setUpWebhooks(t, {}, { lookUp: names.lookUp });
    await gateway.webhooks.settings.set(urlId, { url: withHostName(receiver.url, 'merchant.test') });
    names.failure = () => null;
    const lock = await connectedLock(t, gateway, MAC);
    await lock.send(testBytes(1));
    await eventually('a delivery is tried', () => names.lookups > 0);
    // The time limit of an attempt.
    clock.advance(Seconds(15));
    await eventually('it waits for its next try', () => (clock.nextDueMs ?? 0) > clock.now());
    t.same(
      (await readDeliveries(gateway)).flatMap(({ attempts }) => attempts),
      [],
    );
  },
);

t.test('an unknown name counts as the URL’s failure, and so does a name that alone gets no answer', async (t) => {
  for (const code of ['ENOTFOUND', 'EAI_AGAIN']) {
    const names = new TestNames();
    const { gateway, receiver, urlId } = await setUpWebhooks(t, {}, { lookUp: names.lookUp });
    const other = await testReceiver(t);
    await gateway.webhooks.settings.set(urlId, { url: withHostName(receiver.url, 'bad.test') });
    await gateway.accounts.addWebhookUrl({ url: withHostName(other.url, 'good.test') });
    names.failure = (name) => (name === 'bad.test' ? code : undefined);
    const lock = await connectedLock(t, gateway, MAC);
    const opened = waitForEvents(gateway, 'circuit', 1);
    for (let sequence = 1; sequence <= FAILURES_TO_OPEN + 5; sequence++) {
      await lock.send(testBytes(sequence));
      await other.waitForRequests(sequence);
    }
    t.match(await opened, [{ urlId, state: 'opened' }], code);
    t.equal((await noticesOf(gateway, 'cannot-send')).length, 0, 'it is no trouble of the gateway');
  }
});

t.test('if no name gets an answer any more, that does not count as a failure of the URLs', async (t) => {
  const names = new TestNames();
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t, {}, { lookUp: names.lookUp });
  const other = await testReceiver(t);
  // Each attempt then needs a new connection, and so a new look-up.
  for (const each of [receiver, other])
    each.answer = (_request, response) => void response.writeHead(204, { connection: 'close' }).end();
  await gateway.webhooks.settings.set(urlId, { url: withHostName(receiver.url, 'one.test') });
  await gateway.accounts.addWebhookUrl({ url: withHostName(other.url, 'two.test') });
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await Promise.all([receiver.waitForRequests(1), other.waitForRequests(1)]);
  names.failure = () => 'EAI_AGAIN';
  for (let sequence = 2; sequence <= FAILURES_TO_OPEN; sequence++) {
    await lock.send(testBytes(sequence));
    await eventually('both wait', () => clock.pending >= 2 && (clock.nextDueMs ?? 0) > clock.now());
    clock.advance(Seconds(10));
  }
  t.same(
    (await readDeliveries(gateway)).flatMap(({ attempts }) => attempts.filter(({ error }) => error !== null)),
    [],
  );
  names.failure = () => undefined;
  await eventually('everything arrives', () => {
    clock.advance(Seconds(1));
    return receiver.requests.length === FAILURES_TO_OPEN && other.requests.length === FAILURES_TO_OPEN;
  });
});

// At an ordered URL a lock's events wait for its pending ones, so a gateway that starts reads which locks have any.
t.test('an ordered URL keeps its order even if its pending locks can’t be read at first', async (t) => {
  const folder = tempFolder(t);
  const clock = new ManualClock(systemClock.now());
  const options = { deliveryClock: clock, random: NO_JITTER };
  const first = await openGateway(t, folder, options);
  await first.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await first.accounts.addWebhookUrl({ url: receiver.url, ordered: true });
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  const attempted = waitForEvents(first, 'delivery', 1);
  await (await TestLock.connect(t, first.mqttPort, MAC, secret)).send(testBytes(1));
  await attempted;
  await first.close();
  let failuresLeft = 1;
  const readPendingLocks = (store: Store) => async (urlId: number) => {
    if (failuresLeft > 0) {
      failuresLeft -= 1;
      throw new StoreFailure('read deliveries', sqliteError('SQLITE_NOMEM', 'out of memory'));
    }
    return await store.webhooks.readPendingLocks(urlId);
  };
  const wrapStore = (store: Store): Store =>
    withOverrides(store, { webhooks: withOverrides(store.webhooks, { readPendingLocks: readPendingLocks(store) }) });
  const gateway = await openGateway(t, folder, { ...options, wrapStore });
  await eventually('the read has failed', () => failuresLeft === 0);
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await (await TestLock.connect(t, gateway.mqttPort, MAC, secret)).send(testBytes(2));
  // The failed read is repeated after a second.
  clock.advance(Seconds(1));
  await eventually('the second event waits or was sent', async () => {
    return receiver.requests.length > 1 || (await readDeliveries(gateway, ['pending']))[0]?.nextAttemptAtMs != null;
  });
  t.same(receivedSequences(receiver), [1], 'the second event waits for the first');
  clock.advance(Seconds(5));
  await receiver.waitForRequests(3);
  t.same(receivedSequences(receiver), [1, 1, 2]);
});

/** Wraps a store so that it refuses to record attempts of one event for as long as `isRefusing` returns true. */
function refusingOutcomesOf(uplinkId: number, isRefusing: () => boolean): (store: Store) => Store {
  const isBad = ({ attempts }: DeliveryProgress): boolean => attempts.some((attempt) => attempt.uplinkId === uplinkId);
  return (store) =>
    withOverrides(store, {
      recordProgress: async (progress) => {
        if (isRefusing() && progress.some(isBad))
          throw new StoreFailure('record deliveries', sqliteError('SQLITE_CONSTRAINT', 'the row is refused'));
        return await store.recordProgress(progress);
      },
    });
}

for (const { title, status } of [
  { title: 'a delivery', status: 204 },
  { title: 'a failure', status: 500 },
]) {
  t.test(`if the store refuses the outcome of ${title}, nothing else waits, and the outcome is not lost`, async (t) => {
    let isRefused = true;
    const folder = tempFolder(t);
    const clock = new ManualClock(systemClock.now());
    const options = { deliveryClock: clock, random: NO_JITTER };
    const gateway = await openGateway(t, folder, { ...options, wrapStore: refusingOutcomesOf(3, () => isRefused) });
    await gateway.accounts.addMerchant(MERCHANT);
    const [receiver, other] = [await testReceiver(t), await testReceiver(t)];
    receiver.answer = ({ json }, response) => void response.writeHead(json.sequence === 3 ? status : 204).end();
    await gateway.accounts.addWebhookUrl({ url: receiver.url });
    let degradedCount = 0;
    gateway.events.on('degraded', () => {
      degradedCount += 1;
    });
    const lock = await connectedLock(t, gateway, MAC);
    for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
    await receiver.waitForRequests(3);
    await gateway.accounts.addWebhookUrl({ url: other.url });
    for (let sequence = 4; sequence <= 20; sequence++) await lock.send(testBytes(sequence));
    await eventually('all others are sent', () => {
      clock.advance(Seconds(0.1));
      return receiver.requests.length === 20;
    });
    const recorded = async (urlId: number): Promise<number> =>
      (await readDeliveries(gateway, ['delivered'])).filter((delivery) => delivery.urlId === urlId).length;
    await eventually('all others are recorded', async () => (await recorded(1)) === 19 && (await recorded(2)) === 17);
    // A URL's cursor is the position in the log up to which the URL needs no further event.
    t.same(
      (await gateway.store.webhooks.find(1))?.cursor,
      positionAfter(2),
      'the cursor stays before the refused event',
    );
    t.same((await gateway.store.webhooks.find(2))?.cursor, positionAfter(20));
    await eventually('a notice', async () => {
      clock.advance(Seconds(1));
      return (await noticesOf(gateway, 'cannot-record')).length > 0;
    });
    t.match(await noticesOf(gateway, 'cannot-record'), [{ subject: '1', text: /refused/, resolvedAtMs: null }]);
    t.equal(degradedCount, 0, 'the gateway keeps taking pings');
    const requestCount = receiver.requests.length;
    clock.advance(Minutes(20));
    await gateway.notices.writePending();
    t.equal(receiver.requests.length, requestCount, 'the event whose outcome is refused is not sent again meanwhile');
    isRefused = false;
    await eventually('it is recorded', async () => {
      clock.advance(Minutes(1));
      const states = status === 204 ? (['delivered'] as const) : (['pending', 'delivered'] as const);
      const third = (await readDeliveries(gateway, states)).find(({ uplink }) => uplink.sequence === 3);
      return third !== undefined && third.attempts.length > 0;
    });
    await eventually('the notice is over', async () => {
      return (await noticesOf(gateway, 'cannot-record')).every(({ resolvedAtMs }) => resolvedAtMs !== null);
    });
  });
}

t.test('while the database is away, no outcome is tried alone, and all are recorded once it is back', async (t) => {
  const sizes: number[] = [];
  let triesLeft = 4;
  const clock = new ManualClock(systemClock.now());
  const wrapStore = (store: Store): Store =>
    withOverrides(store, {
      recordProgress: async (progress) => {
        sizes.push(progress.length);
        triesLeft -= 1;
        if (triesLeft >= 0)
          throw new StoreFailure('record deliveries', new Error('Connection terminated unexpectedly'));
        return await store.recordProgress(progress);
      },
    });
  const gateway = await openGateway(t, tempFolder(t), { deliveryClock: clock, random: NO_JITTER, wrapStore });
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(3);
  await eventually('all are recorded', async () => {
    clock.advance(Seconds(1));
    return (await readDeliveries(gateway, ['delivered'])).length === 3;
  });
  t.same(receivedSequences(receiver), [1, 2, 3], 'none is sent again');
  t.same(
    sizes,
    [...sizes].sort((one, other) => one - other),
    'what could not be stored is stored with what came since, never in parts',
  );
  t.same(await noticesOf(gateway, 'cannot-record'), []);
});

t.test('an event whose outcome is refused until the stop is attempted again at the next start', async (t) => {
  const folder = tempFolder(t);
  const options = { deliveryClock: new ManualClock(systemClock.now()), random: NO_JITTER };
  const first = await openGateway(t, folder, { ...options, wrapStore: refusingOutcomesOf(2, () => true) });
  await first.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  await first.accounts.addWebhookUrl({ url: receiver.url });
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, first.mqttPort, MAC, secret);
  for (const sequence of [1, 2, 3, 4]) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(4);
  await eventually(
    'the other three are recorded',
    async () => (await readDeliveries(first, ['delivered'])).length === 3,
  );
  await first.close();
  await openGateway(t, folder, options);
  await receiver.waitForRequests(5);
  t.same(receivedSequences(receiver), [1, 2, 3, 4, 2]);
});

/**
 * The gateway's health: who sees readiness and its reasons, what a failing store does, and how the gateway stops
 * (interfaces.md §2). test/system/store-failure.test.ts tests failures of a real file system.
 */
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { deflateSync } from 'node:zlib';
import got from 'got';
import t, { type Test } from 'tap';
import { GatewayEvents } from '../../gateway/events.js';
import type { Gateway } from '../../gateway/gateway.js';
import { STOP_LIMIT, type StopStep, stopAll, stopStep } from '../../gateway/graceful-stop.js';
import { watchEventLoop } from '../../gateway/health/event-loop.js';
import { Health } from '../../gateway/health/health.js';
import { StoreWatch } from '../../gateway/health/store.js';
import { failureKind, StoreFailure } from '../../gateway/store/contract/errors.js';
import { ALL_STORED } from '../../gateway/store/contract/log/commit-result.js';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../gateway/store/contract/store.js';
import type { UsageStore } from '../../gateway/store/contract/usage-store.js';
import { SOLE_OWNER } from '../../gateway/store/log/sole-owner.js';
import { monthOf } from '../../gateway/usage/month.js';
import { ManualClock, Seconds } from '../../proto/clock.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { connackCode, connectedLock, TestLock } from '../helpers/mqtt/test-lock.js';
import { sqliteError } from '../helpers/store/store-faults.js';

/** The id of the only merchant. */
const MERCHANT_ID = 1;
/** A return code of CONNACK (MQTT 3.1.1, 3.2.2.3). */
const SERVER_UNAVAILABLE = 3;

interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

/** A GET request to a local port, with or without a token. */
async function callPort(port: number, route: string, token?: string): Promise<HttpAnswer> {
  const { statusCode, headers, body } = await got(`http://127.0.0.1:${port}${route}`, {
    throwHttpErrors: false,
    retry: { limit: 0 },
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });
  return { status: statusCode, headers, body: JSON.parse(body) };
}

const getFromMerchantPort = (gateway: Gateway, route: string) => callPort(gateway.httpPort, route);
const getFromOperatorPort = (gateway: Gateway, route: string) =>
  callPort(gateway.operatorPort, route, gateway.operatorToken);

/** Sends bytes to a local port, and returns everything received until the other side closes. */
function exchangeBytes(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject).on('close', () => resolve(answer));
  });
}

t.test('merchants see whether the gateway is up and ready, without reasons', async (t) => {
  const gateway = await testGateway(t);
  const fresh = { status: 200, headers: { 'cache-control': 'no-store' } };
  const [healthy, ready] = [
    await getFromMerchantPort(gateway, '/healthz'),
    await getFromMerchantPort(gateway, '/readyz'),
  ];
  t.match(healthy, fresh);
  t.same(healthy.body, { status: 'up' });
  t.match(ready, fresh);
  t.same(ready.body, { status: 'ready' });
  for (const route of ['/metrics', '/status', '/events', '/readyz/', '/docs/json/x']) {
    const answer = await getFromMerchantPort(gateway, route);
    t.match(answer, { status: 404, headers: { 'content-type': /^application\/problem\+json/ } }, route);
    t.match(answer.body, { type: 'about:blank', title: 'Not Found', status: 404, detail: /nothing at this path/ });
  }
});

t.test('a request that is too large or not HTTP gets a problem document, and its connection is closed', async (t) => {
  const gateway = await testGateway(t);
  const long = await exchangeBytes(
    gateway.httpPort,
    `GET /healthz HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
  );
  t.match(long, /^HTTP\/1\.1 431 .*application\/problem\+json.*"status":431/s);
  t.match(await exchangeBytes(gateway.httpPort, 'no http at all\r\n\r\n'), /^HTTP\/1\.1 400 .*problem\+json/s);
});

t.test('operators see the reasons, and need the token', async (t) => {
  const gateway = await testGateway(t);
  t.match(await getFromOperatorPort(gateway, '/healthz'), { status: 200, body: { status: 'up' } });
  t.match(await getFromOperatorPort(gateway, '/readyz'), { status: 200, body: { status: 'ready', reasons: [] } });
  for (const route of ['/healthz', '/readyz', '/metrics'])
    t.match(await callPort(gateway.operatorPort, route), { status: 401 }, route);
});

/** A store whose writes throw the error that `failure` returns, if any. */
function withFailingWrites(failure: () => Error | undefined): (store: Store) => Store {
  return (store) => {
    /** The same method, which throws while there is a failure. */
    const failOr =
      <Args extends unknown[], Result>(name: string, write: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        const error = failure();
        if (error !== undefined) throw new StoreFailure(name, error);
        return await write(...args);
      };
    return withOverrides(store, {
      append: failOr('append', (commit) => store.append(commit)),
      recordProgress: failOr('record deliveries', (progress) => store.recordProgress(progress)),
      writeMetadata: failOr('write metadata', (name: string, value: string) => store.writeMetadata(name, value)),
    });
  };
}

/** Sends an uplink without waiting. The returned function says whether it has been acknowledged. */
function sendWithoutWaiting(lock: TestLock, bytes: Buffer): () => boolean {
  let hasAck = false;
  lock.send(bytes).then(
    () => {
      hasAck = true;
    },
    () => undefined,
  );
  return () => hasAck;
}

t.test(
  'with a full disk the gateway acknowledges nothing and is not ready, and recovers when there is room',
  async (t) => {
    let diskError: Error | undefined;
    const gateway = await testGateway(t, { wrapStore: withFailingWrites(() => diskError) });
    const { secret } = await gateway.accounts.addDevice({ mac: testMac() });
    const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
    await lock.send(testBytes(1));

    diskError = sqliteError('SQLITE_FULL', 'database or disk is full');
    const degraded = waitForEvents(gateway, 'degraded', 1);
    const hasAck = sendWithoutWaiting(lock, testBytes(2));
    await lock.closed;
    t.notOk(hasAck());
    t.match(await degraded, [{ reason: 'store', why: /disk is full/ }]);
    const reasons = [{ code: 'store', since: /^\d{4}-.*Z$/, why: /the store could not append: .*disk is full/ }];
    t.match(await getFromOperatorPort(gateway, '/readyz'), { status: 503, body: { status: 'degraded', reasons } });
    t.match(await getFromOperatorPort(gateway, '/healthz'), { status: 200 }, 'the gateway is up nevertheless');
    t.same(
      (await getFromMerchantPort(gateway, '/readyz')).body,
      { status: 'not_ready' },
      'without a reason for strangers',
    );
    const identity = { clientId: testMac(), username: testMac(), password: secret };
    t.equal(await connackCode(gateway.mqttPort, identity), SERVER_UNAVAILABLE, 'a CONNECT is refused');

    const recovered = waitForEvents(gateway, 'recovered', 1);
    diskError = undefined;
    t.match(await recovered, [{ reason: 'store' }], 'a probe finds the recovery');
    t.match(await getFromMerchantPort(gateway, '/readyz'), { status: 200 });
    const reconnected = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
    await reconnected.send(testBytes(2));
    t.match(
      await gateway.store.readEvents(MERCHANT_ID, LOG_START, 9),
      [{ sequence: 1 }, { sequence: 2 }],
      'everything acknowledged is stored',
    );
  },
);

t.test('after an I/O error nothing more is written, and no later success is trusted', async (t) => {
  let diskError: Error | undefined;
  let writeCount = 0;
  const breaking = withFailingWrites(() => {
    writeCount += 1;
    return diskError;
  });
  // SQLite writes to the disk when it is closed, so this test counts closing as a write.
  const close = async (): Promise<void> => {
    writeCount += 1;
  };
  const wrapStore = (store: Store): Store => withOverrides(breaking(store), { close });
  const broken: StoreFailure[] = [];
  const gateway = await testGateway(t, { wrapStore, onBroken: (failure) => broken.push(failure) });
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  const reported = waitForEvents(gateway, 'store-broken', 1);
  diskError = sqliteError('SQLITE_IOERR_FSYNC', 'disk I/O error');
  const hasAck = sendWithoutWaiting(lock, testBytes(2));
  t.match(await reported, [{ why: /disk I\/O error; what is on the disk is uncertain now/ }]);
  t.match(broken, [{ kind: 'io' }], 'the caller is notified, once');
  // The disk reports success again, which means nothing after a failed fsync.
  diskError = undefined;
  writeCount = 0;
  await lock.closed;
  t.notOk(hasAck());
  await t.rejects(gateway.store.writeMetadata('a', 'b'), { message: /disk I\/O error/ });
  t.match(await getFromOperatorPort(gateway, '/healthz'), { status: 503, body: { status: 'down' } });
  t.match(await getFromMerchantPort(gateway, '/healthz'), { status: 503, body: { status: 'down' } });
  await gateway.close();
  t.equal(writeCount, 0, 'closing the store writes nothing either');
  t.equal(broken.length, 1, 'the caller was notified once');
});

/** The members of a store that are no methods and that every wrapper reads. */
const BARE_STORE = { ownership: SOLE_OWNER, commitSpacing: { commitsPerSecond: 250, minSharingItems: 32 } } as Store;

t.test('a write under way when the store broke fails too, although it succeeded', async (t) => {
  const events = new GatewayEvents();
  const clock = new ManualClock();
  const now = (): number => clock.now();
  const health = new Health({ events, clock, now });
  const finishWrite: ((error?: Error) => void)[] = [];
  const writeMetadata = (): Promise<void> =>
    new Promise((resolve, reject) => finishWrite.push((error) => (error === undefined ? resolve() : reject(error))));
  const store = withOverrides(BARE_STORE, { writeMetadata });
  const watch = new StoreWatch({ store, health, events, clock, now });
  const writes = [watch.store.writeMetadata('a', ''), watch.store.writeMetadata('b', '')];
  finishWrite[0]?.(sqliteError('SQLITE_IOERR_WRITE', 'disk I/O error'));
  await t.rejects(writes[0] as Promise<void>, { message: /disk I\/O error/ });
  finishWrite[1]?.();
  await t.rejects(writes[1] as Promise<void>, { message: /disk I\/O error/ });
  t.equal(clock.pending, 0, 'no probe is scheduled any more');
});

t.test(
  'a probe takes as much room on the disk as an ordinary commit, also where long texts are compressed',
  async (t) => {
    const events = new GatewayEvents();
    const clock = new ManualClock();
    const now = (): number => clock.now();
    const health = new Health({ events, clock, now });
    const written: string[] = [];
    const store = withOverrides(BARE_STORE, {
      append: async () => ALL_STORED,
      writeMetadata: async (_name, value) => void written.push(value),
    });
    const watch = new StoreWatch({ store, health, events, clock, now });
    watch.troubled('the disk is full');
    t.ok(await watch.canWrite());
    t.ok(deflateSync(written[0] ?? '').length > 40_000, 'its text hardly gets smaller');
    t.equal(written[1], '', 'and is cleared');
  },
);

t.test('a method of the store that writes is watched, and one that reads is not', async (t) => {
  const events = new GatewayEvents();
  const clock = new ManualClock();
  const now = (): number => clock.now();
  const health = new Health({ events, clock, now });
  // usage.close writes a month's statement, so it is watched. The store's own close is not.
  const close = async (): Promise<never> => {
    throw sqliteError('SQLITE_IOERR_FSYNC', 'disk I/O error');
  };
  const usage = withOverrides({} as UsageStore, { close });
  const broken: StoreFailure[] = [];
  const store = withOverrides(BARE_STORE, { usage, countDevices: async () => 1 });
  const onBroken = (failure: StoreFailure): void => void broken.push(failure);
  const watch = new StoreWatch({ store, health, events, clock, now, onBroken });
  const commits: unknown[] = [];
  events.on('commit', (commit) => commits.push(commit));
  t.equal(await watch.store.countDevices(), 1);
  t.same(commits, [], 'counting is not a write');
  await t.rejects(
    watch.store.usage.close(1, monthOf(0), 0, () => ''),
    { name: 'StoreFailure' },
  );
  t.match(commits, [{ what: 'other', failure: 'io' }]);
  t.match(broken, [{ kind: 'io' }], 'nothing is written after the disk failed');
});

t.test('the engines’ errors map to the kinds of failure', async (t) => {
  const kinds = {
    SQLITE_FULL: 'full',
    ENOSPC: 'full',
    SQLITE_IOERR_SHMSIZE: 'full',
    SQLITE_IOERR: 'io',
    SQLITE_IOERR_FSYNC: 'io',
    SQLITE_IOERR_WRITE: 'io',
    SQLITE_CORRUPT: 'io',
    SQLITE_CORRUPT_INDEX: 'io',
    EIO: 'io',
    SQLITE_BUSY: 'busy',
    SQLITE_BUSY_SNAPSHOT: 'busy',
    SQLITE_CONSTRAINT_UNIQUE: 'other',
    // PostgreSQL's, and the system's for its connections.
    53100: 'full',
    40001: 'busy',
    '40P01': 'busy',
    '55P03': 'busy',
    '08006': 'away',
    25006: 'away',
    53300: 'away',
    '57P01': 'away',
    '57P02': 'away',
    '57P03': 'away',
    57014: 'other',
    23505: 'other',
    58030: 'other',
    ECONNREFUSED: 'away',
    ECONNRESET: 'away',
    EPIPE: 'away',
    ETIMEDOUT: 'away',
    EHOSTUNREACH: 'away',
    ENETUNREACH: 'away',
    ENOTFOUND: 'away',
    EAI_AGAIN: 'away',
    ENOENT: 'other',
  } as const;
  for (const [code, kind] of Object.entries(kinds)) {
    t.equal(failureKind(sqliteError(code, '')), kind, code);
    t.equal(new StoreFailure('write', sqliteError(code, '')).kind, kind);
  }
  // What PostgreSQL's driver throws without a code.
  for (const message of ['timeout exceeded when trying to connect', 'Connection terminated unexpectedly'])
    t.equal(failureKind(new Error(message)), 'away', message);
  t.equal(failureKind(new Error('the Connection terminated')), 'other');
  for (const unknownError of [undefined, null, 'full', new Error('full'), { code: 7 }])
    t.equal(failureKind(unknownError), 'other');
});

t.test('a blocked event loop makes the gateway unready until there was no such delay for 5 s', async (t) => {
  const events = new GatewayEvents();
  const clock = new ManualClock();
  const health = new Health({ events, clock, now: () => clock.now() });
  health.started();
  const delays: number[] = [];
  let blockedMs = 0;
  const stop = watchEventLoop({
    clock,
    health,
    onDelay: (delay) => delays.push(delay),
    monotonic: () => clock.now() + blockedMs,
  });
  clock.advance(Seconds(1));
  t.ok(health.isReady);
  t.same(delays, new Array(10).fill(0), 'a check every 0.1 s, none of them late');
  // The loop comes 2.5 s late to its next check.
  blockedMs = Seconds(2.5);
  clock.advance(Seconds(0.1));
  t.match(health.reasons, [{ code: 'event-loop', why: 'the event loop was blocked for 2.5 s' }]);
  t.equal(delays.at(-1), 2500);
  clock.advance(Seconds(4.9));
  t.notOk(health.isReady);
  clock.advance(Seconds(0.2));
  t.ok(health.isReady);
  stop();
  t.equal(clock.pending, 0);
});

/** A webhook receiver that never answers; `firstWebhook` resolves when the first webhook has arrived. */
async function startSilentReceiver(t: Test): Promise<{ readonly url: string; readonly firstWebhook: Promise<void> }> {
  let onRequest: () => void = () => undefined;
  const firstWebhook = new Promise<void>((resolve) => {
    onRequest = resolve;
  });
  const server = createServer((request) => void request.resume().on('end', onRequest));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, firstWebhook };
}

t.test('while the gateway stops, it reports so and accepts no new calls', async (t) => {
  const gateway = await testGateway(t);
  const { url, firstWebhook } = await startSilentReceiver(t);
  await gateway.accounts.addWebhookUrl({ url });
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  // A hanging webhook keeps the stop from finishing at once.
  await firstWebhook;
  const closed = gateway.close();
  t.match(await getFromMerchantPort(gateway, '/readyz'), { status: 503, body: { status: 'not_ready' } });
  t.match(await getFromMerchantPort(gateway, '/healthz'), { status: 200 }, 'it is still up');
  const body = { status: 'stopping', reasons: [{ code: 'stopping' }] };
  t.match(await getFromOperatorPort(gateway, '/readyz?x'), { status: 503, body });
  t.match(await getFromOperatorPort(gateway, '/status'), { status: 503, body: { code: 'stopping' } });
  await closed;
  await t.rejects(getFromMerchantPort(gateway, '/healthz'), { message: /ECONNREFUSED|socket hang up/ });
});

t.test('a stop closes the parts in reverse order, and reports the part that hangs', async (t) => {
  const order: string[] = [];
  const recordedStep = (name: string, fails = false): StopStep =>
    stopStep(name, async () => {
      order.push(name);
      if (fails) throw new Error(`${name} is stuck`);
    });
  await stopAll([recordedStep('a'), recordedStep('b'), recordedStep('c')], new ManualClock());
  t.same(order, ['c', 'b', 'a']);
  await t.rejects(stopAll([recordedStep('d'), recordedStep('e', true)], new ManualClock()), { message: 'e is stuck' });
  t.same(order, ['c', 'b', 'a', 'e', 'd'], 'a part that fails does not keep the others from closing');

  const clock = new ManualClock();
  const hangs = stopAll(
    [recordedStep('f'), stopStep('the lift', () => new Promise(() => undefined)), recordedStep('g')],
    clock,
  );
  const ended = t.rejects(hangs, { code: 'stop-hung', message: 'the gateway did not stop within 9 s: the lift hangs' });
  // Part g is closed before the lift, in some turns of the queue of microtasks.
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  clock.advance(STOP_LIMIT);
  await ended;
  t.same(order.slice(-1), ['g']);
});

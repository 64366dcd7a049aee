/**
 * The figures about undelivered events that operators see in the status, the list of URLs and the metrics: they match
 * what the receivers got, and times and states are current. The backlog of a URL is its undelivered events: `behind`
 * counts events that the URL's worker has not read from the log, `pending` those that wait for a retry.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import got from 'got';
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { WorstDelay } from '../../../gateway/health/event-loop.js';
import { Figures } from '../../../gateway/metrics/figures.js';
import type { UrlBacklog } from '../../../gateway/store/contract/store-figures.js';
import { FiguresThread } from '../../../gateway/store/sqlite/figures/figures-in-thread.js';
import { Backlogs, MAX_UNDELIVERED_AGE, MAX_UNDELIVERED_EVENTS } from '../../../gateway/webhooks/backlogs.js';
import { FAILURES_TO_OPEN } from '../../../gateway/webhooks/url/circuit.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { within } from '../../helpers/clocks/change-signal.js';
import { testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { eventually, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { openDescriptors } from '../../helpers/http/raw-http.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { makeStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The figures are counted in a separate thread, as in production. */
const WITH_THREAD = { figuresThread: true };
const LOCKS = 3;
/** How many pings each lock sends. */
const PINGS = 40;

/** The part of a URL in the status or the list that the tests read. */
interface ListedUrl {
  readonly id: number;
  readonly state: string;
  readonly circuit: string;
  readonly backlog: { readonly behind: number; readonly pending: number; readonly oldest_seconds: number | null };
}

async function getAsOperator<T>(gateway: Gateway, path: string): Promise<T> {
  const headers = { authorization: `Bearer ${gateway.operatorToken}` };
  return await got(`http://127.0.0.1:${gateway.operatorPort}${path}`, { headers }).json<T>();
}

async function readMetrics(gateway: Gateway): Promise<string> {
  const headers = { authorization: `Bearer ${gateway.operatorToken}` };
  return await got(`http://127.0.0.1:${gateway.operatorPort}/metrics`, { headers }).text();
}

/** Sends pings of each lock, from the sequence `first` on, and waits for their PUBACKs. */
async function sendPings(t: Parameters<typeof connectedLock>[0], gateway: Gateway, first: number): Promise<void> {
  for (let number = 0; number < LOCKS; number += 1) {
    const lock = await connectedLock(t, gateway, testMac(number));
    for (let sequence = first; sequence < first + PINGS; sequence += 1) await lock.send(testBytes(sequence));
  }
}

t.test('undelivered events of a URL are counted, whether its worker has read them or not', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t, {}, WITH_THREAD);
  let acceptedCount = 0;
  let refusedCount = 0;
  receiver.answer = (_request, response) => {
    // The receiver accepts the first twenty and then fails.
    const isAccepted = acceptedCount < 20;
    if (isAccepted) acceptedCount += 1;
    else refusedCount += 1;
    response.writeHead(isAccepted ? 204 : 500).end();
  };
  await sendPings(t, gateway, 1);
  const sentCount = LOCKS * PINGS;
  await eventually('its circuit is open', () => refusedCount >= FAILURES_TO_OPEN);
  await eventually('figures that agree with the receiver', async () => {
    const { urls } = await getAsOperator<{ urls: ListedUrl[] }>(gateway, '/status');
    const { behind = 0, pending = 0 } = urls[0]?.backlog ?? {};
    return behind + pending === sentCount - acceptedCount;
  });
  const { urls, locks, disk, event_loop } = await getAsOperator<Record<string, Record<string, number> & ListedUrl[]>>(
    gateway,
    '/status',
  );
  const listed = urls as unknown as ListedUrl[];
  t.match(listed, [{ state: 'active', circuit: 'open' }]);
  t.ok((listed[0]?.backlog.pending ?? 0) > 0, 'failed events wait for their retry');
  t.ok((listed[0]?.backlog.behind ?? 0) > 0, 'the worker has not read the remaining events');
  t.type(listed[0]?.backlog.oldest_seconds, 'number');
  t.match(locks, { in_service: Number, presence: { online: LOCKS } });
  t.ok((disk?.store_bytes ?? 0) > 0 && (disk?.free_bytes ?? 0) > 0);
  t.type(event_loop?.worst_delay_ms, 'number');

  const text = await readMetrics(gateway);
  t.match(text, `lockgate_deliveries_waiting{url_id="1"} ${sentCount - acceptedCount}\n`);
  t.match(text, `lockgate_url_events{url_id="1",state="dead"} 0\n`);
  t.match(text, 'lockgate_url_circuit_open{url_id="1"} 1\n');
  t.match(text, 'lockgate_url_disabled{url_id="1"} 0\n');
  t.match(text, /lockgate_url_oldest_seconds\{url_id="1"\} \d/);
  t.match(text, /lockgate_store_bytes [1-9]/);
  t.match(text, /lockgate_disk_free_bytes [1-9]/);

  const { webhooks } = await getAsOperator<{ webhooks: ListedUrl[] }>(gateway, '/webhooks');
  const { behind = 0, pending = 0 } = webhooks[0]?.backlog ?? {};
  t.equal(behind + pending, sentCount - acceptedCount, 'the list has the same numbers');
});

t.test('locks that never connected count too', async (t) => {
  const { gateway } = await setUpWebhooks(t, {}, WITH_THREAD);
  const { in_service: before } = (await getAsOperator<{ locks: { in_service: number } }>(gateway, '/status')).locks;
  for (const number of [50, 51, 52]) await gateway.accounts.addDevice({ mac: testMac(number) });
  const { in_service: after } = (await getAsOperator<{ locks: { in_service: number } }>(gateway, '/status')).locks;
  t.equal(after, before + 3, 'at once');
  const presence = (name: string, text: string): number =>
    Number(new RegExp(`lockgate_presence\\{presence="${name}"\\} (\\d+)`).exec(text)?.[1]);
  t.ok(presence('never-seen', await readMetrics(gateway)) >= 3);
});

// A process that has used up its file descriptors could not start a thread.
t.test('the counting thread starts with the gateway, so that reading figures opens no descriptor', async (t) => {
  const gateway = await testGateway(t, WITH_THREAD);
  const before = openDescriptors();
  await gateway.store.readFigures();
  t.equal(openDescriptors(), before);
});

t.test('a second read during a first one includes rows written in between', async (t) => {
  const folder = tempFolder(t);
  await makeStore(folder);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = new SqliteDatabase(file);
  const thread = new FiguresThread(file);
  t.teardown(() => thread.close().then(() => db.close()));
  await thread.open();
  db.pragma('synchronous = OFF');
  // The store's triggers compute a checksum of each row; figures don't check it.
  db.function('row_sum', { varargs: true }, () => 0);
  const merchant = db.prepare("INSERT INTO merchant (name, created_at_ms, sum) VALUES ('Figures', 0, 0) RETURNING id");
  const merchantId = merchant.pluck().get();
  const lock = db.prepare(
    'INSERT INTO device (mac, merchant_id, simulated, created_at_ms, sum) VALUES (?, ?, 0, 0, 0)',
  );
  for (let locks = 1; locks <= 100; locks += 1) {
    const first = thread.read();
    lock.run(testMac(locks), merchantId);
    const [, { locksInService }] = await Promise.all([first, thread.read()]);
    t.equal(locksInService, locks);
  }
});

t.test('while the store fails, figures do not wait for the outcomes of attempts to be stored', async (t) => {
  const clock = new ManualClock(0);
  const store = {
    readFigures: async () => ({ backlogs: [], locksInService: 2 }),
    readDiskSpace: async () => ({ storeBytes: 0, freeBytes: 0 }),
  };
  const backlogs = new Backlogs({ store, events: new GatewayEvents(), clock, runClock: clock, speed: 1 });
  const neverStored = (): Promise<void> => new Promise(() => undefined);
  const figures = new Figures({ backlogs, store, outcomesStored: neverStored, isStoreFailing: () => true, clock });
  t.match(await within(20, () => 'no answer while the store fails', figures.read()), { store: { locksInService: 2 } });
});

t.test('no next attempt is in the past, and a disabled URL has no open circuit and no next attempt', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t, {}, WITH_THREAD);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await sendPings(t, gateway, 1);
  await eventually('its circuit is open', async () => (await listedUrl(gateway)).circuit === 'open');
  // Null for events without an attempt: they are sent when the circuit closes.
  const nextAttemptTimes = async (): Promise<(string | null)[]> => {
    const { deliveries } = await getAsOperator<{ deliveries: { next_attempt_at: string | null }[] }>(
      gateway,
      `/deliveries?url=${urlId}&state=pending&limit=500`,
    );
    return deliveries.map((each) => each.next_attempt_at);
  };
  // No attempt is made while the clock passes the due times.
  receiver.answer = () => undefined;
  const dueBefore = (await nextAttemptTimes()).flatMap((each) => (each === null ? [] : [Date.parse(each)]));
  t.ok(
    dueBefore.length > 0 && dueBefore.every((atMs) => atMs >= Math.floor(clock.now())),
    'planned, and in the future',
  );
  clock.advance(Minutes(4));
  const due = (await nextAttemptTimes()).flatMap((each) => (each === null ? [] : [Date.parse(each)]));
  t.ok(
    due.length > 0 && due.every((atMs) => atMs >= Math.floor(clock.now())),
    'an attempt whose time has passed is planned for now',
  );

  await gateway.webhooks.settings.set(urlId, { state: 'disabled' });
  t.match(await listedUrl(gateway), { state: 'disabled', circuit: 'closed' });
  const afterDisabling = await nextAttemptTimes();
  t.ok(afterDisabling.length > 0 && afterDisabling.every((each) => each === null), 'none is planned');
  t.match(await readMetrics(gateway), 'lockgate_url_circuit_open{url_id="1"} 0\n');
  await eventually('the figure', async () =>
    (await readMetrics(gateway)).includes('lockgate_url_disabled{url_id="1"} 1\n'),
  );
});

async function listedUrl(gateway: Gateway): Promise<ListedUrl> {
  const { webhooks } = await getAsOperator<{ webhooks: ListedUrl[] }>(gateway, '/webhooks');
  return webhooks[0] as ListedUrl;
}

t.test('a URL that is far behind is reported once, and again when it has caught up', async (t) => {
  const clock = new ManualClock(0);
  const backlog = { urlId: 7, isDisabled: false, behind: 0, pending: 0, dead: 0, damaged: 0, oldestReceivedAtMs: null };
  let backlogs: UrlBacklog[] = [backlog];
  const store = { readFigures: async () => ({ backlogs, locksInService: 0 }) };
  const events = new GatewayEvents();
  const reported: string[] = [];
  const reasons: string[] = [];
  events.on('backlog', ({ urlId, state, why }) => {
    reported.push(`${urlId} ${state}`);
    reasons.push(why);
  });
  const watch = new Backlogs({ store, events, clock, runClock: clock, speed: 1 });
  watch.start();
  t.teardown(() => watch.stop());
  /** What is reported when the URL has this backlog. */
  const reportsAfter = async (change: Partial<UrlBacklog>): Promise<readonly string[]> => {
    backlogs = [{ ...backlog, ...change }];
    await watch.checked();
    clock.advance(Seconds(10));
    await watch.checked();
    return reported.splice(0);
  };
  t.same(await reportsAfter({ behind: MAX_UNDELIVERED_EVENTS, oldestReceivedAtMs: clock.now() }), []);
  t.same(await reportsAfter({ behind: MAX_UNDELIVERED_EVENTS, pending: 1, oldestReceivedAtMs: clock.now() }), [
    '7 behind',
  ]);
  t.same(
    await reportsAfter({ behind: MAX_UNDELIVERED_EVENTS / 2 + 1, oldestReceivedAtMs: clock.now() }),
    [],
    'it counts as caught up only at half of the limit',
  );
  t.same(await reportsAfter({ behind: MAX_UNDELIVERED_EVENTS / 2, oldestReceivedAtMs: clock.now() }), ['7 caught-up']);
  t.same(
    await reportsAfter({ pending: 1, oldestReceivedAtMs: clock.now() - MAX_UNDELIVERED_AGE }),
    ['7 behind'],
    'behind by age',
  );
  t.equal(reasons[0], '10,001 events are not delivered, the oldest received at 1970-01-01T00:00:10.000Z');
  t.same(
    await reportsAfter({ isDisabled: true, pending: 1, oldestReceivedAtMs: 0 }),
    ['7 caught-up'],
    'a disabled URL does not count as behind',
  );
});

t.test('the worst delay of the event loop is that of the last minute', async (t) => {
  let now = 0;
  const worst = new WorstDelay(() => now);
  t.equal(worst.ms, 0);
  worst.note(30);
  now += Seconds(30);
  worst.note(12);
  t.equal(worst.ms, 30);
  now += Seconds(30);
  t.equal(worst.ms, 12);
  now += Seconds(90);
  t.equal(worst.ms, 0);
});

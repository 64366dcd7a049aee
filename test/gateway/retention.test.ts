/**
 * Deletion of old rows (setting `--keep-days`, gateway/retention.ts) on manual clocks: which rows are deleted, which
 * stay, and how fast. A sweep is one pass over the store, which deletes old rows in small chunks. An event of a webhook
 * URL is in a gap if it came while the URL was disabled.
 */
import t from 'tap';
import { readConfig } from '../../gateway/config-reader.js';
import { GatewayEvents } from '../../gateway/events.js';
import type { Swept } from '../../gateway/operation-events.js';
import { resolveSettings } from '../../gateway/resolved-settings.js';
import { Retention } from '../../gateway/retention.js';
import type { AgingChunk } from '../../gateway/store/contract/deletion.js';
import type { Incoming } from '../../gateway/store/contract/log/commit.js';
import type { CommitResult } from '../../gateway/store/contract/log/commit-result.js';
import { LOG_START, positionAfter } from '../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../gateway/store/contract/store.js';
import { DELIVERY_STATES } from '../../gateway/store/contract/webhook-store.js';
import type { AttemptRecord } from '../../gateway/store/contract/webhooks/delivery.js';
import { SOLE_OWNER } from '../../gateway/store/log/sole-owner.js';
import { uplinkDigest } from '../../gateway/webhooks/event-id.js';
import { afterThisTurn, Days, Hours, ManualClock, Minutes, systemClock } from '../../proto/clock.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';
import { openStore } from '../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;
const MAC = testMac();
const KEEP_DAYS = 40;
const START = Date.UTC(2026, 0, 1);
/** Any bytes: a secret's hash, a sealed secret, or quarantined bytes (bytes of a lock that could not be decoded). */
const SOME_BYTES = Buffer.alloc(32, 7);

interface RetentionSetup {
  readonly store: Store;
  readonly clock: ManualClock;
  /** The deletions that the store was asked for. */
  readonly chunks: AgingChunk[];
  readonly swept: Swept[];
}

/** Makes a store with a lock, and a Retention; all use one clock. */
async function setUpRetention(t: Teardown, keepDays = KEEP_DAYS): Promise<RetentionSetup> {
  const store = await openStore(tempFolder(t));
  const clock = new ManualClock(START);
  const events = new GatewayEvents();
  const swept: Swept[] = [];
  const chunks: AgingChunk[] = [];
  events.on('swept', (each) => swept.push(each));
  const recordingStore = withOverrides(store, {
    deleteOld: (chunk) => {
      chunks.push(chunk);
      return store.deleteOld(chunk);
    },
  });
  const retention = new Retention({ store: recordingStore, events, keepDays, clock, runClock: clock });
  t.teardown(async () => {
    await retention.stop();
    await store.close();
  });
  await store.addMerchant('Amber', START);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: false, secretHash: SOME_BYTES, nowMs: START });
  retention.start();
  return { store, clock, chunks, swept };
}

/** An uplink of the only lock. Of `kind` 1 it is an event for merchants; of kind 0 it is not. */
function uplink(sequence: number, receivedAtMs: number, kind = 1): Incoming {
  const bytes = testBytes(sequence);
  const uplinkKey = { deviceId: 1, merchantId: 1, credentialId: 1, boot: 1, sequence, digest: uplinkDigest(bytes) };
  return { type: 'uplink', ...uplinkKey, kind, bytes, receivedAtMs, buffered: false };
}

function append(store: Store, ...incoming: Incoming[]): Promise<CommitResult> {
  return store.append({ incoming, judged: [], states: new Map() });
}

/** Advances the clock from timer to timer until the sweep has finished and the next sweep is far away. */
async function sweep({ clock }: RetentionSetup): Promise<void> {
  await runLoopTurns();
  clock.advance((clock.nextDueMs as number) - clock.now());
  for (;;) {
    await runLoopTurns();
    const dueMs = clock.nextDueMs;
    if (dueMs !== undefined && dueMs - clock.now() > Minutes(5)) return;
    if (dueMs !== undefined) clock.advance(dueMs - clock.now());
  }
}

/** Runs some turns of the event loop: enough for a step of a sweep. */
async function runLoopTurns(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await new Promise<void>((resolve) => afterThisTurn(resolve));
}

/** The sequence numbers of the merchant's events. */
async function sequences(store: Store): Promise<number[]> {
  return (await store.readEvents(FIRST_ID, LOG_START, 9999)).map(({ sequence }) => sequence);
}

t.test('rows of every kind that are older than the configured days are deleted; younger rows stay', async (t) => {
  const setup = await setUpRetention(t);
  const { store, clock } = setup;
  const [oldMs, youngMs] = [START, START + Days(10)];
  const finding = { rule: 'out-of-range', severity: 'violation', message: 'm', mac: '', about: null } as const;
  for (const atMs of [oldMs, youngMs])
    await store.append({
      incoming: [
        uplink(atMs === oldMs ? 1 : 2, atMs),
        uplink(atMs === oldMs ? 3 : 4, atMs, 0),
        { type: 'lock-event', deviceId: 1, atMs, event: { event: 'connect' } },
        {
          type: 'quarantine',
          deviceId: 1,
          credentialId: 1,
          receivedAtMs: atMs,
          code: 'c',
          message: 'm',
          bytes: SOME_BYTES,
        },
      ],
      judged: [{ deviceId: 1, withdrawn: [], findings: [{ ...finding, atMs }] }],
      states: new Map(),
    });
  clock.advance(Days(KEEP_DAYS) - Hours(1));
  await sweep(setup);
  t.same(setup.swept, [], 'nothing is deleted early');
  clock.advance(Hours(2));
  await sweep(setup);
  // The others are a connection, a quarantined message and a finding.
  t.match(setup.swept, [{ uplinks: 2, others: 3, held: 0 }]);
  t.same(await sequences(store), [2]);
  t.match(await store.readFindings(FIRST_ID, 9), [{ finding: { atMs: youngMs } }]);
  t.match(await store.readQuarantine(FIRST_ID, 9), [{ receivedAtMs: youngMs }]);
  const remaining: unknown[] = [];
  for await (const chunk of store.readLog(FIRST_ID, 9)) remaining.push(...chunk.map(({ type }) => type));
  t.same(remaining, ['uplink', 'uplink', 'lock-event'], 'the later entries of the lock’s log stay');
});

t.test('deletion works in small steps, with pauses for pings', async (t) => {
  const setup = await setUpRetention(t);
  const { store, clock, chunks } = setup;
  const count = 1800;
  await append(store, ...Array.from({ length: count }, (_, index) => uplink(index + 1, START)));
  clock.advance(Days(KEEP_DAYS + 1));
  await runLoopTurns();
  clock.advance((clock.nextDueMs as number) - clock.now());
  await runLoopTurns();
  const afterFirstStep = (await sequences(store)).length;
  t.ok(
    afterFirstStep < count && afterFirstStep >= count - 500,
    `one step, ${count - afterFirstStep} uplinks, and then a pause`,
  );
  await runLoopTurns();
  t.equal((await sequences(store)).length, afterFirstStep, 'nothing is deleted during the pause');
  await append(store, uplink(count + 1, clock.now()));
  await sweep(setup);
  t.same(await sequences(store), [count + 1], 'an uplink that arrived in the pause stays');
  t.ok(chunks.length >= 4 && chunks.every(({ limit }) => limit <= 500), 'each step deletes at most 500 rows');
});

t.test('an undelivered event stays, but not for a disabled URL', async (t) => {
  const setup = await setUpRetention(t);
  const { store, clock } = setup;
  const request = { merchant: 'Amber', headersSealed: {}, secretSealed: SOME_BYTES, nowMs: START };
  const failingUrl = await store.addWebhookUrl({ ...request, url: 'http://failing/' });
  const disabledUrl = await store.addWebhookUrl({ ...request, url: 'http://gone/' });
  await append(store, uplink(1, START), uplink(2, START), uplink(3, START), uplink(4, START, 0));
  const [id1, id2, id3] = (await store.readEvents(FIRST_ID, LOG_START, 9)).map(({ id }) => id) as [
    number,
    number,
    number,
  ];
  const attempt = (urlId: number, uplinkId: number): AttemptRecord => {
    const outcome = { state: 'pending', nextAttemptAtMs: 1 } as const;
    return { urlId, uplinkId, number: 1, atMs: 1, durationMs: 1, status: 500, error: 'no', answer: 'a', outcome };
  };
  // An event up to a URL's cursor is delivered, unless the store has a pending attempt of it. So the failing URL has
  // event 2, will try event 1 again, and has not tried event 3.
  await store.recordProgress([
    { urlId: failingUrl.id, attempts: [attempt(failingUrl.id, id1)], cursor: positionAfter(id2) },
    { urlId: disabledUrl.id, attempts: [attempt(disabledUrl.id, id2)], disabledWhy: 'gone' },
  ]);
  clock.advance(Days(KEEP_DAYS + 1));
  await sweep(setup);
  t.same(await sequences(store), [1, 3], 'one waits for its retry, the other for its first attempt');
  t.match(setup.swept, [{ uplinks: 2, held: 2 }], 'the event reports both counts');
  t.same(
    await store.readDueDeliveries(disabledUrl.id, 9, 9),
    [],
    'a delivery for the disabled URL is deleted with its event',
  );
  const done = { ...attempt(failingUrl.id, id1), number: 2, outcome: { state: 'delivered' } } as const;
  await store.recordProgress([{ urlId: failingUrl.id, attempts: [done], cursor: positionAfter(id3) }]);
  await sweep(setup);
  t.same(await sequences(store), [], 'the events are deleted once delivered');
  t.equal(await store.nextDueAtMs(failingUrl.id), null);
});

t.test('an event that waits for order stays; an event in a gap is deleted', async (t) => {
  const setup = await setUpRetention(t);
  const { store, clock } = setup;
  const request = { merchant: 'Amber', headersSealed: {}, secretSealed: SOME_BYTES, nowMs: START };
  const ordered = await store.addWebhookUrl({ ...request, url: 'http://ordered/', ordered: true });
  // While this URL is disabled, both events come: they are in its gap.
  const enabledAgain = await store.addWebhookUrl({ ...request, url: 'http://back/' });
  await store.webhooks.change(enabledAgain.id, { disabledWhy: 'by hand' });
  await append(store, uplink(1, START), uplink(2, START));
  const [id1, id2] = (await store.readEvents(FIRST_ID, LOG_START, 9)).map(({ id }) => id) as [number, number];
  await store.webhooks.change(enabledAgain.id, { disabledWhy: null });
  // Which event the second one waits for does not matter here: the stored wait alone must hold it.
  await store.recordProgress([
    { urlId: ordered.id, attempts: [], blocked: [{ uplinkId: id2, atMs: START }], cursor: positionAfter(id2) },
  ]);
  const states = (urlId: number): Promise<readonly (readonly [number, string])[]> =>
    store.webhooks
      .readDeliveries({ urlIds: [urlId], states: DELIVERY_STATES, fromId: 0, toId: id2, limit: 9 })
      .then((found) => found.map(({ uplink, state }) => [uplink.sequence, state] as const));
  // “kept”: not sent, because the URL was disabled.
  t.same(await states(enabledAgain.id), [
    [2, 'kept'],
    [1, 'kept'],
  ]);
  clock.advance(Days(KEEP_DAYS + 1));
  await sweep(setup);
  t.same(
    await sequences(store),
    [2],
    'the second event waits, without an attempt, for an earlier one of the ordered URL',
  );
  t.match(setup.swept, [{ uplinks: 1, held: 1 }]);
  t.same(await states(enabledAgain.id), [[2, 'kept']], 'an event in a gap can be recovered as long as it is stored');
  t.same(await states(ordered.id), [[2, 'pending']]);
  const range = { after: positionAfter(id1 - 1), before: positionAfter(id2) };
  const chunk = { ...range, limit: 9, nowMs: START };
  t.match(await store.webhooks.recover(enabledAgain.id, chunk), { count: 1, next: positionAfter(id2) });
});

t.test('with 0 days nothing is deleted', async (t) => {
  const { store, clock } = await setUpRetention(t, 0);
  await append(store, uplink(1, START));
  clock.advance(Days(4000));
  await runLoopTurns();
  t.equal(clock.pending, 0);
  t.same(await sequences(store), [1]);
});

t.test('after a failure of the store the next sweep tries again', async (t) => {
  const clock = new ManualClock(START);
  const events = new GatewayEvents();
  const failures: string[] = [];
  events.on('store-failed', ({ why }) => failures.push(why));
  const deleteOld = async (): Promise<never> => {
    throw new Error('disk full');
  };
  const retention = new Retention({
    store: {
      ownership: SOLE_OWNER,
      deleteOld,
      readMetadata: async () => null,
      writeMetadata: async () => undefined,
    },
    events,
    keepDays: 31,
    clock,
    runClock: clock,
  });
  retention.start();
  for (const failureCount of [1, 2]) {
    await sweep({ clock } as RetentionSetup);
    t.same(failures, Array(failureCount).fill('disk full'));
  }
  await retention.stop();
  t.equal(clock.pending, 0, 'no timer is left');
});

t.test('with the shortest retention a repeat that is 30 days late is still recognised', async (t) => {
  const folder = tempFolder(t);
  const first = await openGateway(t, folder);
  await first.accounts.addMerchant('Amber');
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  const bytes = testBytes(1, { timeMs: first.clock.now() });
  await (await TestLock.connect(t, first.mqttPort, MAC, secret)).send(bytes);
  const receivedAtMs = first.clock.now();
  await first.close();
  // The run's clock, by which ages are measured, goes on from its stored value: for the second gateway 30 days have
  // passed, whatever its wall clock shows.
  const storeLater = await openStore(folder);
  await storeLater.writeMetadata('run-clock-ms', String(receivedAtMs + Days(30)));
  await storeLater.close();
  const wallClock = new ManualClock(systemClock.now());
  const second = await openGateway(t, folder, { wallClock }, { keepDays: 31 });
  const swept: Swept[] = [];
  second.events.on('swept', (each) => swept.push(each));
  await sweep({ clock: wallClock } as RetentionSetup);
  t.same(swept, []);
  const stored = waitForEvents(second, 'uplink', 1);
  await (await TestLock.connect(t, second.mqttPort, MAC, secret)).send(bytes);
  t.match(await stored, [{ repeated: true, buffered: true }]);
  t.equal((await second.store.readEvents(FIRST_ID, LOG_START, 9)).length, 1, 'it is not stored again');
});

t.test('a setting of fewer than 31 days is refused', async (t) => {
  const read = (keepDays: string): number => readConfig(resolveSettings({ keepDays }, {})).keepDays;
  t.equal(readConfig(resolveSettings({}, {})).keepDays, 400);
  for (const good of ['0', '31', '36500']) t.equal(read(good), Number(good));
  for (const bad of ['30', '1', '-1', '31.5', 'x', '', '36501', '1e3'])
    t.throws(() => read(bad), { code: 'input-setting', message: /--keep-days is .*: expected days, 31 to/ }, bad);
});

/**
 * Notices, the gateway's list of conditions that operators should know, such as a disabled URL or an open circuit (a
 * URL that fails and gets only probes). They open and resolve with the gateway's events, survive restarts, and neither
 * delay nor fail anything else (interfaces.md §4).
 */
import t, { type Test } from 'tap';
import { GatewayEvents } from '../../gateway/events.js';
import { MAX_SINGLE_NOTICES } from '../../gateway/notices/lock-notices.js';
import { type NoticeSources, Notices } from '../../gateway/notices/notices.js';
import { MAX_PENDING_CHANGES, OTHERS, PendingNotices } from '../../gateway/notices/pending-notices.js';
import type { NoticesWritten } from '../../gateway/operation-events.js';
import { StoreFailure } from '../../gateway/store/contract/errors.js';
import {
  MAX_NOTICES,
  type Notice,
  type NoticeChange,
  type NoticeStore,
} from '../../gateway/store/contract/operators/notice-store.js';
import type { Store } from '../../gateway/store/contract/store.js';
import { FAILURES_TO_OPEN } from '../../gateway/webhooks/url/circuit.js';
import { ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import { testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { eventually, setUpWebhooks } from '../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { openStore } from '../helpers/store/new-store.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const NOW = Date.UTC(2026, 10, 21, 9);
/** Since when late locks are late. */
const LATE_SINCE = Date.UTC(2026, 10, 21, 8);
/** A limit above the number of notices that the store holds. */
const ALL_NOTICES = { limit: 20_000 };
/** At the start, no lock is late and there are no URLs. */
const NO_CONDITIONS: NoticeSources = { locks: () => [], urls: [] };

/** The notices of a gateway on a manual clock, whose store may fail. */
interface NoticesSetup {
  readonly clock: ManualClock;
  readonly events: GatewayEvents;
  readonly notices: Notices;
  readonly store: Store;
  /** The number of changes of each commit. */
  readonly writes: number[];
  /** The number of changes of each failed commit. */
  readonly failures: number[];
  /** The `notices` events so far. */
  readonly reported: NoticesWritten[];
  /** Makes writes fail (`write`), or the gateway know that the store fails (`known`). */
  failing: { kind: 'write' | 'known' } | undefined;
  list(): Promise<Notice[]>;
}

/** Notices on a real store, with a manual clock. Closing the store without `stop` simulates a crash. */
async function setUpNotices(test: Test, folder = tempFolder(test), conditions = NO_CONDITIONS): Promise<NoticesSetup> {
  const opened = await openStore(folder);
  test.teardown(() => opened.close().catch(() => undefined));
  const clock = new ManualClock(NOW);
  const events = new GatewayEvents();
  const writes: number[] = [];
  const failures: number[] = [];
  const reported: NoticesWritten[] = [];
  const storedNotices: NoticeStore = withOverrides(opened.notices, {
    write: async (changes: readonly NoticeChange[]) => {
      if (setup.failing !== undefined) {
        failures.push(changes.length);
        throw new StoreFailure('write', new Error('a bad day'));
      }
      writes.push(changes.length);
      await opened.notices.write(changes);
    },
  });
  const store = withOverrides(opened, { notices: storedNotices });
  const isStoreFailing = (): boolean => setup.failing?.kind === 'known';
  events.on('notices', (event) => reported.push(event));
  const setup: NoticesSetup = {
    ...{ clock, events, store, writes, failures, reported, failing: undefined },
    notices: await Notices.start({ store, events, clock, now: () => clock.now(), isStoreFailing }),
    list: () => setup.notices.list(ALL_NOTICES),
  };
  setup.notices.reconcile(conditions);
  return setup;
}

function lateEvent(mac: Mac) {
  const presence = { presence: 'late', sinceMs: LATE_SINCE, rule: 'period-overdue' } as const;
  return { atMs: 0, mac, presence };
}

function onlineEvent(mac: Mac) {
  return { atMs: 0, mac, presence: { presence: 'online', sinceMs: NOW } as const };
}

const disabledEvent = (urlId: number) => ({ atMs: 0, urlId, why: 'gone' });
const circuitEvent = (urlId: number, state: 'opened' | 'closed') => ({ atMs: 0, urlId, state, why: 'it answered 500' });
const degradedEvent = { atMs: 0, reason: 'store', why: 'no room' } as const;

/** Each notice as its kind, its subject, and `open` or `over` (resolved). */
function describeNotices(notices: readonly Notice[]): string[] {
  return notices.map(({ kind, subject, resolvedAtMs }) => {
    return `${kind} ${subject} ${resolvedAtMs === null ? 'open' : 'over'}`;
  });
}

t.test('a notice of each kind opens, and is resolved when its condition ends', async (t) => {
  const { events, list, clock } = await setUpNotices(t);
  events.emit('url-disabled', disabledEvent(3));
  events.emit('circuit', circuitEvent(4, 'opened'));
  events.emit('statement-closed', { atMs: 0, merchant: 'Amber', month: '2026-10', byItself: true });
  events.emit('degraded', degradedEvent);
  events.emit('presence', lateEvent(testMac()));
  const descriptors = { atMs: 0, limit: 200, why: 'of the 200 descriptors only the 32 that are reserved are free' };
  events.emit('descriptors', { ...descriptors, state: 'few' });
  events.emit('descriptors', { ...descriptors, state: 'short' });
  const opened = await list();
  const mac = formatMac(testMac());
  t.same(opened.map(({ kind, subject, text }) => [kind, subject, text]).reverse(), [
    ['url-disabled', '3', 'URL 3 is disabled: gone'],
    ['circuit-open', '4', 'URL 4 fails and gets only probes: it answered 500'],
    ['statement', '2026-10 Amber', '2026-10 is closed for Amber: usage statement shows it'],
    ['degraded', 'store', 'not ready (store): no room'],
    ['lock-late', mac, `${mac} has been late since 2026-11-21T08:00:00.000Z (period-overdue)`],
    ['descriptors', 'open-files', descriptors.why],
  ]);
  for (const each of opened)
    t.match(each, { count: 1, firstAtMs: NOW, lastAtMs: NOW, readAtMs: null, resolvedAtMs: null });
  clock.advance(Minutes(1));
  events.emit('url-changed', { atMs: 0, urlId: 3, state: 'active' });
  events.emit('circuit', circuitEvent(4, 'closed'));
  events.emit('recovered', { atMs: 0, reason: 'store', lastedMs: 5 });
  events.emit('presence', onlineEvent(testMac()));
  events.emit('descriptors', { ...descriptors, state: 'enough' });
  const over = await list();
  t.same(
    over.map(({ kind, resolvedAtMs }) => [kind, resolvedAtMs]).reverse(),
    [
      ['url-disabled', NOW + Minutes(1)],
      ['circuit-open', NOW + Minutes(1)],
      ['statement', null],
      ['degraded', NOW + Minutes(1)],
      ['lock-late', NOW + Minutes(1)],
      ['descriptors', NOW + Minutes(1)],
    ],
    'resolved notices are still unread',
  );
  t.equal(over.filter(({ readAtMs }) => readAtMs === null).length, 6);
});

t.test('disabling, changing or removing a URL resolves its circuit-open notice', async (t) => {
  const { events, list } = await setUpNotices(t);
  for (const urlId of [1, 2, 3]) events.emit('circuit', circuitEvent(urlId, 'opened'));
  events.emit('url-disabled', disabledEvent(1));
  events.emit('url-changed', { atMs: 0, urlId: 2, state: 'disabled' });
  await list();
  events.emit('url-disabled', disabledEvent(3));
  events.emit('url-changed', { atMs: 0, urlId: 3, state: 'removed' });
  t.same(describeNotices(await list()).sort(), [
    'circuit-open 1 over',
    'circuit-open 2 over',
    'circuit-open 3 over',
    'url-disabled 1 open',
    'url-disabled 3 over',
  ]);
});

t.test('a repeat counts in a notice that is open or unread, and makes it unread', async (t) => {
  const { events, list, clock, notices } = await setUpNotices(t);
  const changeCircuit = async (state: 'opened' | 'closed'): Promise<Notice[]> => {
    clock.advance(Minutes(1));
    events.emit('circuit', circuitEvent(1, state));
    return await list();
  };
  t.match(await changeCircuit('opened'), [{ id: 1, count: 1 }]);
  t.match(await changeCircuit('opened'), [
    { id: 1, count: 2, firstAtMs: NOW + Minutes(1), lastAtMs: NOW + Minutes(2) },
  ]);
  await changeCircuit('closed');
  const reopened = await changeCircuit('opened');
  t.match(reopened, [{ id: 1, count: 3, resolvedAtMs: null }], 'resolved but unread: the same notice');
  t.equal(reopened.length, 1, 'no second notice');
  t.equal(await notices.markRead([1]), 1);
  t.equal(await notices.markRead([1]), 0, 'it was read already');
  t.match(
    await changeCircuit('opened'),
    [{ id: 1, count: 4, readAtMs: null }],
    'read but open: the same notice, unread again',
  );
  await notices.markRead('all');
  t.match(await changeCircuit('closed'), [{ id: 1, resolvedAtMs: clock.now(), readAtMs: clock.now() - Minutes(1) }]);
  const newNotices = await changeCircuit('opened');
  t.match(newNotices, [{ count: 1 }, { id: 1, count: 4 }], 'read and resolved: a new notice');
  await t.rejects(notices.markRead([newNotices[0]?.id ?? 0, 99]), { code: 'no-such-notice' });
  t.same(
    [...notices.unread()].filter(([, unread]) => unread > 0),
    [['circuit-open', 1]],
    'no notice was marked',
  );
});

t.test('notices survive a restart, and those that a crash lost are restored from the stored state', async (t) => {
  const folder = tempFolder(t);
  // A lock whose notice the crash loses, one that is online again at the restart, and one that is still late.
  const [lost, backOnline, neverBack] = [testMac(1), testMac(2), testMac(3)];
  const first = await setUpNotices(t, folder);
  for (const mac of [backOnline, neverBack]) first.events.emit('presence', lateEvent(mac));
  first.events.emit('degraded', degradedEvent);
  first.events.emit('circuit', circuitEvent(1, 'opened'));
  for (const urlId of [1, 2]) first.events.emit('url-disabled', disabledEvent(urlId));
  first.events.emit('circuit', circuitEvent(3, 'opened'));
  t.same(first.reported, [], 'no event before the notices are durable');
  first.clock.advance(Seconds(1));
  await eventually('the write is reported', () => first.reported.length === 1);
  t.match(first.reported, [{ noted: 7, unread: 7 }]);
  // The store is closed before these are written, as in a crash.
  first.events.emit('presence', lateEvent(lost));
  first.events.emit('url-disabled', disabledEvent(4));
  await first.store.close();

  const lateLocks = [lost, neverBack].map((mac) => ({ mac, presence: lateEvent(mac).presence }));
  const urls = [
    { id: 1, state: 'disabled', disabledWhy: 'gone' },
    { id: 2, state: 'active', disabledWhy: null },
    { id: 4, state: 'disabled', disabledWhy: 'gone' },
    { id: 5, state: 'disabled', disabledWhy: 'disabled by the operator' },
  ] as const;
  const second = await setUpNotices(t, folder, { locks: () => lateLocks, urls });
  t.same(describeNotices(await second.list()).sort(), [
    'circuit-open 1 over',
    'circuit-open 3 over',
    'degraded store over',
    `lock-late ${formatMac(lost)} open`,
    `lock-late ${formatMac(backOnline)} over`,
    `lock-late ${formatMac(neverBack)} open`,
    'url-disabled 1 open',
    'url-disabled 2 over',
    'url-disabled 4 open',
  ]);
  t.ok(
    (await second.list()).every(({ count }) => count === 1),
    'open notices are not counted again',
  );

  // A removed lock is not late any more. No event reports that, so the late locks are checked every ten minutes.
  lateLocks.shift();
  second.clock.advance(Minutes(10));
  // The stop writes what still waits: this change too.
  second.events.emit('circuit', circuitEvent(1, 'opened'));
  await second.notices.stop();
  t.equal(second.clock.pending, 0, 'no timer is left');
  await second.store.close();
  const third = await openStore(folder);
  t.teardown(() => third.close());
  const storedNotices = await third.notices.list(ALL_NOTICES);
  t.match(
    storedNotices.find(({ subject, kind }) => kind === 'circuit-open' && subject === '1'),
    { count: 2 },
  );
  t.ok(describeNotices(storedNotices).includes(`lock-late ${formatMac(lost)} over`));
});

t.test('10,000 locks that are late at once need few commits, and beyond 1,000 they share a notice', async (t) => {
  const { events, clock, writes, reported, store, list } = await setUpNotices(t);
  const macs = Array.from({ length: 10_000 }, (_, index) => testMac(index));
  for (const mac of macs) events.emit('presence', lateEvent(mac));
  t.same(writes, [], 'nothing is written at once');
  for (let written = 1; written <= 3; written++) {
    clock.advance(Seconds(1) - 1);
    t.equal(writes.length, written - 1, 'one commit a second');
    clock.advance(1);
    // After the first two writes, with a timer for the next one; the other timer is for the check of late locks.
    await eventually(
      'the write is reported',
      () => reported.length === written && (written === 3 || clock.pending === 2),
    );
  }
  // 1,000 single notices and the shared one, at most 500 changes a commit.
  t.same(writes, [500, 500, 1]);
  const listed = await store.notices.list(ALL_NOTICES);
  t.equal(listed.length, MAX_SINGLE_NOTICES + 1);
  t.match(
    listed.find(({ subject }) => subject === OTHERS),
    {
      count: macs.length - MAX_SINGLE_NOTICES,
      text: 'more than 1,000 locks are late: device list shows each',
    },
  );
  for (const mac of macs.slice(0, -1)) events.emit('presence', onlineEvent(mac));
  // Each call writes a commit first: the 1,000 single notices are resolved by two or three.
  for (let commits = 0; commits < 3; commits++) await list();
  const open = async (): Promise<string[]> => describeNotices(await list()).filter((each) => each.endsWith('open'));
  t.same(await open(), [`lock-late ${OTHERS} open`]);
  events.emit('presence', onlineEvent(macs.at(-1) as Mac));
  t.same(await open(), [], 'resolved when no lock is late');
});

t.test('waiting changes are bounded: beyond the limit, new subjects of a kind are counted together', async (t) => {
  const pending = new PendingNotices();
  for (let id = 0; id < MAX_PENDING_CHANGES + 7; id++) pending.note('circuit-open', String(id), 'x', id);
  pending.note('circuit-open', '0', 'y', 9);
  t.equal(pending.size, MAX_PENDING_CHANGES + 1);
  const changes = pending.take(MAX_PENDING_CHANGES + 1);
  t.match(changes.at(-1), { subject: OTHERS, count: 7 });
  t.match(changes[0], { subject: '0', count: 2, text: 'y', firstAtMs: 0, lastAtMs: 9 });
});

t.test('a failing store causes no error, and the waiting notices are written when it works again', async (t) => {
  const setup = await setUpNotices(t);
  const { events, clock, writes, list } = setup;
  setup.failing = { kind: 'write' };
  events.emit('circuit', circuitEvent(1, 'opened'));
  t.same(await list(), [], 'no error');
  events.emit('circuit', circuitEvent(1, 'closed'));
  events.emit('circuit', circuitEvent(2, 'opened'));
  await setup.notices.writePending();
  events.emit('circuit', circuitEvent(1, 'opened'));
  setup.failing = { kind: 'known' };
  clock.advance(Minutes(1));
  await setup.notices.writePending();
  t.same(setup.failures, [1, 2], 'nothing is written while the store is known to fail');
  setup.failing = undefined;
  clock.advance(Seconds(5));
  await eventually('it is written', () => writes.length === 1);
  const storedNotices = await list();
  t.same(describeNotices(storedNotices).sort(), ['circuit-open 1 open', 'circuit-open 2 open']);
  t.match(
    storedNotices.find(({ subject }) => subject === '1'),
    { count: 2, firstAtMs: NOW, lastAtMs: NOW },
  );
  setup.failing = { kind: 'write' };
  events.emit('circuit', circuitEvent(3, 'opened'));
  await setup.notices.stop();
});

t.test(
  `${MAX_NOTICES} notices are stored; beyond, the oldest read ones are deleted first, then the oldest`,
  async (t) => {
    const { store, notices } = await setUpNotices(t);
    const add = async (from: number, count: number): Promise<void> => {
      const changes = Array.from({ length: count }, (_, index): NoticeChange => {
        const atMs = NOW + from + index;
        const times = { firstAtMs: atMs, lastAtMs: atMs, resolvedAtMs: null };
        return { kind: 'statement', subject: String(from + index), text: 'x', count: 1, ...times };
      });
      // Not all in one commit, so that notices beyond the limit are deleted in between, as in a gateway.
      for (let start = 0; start < count; start += 2_000) await store.notices.write(changes.slice(start, start + 2_000));
    };
    await add(1, MAX_NOTICES);
    await notices.markRead([5, 7]);
    await add(MAX_NOTICES + 1, 3);
    const ids = new Set((await store.notices.list(ALL_NOTICES)).map(({ id }) => id));
    t.equal(ids.size, MAX_NOTICES);
    t.same(
      [1, 2, 5, 6, 7, MAX_NOTICES + 3].map((id) => ids.has(id)),
      [false, true, false, true, false, true],
      'three too many: the two that were read are deleted, and the oldest',
    );
  },
);

/** How many pings of each lock are delivered before the receiver fails. */
const PINGS_BEFORE = 4;

t.test('attempts under way when a URL is changed open no circuit', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  // A URL gets enough concurrent attempts to open its circuit only after successful answers.
  const locks: Awaited<ReturnType<typeof connectedLock>>[] = [];
  for (let number = 1; number <= FAILURES_TO_OPEN; number++)
    locks.push(await connectedLock(t, gateway, testMac(number)));
  const waiting: (() => void)[] = [];
  receiver.answer = (_request, response) => void waiting.push(() => response.writeHead(204).end());
  const enoughDelivered = waitForEvents(gateway, 'delivery', FAILURES_TO_OPEN * PINGS_BEFORE);
  for (const lock of locks)
    for (let sequence = 1; sequence <= PINGS_BEFORE; sequence++) await lock.send(testBytes(sequence));
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  for (const answer of waiting) answer();
  await enoughDelivered;
  const heldAnswers: (() => void)[] = [];
  receiver.answer = (_request, response) => void heldAnswers.push(() => response.writeHead(500).end());
  const circuitChanges: string[] = [];
  gateway.events.on('circuit', ({ state }) => circuitChanges.push(state));
  const failed = waitForEvents(gateway, 'delivery', FAILURES_TO_OPEN);
  for (const lock of locks) await lock.send(testBytes(PINGS_BEFORE + 1));
  await receiver.waitForRequests(FAILURES_TO_OPEN * (PINGS_BEFORE + 1));
  await gateway.webhooks.settings.set(urlId, { ordered: true });
  for (const answer of heldAnswers) answer();
  await failed;
  t.same(circuitChanges, []);
  t.same(await gateway.notices.list(ALL_NOTICES), []);
});

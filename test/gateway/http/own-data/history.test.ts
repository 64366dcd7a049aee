/**
 * A lock's power states and connections in a span of time (interfaces.md §2), computed from the lock's log: its stored
 * uplinks (messages) and events. The last test calls the HTTP operation.
 */
import t from 'tap';
import { LockHistory } from '../../../../gateway/http/merchant/own-data/history/lock-history.js';
import type { LockEvent, LogEntry } from '../../../../gateway/store/contract/log/log-entry.js';
import type { StoredUplink } from '../../../../gateway/store/contract/log/stored-uplink.js';
import { stateChanges } from '../../../../gateway/store/log/state-changes.js';
import { Hours, Minutes } from '../../../../proto/clock.js';
import { encodeUplink } from '../../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Ping, type PowerSettings } from '../../../../proto/wire/ping.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { callMerchantApi } from '../../../helpers/http/merchant-call.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';
import { chooseSeed, SeededChance } from '../../../helpers/pair/seeded-chance.js';

const START_MS = Date.UTC(2026, 10, 20, 6);
/** The ping with which a lock ends a connection. */
const CLOSE: Ping = {
  kind: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  lockState: 'locked',
  batteryPercent: 80,
  position: null,
} as Ping;

/** An uplink of the lock with these settings and battery, received at a time. */
function uplink(receivedAtMs: number, power: Partial<PowerSettings>, batteryPercent = 80): LogEntry {
  const body = { ...CLOSE, batteryPercent };
  const settings = { ...DEFAULT_POWER, ...power };
  const message = { boot: 1, sequence: 1, timeMs: receivedAtMs, power: settings, kept: 0, dropped: 0, body };
  const bytes = Buffer.from(encodeUplink(message));
  const stored = { source: 'lock', bytes, receivedAtMs, isDamaged: false } as StoredUplink;
  return { type: 'uplink', uplink: stored };
}

/** An acknowledgement of a command by the lock, which says nothing about the battery. */
function acknowledgement(receivedAtMs: number, power: Partial<PowerSettings>): LogEntry {
  const body = { kind: 'ack', commandId: 1, result: 'ok', detail: '', highWindow: null } as const;
  const settings = { ...DEFAULT_POWER, ...power };
  const message = { boot: 1, sequence: 1, timeMs: receivedAtMs, power: settings, kept: 0, dropped: 0, body };
  const stored = { source: 'lock', bytes: Buffer.from(encodeUplink(message)), receivedAtMs, isDamaged: false };
  return { type: 'uplink', uplink: stored as StoredUplink };
}

const lockEvent = (atMs: number, event: LockEvent): LogEntry => ({ type: 'lock-event', atMs, event });

/** The answer for a span that ends 10 h after the start. @param isCut whether older entries were not read */
function historyOf(entries: readonly LogEntry[], fromMs: number, isCut = false) {
  const history = new LockHistory({ fromMs, toMs: START_MS + Hours(10) });
  for (const entry of entries) if (!history.take(entry)) break;
  return history.json(isCut);
}

/**
 * The log of a day: a connection that the lock closes, one of a phone, one that the gateway's stop ends, and one that
 * stays open. The last uplink comes after every span of these tests.
 */
const LOG: readonly LogEntry[] = [
  lockEvent(START_MS, { event: 'connect' }),
  uplink(START_MS + Minutes(1), {}),
  uplink(START_MS + Minutes(2), {}),
  lockEvent(START_MS + Minutes(3), { event: 'disconnect', cause: 'closed' }),
  lockEvent(START_MS + Hours(1), { event: 'connect', source: 'phone' }),
  lockEvent(START_MS + Hours(2), { event: 'connect' }),
  uplink(START_MS + Hours(2), { mode: 'HIGH' }),
  uplink(START_MS + Hours(3), { mode: 'HIGH' }, 5),
  lockEvent(START_MS + Hours(4), { event: 'gateway', state: 'stop' }),
  lockEvent(START_MS + Hours(5), { event: 'connect' }),
  uplink(START_MS + Hours(11), { recovery: true }),
];

/** A log of entries at random, a minute apart, of which many repeat the one before. */
function randomLog(chance: SeededChance): LogEntry[] {
  return Array.from({ length: chance.between(1, 40) }, (_, index): LogEntry => {
    const atMs = START_MS + Minutes(index);
    const kind = chance.next();
    if (kind < 0.1) return lockEvent(atMs, { event: 'connect' });
    if (kind < 0.2) return lockEvent(atMs, { event: 'disconnect', cause: 'closed' });
    if (kind < 0.3) return acknowledgement(atMs, { airplane: chance.next() < 0.5 });
    const entry = uplink(atMs, { airplane: chance.next() < 0.3 }, chance.next() < 0.3 ? 5 : 80);
    if (kind < 0.9 || entry.type !== 'uplink') return entry;
    return {
      type: 'uplink',
      uplink: { ...entry.uplink, ...(kind < 0.95 ? { source: 'phone' } : { isDamaged: true }) },
    };
  });
}

t.test('a log without repetitions has the history of the whole log', (t) => {
  const seed = chooseSeed();
  const chance = new SeededChance(seed);
  let leftOut = 0;
  for (let log = 0; log < 500; log++) {
    const entries = randomLog(chance);
    const middle = chance.between(0, entries.length);
    // In two parts, as a store reads it.
    const changes = [...stateChanges(entries.slice(0, middle)), ...stateChanges(entries.slice(middle))];
    leftOut += entries.length - changes.length;
    const fromMs = START_MS + Minutes(chance.between(0, 40));
    t.same(historyOf(changes, fromMs, true), historyOf(entries, fromMs, true), `seed ${seed}, log ${log}`);
  }
  t.ok(leftOut > 1_000, `${leftOut} entries were left out`);
  t.end();
});

t.test('states follow settings and battery; connections have their ends, and phones’ are left out', async (t) => {
  t.same(historyOf(LOG, START_MS), {
    states: [
      { state: 'MID', since: formatDate(START_MS + Minutes(1)) },
      { state: 'HIGH', since: formatDate(START_MS + Hours(2)) },
      { state: 'LOW_BATTERY', since: formatDate(START_MS + Hours(3)) },
    ],
    connections: [
      { from: formatDate(START_MS), to: formatDate(START_MS + Minutes(3)), cause: 'closed' },
      { from: formatDate(START_MS + Hours(2)), to: formatDate(START_MS + Hours(4)), cause: 'gateway' },
      { from: formatDate(START_MS + Hours(5)), to: null, cause: null },
    ],
    complete_from: null,
  });
});

t.test('a later span starts with the state that the lock had then', async (t) => {
  const { states, connections } = historyOf(LOG, START_MS + Minutes(150));
  t.same(
    states.map(({ state }) => state),
    ['HIGH', 'LOW_BATTERY'],
  );
  t.equal(connections.length, 2, 'the connection that ended before the span is left out');
});

t.test('an answer for which not all of the log was read says from when on it is complete', async (t) => {
  t.equal(historyOf(LOG, START_MS - Hours(1), true).complete_from, formatDate(START_MS));
  t.equal(historyOf(LOG, START_MS, true).complete_from, null, 'nothing before the span is missing');
});

t.test('the operation reads a lock’s own log', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const readHistory = (key: string) => callMerchantApi(gateway, `/v1/locks/${amber.mac}/history`, { key });
  const { status, body } = await readHistory(amber.key);
  const { states, connections } = body as { states: unknown[]; connections: unknown[] };
  t.equal(status, 200);
  t.ok(states.length > 0 && connections.length > 0, JSON.stringify(body));
  t.equal((await readHistory(basil.key)).status, 404);
});

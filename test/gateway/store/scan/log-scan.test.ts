/**
 * The log of one lock as the scan thread reads it (gateway/store/sqlite/scan/) is the log that the gateway's own thread
 * reads: entry by entry, in any order of uplinks and connection events, in parts, and while some of the uplinks are not
 * in the index by lock yet.
 */
import t from 'tap';
import type { Incoming } from '../../../../gateway/store/contract/log/commit.js';
import type { LogEntry } from '../../../../gateway/store/contract/log/log-entry.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { buffersOf, packLog, unpackLog } from '../../../../gateway/store/sqlite/scan/packed-log.js';
import { uplinkDigest } from '../../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { openStore } from '../../../helpers/store/new-store.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const LOCKS = 3;
/** So small that the index by lock gets new uplinks while the test runs, and never has the newest ones. */
const RUN_SIZE = { minUplinks: 150, uplinksPerCredential: 2, maxUplinks: 300 };
/** So many, over all locks, that each lock has more than one scan reads. */
const ENTRIES = 4_000;
const ENTRIES_PER_COMMIT = 40;
/** The place in a lock's log before its first uplink and its first connection event. */
const FROM_THE_START = { afterUplinkId: 0, afterEventId: 0, isCut: false };

t.setTimeout(60_000);

async function openWithLocks(folder: string): Promise<Store> {
  const store = await openStore(folder, { scanThread: true, runSize: RUN_SIZE });
  await store.addMerchant('Amber', 1);
  const account = { merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 1 };
  for (let lock = 1; lock <= LOCKS; lock++) await store.addDevice({ ...account, mac: testMac(lock) });
  return store;
}

function uplink(lock: number, sequence: number): Incoming {
  const bytes = testBytes(sequence);
  const key = { deviceId: lock, merchantId: 1, credentialId: lock, boot: 1, sequence };
  const buffered = sequence % 3 === 0;
  return { type: 'uplink', ...key, digest: uplinkDigest(bytes), kind: 1, bytes, receivedAtMs: sequence, buffered };
}

/** All entries, in order. */
async function collect(chunks: AsyncIterable<LogEntry[]>): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const chunk of chunks) entries.push(...chunk);
  return entries;
}

t.test('both threads read the same log of a lock', async (t) => {
  const seed = chooseSeed();
  const random = new SeededChance(seed);
  const store = await openWithLocks(tempFolder(t));
  t.teardown(() => store.close());
  const sequences = new Map<number, number>();
  for (let sent = 0; sent < ENTRIES; sent += ENTRIES_PER_COMMIT) {
    const incoming = Array.from({ length: ENTRIES_PER_COMMIT }, (_, index): Incoming => {
      const lock = random.between(1, LOCKS + 1);
      const event = { event: 'connect' } as const;
      if (random.next() < 0.2) return { type: 'lock-event', deviceId: lock, atMs: sent + index, event };
      const sequence = (sequences.get(lock) ?? 0) + 1;
      sequences.set(lock, sequence);
      return uplink(lock, sequence);
    });
    await store.append({ incoming, judged: [], states: new Map() });
  }
  // Each call reads the log in parts of another size (100, 60 or 7 entries), which must not matter.
  for (let lock = 1; lock <= LOCKS; lock++) {
    const entries = await collect(store.readLog(lock, 100));
    t.ok(entries.length > 1_000, `lock ${lock} has more entries than one scan reads`);
    t.strictSame(await collect(store.why.readLogFrom(lock, FROM_THE_START, 60)), entries, `seed ${seed}: lock ${lock}`);
    // From some place on, the log is the rest of the whole log.
    const uplinks = entries.flatMap((entry) => (entry.type === 'uplink' ? [entry.uplink] : []));
    const middle = uplinks[Math.floor(uplinks.length / 2)]?.id ?? 0;
    // The place after which at most 100 uplinks are left. The two limits, of an id and a time, exclude nothing.
    const start = await store.why.findLogStart(lock, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 100);
    const recent = await collect(store.why.readLogFrom(lock, start, 7));
    t.strictSame(recent, entries.slice(-recent.length), `lock ${lock}: its end`);
    t.ok(start.afterUplinkId > middle, 'it starts near the end');
    for (const lastId of [uplinks[0]?.id ?? 0, middle, uplinks.at(-3)?.id ?? 0]) {
      const early = await collect(store.why.readLogFrom(lock, FROM_THE_START, 60, lastId));
      t.strictSame(early, entries.slice(0, early.length), `lock ${lock}: its beginning`);
      const lastRead = early.findLast((entry) => entry.type === 'uplink');
      t.equal(lastRead?.type === 'uplink' && lastRead.uplink.id, lastId, 'it ends where it is asked to end');
    }
  }
});

t.test('entries are unpacked as they were packed', (t) => {
  const common = { deviceId: 7, merchantId: 3, mac: testMac(7), simulated: false, kind: 2 };
  const one = {
    ...common,
    id: 2 ** 52 + 1,
    credentialId: 9,
    source: 'phone',
    boot: 2 ** 32 - 1,
    sequence: 2 ** 32 - 1,
  };
  const other = { ...common, id: 2 ** 52 + 2, credentialId: 8, source: 'lock', boot: 0, sequence: 0 };
  const content = { digest: Buffer.from('digest 1'), bytes: testBytes(1), receivedAtMs: Date.UTC(2099, 0) };
  const empty = { digest: Buffer.alloc(0), bytes: Buffer.alloc(0), receivedAtMs: 1 };
  const event = { type: 'lock-event', atMs: 5, event: { event: 'gateway', state: 'start' } };
  const entries = [
    event,
    { type: 'uplink', uplink: { ...one, ...content, buffered: true, isDamaged: false } },
    { type: 'uplink', uplink: { ...other, ...empty, buffered: false, isDamaged: true } },
    event,
  ] as LogEntry[];
  const packed = packLog(entries);
  t.strictSame(unpackLog(structuredClone(packed, { transfer: buffersOf(packed) })), entries);
  t.strictSame(unpackLog(packLog([])), []);
  t.end();
});

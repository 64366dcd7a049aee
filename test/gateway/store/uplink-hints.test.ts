/**
 * Hints in the index by lock (gateway/store/log/uplink-hint.ts) change no answer: scans of a lock's pings and the
 * changes of its states are the same with hints and without. The logs are random, of locks that changed their merchant,
 * with phones, clocks that are wrong, uplinks that came late, damaged rows and an erased lock.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import t from 'tap';
import { type IncomingUplink, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import type { LogEntry } from '../../../gateway/store/contract/log/log-entry.js';
import type { PingFilter, ScannedUplinks } from '../../../gateway/store/contract/merchants/uplink-scan.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { stateChanges } from '../../../gateway/store/log/state-changes.js';
import { uplinkHint, validHint } from '../../../gateway/store/log/uplink-hint.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { Days, Minutes } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../../helpers/pair/seeded-chance.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const LOCKS = 3;
/** The lock that is erased in the middle of its log. */
const ERASED = 3;
const START_MS = Date.UTC(2026, 10, 1);
/** Small, so that most of these few uplinks are not only in memory, but in the index. */
const RUN_SIZE = { minUplinks: 150, uplinksPerCredential: 2, maxUplinks: 300 };
const COMMITS = 60;
const UPLINKS_PER_COMMIT = 50;
const SCANS = 150;
const REASONS = ['REASON_THEFT', 'REASON_STATE_PING', 'REASON_UNLOCKED_PING', 'REASON_UNRECOGNIZED_99'] as const;
const POSITION = { latitudeDegrees: 52.5, longitudeDegrees: 13.4, uncertaintyMeters: 6 };

t.setTimeout(120_000);

/** Makes the uplinks of all locks. */
class RandomLog {
  readonly #random: SeededChance;
  #atMs = START_MS;
  #sequence = 0;

  constructor(random: SeededChance) {
    this.#random = random;
  }

  get endMs(): number {
    return this.#atMs;
  }

  uplink(merchantId: number): IncomingUplink {
    const random = this.#random;
    this.#atMs += random.between(0, Minutes(20));
    this.#sequence += 1;
    const deviceId = random.between(1, LOCKS + 1);
    // Phones have the credentials after those of the locks.
    const credentialId = deviceId + (random.next() < 0.1 ? LOCKS : 0);
    const receivedAtMs = this.#atMs;
    const lateMs = random.next() < 0.1 ? random.between(Minutes(2), Days(2)) : random.between(0, Minutes(1));
    const aheadMs = random.next() < 0.1 ? random.between(1, Days(1)) : 0;
    const timeMs = receivedAtMs - lateMs + aheadMs;
    const message = { boot: 1, sequence: this.#sequence, timeMs, kept: 0, dropped: 0, body: this.#body() };
    const power = { mode: this.#isRare() ? 'HIGH' : 'MID', rideTracking: this.#isRare(), airplane: false } as const;
    const bytes = Buffer.from(encodeUplink({ ...message, power: { ...power, recovery: this.#isRare() } }));
    const kind = UPLINK_KINDS.indexOf(message.body.kind);
    const key = { deviceId, merchantId, credentialId, boot: 1, sequence: this.#sequence };
    const buffered = receivedAtMs - timeMs > Minutes(1);
    return { type: 'uplink', ...key, digest: uplinkDigest(bytes), kind, bytes, receivedAtMs, buffered };
  }

  #isRare(): boolean {
    return this.#random.next() < 0.05;
  }

  #body(): Uplink['body'] {
    const random = this.#random;
    if (random.next() < 0.1) return { kind: 'ack', commandId: 1, result: 'ok', detail: '', highWindow: null };
    const batteryPercent = random.next() < 0.9 ? 80 : random.between(0, 101);
    const common = { lockState: 'locked', batteryPercent, ebikeVolts: null, tetherState: 'detached' } as const;
    const reason = random.pick(REASONS);
    if (random.next() < 0.5)
      return { ...common, kind: 'cellular', firmwareVersion: '1', position: null, reason } as Ping;
    return {
      ...common,
      kind: 'gps',
      position: POSITION,
      speedMetersPerSecond: 4,
      directionDegrees: 84,
      reason,
    } as Ping;
  }
}

function randomFilter(random: SeededChance, endMs: number): PingFilter {
  const fromMs = random.next() < 0.6 ? random.between(START_MS - Days(1), endMs) : undefined;
  const toMs = random.next() < 0.6 ? (fromMs ?? START_MS) + random.between(0, Days(5)) : undefined;
  const types = random.next() < 0.5 ? [random.pick(UPLINK_KINDS.slice(1))] : undefined;
  const reasons = random.next() < 0.5 ? [random.pick(REASONS)] : undefined;
  return { fromMs, toMs, types, reasons };
}

/** What a scan found. At its end no other goes on, so the place where it stopped does not matter. */
function foundBy({ pings, isAtEnd, lastId, lastReceivedAtMs, examined }: ScannedUplinks) {
  return isAtEnd ? { pings, isAtEnd } : { pings, isAtEnd, lastId, lastReceivedAtMs, examined };
}

/** The answers to random scans of pings, and the state changes of each lock. */
async function answers(store: Store, seed: number, endMs: number): Promise<unknown[]> {
  const random = new SeededChance(seed);
  const found: unknown[] = [];
  for (let scan = 0; scan < SCANS; scan += 1) {
    const place = { deviceId: random.between(1, LOCKS + 1), beforeId: undefined };
    const [limit, maxExamined] = [random.between(1, 120), random.pick([10, 300, 10_000])];
    const filter = randomFilter(random, endMs);
    const terms = { merchantId: 1, ...place, filter, limit, maxExamined };
    const first = await store.scans.pings(terms);
    const next = await store.scans.pings({ ...terms, beforeId: first.lastId ?? undefined });
    found.push([terms, foundBy(first), foundBy(next)]);
  }
  for (let deviceId = 1; deviceId <= LOCKS; deviceId += 1) {
    const entries: LogEntry[] = [];
    let examined = 0;
    const start = { afterUplinkId: 0, afterEventId: 0, isCut: false };
    for await (const part of store.why.readStateChangesFrom(deviceId, start)) {
      entries.push(...part.entries);
      examined += part.examined;
    }
    // Of damaged uplinks it is left open which ones are returned.
    const undamaged = entries.filter((entry) => entry.type !== 'uplink' || !entry.uplink.isDamaged);
    found.push([examined > 0, stateChanges(undamaged)]);
  }
  return found;
}

/** Changes a byte of some rows, which then don't match their checksums. */
function damageSome(db: Database, random: SeededChance): void {
  const ids = db.prepare('SELECT id FROM uplink WHERE length(bytes) > 0').pluck().all() as number[];
  const damage = db.prepare(`UPDATE uplink SET bytes = bytes || x'00' WHERE id = ?`);
  for (let count = 0; count < 40; count += 1) damage.run(random.pick(ids));
}

t.test('answers are the same with hints and without', async (t) => {
  const seed = chooseSeed();
  t.comment(`seed ${seed}`);
  const random = new SeededChance(seed);
  const folder = tempFolder(t);
  const store = await openStore(folder, { runSize: RUN_SIZE });
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 1);
  await store.addMerchant('Basil', 1);
  const account = { merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 1 };
  for (let lock = 1; lock <= LOCKS; lock += 1) await store.addDevice({ ...account, mac: testMac(lock) });
  for (let lock = 1; lock <= LOCKS; lock += 1)
    await store.addPhone({
      mac: testMac(lock),
      name: 'Ada',
      secretHash: Buffer.alloc(32),
      nowMs: 1,
      expiresAtMs: null,
    });
  const log = new RandomLog(random);
  for (let commit = 0; commit < COMMITS; commit += 1) {
    // The locks were Basil's at first.
    const merchantId = commit < COMMITS / 6 ? 2 : 1;
    const incoming = Array.from({ length: UPLINKS_PER_COMMIT }, () => log.uplink(merchantId));
    await store.append({ incoming, judged: [], states: new Map() });
    if (commit === COMMITS / 2) await store.eraseDevice(ERASED, null);
  }
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  t.teardown(() => db.close());
  const count = (sql: string): number => db.prepare(sql).pluck().get() as number;
  const indexed = count('SELECT count(*) FROM uplink_of_device');
  const hinted = count('SELECT count(hint) FROM uplink_of_device');
  t.ok(indexed > 2_000 && hinted > indexed / 2, `${hinted} of ${indexed} uplinks in the index have hints`);
  // An erased uplink has the kind -1.
  const erased = 'SELECT count(hint) FROM uplink_of_device o JOIN uplink u ON u.id = o.uplink_id WHERE u.kind = -1';
  t.equal(count(erased), 0, 'an erased uplink has none, whenever it came into the index');
  damageSome(db, random);
  const withHints = await answers(store, seed, log.endMs);
  db.exec('UPDATE uplink_of_device SET hint = NULL');
  const without = await answers(store, seed, log.endMs);
  for (const [index, answer] of withHints.entries()) t.strictSame(answer, without[index], `answer ${index}`);
});

t.test('a hint that was changed on the disk, or belongs to another uplink, is no hint', async (t) => {
  const { bytes, kind, receivedAtMs } = new RandomLog(new SeededChance(1)).uplink(1);
  const row = { id: 7, device_id: 3, kind, bytes, received_at_ms: receivedAtMs, buffered: 0 };
  const hint = uplinkHint(row) as number;
  t.equal(validHint(hint, 3, 7), hint);
  const changed = Array.from({ length: 27 }, (_, bit) => validHint(hint ^ (1 << bit), 3, 7));
  // Eight of the 27 bits check the others, so one wrong hint in 256 passes by chance.
  t.ok(changed.filter((each) => each === undefined).length >= 26, 'single bits are noticed');
  const others = Array.from({ length: 1_000 }, (_, other) => validHint(hint, 3, 8 + other));
  t.ok(others.filter((each) => each === undefined).length > 980, 'and so is the hint of another uplink');
  t.equal(validHint(null, 3, 7), undefined);
});

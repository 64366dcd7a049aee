// The log thread, which writes the log and what is batched with it: which writes share a commit, that failed writes do
// not affect others, and when the WAL is copied into the database file (checkpoints).
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import type { NewDevice } from '../../../gateway/store/contract/devices/device.js';
import type { NewUser } from '../../../gateway/store/contract/merchants/people-store.js';
import type { UsageDelta } from '../../../gateway/store/contract/usage-store.js';
import { packCommit } from '../../../gateway/store/log/packed-commit.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { ThreadLog } from '../../../gateway/store/sqlite/log/thread-log.js';
import { WalCheckpointer } from '../../../gateway/store/sqlite/log/wal-checkpointer.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { ZERO_USAGE } from '../../../gateway/usage/counts.js';
import type { Month } from '../../../gateway/usage/month.js';
import { Usage } from '../../../gateway/usage/usage.js';
import { ManualClock } from '../../../proto/clock.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { UplinkSource } from '../../helpers/store/append-fleet.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const EMPTY_USER: NewUser = {
  id: null,
  username: null,
  firstName: null,
  lastName: null,
  email: null,
  phone: null,
  userStatus: null,
  passwordHash: null,
};

/** A lock's registration; the uplinks of UplinkSource have these numbers as ids. */
const newDevice = (number: number): NewDevice => {
  return { mac: testMac(number), merchant: 'Amber', simulated: false, secretHash: Buffer.alloc(32, number), nowMs: 0 };
};

const PAGE_BYTES = 4096;
/** A frame of the WAL: a header and a page. */
const FRAME_BYTES = 24 + PAGE_BYTES;

/** Makes an empty store, and a connection that reads it. */
async function emptyStore(test: Teardown): Promise<{ file: string; reader: SqliteDatabase.Database }> {
  const folder = tempFolder(test);
  await (await openSqliteStore(folder)).close();
  const file = path.join(folder, 'lockgate.sqlite');
  const reader = new SqliteDatabase(file, { readonly: true });
  test.teardown(() => void reader.close());
  return { file, reader };
}

/**
 * Counts the commits in the WAL; each was an fsync. In SQLite's format the file's header has 32 bytes, and a frame's
 * number at byte 4 is positive only in the last frame of a commit.
 */
function commitsIn(file: string): number {
  const wal = readFileSync(`${file}-wal`);
  let commits = 0;
  for (let at = 32; at + FRAME_BYTES <= wal.length; at += FRAME_BYTES) if (wal.readUInt32BE(at + 4) > 0) commits += 1;
  return commits;
}

// Metadata, which is written in batches, is in the table `fact`.
t.test('batched writes share the commits of uplinks', async (t) => {
  const { file, reader } = await emptyStore(t);
  const log = await ThreadLog.open({ file, runSize: undefined }, reader, () => 0);
  const fleet = new UplinkSource(4);
  const rounds = 50;
  const all: Promise<unknown>[] = [];
  for (let round = 0; round < rounds; round++) {
    all.push(log.append(packCommit(fleet.nextCommit(4))));
    all.push(log.writeBatched({ type: 'metadata', name: `fact-${round}`, value: String(round) }));
  }
  await Promise.all(all);
  t.ok(commitsIn(file) <= rounds + 1, `${commitsIn(file)} commits for ${2 * rounds} writes`);
  t.equal(reader.prepare(`SELECT count(*) FROM fact WHERE name LIKE 'fact-%'`).pluck().get(), rounds);
  t.equal(reader.prepare('SELECT count(*) FROM uplink').pluck().get(), 4 * rounds);
  t.equal(log.memtable.count, 4 * rounds);
  await log.writeBatched({ type: 'metadata', name: 'fact-0', value: 'last' });
  t.equal(
    reader.prepare(`SELECT value FROM fact WHERE name = 'fact-0'`).pluck().get(),
    'last',
    'metadata is written also without a further commit of uplinks',
  );
  await log.close();
});

t.test('a hurried log sends at once what would wait for the next commit', async (t) => {
  const { file, reader } = await emptyStore(t);
  const log = await ThreadLog.open({ file, runSize: undefined }, reader, () => 0);
  const sent = t.capture(Worker.prototype, 'postMessage', Worker.prototype.postMessage);
  const written = (): number => sent().length;
  // In one turn of the event loop, in which no timer sends what waits, and with a clock that stands still.
  const writes: Promise<unknown>[] = [log.append(packCommit(new UplinkSource(4).nextCommit(4)))];
  for (const name of ['fact-a', 'fact-b']) writes.push(log.writeBatched({ type: 'metadata', name, value: '' }));
  written();
  log.hurry(true);
  t.equal(written(), 1, 'both together');
  writes.push(log.writeBatched({ type: 'metadata', name: 'fact-c', value: '' }));
  t.equal(written(), 1, 'and each later one by itself');
  log.hurry(false);
  writes.push(log.append(packCommit(new UplinkSource(4).nextCommit(4))));
  await Promise.all(writes);
  t.equal(reader.prepare(`SELECT count(*) FROM fact WHERE name IN ('fact-a', 'fact-b', 'fact-c')`).pluck().get(), 3);
  await log.close();
});

t.test('concurrent writes of merchants share commits with each other and with uplinks', async (t) => {
  const folder = tempFolder(t);
  const store = await openSqliteStore(folder, { logThread: true });
  const file = path.join(folder, 'lockgate.sqlite');
  const { id: merchantId } = await store.addMerchant('Amber', 0);
  await store.addDevices([1, 2, 3, 4].map(newDevice));
  const before = commitsIn(file);
  const pet = { name: 'Rex', ownerId: null, species: null, breed: null };
  const pets = 300;
  const fleet = new UplinkSource(4);
  const [, added] = await Promise.all([
    store.append(fleet.nextCommit(4)),
    Promise.all(Array.from({ length: pets }, () => store.people.addPet(merchantId, pet, 0))),
  ]);
  t.same(new Set(added.map(({ id }) => id)).size, pets, 'each pet has a different id');
  t.ok(commitsIn(file) - before <= 6, `${commitsIn(file) - before} commits for ${pets} pets and a ping`);
  await store.close();
});

t.test('a refused write of a merchant does not roll back other writes in the same commit', async (t) => {
  const store = await openSqliteStore(tempFolder(t), { logThread: true });
  t.teardown(() => store.close());
  const { id: merchantId } = await store.addMerchant('Amber', 0);
  const user = (username: string): NewUser => ({ ...EMPTY_USER, username });
  const outcomes = await Promise.allSettled([
    store.people.addUsers(merchantId, [user('ada')], 0),
    store.people.addUsers(merchantId, [user('bo'), user('ADA')], 0),
    store.people.addUsers(merchantId, [user('cy')], 0),
  ]);
  t.match(outcomes, [
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'user-exists', faults: [{ pointer: '/1/username' }] } },
    { status: 'fulfilled' },
  ]);
  const users = await store.people.listUsers({ merchantId, afterId: null, limit: 9 });
  t.same(
    users.map(({ username }) => username),
    ['ada', 'cy'],
  );
});

t.test('a failed write does not make other writes in the same commit fail', async (t) => {
  const { file, reader } = await emptyStore(t);
  const log = await ThreadLog.open({ file, runSize: undefined }, reader, () => 0);
  const fleet = new UplinkSource(4);
  // The column does not allow NULL.
  const bad = { type: 'metadata', name: 'bad', value: null as unknown as string } as const;
  const outcomes = await Promise.allSettled([
    log.append(packCommit(fleet.nextCommit(4))),
    log.writeBatched(bad),
    log.writeBatched({ type: 'metadata', name: 'good', value: 'yes' }),
    log.append(packCommit(fleet.nextCommit(4))),
  ]);
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  );
  t.same(reader.prepare(`SELECT name FROM fact WHERE name IN ('bad', 'good')`).pluck().all(), ['good']);
  const ids = reader.prepare('SELECT id FROM uplink ORDER BY id').pluck().all();
  t.same(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
  t.equal(log.memtable.growing.lastId, 8, 'the copy of the memtable has the uplinks under these ids');
  await log.close();
});

t.test('the WAL stays short under a writer without pauses', async (t) => {
  const { file } = await emptyStore(t);
  const db = openDurable(file);
  // A thread copies the WAL's pages into the file. With 50 uncopied pages it begins; a WAL of 200 pages is restarted
  // once at most 20 of them are not copied; at 400 pages the writer waits.
  const limits = { copyFromPages: 50, longFromPages: 200, maxUncopiedPages: 20, maxPages: 400 };
  const checkpointer = new WalCheckpointer(db, file, limits);
  db.exec('CREATE TABLE filled (bytes BLOB)');
  const fill = db.prepare('INSERT INTO filled VALUES (zeroblob(20000))');
  const before = statSync(file).size;
  const maxPagesPerCommit = 12;
  let longestBytes = 0;
  for (let commit = 0; commit < 300; commit++) {
    fill.run();
    checkpointer.check();
    checkpointer.checkpointIfLong();
    longestBytes = Math.max(longestBytes, statSync(`${file}-wal`).size);
  }
  t.ok(longestBytes <= (limits.maxPages + maxPagesPerCommit) * FRAME_BYTES, `${longestBytes / FRAME_BYTES} pages`);
  t.ok(statSync(file).size - before > 100 * 20_000, 'most data is in the file');
  await checkpointer.close();
  t.equal(db.prepare('SELECT count(*) FROM filled').pluck().get(), 300);
  t.equal(db.pragma('integrity_check', { simple: true }), 'ok');
  db.close();
});

t.test('scrub removes deleted data from the WAL also during a checkpoint', async (t) => {
  const folder = tempFolder(t);
  const store = await openSqliteStore(folder, { logThread: true });
  const fleet = new UplinkSource(4);
  // Enough for the WAL to be copied: 1,000 pages.
  for (let batch = 0; batch < 12; batch++) await store.append(fleet.nextCommit(2000));
  await store.scrub();
  // Only page 1 is left, rewritten: it shows to which store the WAL belongs (folder/wal-presence.ts).
  const wal = readFileSync(path.join(folder, 'lockgate.sqlite-wal'));
  t.equal(wal.length, 32 + FRAME_BYTES, 'a header and one frame');
  t.equal(wal.readUInt32BE(32), 1, 'the frame has page 1');
  await store.close();
});

t.test('counts are stored in chunks, and after a failed chunk each count is stored once', async (t) => {
  const added: UsageDelta[][] = [];
  let failing = false;
  const add = async (deltas: readonly UsageDelta[]): Promise<void> => {
    if (failing && added.length === 1) throw new Error('the disk is full');
    added.push([...deltas]);
  };
  const usage = await Usage.start({
    store: {
      ownership: { duties: { holds: () => true } },
      usage: {
        add,
        readActivations: async () => [],
        noteCounted: async () => undefined,
        readCountedThrough: async () => Number.POSITIVE_INFINITY,
      },
      listMerchants: async () => [],
      readMetadata: async () => '0',
      writeMetadata: async () => undefined,
    },
    clock: new ManualClock(Date.UTC(2026, 10, 2)),
    runClock: new ManualClock(0),
    events: { emit: () => true },
  } as unknown as Parameters<typeof Usage.start>[0]);
  const month = '2026-11' as Month;
  const deltas = Array.from({ length: 250 }, (_, index) => {
    return { ...ZERO_USAGE, month, mac: testMac(index + 1), merchantId: 1, simulated: false, bytesUp: 1 };
  });
  usage.meter.putBack(deltas);
  failing = true;
  await t.rejects(usage.store(), /full/);
  failing = false;
  await usage.store();
  t.same(
    added.map(({ length }) => length),
    [100, 100, 50],
    'at most 100 counts at once',
  );
  t.equal(new Set(added.flat().map(({ mac }) => mac)).size, 250, 'each lock’s counts once');
  await usage.stop();
});

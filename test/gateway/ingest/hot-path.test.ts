/**
 * The cost of an uplink in the store, in counts that are the same on every machine: SQL statements, bytes and commits.
 * This detects a change that makes each uplink more expensive, such as a commit for every uplink. The store holds the
 * newest uplinks in memory (memtable) and sorts them into its index tables in groups, called runs.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { type DeviceState, noteUplink } from '../../../gateway/locks/device-state.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import { packCommit } from '../../../gateway/store/log/packed-commit.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { LogWriter } from '../../../gateway/store/sqlite/log/log-writer.js';
import { addUplinkSum } from '../../../gateway/store/sqlite/log/uplink-sum-function.js';
import { registerRowChecksum } from '../../../gateway/store/sqlite/row-checksum.js';
import { registerUsernameKey } from '../../../gateway/store/sqlite/tables/people/username-key.js';
import { cellular, JudgedRun, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';
import { UplinkSource } from '../../helpers/store/append-fleet.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const UPLINKS_PER_COMMIT = 1000;
const LOCKS = 200;
/** A run has 50 uplinks of a lock, as in a gateway with 1,000 locks. */
const RUN_SIZE = { minUplinks: 10_000, uplinksPerCredential: 20, maxUplinks: 40_000 };

/** The file of an empty store. */
async function emptyFile(test: Teardown): Promise<string> {
  const folder = tempFolder(test);
  await (await openStore(sqliteUrl(folder))).close();
  return path.join(folder, 'lockgate.sqlite');
}

/**
 * Counts the frames of a WAL that was not copied yet, and the commits in it. Each commit is an fsync. SQLite's format:
 * the file's header has 32 bytes, with the page size at byte 8; a frame is a header of 24 bytes and a page, and its
 * number at byte 4 is positive only in the last frame of a commit.
 */
function readWal(file: string): { readonly frames: number; readonly commits: number; readonly bytes: number } {
  const wal = readFileSync(`${file}-wal`);
  const frameBytes = 24 + wal.readUInt32BE(8);
  let [frames, commits] = [0, 0];
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    frames += 1;
    if (wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return { frames, commits, bytes: wal.length };
}

t.test('a batch is one commit, and each uplink adds few bytes to it', async (t) => {
  const file = await emptyFile(t);
  const db = openDurable(file);
  t.teardown(() => db.close());
  t.equal(db.pragma('synchronous', { simple: true }), 2, 'a commit is an fsync');
  db.pragma('wal_autocheckpoint = 0');
  const writer = new LogWriter(db, RUN_SIZE);
  const source = new UplinkSource(LOCKS);
  const batches = 40;
  for (let batch = 0; batch < batches; batch++)
    writer.write([{ type: 'append', commit: packCommit(source.nextCommit(UPLINKS_PER_COMMIT)) }]);
  const { commits, bytes } = readWal(file);
  t.equal(commits, batches);
  const perUplink = Math.round(bytes / batches / UPLINKS_PER_COMMIT);
  t.comment(`${perUplink} bytes for an uplink`);
  t.ok(perUplink < 300, `${perUplink} bytes for an uplink`);
  t.ok(writer.memtable.indexedId >= RUN_SIZE.minUplinks, 'some bytes are for the indexes by key and by lock');
});

t.test('an uplink costs one statement, and two more when its run is flushed to the indexes', async (t) => {
  const file = await emptyFile(t);
  let statements = 0;
  const db = new SqliteDatabase(file, {
    verbose: () => {
      statements += 1;
    },
  });
  registerRowChecksum(db);
  registerUsernameKey(db);
  addUplinkSum(db);
  t.teardown(() => db.close());
  const writer = new LogWriter(db, { minUplinks: 2000, uplinksPerCredential: 1, maxUplinks: 2000 });
  const source = new UplinkSource(LOCKS);
  const append = (): number => {
    statements = 0;
    writer.write([{ type: 'append', commit: packCommit(source.nextCommit(UPLINKS_PER_COMMIT)) }]);
    return statements;
  };
  const first = append();
  // One read of each lock's highest key in a run; begin and commit.
  t.ok(first <= UPLINKS_PER_COMMIT + LOCKS + 2, `${first} statements while no run is flushed`);
  append();
  t.equal(writer.memtable.flushing?.count, 2000, 'a run starts to be flushed to the indexes');
  const third = append();
  // The run is flushed somewhat faster than the next one grows. Two statements for each of its uplinks write its key
  // and its entry in the index by lock.
  t.ok(
    third > UPLINKS_PER_COMMIT * 3 && third <= UPLINKS_PER_COMMIT * 3.5 + LOCKS + 3,
    `${third} statements while a run is flushed`,
  );
});

t.test('the store’s thread gets one block of memory and no object per uplink', (t) => {
  const { incoming } = new UplinkSource(LOCKS).nextCommit(UPLINKS_PER_COMMIT);
  const packed = packCommit({ incoming, judged: [], states: new Map() } satisfies Commit);
  t.match(packed, { count: UPLINKS_PER_COMMIT, extras: [], judged: [], commands: [] });
  t.ok(packed.uplinks.byteLength < UPLINKS_PER_COMMIT * 160, `${packed.uplinks.byteLength} bytes`);
  t.end();
});

/** The objects that a value consists of, including itself. */
function objectsIn(value: unknown, found = new Set<object>()): Set<object> {
  if (typeof value !== 'object' || value === null || found.has(value)) return found;
  found.add(value);
  for (const part of Object.values(value)) objectsIn(part, found);
  return found;
}

// The belief is what the judge, the code that checks a lock's messages, concludes about the lock.
t.test('a ping changes the belief in place and leaves no objects alive until the next ping', (t) => {
  const run = new JudgedRun();
  const state: DeviceState = { belief: run.belief, ping: null, receivedAtMs: null };
  const receivePing = (sequence: number): void => {
    const position = { latitudeDegrees: 52 + sequence / 10000, longitudeDegrees: 13, uncertaintyMeters: sequence };
    const body = cellular({ reason: 'REASON_CELL_PING', batteryPercent: 80 - sequence, position });
    const ping = uplink({ sequence, timeMs: START_MS + sequence, body });
    run.receive(ping, START_MS + sequence);
    noteUplink(state, 0, ping, START_MS + sequence);
  };
  receivePing(1);
  const before = objectsIn(state);
  receivePing(2);
  t.same(
    [...objectsIn(state)].filter((object) => !before.has(object)),
    [],
    'the same objects as before',
  );
  const at = { timeMs: START_MS + 2 };
  t.match(state.belief.position, { latitudeDegrees: 52.0002, uncertaintyMeters: 2, ...at });
  t.match(state.ping, { sequence: 2, kind: 'cellular', reason: 'REASON_CELL_PING', ...at });
  t.end();
});

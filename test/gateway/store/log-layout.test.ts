/**
 * The log, the table of uplinks (locks' messages) in the store: each uplink is stored once, is found by key and by lock
 * at any time, and matches its checksum. The newest uplinks are only in memory (memtable) until a group of them, a run,
 * is sorted into the index tables; this must not be visible through the store's methods.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { IncomingUplink } from '../../../gateway/store/contract/log/commit.js';
import type { LogEntry } from '../../../gateway/store/contract/log/log-entry.js';
import { positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { StoreOptions } from '../../../gateway/store/contract/store-options.js';
import { packCommit } from '../../../gateway/store/log/packed-commit.js';
import { type SummedRow, uplinkSum } from '../../../gateway/store/log/uplink-sum.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { LogWriter } from '../../../gateway/store/sqlite/log/log-writer.js';
import { ThreadLog } from '../../../gateway/store/sqlite/log/thread-log.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { SeededChance } from '../../helpers/pair/seeded-chance.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const LOCKS = 4;
/** So few uplinks that the log's indexes are written often. */
const SMALL_RUN_SIZE = { minUplinks: 20, uplinksPerCredential: 2, maxUplinks: 40 };
/** So many uplinks after a start, a lock restarts. */
const UPLINKS_PER_BOOT = 64;
const STATES = ['pending', 'delivered'] as const;

t.setTimeout(120_000);

/** An uplink as the gateway stores it. Two with the same key (lock, boot, sequence) may differ in their content. */
function uplink(lock: number, boot: number, sequence: number, content = 0): IncomingUplink {
  const bytes = testBytes(sequence, { boot, kept: content });
  const uplinkKey = { deviceId: lock, merchantId: 1, credentialId: lock, boot, sequence };
  return {
    type: 'uplink',
    ...uplinkKey,
    digest: uplinkDigest(bytes),
    kind: 1,
    bytes,
    receivedAtMs: 5,
    buffered: false,
  };
}

/** A model of the log: a plain list of uplinks. */
class LogModel {
  readonly uplinks: IncomingUplink[] = [];
  readonly #keys = new Set<string>();

  append(incoming: readonly IncomingUplink[]): void {
    for (const added of incoming) {
      const key = keyOf(added);
      if (!this.#keys.has(key)) this.uplinks.push(added);
      this.#keys.add(key);
    }
  }

  ofLock(lock: number): IncomingUplink[] {
    return this.uplinks.filter(({ deviceId }) => deviceId === lock);
  }
}

const keyOf = ({ credentialId, boot, sequence, digest }: IncomingUplink): string =>
  `${credentialId}/${boot}/${sequence}/${digest.toString('hex')}`;
const shortKeyOf = ({ boot, sequence, digest }: { boot: number; sequence: number; digest: Buffer }): string =>
  `${boot}/${sequence}/${digest.toString('hex')}`;

/** Opens a store; a new one gets a merchant, its locks and a webhook URL. */
async function openWithLocks(folder: string, options: StoreOptions): Promise<Store> {
  const store = await openStore(folder, options);
  if ((await store.listMerchants()).length > 0) return store;
  await store.addMerchant('Amber', 1);
  for (let lock = 1; lock <= LOCKS; lock++)
    await store.addDevice({
      mac: testMac(lock),
      merchant: 'Amber',
      simulated: false,
      secretHash: Buffer.alloc(32),
      nowMs: 1,
    });
  const url = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: Buffer.alloc(1), nowMs: 1 };
  await store.addWebhookUrl(url);
  return store;
}

/** A lock's uplinks, read from its log in chunks of 7, so that an index and the memory are read in turns. */
async function logOf(store: Store, lock: number): Promise<IncomingUplink[]> {
  const entries: LogEntry[] = [];
  for await (const chunk of store.readLog(lock, 7)) entries.push(...chunk);
  // A stored uplink has all members of an incoming one but its type; those are compared.
  return entries.flatMap((entry) => (entry.type === 'uplink' ? [entry.uplink as unknown as IncomingUplink] : []));
}

/** Compares everything that can be read by key or by lock with the model. */
async function compare(t: Test, store: Store, model: LogModel, random: SeededChance, when: string): Promise<void> {
  const lock = random.between(1, LOCKS + 1);
  const uplinks = model.ofLock(lock);
  const shortKeys = (list: readonly IncomingUplink[]): string[] => list.map(shortKeyOf);
  t.same(shortKeys(await logOf(store, lock)), shortKeys(uplinks), `${when}: the log of lock ${lock}`);
  const sorted = uplinks.toSorted((a, b) => b.boot - a.boot || b.sequence - a.sequence);
  const latest = await store.readUplinks(lock, 15);
  const positions = (list: readonly { boot: number; sequence: number }[]): string[] =>
    list.map(({ boot, sequence }) => `${boot}/${sequence}`);
  t.same(positions(latest), positions(sorted.slice(0, 15)), `${when}: the latest of lock ${lock}`);
  const filter = { urlIds: [1], states: [...STATES], deviceId: lock, fromId: 0, toId: 1e9, limit: 15 };
  const deliveries = await store.webhooks.readDeliveries(filter);
  t.same(
    deliveries.map(({ uplink }) => shortKeyOf(uplink)),
    shortKeys(uplinks.toReversed().slice(0, 15)),
    `${when}: the deliveries of lock ${lock}`,
  );
  if (uplinks.length === 0) return;
  const picked = random.pick(uplinks);
  const digests = await store.readDigests(lock, picked.boot, picked.sequence);
  const withSameKey = uplinks.filter(({ boot, sequence }) => boot === picked.boot && sequence === picked.sequence);
  t.same(
    digests.map((digest) => digest.toString('hex')).sort(),
    withSameKey.map(({ digest }) => digest.toString('hex')).sort(),
    `${when}: the contents with the key ${shortKeyOf(picked)}`,
  );
  const event = await store.webhooks.findEvent({ ...picked, mac: testMac(lock) });
  t.equal(event && shortKeyOf(event), shortKeyOf(picked), `${when}: the event`);
}

/** The boot and the sequence number of a lock's uplink, which is the first, second … that it makes. */
function keyOfNumber(number: number): [boot: number, sequence: number] {
  return [1 + Math.floor(number / UPLINKS_PER_BOOT), number % UPLINKS_PER_BOOT];
}

/**
 * Makes uplinks in order, late, repeated, and with the same key but other content. `sent` has the number of uplinks
 * that each lock has made.
 */
function nextBatch(random: SeededChance, sent: Map<number, number>): IncomingUplink[] {
  return Array.from({ length: random.between(0, 25) }, () => {
    const lock = random.between(1, LOCKS + 1);
    const last = sent.get(lock) ?? 0;
    const drawn = random.next();
    if (drawn < 0.6) {
      sent.set(lock, last + 1);
      return uplink(lock, ...keyOfNumber(last));
    }
    const number = random.between(0, last + 3);
    return uplink(lock, ...keyOfNumber(number), drawn < 0.9 ? 0 : random.between(1, 3));
  });
}

/** Appends random commits to a store and to a plain list, and compares the two after each round. */
async function runAgainstModel(t: Test, options: StoreOptions, seed: number): Promise<void> {
  const folder = tempFolder(t);
  const [random, model, sent] = [new SeededChance(seed), new LogModel(), new Map<number, number>()];
  let store = await openWithLocks(folder, options);
  t.teardown(() => store.close().catch(() => undefined));
  for (let round = 0; round < 60; round++) {
    const batches = Array.from({ length: random.between(1, 4) }, () => nextBatch(random, sent));
    const hasFailingCommit = random.next() < 0.1;
    // NaN is stored as NULL, which the column does not allow.
    const broken = { ...uplink(1, 9, round), deviceId: Number.NaN };
    // Each commit is sent before the previous commit is answered, as a gateway under full load does.
    const appended = batches.map((incoming) => store.append({ incoming, judged: [], states: new Map() }));
    if (hasFailingCommit) {
      // Made with a copy of `sent`: as nothing of the commit is stored, the locks make these uplinks again later.
      const incoming = [...nextBatch(random, new Map(sent)), broken];
      const failing = store.append({ incoming, judged: [], states: new Map() });
      await t.rejects(failing, { name: 'StoreFailure' }, `round ${round}: nothing of a failed commit is stored`);
    }
    await Promise.all(appended);
    for (const incoming of batches) model.append(incoming);
    await compare(t, store, model, random, `seed ${seed}, round ${round}`);
    if (random.next() < 0.1) {
      await store.close();
      store = await openWithLocks(folder, options);
    }
  }
  await store.close();
  t.equal(countOf(folder, 'uplink'), model.uplinks.length, 'each uplink is stored once');
  checkSums(t, folder);
}

/** The store's file. */
function open(folder: string): SqliteDatabase.Database {
  return new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
}

function countOf(folder: string, table: string): number {
  const db = open(folder);
  const count = db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
  db.close();
  return count;
}

/** Asserts that each stored uplink matches its checksum. */
function checkSums(t: Test, folder: string): void {
  const db = open(folder);
  const rows = db.prepare('SELECT * FROM uplink').all() as (SummedRow & { readonly sum: number })[];
  db.close();
  t.same(
    rows.filter((row) => uplinkSum(row) !== row.sum),
    [],
    `${rows.length} rows match their checksums`,
  );
}

for (const logThread of [false, true])
  t.test(`with short runs, ${logThread ? 'in a thread' : 'without one'}, the log equals a plain list`, async (t) => {
    for (const seed of quickOrLong([1], [1, 2, 3, 4]))
      await runAgainstModel(t, { logThread, runSize: SMALL_RUN_SIZE }, seed);
  });

t.test('after a full disk the retried uplinks get into the index tables', async (t) => {
  const folder = tempFolder(t);
  await (await openWithLocks(folder, {})).close();
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  t.teardown(() => db.close());
  const writer = new LogWriter(db, SMALL_RUN_SIZE);
  const [random, sent, model] = [new SeededChance(3), new Map<number, number>(), new LogModel()];
  let fullDiskCount = 0;
  for (let round = 0; round < 300; round++) {
    // The file can't grow, so that a commit fails if it needs a page.
    const pages = db.pragma('page_count', { simple: true }) as number;
    const incoming = nextBatch(random, sent);
    const packed = packCommit({ incoming, judged: [], states: new Map() });
    const commit = (): unknown => writer.write([{ type: 'append', commit: packed }]);
    db.pragma(`max_page_count = ${pages}`);
    try {
      commit();
    } catch (error) {
      t.match(error, { code: 'SQLITE_FULL' });
      fullDiskCount += 1;
      db.pragma('max_page_count = 1000000');
      commit();
    }
    model.append(incoming);
  }
  writer.flushIndexes();
  const count = (table: string): unknown => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  const all = model.uplinks.length;
  t.same([count('uplink'), count('uplink_name'), count('uplink_of_device')], [all, all, all]);
  t.ok(fullDiskCount > 10, `${fullDiskCount} times it was full`);
});

t.test('uplinks that are in the index tables are not held in memory', async (t) => {
  const folder = tempFolder(t);
  await (await openWithLocks(folder, {})).close();
  const file = path.join(folder, 'lockgate.sqlite');
  const reader = new SqliteDatabase(file, { readonly: true });
  t.teardown(() => reader.close());
  const log = await ThreadLog.open({ file, runSize: SMALL_RUN_SIZE }, reader);
  const [random, sent] = [new SeededChance(4), new Map<number, number>()];
  for (let round = 0; round < 50; round++)
    await log.append(packCommit({ incoming: nextBatch(random, sent), judged: [], states: new Map() }));
  t.ok(log.memtable.count <= 2 * SMALL_RUN_SIZE.maxUplinks, `${log.memtable.count} in memory`);
  t.ok(log.memtable.indexedId > 200, `up to ${log.memtable.indexedId} all are in the tables`);
  await log.flushIndexes();
  t.same([log.memtable.count, log.memtable.mark.runEndId], [0, 0], 'no uplink, and no end of a run, is left in memory');
  await log.close();
});

t.test('a changed row does not match its checksum', async (t) => {
  const folder = tempFolder(t);
  const store = await openWithLocks(folder, {});
  await store.append({ incoming: [uplink(1, 1, 1)], judged: [], states: new Map() });
  await store.close();
  const db = open(folder);
  const row = db.prepare('SELECT * FROM uplink').get() as SummedRow & { readonly sum: number };
  db.close();
  t.equal(uplinkSum(row), row.sum);
  const bytes = Buffer.from(row.bytes);
  bytes[3] = (bytes[3] as number) ^ 1;
  const digest = Buffer.from(row.digest);
  digest[7] = (digest[7] as number) ^ 128;
  const columns = ['id', 'device_id', 'merchant_id', 'credential_id', 'boot', 'sequence', 'kind', 'received_at_ms'];
  const changed = columns.map((name) => ({
    ...row,
    [name]: (row[name as keyof SummedRow] as number) + 1,
  }));
  for (const other of [...changed, { ...row, bytes }, { ...row, digest }, { ...row, buffered: 1 }])
    t.not(uplinkSum(other), row.sum);
});

t.test('erased and deleted uplinks are gone from every table and from the memtable', async (t) => {
  for (const runSize of [undefined, { minUplinks: 1, uplinksPerCredential: 1, maxUplinks: 1 }]) {
    const folder = tempFolder(t);
    const store = await openWithLocks(folder, runSize === undefined ? {} : { runSize });
    for (const sequence of [1, 2, 3])
      await store.append({ incoming: [uplink(1, 1, sequence), uplink(2, 1, sequence)], judged: [], states: new Map() });
    t.match(await store.eraseDevice(1, null), { uplinks: 3 });
    t.same([await logOf(store, 1), await store.readUplinks(1, 9)], [[], []]);
    t.equal((await store.readDigests(1, 1, 2))[0]?.length, 0, 'the key of an erased uplink is still known');
    // The events of lock 2 are held: the URL's cursor is before them.
    t.match(await store.deleteOld({ table: 'uplink', beforeMs: 6, afterId: 0, limit: 4 }), { held: 2, deleted: 2 });
    await store.recordProgress([{ urlId: 1, attempts: [], cursor: positionAfter(99) }]);
    t.match(await store.deleteOld({ table: 'uplink', beforeMs: 6, afterId: 0, limit: 9 }), { held: 0, deleted: 4 });
    t.same(await store.readDigests(2, 1, 2), []);
    await store.append({ incoming: [uplink(2, 1, 2)], judged: [], states: new Map() });
    t.equal((await logOf(store, 2)).length, 1, 'a deleted uplink that is sent again is new');
    await store.close();
    // The uplink that was sent again: with a long run it is still only in the memtable, and so in the log.
    t.ok(countOf(folder, 'uplink_name') <= 1, 'no key is left behind');
    t.ok(countOf(folder, 'uplink_of_device') <= 1);
    checkSums(t, folder);
  }
});

for (const logThread of [false, true])
  t.test(`the index does not say what an erased uplink said, ${logThread ? 'in a thread' : 'inline'}`, async (t) => {
    const folder = tempFolder(t);
    // Each commit fills a run, which the next commit writes into the indexes.
    const store = await openWithLocks(folder, {
      logThread,
      runSize: { minUplinks: 2, uplinksPerCredential: 1, maxUplinks: 2 },
    });
    const append = (...incoming: IncomingUplink[]): Promise<unknown> =>
      store.append({ incoming, judged: [], states: new Map() });
    await append(uplink(1, 1, 1), uplink(2, 1, 1));
    await store.eraseDevice(1, null);
    await append(uplink(1, 1, 2), uplink(2, 1, 2));
    await append(uplink(1, 1, 3), uplink(2, 1, 3));
    await store.close();
    const db = open(folder);
    const hinted = db.prepare(
      'SELECT device_id, uplink_id, hint IS NOT NULL FROM uplink_of_device WHERE uplink_id <= 4 ORDER BY uplink_id',
    );
    const rows = hinted.raw().all();
    db.close();
    t.same(
      rows,
      [
        [1, 1, 0],
        [2, 2, 1],
        [1, 3, 1],
        [2, 4, 1],
      ],
      'the first uplink was erased after it was appended, and before it got into the index',
    );
  });

t.test('the log of an older version is upgraded in steps, and an interrupted upgrade is resumed', async (t) => {
  const folder = tempFolder(t);
  const db = open(folder);
  const all = await migrationProvider.getMigrations();
  // Migration 0009 introduced the index tables.
  const older = Object.fromEntries(Object.entries(all).filter(([name]) => name < '0009'));
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  const provider = { getMigrations: async () => older };
  t.notOk((await new Migrator({ db: tables, provider }).migrateToLatest()).error);
  db.exec(`INSERT INTO merchant VALUES (1, 'Amber', 1);
    INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (1, '${testMac(1)}', 1, 0, 1);
    INSERT INTO credential (id, device_id, kind, secret_hash, created_at_ms) VALUES (1, 1, 'lock', x'00', 1)`);
  const columns =
    'id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes, received_at_ms, buffered';
  const insert = db.prepare(`INSERT INTO uplink (${columns}) VALUES (?, 1, 1, 1, 1, ?, ?, 1, ?, 5, 0)`);
  // Distant ids, so that there is more than one step.
  const ids = [1, 2, 150_000, 150_001, 250_000];
  for (const [sequence, id] of ids.entries()) {
    const { digest, bytes } = uplink(1, 1, sequence);
    insert.run(id, sequence, digest, bytes);
  }
  db.close();
  const interrupted = openSqliteStore(folder, {
    onCatchUp: ({ done }) => {
      if (done > 0) throw new Error('the power fails');
    },
  });
  await t.rejects(interrupted, { message: 'the power fails' });
  t.equal(countOf(folder, 'uplink_name'), 2, 'a step was done');
  const reported: number[] = [];
  const store = await openSqliteStore(folder, { onCatchUp: ({ done, of }) => void reported.push(done, of) });
  // A step covers 100,000 ids; the last one, up to 250,000, is not reported.
  t.same(reported, [100_000, 250_000, 200_000, 250_000]);
  t.same(
    (await store.readUplinks(1, 9)).map(({ id }) => id),
    ids.toReversed(),
  );
  t.same(
    (await logOf(store, 1)).map(({ sequence }) => sequence),
    [0, 1, 2, 3, 4],
  );
  await store.append({ incoming: [uplink(1, 1, 2), uplink(1, 1, 9)], judged: [], states: new Map() });
  t.equal((await store.readUplinks(1, 9)).length, 6, 'a repeat is skipped, a new uplink is stored');
  await store.close();
  t.equal(countOf(folder, 'uplink_of_device'), 5);
  checkSums(t, folder);
});

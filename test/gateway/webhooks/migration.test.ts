/**
 * Stores of older versions are upgraded without loss of what they say about webhooks: a store of the first version, and
 * one of the version before the store recorded how long a URL has been failing.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { firstLight } from '../../../gateway/store/sqlite/migrations/0001-first-light.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { testBytes } from '../../helpers/gateway/test-gateway.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.test('URLs and deliveries of an older store stay unchanged', async (t) => {
  const folder = tempFolder(t);
  // The first version's schema, with its rows: URL 3, lock 7, three pings, a pending and a dead delivery.
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  const provider = { getMigrations: async () => ({ '0001-first-light': firstLight }) };
  const { error } = await new Migrator({ db: tables, provider }).migrateToLatest();
  t.notOk(error);
  db.exec(`INSERT INTO merchant VALUES (1, 'Amber', 1);
    INSERT INTO device VALUES (7, 'A4C138000001', 1, 0, 1);
    INSERT INTO credential VALUES (1, 7, 'lock', x'00', 1, NULL);
    INSERT INTO webhook_url VALUES (3, 1, 'http://a/', '{}', x'00', 'active', NULL, 3, 1002);`);
  const uplink = db.prepare('INSERT INTO uplink VALUES (?, 7, 1, 1, 1, ?, ?, 1, ?, ?, 0)');
  for (const id of [1, 2, 3]) uplink.run(id, id, Buffer.alloc(8, id), testBytes(id), 1000 + id);
  db.exec(`INSERT INTO delivery VALUES (3, 2, 'pending', 1, 50), (3, 3, 'dead', 8, NULL);
    INSERT INTO attempt VALUES (1, 3, 2, 1, 9, 1, 500, 'no', '');`);
  db.close();
  const store = await openStore(sqliteUrl(folder));
  t.teardown(() => store.close());
  t.match(await store.webhooks.find(3), {
    ordered: false,
    failingSinceMs: null,
    cursor: positionAfter(3),
    startedAfter: positionAfter(1),
  });
  t.match(await store.readDueDeliveries(3, 50, 9), [{ uplink: { id: 2 }, attempts: 1, attemptsBefore: 0 }]);
  t.equal(await store.nextDueAtMs(3), 50);
  t.same(await store.webhooks.readPendingLocks(3), [7]);
  // “kept” is a delivery that was not made because its URL was disabled.
  const states = ['pending', 'delivered', 'dead', 'kept'] as const;
  const deliveries = await store.webhooks.readDeliveries({ urlIds: [3], states, fromId: 0, toId: 99, limit: 9 });
  t.same(
    deliveries.map(({ uplink, state, attempts }) => [uplink.id, state, attempts.length]),
    [
      [3, 'dead', 0],
      [2, 'pending', 1],
    ],
    'the URL has no event from before it was added',
  );
});

t.test('a URL of a store that did not say for how long it was failing still fails, and has no hold', async (t) => {
  const folder = tempFolder(t);
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  const allSteps = await migrationProvider.getMigrations();
  const provider = {
    // Step 0013 adds for how long a URL has been failing, and holds (the waits that receivers ask for by Retry-After).
    getMigrations: async () => Object.fromEntries(Object.entries(allSteps).filter(([name]) => name < '0013')),
  };
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  t.notOk((await new Migrator({ db: tables, provider }).migrateToLatest()).error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO webhook_url (id, merchant_id, url, headers, secret_sealed, state, cursor, created_at_ms,
    failing_since_ms) VALUES (3, 1, 'http://a/', '{}', x'00', 'active', 0, 2, 77)`);
  db.close();
  const store = await openStore(sqliteUrl(folder));
  t.teardown(() => store.close());
  t.match(await store.webhooks.find(3), { failingSinceMs: 77, failingForMs: 0, hold: null });
  const failing = { sinceMs: 77, forMs: 5 };
  await store.recordProgress([{ urlId: 3, attempts: [], failing, hold: { untilMs: 9, spanMs: 4 } }]);
  t.match(await store.webhooks.find(3), { failingForMs: 5, hold: { untilMs: 9, spanMs: 4 } });
  t.match(await store.webhooks.change(3, { ordered: true }), { failingForMs: 5, hold: { untilMs: 9 } });
  t.match(
    await store.webhooks.change(3, { url: 'http://b/' }),
    { failingSinceMs: null, failingForMs: 0, hold: null },
    'a new address starts without failures',
  );
});

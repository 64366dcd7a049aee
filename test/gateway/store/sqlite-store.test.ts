/**
 * The SQLite store keeps the contract that every engine has, and protects its files: a folder is open only once, a
 * newer version's store is refused, and a failed migration changes nothing.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';
import { floodContract } from './contract/flood-contract.js';
import { idempotencyContract } from './contract/idempotency-contract.js';
import { ownershipContract } from './contract/ownership-contract.js';
import { storeContract } from './contract/store-contract.js';
import { usageStoreContract } from './contract/usage-contract.js';

// The contract suites run twice, perhaps on a busy machine.
t.setTimeout(170_000);

storeContract('SQLite', openStore);
floodContract('SQLite', openStore);
/** The log's indexes get new uplinks (messages) in groups, runs. These are so small that most tests have some. */
const runSize = { minUplinks: 2, uplinksPerCredential: 1, maxUplinks: 4 };
storeContract('SQLite with a thread', (folder) => openStore(folder, { logThread: true, runSize }));
usageStoreContract('SQLite', openStore);
idempotencyContract('SQLite', openStore);
ownershipContract('SQLite', openStore);
ownershipContract('SQLite with a thread', (folder) => openStore(folder, { logThread: true, runSize }));

t.test('a data folder can be opened by only one gateway at a time', async (t) => {
  const folder = tempFolder(t);
  const store = await openSqliteStore(folder);
  await t.rejects(openSqliteStore(folder), { code: 'data-in-use' });
  await store.close();
  const next = await openSqliteStore(folder);
  await next.close();
});

t.test('a store that a newer version wrote is refused in one sentence', async (t) => {
  const folder = tempFolder(t);
  await (await openSqliteStore(folder)).close();
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  db.prepare('INSERT INTO kysely_migration (name, timestamp) VALUES (?, ?)').run('9999-later', '2030-01-01');
  db.close();
  await t.rejects(openSqliteStore(folder), { code: 'store-newer' });
});

t.test('if one migration fails, an older store is unchanged and can be migrated later', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = new SqliteDatabase(file);
  t.teardown(() => db.close());
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The eighth step.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0008-notices');
  t.equal(error, undefined);
  // The table of the eleventh step exists already, so that this step fails after the ninth and the tenth.
  db.exec('CREATE TABLE audit (id INTEGER)');
  const schema = (): unknown => db.prepare('SELECT name, sql FROM sqlite_master ORDER BY name').all();
  const done = (): unknown => db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all();
  const before = { schema: schema(), done: done() };
  await t.rejects(openSqliteStore(folder), /audit/);
  t.same({ schema: schema(), done: done() }, before);
  db.exec('DROP TABLE audit');
  await (await openSqliteStore(folder)).close();
});

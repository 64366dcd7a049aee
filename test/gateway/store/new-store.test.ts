/**
 * A new store, which one script makes, is the same as an empty store that every migration was applied to: its tables,
 * indexes and triggers as text and in order, and its rows.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import t from 'tap';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { NEW_STORE_STEP } from '../../../gateway/store/sqlite/gen/new-store-sql.js';
import { migrate } from '../../../gateway/store/sqlite/migrate.js';
import { STEPS } from '../../../gateway/store/sqlite/migrations.js';
import { migrateInMemory, readSchema } from '../../../gateway/store/sqlite/schema-version.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** Everything in a store, except for the times at which the steps were applied. */
function contents(db: Database) {
  const schema = readSchema(db);
  const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => name);
  const rows = (table: string) =>
    (db.prepare(`SELECT * FROM "${table}"`).all() as object[]).map((row) => ({ ...row, timestamp: undefined }));
  return {
    schema,
    rows: Object.fromEntries(tables.map((table) => [table, rows(table)])),
    pragmas: ['user_version', 'application_id', 'auto_vacuum', 'encoding'].map((name) => db.pragma(name)),
  };
}

t.test('a new store is what all migrations make of an empty one', async (t) => {
  t.equal(NEW_STORE_STEP, STEPS.at(-1), 'the script has the last step (npm run gen)');
  const file = path.join(tempFolder(t), 'lockgate.sqlite');
  const made = openDurable(file);
  t.teardown(() => made.close());
  t.same(await migrate(made, file, 'make'), { from: null, steps: STEPS, copy: null });
  const migrated = await migrateInMemory(NEW_STORE_STEP);
  t.teardown(() => migrated.close());
  const [{ schema, ...rest }, expected] = [contents(made), contents(migrated)];
  t.same(
    schema.map(({ name }) => name),
    expected.schema.map(({ name }) => name),
    'in the same order, which SQLite follows when it chooses an index',
  );
  for (const [index, item] of schema.entries()) t.same(item, expected.schema[index], `${item.type} ${item.name}`);
  t.same({ ...rest }, { rows: expected.rows, pragmas: expected.pragmas });
  t.same(await migrate(made, file, 'open'), { from: STEPS.at(-1), steps: [], copy: null }, 'nothing is left to do');
});

t.test('a new store that could not be finished stays empty', async (t) => {
  const file = path.join(tempFolder(t), 'lockgate.sqlite');
  const db = openDurable(file);
  t.teardown(() => db.close());
  // Fewer pages than the tables need.
  db.pragma('max_page_count = 40');
  await t.rejects(migrate(db, file, 'make'), { name: 'StoreFailure', message: /could not make .*full/ });
  const other = new SqliteDatabase(file, { readonly: true });
  t.teardown(() => other.close());
  t.same(readSchema(other), []);
  db.pragma('max_page_count = 100000');
  t.match(await migrate(db, file, 'make'), { from: null, steps: STEPS });
});

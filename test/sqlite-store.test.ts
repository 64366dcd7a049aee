import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { openSqliteStore } from '../gateway/store/sqlite-store.js';
import { openStore } from './helpers/new-store.js';
import { tempFolder } from './helpers/temp-folder.js';
import { floodContract, storeContract } from './store-contract.js';
import { usageStoreContract } from './usage-store-contract.js';

// Twice the contract, on a machine that does other things too.
t.setTimeout(170_000);

storeContract('SQLite', openStore);
floodContract('SQLite', openStore);
const runSize = { least: 2, perCredential: 1, most: 4 };
storeContract('SQLite with a thread', (folder) => openStore(folder, { logThread: true, runSize }));
usageStoreContract('SQLite', openStore);

t.test('a data folder has one gateway at a time', async (t) => {
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

/**
 * Makes the tables of a new store with one SQL text, which takes a tenth of the time of all migrations. The text is
 * generated from them (generate.mjs), so a store looks the same either way. Migrations that are not in it yet are
 * applied after it, as to any older store.
 */
import type { Database } from 'better-sqlite3';
import { systemClock } from '../../../proto/clock.js';
import { NEW_STORE_SQL, NEW_STORE_STEP } from './gen/new-store-sql.js';
import { STEPS } from './migrations.js';

/** Whether a file has no tables yet. */
export function isEmptyFile(db: Database): boolean {
  return db.prepare('SELECT 1 FROM sqlite_master LIMIT 1').get() === undefined;
}

/**
 * Makes the tables in an empty file, and records the migrations that the SQL replaces, in one transaction. The
 * connection must have the functions that triggers call.
 *
 * @throws SQLite's error; the file is then unchanged
 */
export function makeTables(db: Database): void {
  const time = new Date(systemClock.now()).toISOString();
  const make = db.transaction(() => {
    db.exec(NEW_STORE_SQL);
    const record = db.prepare('INSERT INTO kysely_migration (name, timestamp) VALUES (?, ?)');
    for (const name of STEPS.filter((step) => step <= NEW_STORE_STEP)) record.run(name, time);
  });
  make.immediate();
}

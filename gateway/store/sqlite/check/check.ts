/**
 * `db check`: checks that a store is unchanged since it was written, and consistent (quality.md §2, bit rot). Reads one
 * snapshot, also of a store in use, and changes nothing.
 *
 * How a flipped bit is found depends on the file. A closed file usually has block checksums, which cover every bit. In
 * a file without them, a bit is found in a row by the row's checksum, in a tree or an index by SQLite's integrity
 * check, and in freed space since that must be zero (unused.ts); it is not found in bytes that a page split left
 * behind. In the write-ahead log, SQLite's own checksums reveal the bit (wal.ts).
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import type { CheckReport, CheckResult, Damage } from '../../contract/check-report.js';
import { StoreFailure } from '../../contract/errors.js';
import { readSums } from '../../file-sums.js';
import { readSchemaVersion, schemaAfter } from '../schema-version.js';
import { checkBlocks } from './blocks.js';
import { type CheckContext, type CheckOutcome, isDamage, MAX_DAMAGE_LISTED } from './context.js';
import { checkForeignKeys, checkPages, checkSchema } from './file.js';
import { checkLog } from './log.js';
import { checkOutbox } from './outbox.js';
import { checkQuotaCounts } from './quota-counts.js';
import { openReadable, type ReadableStore } from './readable-copy.js';
import { checkRows } from './rows.js';
import { checkUnused } from './unused.js';
import { checkUsage } from './usage.js';
import { checkWal } from './wal.js';

/** Reports the progress of a check. */
export type ReportProgress = (check: string, done: number) => void;

/** The first bytes of every SQLite file. */
const MAGIC = 'SQLite format 3\0';
/**
 * A file that starts with at least this many of these 16 characters counts as a damaged SQLite file, not another kind.
 */
const MIN_MAGIC_MATCHES = 12;

/**
 * The unit of each check's count. `outbox` checks deliveries of webhooks, `kept` the counts of what merchants store.
 */
const UNITS: Readonly<Record<string, string>> = {
  blocks: 'blocks',
  'unused bytes': 'pages',
  pages: 'pages',
  'foreign keys': 'tables',
  schema: 'items',
  rows: 'rows',
  log: 'rows',
  outbox: 'events',
  usage: 'rows',
  kept: 'merchants',
  wal: 'frames',
};

/**
 * Checks a store's file.
 *
 * @throws LockgateError `input-database` if the file is missing or not a database, `store-newer` if a newer version of
 * lockgate wrote it
 * @throws StoreFailure if the file can't be read
 */
export async function checkDatabase(file: string, report: ReportProgress = () => undefined): Promise<CheckReport> {
  const bytes = sizeOf(file);
  const run = new CheckRun(file, report);
  run.check('blocks', undefined, (context) => checkBlocks(file, context));
  run.check('unused bytes', undefined, (context) => checkUnused(file, context));
  run.check('wal', undefined, (context) => checkWal(file, context));
  let schema: string | null = null;
  let store: ReadableStore | undefined;
  try {
    store = openReadable(file);
    const { db } = store;
    // A transaction, so that all following checks see one state while others write. `cell_size_check` makes SQLite
    // verify the layout of each tree page that it reads.
    db.exec('PRAGMA cell_size_check = ON; BEGIN');
    schema = await checkContent(run, db, file);
  } catch (error) {
    if (!isDamage(error)) throw error instanceof LockgateError ? error : new StoreFailure(`check ${file}`, error);
    run.damage('pages', null, null, `it can't be read: ${(error as Error).message}`);
  } finally {
    store?.close();
  }
  return { file, bytes, schema, walBytes: walBytesOf(file), checks: run.checks, damage: run.reported };
}

/** Runs the checks that need a connection. Returns the last applied migration; null if none was. */
async function checkContent(run: CheckRun, db: Database, file: string): Promise<string | null> {
  const { done, pending } = readSchemaVersion(db, file);
  run.check('pages', db, checkPages);
  run.check('foreign keys', db, checkForeignKeys);
  const last = done.at(-1) ?? null;
  // The applied steps must be all of this version's steps up to the last applied one.
  const isKnownVersion = last !== null && !pending.includes(last) && pending.every((name) => name > last);
  if (!isKnownVersion) {
    run.damage('schema', 'kysely_migration', null, `the applied migrations are ${done.join(', ') || 'none'}`);
    return last;
  }
  const expected = await expectedSchema(last);
  run.check('schema', db, (context) => checkSchema(context, expected));
  run.check('rows', db, checkRows);
  // The other checks need the tables of this version.
  if (pending.length > 0) return last;
  run.check('log', db, checkLog);
  run.check('outbox', db, checkOutbox);
  run.check('usage', db, checkUsage);
  run.check('kept', db, checkQuotaCounts);
  return last;
}

/** The schema after each migration, by the migration's name: computed once. */
const schemas = new Map<string, ReturnType<typeof schemaAfter>>();

function expectedSchema(migration: string): ReturnType<typeof schemaAfter> {
  const schema = schemas.get(migration) ?? schemaAfter(migration);
  schemas.set(migration, schema);
  return schema;
}

/** Collects the results and the damage of the checks. */
class CheckRun {
  readonly checks: CheckResult[] = [];
  readonly reported: Damage[] = [];
  readonly #file: string;
  readonly #report: ReportProgress;
  #isSchemaDamaged = false;

  constructor(file: string, report: ReportProgress) {
    this.#file = file;
    this.#report = report;
  }

  /** Runs one check and collects its result. */
  check(name: string, db: Database | undefined, run: (context: CheckContext) => CheckOutcome): void {
    let damaged = 0;
    const damage: CheckContext['damage'] = (table, row, what) => {
      damaged += 1;
      if (name === 'schema') this.#isSchemaDamaged = true;
      if (damaged <= MAX_DAMAGE_LISTED) this.#reportDamage(name, table, row, what);
    };
    this.#report(name, 0);
    let outcome: CheckOutcome = { count: 0 };
    try {
      // `db` is undefined only for the checks of the file's bytes, which don't use it.
      outcome = run({ db: db as Database, damage, progress: (done) => this.#report(name, done) });
    } catch (error) {
      // In a damaged schema a column may have another name, with which the code of this check fails.
      if (!isDamage(error) && !this.#isSchemaDamaged) throw error;
      damage(null, null, `it can't be read any further: ${(error as Error).message}`);
    }
    const { count, note = null } = outcome;
    this.checks.push({ name, count, unit: UNITS[name] ?? '', damaged, note });
  }

  /** Reports damage that prevents a check. */
  damage(name: string, table: string | null, row: string | null, what: string): void {
    this.#reportDamage(name, table, row, what);
    this.checks.push({ name, count: 0, unit: UNITS[name] ?? '', damaged: 1, note: 'it could not continue' });
  }

  #reportDamage(check: string, table: string | null, row: string | number | bigint | null, what: string): void {
    this.reported.push({
      check,
      table,
      row: row === null ? null : String(row),
      // The report names the file once, at its head.
      what: what.replaceAll(this.#file, 'it'),
    });
  }
}

/** The size of the store's file. @throws LockgateError `input-database` if the file is not a database */
function sizeOf(file: string): number {
  const start = Buffer.alloc(MAGIC.length);
  try {
    const { size } = statSync(file);
    const handle = openSync(file, 'r');
    readSync(handle, start);
    closeSync(handle);
    const matches = [...MAGIC].filter((letter, index) => start[index] === letter.charCodeAt(0)).length;
    // A file with a .sums file was a store, however damaged it is now.
    if (matches >= MIN_MAGIC_MATCHES || readSums(file) !== null) return size;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new LockgateError(
      'input-database',
      `${file} can't be read: ${code === 'ENOENT' ? 'it does not exist' : message}`,
    );
  }
  throw new LockgateError('input-database', `${file} is not a lockgate store: it is not an SQLite database`);
}

function walBytesOf(file: string): number {
  return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

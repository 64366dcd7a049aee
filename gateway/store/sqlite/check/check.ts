/**
 * `db check`: whether a store is what was written and contradicts itself nowhere (quality.md §2, bit rot). It reads one
 * snapshot, of a store in use too, and changes nothing.
 *
 * How a flipped bit is found: in a file at rest with block sums, by these, wherever the bit is. Without them, by its
 * row's checksum, by SQLite's own check where it is in a tree or an index, and in freed space because that is zero
 * (unused.ts); in what a split page left behind it can't be found. The write-ahead log has SQLite's own checksums,
 * which are followed to their end (wal.ts).
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import type { CheckReport, CheckResult, Damage } from '../../contract/check-report.js';
import { StoreFailure } from '../../contract/errors.js';
import { readSums } from '../../file-sums.js';
import { readSchemaVersion, schemaAfter } from '../schema-version.js';
import { checkBlocks } from './blocks.js';
import { type CheckContext, type CheckOutcome, DAMAGE_REPORTED, isDamage } from './context.js';
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

const MAGIC = 'SQLite format 3\0';
/** A damaged file header still has so many right characters. */
const MAGIC_RIGHT = 12;

/** The units of what is counted, by check. */
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
 * @throws LockgateError `input-database` where there is no such file or it is no database, `store-newer` where a newer
 * version of lockgate wrote it
 * @throws StoreFailure where the machine doesn't let it be read
 */
export async function checkDatabase(file: string, tell: ReportProgress = () => undefined): Promise<CheckReport> {
  const bytes = sizeOf(file);
  const run = new CheckRun(file, tell);
  run.check('blocks', undefined, (context) => checkBlocks(file, context));
  run.check('unused bytes', undefined, (context) => checkUnused(file, context));
  run.check('wal', undefined, (context) => checkWal(file, context));
  let schema: string | null = null;
  let store: ReadableStore | undefined;
  try {
    store = openReadable(file);
    const { db } = store;
    // One state of it for all that follows, whoever writes meanwhile.
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

async function checkContent(run: CheckRun, db: Database, file: string): Promise<string | null> {
  const { done, pending } = readSchemaVersion(db, file);
  run.check('pages', db, checkPages);
  run.check('foreign keys', db, checkForeignKeys);
  const last = done.at(-1) ?? null;
  const isOurs = last !== null && !pending.includes(last) && pending.every((name) => name > last);
  if (!isOurs) {
    run.damage('schema', 'kysely_migration', null, `the steps that were done are ${done.join(', ') || 'none'}`);
    return last;
  }
  const expected = await expectedSchema(last);
  run.check('schema', db, (context) => checkSchema(context, expected));
  run.check('rows', db, checkRows);
  // Older tables don't have what these look at.
  if (pending.length > 0) return last;
  run.check('log', db, checkLog);
  run.check('outbox', db, checkOutbox);
  run.check('usage', db, checkUsage);
  run.check('kept', db, checkQuotaCounts);
  return last;
}

const schemas = new Map<string, ReturnType<typeof schemaAfter>>();

function expectedSchema(last: string): ReturnType<typeof schemaAfter> {
  const known = schemas.get(last) ?? schemaAfter(last);
  schemas.set(last, known);
  return known;
}

/** Collects what the checks find. */
class CheckRun {
  readonly checks: CheckResult[] = [];
  readonly reported: Damage[] = [];
  readonly #file: string;
  readonly #tell: ReportProgress;

  constructor(file: string, tell: ReportProgress) {
    this.#file = file;
    this.#tell = tell;
  }

  check(name: string, db: Database | undefined, look: (context: CheckContext) => CheckOutcome): void {
    let damaged = 0;
    const damage: CheckContext['damage'] = (table, row, what) => {
      damaged += 1;
      if (damaged <= DAMAGE_REPORTED) this.#note(name, table, row, what);
    };
    this.#tell(name, 0);
    let looked: CheckOutcome = { count: 0 };
    try {
      looked = look({ db: db as Database, damage, progress: (done) => this.#tell(name, done) });
    } catch (error) {
      if (!isDamage(error)) throw error;
      damage(null, null, `it can't be read any further: ${(error as Error).message}`);
    }
    const { count, note = null } = looked;
    this.checks.push({ name, count, unit: UNITS[name] ?? '', damaged, note });
  }

  /** Damage that stands in the way of a check. */
  damage(name: string, table: string | null, row: string | null, what: string): void {
    this.#note(name, table, row, what);
    this.checks.push({ name, count: 0, unit: UNITS[name] ?? '', damaged: 1, note: 'it could not go on' });
  }

  #note(check: string, table: string | null, row: string | number | bigint | null, what: string): void {
    this.reported.push({
      check,
      table,
      row: row === null ? null : String(row),
      what: what.replaceAll(this.#file, 'it'),
    });
  }
}

/** @throws LockgateError `input-database` where there is no database */
function sizeOf(file: string): number {
  const begin = Buffer.alloc(MAGIC.length);
  try {
    const { size } = statSync(file);
    const handle = openSync(file, 'r');
    readSync(handle, begin);
    closeSync(handle);
    const right = [...MAGIC].filter((letter, index) => begin[index] === letter.charCodeAt(0)).length;
    // Where it was summed up, it was a store, whatever has become of it.
    if (right >= MAGIC_RIGHT || readSums(file) !== null) return size;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new LockgateError(
      'input-database',
      `${file} can't be read: ${code === 'ENOENT' ? 'it is not there' : message}`,
    );
  }
  throw new LockgateError('input-database', `${file} is no store of lockgate's: it is not an SQLite database`);
}

function walBytesOf(file: string): number {
  return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

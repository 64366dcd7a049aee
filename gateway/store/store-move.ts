/**
 * Moves the store of a data folder, in which no gateway runs, to a PostgreSQL database (`lockgate db move`).
 *
 * The move may be interrupted after any step, and the same call again completes it: one transaction fills the database,
 * marked as unfinished; then the store in the folder is marked as moved; then the database's mark is taken away. Before
 * the second step a gateway starts on the folder only, after it on neither, after the third on the database only. An
 * unfinished database is emptied and filled again, unless the folder's store is marked already.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { AuditWho } from './contract/operators/audit-store.js';
import type { StoreOptions } from './contract/store-options.js';
import { MOVED_TABLES } from './move/moved-tables.js';
import type { MoveTarget } from './postgres/move/move-target.js';
import { MoveSource } from './sqlite/move/move-source.js';
import { shownStoreUrl } from './store-url.js';

/** The bytes of a move's id. */
const ID_BYTES = 8;

/** A finished step, reported so that tests can interrupt the move after it. */
export type MoveStep = 'filled' | 'marked';

export interface MoveOptions {
  /** Who moves the store, for the audit log. */
  readonly who: AuditWho;
  readonly clock?: Clock;
  /** Called with the present work, and how many rows of it are done: a check, or a table. */
  readonly report?: (what: string, done: number) => void;
  readonly onStep?: (step: MoveStep) => void;
  readonly onModesCorrected?: StoreOptions['onModesCorrected'];
}

/** What was moved. */
export interface Moved {
  /** The database, without user and password. */
  readonly to: string;
  /** The number of rows of each table; empty if an earlier move had copied them and only its end was missing. */
  readonly tables: readonly { readonly name: string; readonly rows: number }[];
  /** How many rows had a text with the character U+0000, which became U+FFFD. */
  readonly replacedRows: number;
}

/**
 * Moves a store, or completes a move that was interrupted.
 *
 * @param folder the data folder
 * @param url the database, as `readStoreUrl` returns it
 * @throws LockgateError `store-moved`, `store-damaged`, `store-not-empty`, `move-differs`; what opening either store
 * throws
 */
export async function moveStore(folder: string, url: string, options: MoveOptions): Promise<Moved> {
  const { report = () => undefined, onStep = () => undefined, onModesCorrected } = options;
  const source = await MoveSource.open(folder, report, { onModesCorrected });
  try {
    const target = await openTarget(url);
    try {
      const to = shownStoreUrl(url);
      const movedTo = source.readMovedTo();
      const unfinished = await target.readUnfinished();
      if (movedTo !== null) {
        if (movedTo.move !== unfinished)
          throw new LockgateError('store-moved', `the store in ${folder} was moved to ${movedTo.to} already`);
        await target.finish();
        return { to, tables: [], replacedRows: 0 };
      }
      if (unfinished === null) await target.requireEmpty();
      const move = randomBytes(ID_BYTES).toString('hex');
      const copied = await copyTables(source, target, move, { ...options, folder, report });
      onStep('filled');
      source.writeMovedTo({ move, to });
      onStep('marked');
      await target.finish();
      return { to, ...copied };
    } finally {
      await target.close();
    }
  } finally {
    source.close();
  }
}

/** The driver is loaded only here, as in open-store.ts. */
async function openTarget(url: string): Promise<MoveTarget> {
  const postgres = await import('./postgres/move/move-target.js');
  return await postgres.MoveTarget.open(url);
}

interface CopyOptions extends MoveOptions {
  readonly folder: string;
  readonly report: (what: string, done: number) => void;
}

async function copyTables(source: MoveSource, target: MoveTarget, move: string, options: CopyOptions) {
  const { who, clock = systemClock, report, folder } = options;
  const tables: { name: string; rows: number }[] = [];
  let replacedRows = 0;
  await target.filling(move, async () => {
    for (const name of MOVED_TABLES) {
      report(name, 0);
      const { columns, lastId } = source.table(name);
      const chunks = source.rows(name, columns);
      const { rows, replaced } = await target.copy({ name, columns, lastId, chunks }, (done) => report(name, done));
      tables.push({ name, rows });
      replacedRows += replaced;
    }
    await target.note(who, folder, clock.now());
  });
  return { tables, replacedRows };
}

/** What the parts of `db check` have in common: what they look at, and how they say what they found. */
import type { Database } from 'better-sqlite3';

/** Something that is not as it was written, or contradicts itself. */
export interface Damage {
  /** The check that found it. */
  readonly check: string;
  /** The table, or null where it is in none or nobody can say. */
  readonly table: string | null;
  /** The row, by its rowid or its key. */
  readonly row: string | null;
  /** A sentence for people. */
  readonly what: string;
}

/** What one check did. */
export interface CheckResult {
  readonly name: string;
  /** How many it looked at, and of what: blocks, pages, rows … */
  readonly count: number;
  readonly unit: string;
  /** How much of it is damaged; beyond {@link DAMAGE_REPORTED} it goes on counting. */
  readonly damaged: number;
  /** What else there is to say: why it was left out, or what it can't see. */
  readonly note: string | null;
}

/** Damage of one check that is told row by row. */
export const DAMAGE_REPORTED = 100;

/** One check at work. */
export interface CheckContext {
  readonly db: Database;
  /** Tells of damage. */
  readonly damage: (table: string | null, row: string | number | bigint | null, what: string) => void;
  /** Says how far it is. */
  readonly progress: (done: number) => void;
}

/** How many it looked at, and what else there is to say. */
export interface Looked {
  readonly count: number;
  readonly note?: string | null;
}

/** What says that the machine, not the file, is in the way. */
const NOT_THE_FILE = /^SQLITE_(IOERR(?!_SHORT_READ|_CORRUPTFS)|BUSY|LOCKED|NOMEM|FULL|PERM|AUTH|CANTOPEN|INTERRUPT)/;

/** Whether an error of SQLite's says that the file is damaged. */
export function isDamage(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'SqliteError' && typeof code === 'string' && !NOT_THE_FILE.test(code);
}

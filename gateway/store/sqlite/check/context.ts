/** What the parts of `db check` have in common: what they look at, and how they say what they found. */
import type { Database } from 'better-sqlite3';

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
export interface CheckOutcome {
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

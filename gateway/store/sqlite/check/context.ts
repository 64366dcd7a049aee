/** What the checks of `db check` share: their input, and how they report. */
import type { Database } from 'better-sqlite3';

/** How many damaged places one check reports one by one. */
export const DAMAGE_REPORTED = 100;

/** The input of one check. */
export interface CheckContext {
  readonly db: Database;
  /** Reports a damaged place. */
  readonly damage: (table: string | null, row: string | number | bigint | null, what: string) => void;
  /** Reports progress. */
  readonly progress: (done: number) => void;
}

/** How many it looked at, and a note. */
export interface CheckOutcome {
  readonly count: number;
  readonly note?: string | null;
}

/** Errors that come from the machine, not from the file. */
const NOT_THE_FILE = /^SQLITE_(IOERR(?!_SHORT_READ|_CORRUPTFS)|BUSY|LOCKED|NOMEM|FULL|PERM|AUTH|CANTOPEN|INTERRUPT)/;

/** Whether SQLite's error means that the file is damaged. */
export function isDamage(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'SqliteError' && typeof code === 'string' && !NOT_THE_FILE.test(code);
}

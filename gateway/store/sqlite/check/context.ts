/** What the checks of `db check` share: their input, their outcome, and the kinds of SQLite errors. */
import type { Database } from 'better-sqlite3';

/** Maximum number of damaged places that one check lists; further ones are only counted. */
export const MAX_DAMAGE_LISTED = 100;

/** The input of one check. */
export interface CheckContext {
  /** A read-only connection with an open transaction. Checks of the file's bytes take the context without it. */
  readonly db: Database;
  /** Reports a damaged place: its table, its rowid or key, both null if unknown, and what is wrong, as a sentence. */
  readonly damage: (table: string | null, row: string | number | bigint | null, what: string) => void;
  /** Reports how many items have been examined so far. */
  readonly progress: (done: number) => void;
}

/** How many items a check examined, and a note for the report. */
export interface CheckOutcome {
  readonly count: number;
  readonly note?: string | null;
}

/**
 * SQLite's errors that do not mean a damaged file: of the disk, of locks, memory or rights. Of the I/O errors, a read
 * that ends too early (SHORT_READ) and a damaged file system (CORRUPTFS) do mean damage.
 */
const NO_DAMAGE_CODES = /^SQLITE_(IOERR(?!_SHORT_READ|_CORRUPTFS)|BUSY|LOCKED|NOMEM|FULL|PERM|AUTH|CANTOPEN|INTERRUPT)/;

/** Whether SQLite's error means that the file is damaged. */
export function isDamage(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'SqliteError' && typeof code === 'string' && !NO_DAMAGE_CODES.test(code);
}

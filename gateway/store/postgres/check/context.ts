/** What the checks of a database share: their input and their outcome. */
import type { Sql } from '../sql.js';

/** The input of one check. */
export interface CheckContext {
  /** A connection with an open transaction, which sees the database as of one moment. */
  readonly sql: Sql;
  /** Reports a damaged place: its table, its row, both null if unknown, and what is wrong, as a sentence. */
  readonly damage: (table: string | null, row: string | number | null, what: string) => void;
  /** Reports how many items have been examined so far. */
  readonly progress: (done: number) => void;
}

/** How many items a check examined, and a note for the report. */
export interface CheckOutcome {
  readonly count: number;
  readonly note?: string | null;
}

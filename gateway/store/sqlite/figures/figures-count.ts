/** Counts the store's figures: in the thread of figures-thread.ts, or over a connection of the caller. */
import type { Database } from 'better-sqlite3';
import type { StoreFigures } from '../../contract/store-figures.js';
import { UrlBacklogs } from './url-backlogs.js';

/** Without the locks of closed merchants, which can't connect. */
const COUNT_LOCKS_IN_SERVICE = `
  SELECT count(*) FROM device WHERE removed_at_ms IS NULL
  AND merchant_id NOT IN (SELECT id FROM merchant WHERE closed_at_ms IS NOT NULL)`;

/** Prepares the statements on `db` and returns the function that counts, in one transaction: as of one moment. */
export function prepareFigures(db: Database): () => StoreFigures {
  const backlogs = new UrlBacklogs(db);
  const locksInService = db.prepare(COUNT_LOCKS_IN_SERVICE).pluck();
  return db.transaction(
    (): StoreFigures => ({ backlogs: backlogs.read(), locksInService: locksInService.get() as number }),
  );
}

/** Reads the figures as {@link FiguresThread} does, without a thread: the caller waits until they are counted. */
export class InlineFigures {
  readonly #count: () => StoreFigures;
  #isClosed = false;

  constructor(db: Database) {
    this.#count = prepareFigures(db);
  }

  /** As of now. Rejects if the store can't be read, or is closed. */
  async read(): Promise<StoreFigures> {
    if (this.#isClosed) throw new Error('the store is closed');
    return this.#count();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }
}

/**
 * Finds the first uplink from a time on, in hand-written SQL, and remembers it: times of receipt grow with ids, so the
 * first uplink from a time that has passed stays the first. The hourly figures of a single webhook URL need the first
 * uplinks from 25 times, which change once an hour, and each search makes some twenty reads across the whole log.
 */
import type { Database, Statement } from 'better-sqlite3';

/** Maximum number of remembered times; the oldest are forgotten. */
const MAX_REMEMBERED = 1_000;

interface FirstRow {
  readonly id: number;
  readonly received_at_ms: number;
}

export class FirstUplinks {
  readonly #firstFrom: Statement;
  readonly #newestId: Statement;
  /** The first uplink from each time, in the order in which they were found. */
  readonly #found = new Map<number, number>();

  /** `reader` is a reading connection. Methods throw SQLite's errors. */
  constructor(reader: Database) {
    this.#firstFrom = reader.prepare('SELECT id, received_at_ms FROM uplink WHERE id >= ? ORDER BY id LIMIT 1');
    this.#newestId = reader.prepare('SELECT coalesce(max(id), 0) FROM uplink').pluck();
  }

  /**
   * Returns the id of the first uplink that was received at this time or later; the last id + 1 if there is none. Of a
   * time that was asked for before, the id may be that of an uplink that has been deleted by age since.
   *
   * @param receivedAtMs ms since the epoch
   */
  find(receivedAtMs: number): number {
    const known = this.#found.get(receivedAtMs);
    if (known !== undefined) return known;
    const { id, isFinal } = this.#search(receivedAtMs);
    if (isFinal) this.#remember(receivedAtMs, id);
    return id;
  }

  /** A binary search. The result is final if there is such an uplink: no later one comes before it. */
  #search(receivedAtMs: number): { readonly id: number; readonly isFinal: boolean } {
    let [low, high] = [0, (this.#newestId.get() as number) + 1];
    let last = 0;
    while (low < high) {
      const middle = Math.floor(low + (high - low) / 2);
      const row = this.#firstFrom.get(middle) as FirstRow | undefined;
      if (row === undefined || row.received_at_ms >= receivedAtMs) high = middle;
      else {
        low = row.id + 1;
        last = row.id;
      }
    }
    const first = this.#firstFrom.get(low) as FirstRow | undefined;
    return { id: first?.id ?? last + 1, isFinal: first !== undefined };
  }

  #remember(receivedAtMs: number, id: number): void {
    const [oldestMs] = this.#found.keys();
    if (this.#found.size >= MAX_REMEMBERED && oldestMs !== undefined) this.#found.delete(oldestMs);
    this.#found.set(receivedAtMs, id);
  }
}

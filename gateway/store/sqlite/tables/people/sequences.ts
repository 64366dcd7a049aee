/** The last id assigned to each merchant's users and pets; ids that callers choose don't change it. */
import type { Database, Statement } from 'better-sqlite3';

export class Sequences {
  readonly #last: Statement;
  readonly #note: Statement;

  constructor(db: Database) {
    this.#last = db
      .prepare('SELECT last_id FROM merchant_sequence WHERE merchant_id = ? AND what = ?')
      .pluck()
      .safeIntegers();
    this.#note = db.prepare(
      `INSERT INTO merchant_sequence (merchant_id, what, last_id) VALUES (?, ?, ?)
       ON CONFLICT (merchant_id, what) DO UPDATE SET last_id = excluded.last_id`,
    );
  }

  last(merchantId: number, what: 'user' | 'pet'): bigint {
    return (this.#last.get(merchantId, what) as bigint | undefined) ?? 0n;
  }

  note(merchantId: number, what: 'user' | 'pet', id: bigint): void {
    this.#note.run(merchantId, what, id);
  }
}

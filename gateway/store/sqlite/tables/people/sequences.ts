/**
 * The last id that the store assigned to each merchant's users, and to its pets, which the specification's pet
 * operations store. Ids that callers choose don't count.
 */
import type { Database, Statement } from 'better-sqlite3';

export class Sequences {
  readonly #last: Statement;
  readonly #record: Statement;

  constructor(db: Database) {
    this.#last = db
      .prepare('SELECT last_id FROM merchant_sequence WHERE merchant_id = ? AND what = ?')
      .pluck()
      .safeIntegers();
    this.#record = db.prepare(
      `INSERT INTO merchant_sequence (merchant_id, what, last_id) VALUES (?, ?, ?)
       ON CONFLICT (merchant_id, what) DO UPDATE SET last_id = excluded.last_id`,
    );
  }

  /** Returns the last assigned id, or 0 if none was. */
  readLast(merchantId: number, kind: 'user' | 'pet'): bigint {
    return (this.#last.get(merchantId, kind) as bigint | undefined) ?? 0n;
  }

  /** Records the last assigned id. */
  record(merchantId: number, kind: 'user' | 'pet', id: bigint): void {
    this.#record.run(merchantId, kind, id);
  }
}

/**
 * Stores refusals: that the gateway refused a lock's connection or message. `write` must be called inside a transaction
 * (log/batched-write.ts).
 */
import type { Database, Statement } from 'better-sqlite3';
import { MAX_REFUSALS, MAX_REFUSALS_PER_LOCK, REFUSALS_RETAINED_FOR } from '../../contract/devices/refusal-store.js';
import type { RefusalsWrite } from '../../tables/table-parts.js';

/** All rows are counted once per this many writes, since counting costs more than writing. */
const WRITES_PER_COUNT = 50;

export class RefusalWriter {
  readonly #put: Statement;
  readonly #trimLock: Statement;
  readonly #deleteOld: Statement;
  readonly #count: Statement;
  readonly #deleteOldest: Statement;
  #writes = 0;

  constructor(db: Database) {
    this.#put = db.prepare(
      `INSERT INTO refusal (device_id, merchant_id, source, what, reason, why, address, count, first_at_ms, last_at_ms)
       SELECT d.id, d.merchant_id, @source, @what, @reason, @why, @address, @count, @firstAtMs, @lastAtMs
       FROM device d WHERE d.mac = @mac AND d.removed_at_ms IS NULL
       ON CONFLICT (device_id, merchant_id, source, what, why) DO UPDATE SET
         count = count + excluded.count, last_at_ms = max(last_at_ms, excluded.last_at_ms),
         address = excluded.address, reason = excluded.reason`,
    );
    this.#trimLock = db.prepare(
      `DELETE FROM refusal WHERE id IN (
         SELECT r.id FROM refusal r JOIN device d ON d.id = r.device_id WHERE d.mac = ?
         ORDER BY r.last_at_ms DESC, r.id DESC LIMIT -1 OFFSET ${MAX_REFUSALS_PER_LOCK})`,
    );
    this.#deleteOld = db.prepare('DELETE FROM refusal WHERE last_at_ms < ?');
    this.#count = db.prepare('SELECT count(*) FROM refusal').pluck();
    this.#deleteOldest = db.prepare(
      'DELETE FROM refusal WHERE id IN (SELECT id FROM refusal ORDER BY last_at_ms LIMIT ?)',
    );
  }

  /** @throws SQLite's error */
  write({ changes, nowMs }: RefusalsWrite): void {
    for (const change of changes) {
      const { changes: writtenRows } = this.#put.run(change);
      if (writtenRows > 0) this.#trimLock.run(change.mac);
    }
    this.#deleteOld.run(nowMs - REFUSALS_RETAINED_FOR);
    if (this.#writes++ % WRITES_PER_COUNT !== 0) return;
    const surplus = (this.#count.get() as number) - MAX_REFUSALS;
    if (surplus > 0) this.#deleteOldest.run(surplus);
  }
}

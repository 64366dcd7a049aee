/**
 * Reads and shortens the waits of pending deliveries until their next attempts, in hand-written SQL; used when a URL's
 * deliveries start.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { DeliveryWait, WaitsPage } from '../../../contract/webhook-store.js';

export class DeliveryWaits {
  readonly #writer: Database;
  readonly #read: Statement;
  readonly #shorten: Statement;

  constructor(reader: Database, writer: Database) {
    this.#writer = writer;
    // The schedule of retries counts only the attempts since an operator last had the event sent again.
    this.#read = reader.prepare(
      `SELECT uplink_id AS uplinkId, attempts - attempts_before AS attempts, next_attempt_at_ms AS atMs
       FROM delivery INDEXED BY delivery_by_state
       WHERE url_id = @urlId AND state = 'pending' AND uplink_id > @afterId AND next_attempt_at_ms > @afterMs
       ORDER BY uplink_id LIMIT @limit`,
    );
    this.#shorten = writer.prepare(
      `UPDATE delivery SET next_attempt_at_ms = @atMs
       WHERE url_id = @urlId AND uplink_id = @uplinkId AND state = 'pending' AND next_attempt_at_ms > @atMs`,
    );
  }

  /** Returns the pending deliveries after `afterId` whose next attempt is after `afterMs`, in the order of the log. */
  read(urlId: number, { afterId, afterMs, limit }: WaitsPage): DeliveryWait[] {
    return this.#read.all({ urlId, afterId, afterMs, limit }) as DeliveryWait[];
  }

  /** Makes deliveries due earlier, in one transaction. @throws SQLite's error */
  shorten(urlId: number, waits: readonly { readonly uplinkId: number; readonly atMs: number }[]): void {
    const shortenAll = (): void => {
      for (const { uplinkId, atMs } of waits) this.#shorten.run({ urlId, uplinkId, atMs });
    };
    this.#writer.transaction(shortenAll).immediate();
  }
}

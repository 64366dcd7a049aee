/**
 * What a commit changes of commands, in SQL by hand: it is part of the transaction that stores the uplink with the
 * acknowledgement, so that neither is ever there without the other. To be called inside a transaction.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { CommandChange } from '../../contract/command-record.js';

export class CommandChanges {
  readonly #sent: Statement;
  readonly #acknowledged: Statement;

  constructor(db: Database) {
    // An answer may have come before a command that is sent once more is marked so: it stays answered.
    this.#sent = db.prepare(
      `UPDATE command SET state = CASE state WHEN 'queued' THEN 'sent' ELSE state END, sent_count = sent_count + 1,
         first_sent_at_ms = coalesce(first_sent_at_ms, ?), last_sent_at_ms = ? WHERE id = ?`,
    );
    // Only what was sent to this very lock can be answered by it, and once.
    this.#acknowledged = db.prepare(
      `UPDATE command SET state = ?, detail = ?, finished_at_ms = ?
       WHERE id = ? AND device_id = ? AND sent_count > 0 AND state IN ('sent', 'expired', 'cancelled')`,
    );
  }

  apply(change: CommandChange): void {
    if (change.type === 'sent') this.#sent.run(change.atMs, change.atMs, change.id);
    else this.#acknowledged.run(change.state, change.detail, change.atMs, change.id, change.deviceId);
  }
}

/**
 * Applies a commit's changes to commands, in hand-written SQL, in the transaction that stores the uplink with the
 * lock's acknowledgement, so that neither is stored without the other. `apply` must be called inside a transaction.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { CommandChange } from '../../contract/command-record.js';

export class CommandChanges {
  readonly #sent: Statement;
  readonly #acknowledged: Statement;

  constructor(db: Database) {
    // The lock's answer may arrive before a repeated send is recorded; the command then stays answered.
    this.#sent = db.prepare(
      `UPDATE command SET state = CASE state WHEN 'queued' THEN 'sent' ELSE state END, sent_count = sent_count + 1,
         first_sent_at_ms = coalesce(first_sent_at_ms, ?), last_sent_at_ms = ? WHERE id = ?`,
    );
    // A lock can answer only a command that was sent to it, and only once.
    this.#acknowledged = db.prepare(
      `UPDATE command SET state = ?, detail = ?, finished_at_ms = ?
       WHERE id = ? AND device_id = ? AND sent_count > 0 AND state IN ('sent', 'expired', 'cancelled')`,
    );
  }

  /** Records that a command was sent or acknowledged. @throws SQLite's error */
  apply(change: CommandChange): void {
    if (change.type === 'sent') this.#sent.run(change.atMs, change.atMs, change.id);
    else this.#acknowledged.run(change.state, change.detail, change.atMs, change.id, change.deviceId);
  }
}

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
    // The command may have been cancelled, expired or answered meanwhile: then it is not sent.
    this.#sent = db.prepare(
      `UPDATE command SET state = 'sent', sent_count = sent_count + 1,
         first_sent_at_ms = coalesce(first_sent_at_ms, ?), last_sent_at_ms = ?
       WHERE id = ? AND state IN ('queued', 'sent')`,
    );
    // A lock can answer only a command that was sent to it, and only once.
    this.#acknowledged = db.prepare(
      `UPDATE command SET state = ?, detail = ?, finished_at_ms = ?
       WHERE id = ? AND device_id = ? AND sent_count > 0 AND state IN ('sent', 'expired', 'cancelled')`,
    );
  }

  /** Records that a command was sent or acknowledged. Returns whether its state allowed that. @throws SQLite's error */
  apply(change: CommandChange): boolean {
    const { changes } =
      change.type === 'sent'
        ? this.#sent.run(change.atMs, change.atMs, change.id)
        : this.#acknowledged.run(change.state, change.detail, change.atMs, change.id, change.deviceId);
    return changes > 0;
  }
}

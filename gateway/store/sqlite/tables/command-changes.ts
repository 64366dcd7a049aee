/**
 * A commit's changes to commands, in SQL by hand: part of the transaction that stores the uplink with the
 * acknowledgement, so that neither is stored without the other. To be called inside a transaction.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { CommandChange } from '../../contract/command-record.js';

export class CommandChanges {
  readonly #sent: Statement;
  readonly #acknowledged: Statement;

  constructor(db: Database) {
    // The answer may come before a repeated send is recorded: the command stays answered.
    this.#sent = db.prepare(
      `UPDATE command SET state = CASE state WHEN 'queued' THEN 'sent' ELSE state END, sent_count = sent_count + 1,
         first_sent_at_ms = coalesce(first_sent_at_ms, ?), last_sent_at_ms = ? WHERE id = ?`,
    );
    // A lock can answer only what was sent to it, and once.
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

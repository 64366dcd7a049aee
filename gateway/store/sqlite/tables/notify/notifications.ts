/** Notifications and their recipients (notification-store.ts) in the SQLite store. Writes hold the write mutex. */
import type { Database, Statement } from 'better-sqlite3';
import { LockgateError } from '../../../../../proto/errors.js';
import { StoreFailure } from '../../../contract/errors.js';
import {
  type DueMessage,
  MAX_RECIPIENT_SECRETS,
  type MessageAttempt,
  type MessageCounts,
  type NotificationChange,
  type NotificationStore,
  OPERATOR_RECIPIENT,
  type OpenTrouble,
  type Recipient,
  type RecipientSecret,
} from '../../../contract/notify/notification-store.js';
import {
  type NotificationRow,
  type RecipientRow,
  toDueMessage,
  toRecipient,
} from '../../../tables/notification-rows.js';
import { type GuardedWriter, writeExclusively } from '../../exclusive-write.js';
import { NotificationQueue } from './queue.js';

export interface SqliteNotificationsParts extends GuardedWriter {
  readonly reader: Database;
}

export class SqliteNotifications implements NotificationStore {
  readonly #parts: SqliteNotificationsParts;
  readonly #queue: NotificationQueue;
  /** The statements of reads, by their text: the gateway's status makes several of them. */
  readonly #reads = new Map<string, Statement>();

  constructor(parts: SqliteNotificationsParts) {
    this.#parts = parts;
    this.#queue = new NotificationQueue(parts.writer);
  }

  /** Writes changes within the caller's transaction, under the write mutex. */
  recordInTransaction(changes: readonly NotificationChange[]): void {
    this.#queue.record(changes);
  }

  async readRecipients(): Promise<Recipient[]> {
    return (this.#all('SELECT * FROM notify_recipient ORDER BY id') as RecipientRow[]).map(toRecipient);
  }

  setUrl(id: number, url: string | null, secretSealed: Buffer): Promise<{ readonly isSecretNew: boolean }> {
    return writeExclusively(this.#parts, 'set a notify URL', (db) => {
      if (url === null && id !== OPERATOR_RECIPIENT) {
        for (const statement of [
          'DELETE FROM notification WHERE recipient_id = ?',
          'DELETE FROM notify_secret WHERE recipient_id = ?',
          'DELETE FROM notify_recipient WHERE id = ?',
        ])
          db.prepare(statement).run(id);
        return { isSecretNew: false };
      }
      db.prepare('INSERT INTO notify_recipient (id) VALUES (?) ON CONFLICT (id) DO NOTHING').run(id);
      db.prepare(
        `UPDATE notify_recipient SET url = @url, last_success_at_ms = NULL, last_error_at_ms = NULL,
           last_error_status = NULL, last_error = NULL WHERE id = @id AND url IS NOT @url`,
      ).run({ id, url });
      const hasSecret = db.prepare('SELECT 1 FROM notify_secret WHERE recipient_id = ?').get(id) !== undefined;
      if (!hasSecret)
        db.prepare('INSERT INTO notify_secret (recipient_id, secret_sealed) VALUES (?, ?)').run(id, secretSealed);
      return { isSecretNew: !hasSecret };
    });
  }

  async readSecrets(recipientId: number, nowMs: number): Promise<RecipientSecret[]> {
    const rows = this.#all(
      `SELECT secret_sealed, valid_until_ms FROM notify_secret
       WHERE recipient_id = ? AND (valid_until_ms IS NULL OR valid_until_ms > ?) ORDER BY id DESC`,
      recipientId,
      nowMs,
    ) as { secret_sealed: Buffer; valid_until_ms: number | null }[];
    return rows.map((row) => ({ secretSealed: row.secret_sealed, validUntilMs: row.valid_until_ms }));
  }

  addSecret(recipientId: number, secretSealed: Buffer, nowMs: number, oldValidUntilMs: number): Promise<void> {
    return writeExclusively(this.#parts, 'add a secret', (db) => {
      db.prepare(
        'UPDATE notify_secret SET valid_until_ms = min(?, ifnull(valid_until_ms, ?)) WHERE recipient_id = ?',
      ).run(oldValidUntilMs, oldValidUntilMs, recipientId);
      db.prepare('DELETE FROM notify_secret WHERE recipient_id = ? AND valid_until_ms <= ?').run(recipientId, nowMs);
      db.prepare('INSERT INTO notify_secret (recipient_id, secret_sealed) VALUES (?, ?)').run(
        recipientId,
        secretSealed,
      );
      const { count } = db
        .prepare('SELECT count(*) AS count FROM notify_secret WHERE recipient_id = ?')
        .get(recipientId) as { count: number };
      if (count > MAX_RECIPIENT_SECRETS)
        throw new LockgateError(
          'notify-secrets',
          `there are ${MAX_RECIPIENT_SECRETS} valid secrets: wait until one expires, or rotate with grace 0`,
        );
    });
  }

  record(changes: readonly NotificationChange[]): Promise<void> {
    return writeExclusively(this.#parts, 'queue notifications', () => this.#queue.record(changes));
  }

  async readOpenTroubles(): Promise<OpenTrouble[]> {
    return this.#all(
      `SELECT recipient_id AS recipientId, kind, subject FROM notification
       WHERE recipient_id > ${OPERATOR_RECIPIENT} AND ended_at_ms IS NULL`,
    ) as OpenTrouble[];
  }

  async readDue(recipientId: number, nowMs: number): Promise<DueMessage | null> {
    const [row] = this.#all(
      `SELECT * FROM notification INDEXED BY notification_due
       WHERE recipient_id = ? AND next_attempt_at_ms <= ? ORDER BY next_attempt_at_ms, id LIMIT 1`,
      recipientId,
      nowMs,
    ) as NotificationRow[];
    return row === undefined ? null : toDueMessage(row);
  }

  async nextDueAtMs(recipientId: number): Promise<number | null> {
    const [row] = this.#all(
      `SELECT next_attempt_at_ms AS atMs FROM notification INDEXED BY notification_due
       WHERE recipient_id = ? AND next_attempt_at_ms IS NOT NULL ORDER BY next_attempt_at_ms LIMIT 1`,
      recipientId,
    ) as { atMs: number }[];
    return row?.atMs ?? null;
  }

  release(id: number): Promise<boolean> {
    return writeExclusively(this.#parts, 'release a notification', (db) => {
      const released = db.prepare(
        `UPDATE notification SET opened_state = 'pending' WHERE id = ? AND opened_state = 'held'`,
      );
      return released.run(id).changes > 0;
    });
  }

  conclude({ id, recipientId, part, atMs, failure, nextAttemptAtMs }: MessageAttempt): Promise<void> {
    return writeExclusively(this.#parts, 'record a notification', (db) => {
      // The state of the message if no attempt follows. A next attempt at 0 means at once.
      const state = failure === null ? 'delivered' : 'dead';
      if (nextAttemptAtMs !== null) {
        // No attempt follows if the notification was dropped meanwhile: then it has no next attempt any more.
        db.prepare(
          `UPDATE notification SET attempts = attempts + 1, next_attempt_at_ms = ?
           WHERE id = ? AND next_attempt_at_ms IS NOT NULL`,
        ).run(nextAttemptAtMs, id);
        this.#delayLater(db, id, nextAttemptAtMs);
      } else if (part === 'ended')
        db.prepare('UPDATE notification SET ended_state = ?, next_attempt_at_ms = NULL WHERE id = ?').run(state, id);
      else
        db.prepare(
          `UPDATE notification SET opened_state = @state, attempts = 0,
             next_attempt_at_ms = CASE ended_state WHEN 'pending' THEN 0 END WHERE id = @id`,
        ).run({ id, state });
      if (failure === null)
        db.prepare('UPDATE notify_recipient SET last_success_at_ms = ? WHERE id = ?').run(atMs, recipientId);
      else
        db.prepare(
          `UPDATE notify_recipient SET last_error_at_ms = @atMs, last_error_status = @status, last_error = @error
           WHERE id = @recipientId`,
        ).run({ atMs, recipientId, ...failure });
    });
  }

  /** Lets the later messages about the trouble of a notification wait until this time at least. */
  #delayLater(db: Database, id: number, untilMs: number): void {
    db.prepare(
      `UPDATE notification AS later SET next_attempt_at_ms = @untilMs
       FROM notification AS first
       WHERE first.id = @id AND later.recipient_id = first.recipient_id AND later.kind = first.kind
         AND later.subject = first.subject AND later.id > first.id AND later.next_attempt_at_ms < @untilMs`,
    ).run({ id, untilMs });
  }

  shortenWaits(nowMs: number, maxWaits: readonly number[]): Promise<void> {
    return writeExclusively(this.#parts, 'shorten waits', (db) => {
      const shorten = db.prepare(
        `UPDATE notification SET next_attempt_at_ms = @untilMs
         WHERE attempts = @attempts AND next_attempt_at_ms > @untilMs`,
      );
      for (const [attempts, maxWait] of maxWaits.entries()) shorten.run({ attempts, untilMs: nowMs + maxWait });
    });
  }

  async countMessages(recipientId: number): Promise<MessageCounts> {
    const [counts] = this.#all(
      `SELECT (SELECT count(*) FROM notification INDEXED BY notification_due
               WHERE recipient_id = @recipientId AND next_attempt_at_ms IS NOT NULL) AS pending,
         (SELECT count(*) FROM notification
          WHERE recipient_id = @recipientId AND 'dead' IN (opened_state, ended_state)) AS dead`,
      { recipientId },
    ) as MessageCounts[];
    return counts ?? { pending: 0, dead: 0 };
  }

  #all(text: string, ...values: readonly unknown[]): unknown[] {
    try {
      const statement = this.#reads.get(text) ?? this.#parts.reader.prepare(text);
      this.#reads.set(text, statement);
      return statement.all(...values);
    } catch (error) {
      throw new StoreFailure('read notifications', error);
    }
  }
}

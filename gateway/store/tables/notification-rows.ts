/** Rows of notifications and their recipients, as both engines read them, made into the contract's values. */
import type { DueMessage, Recipient } from '../contract/notify/notification-store.js';

/** A row of `notify_recipient`. */
export interface RecipientRow {
  readonly id: number;
  readonly url: string | null;
  readonly last_success_at_ms: number | null;
  readonly last_error_at_ms: number | null;
  readonly last_error_status: number | null;
  readonly last_error: string | null;
}

/** A row of `notification`. */
export interface NotificationRow {
  readonly id: number;
  readonly public_id: string;
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly details: string;
  readonly opened_at_ms: number;
  readonly ended_at_ms: number | null;
  readonly ended_how: DueMessage['endedHow'];
  /** The state of the message about the opening: `held`, `pending`, `delivered`, `dead` or `skipped`. */
  readonly opened_state: string;
  readonly attempts: number;
}

/** The states in which no further attempt is made at the message about the opening of a trouble. */
const FINAL_STATES: ReadonlySet<string> = new Set(['delivered', 'dead']);

export function toRecipient(row: RecipientRow): Recipient {
  const { id, url, last_success_at_ms: lastSuccessAtMs, last_error_at_ms: atMs, last_error: error } = row;
  const lastError = atMs === null || error === null ? null : { atMs, status: row.last_error_status, error };
  return { id, url, lastSuccessAtMs, lastError };
}

/** The message that is due next: the one about the opening or, once that is final, the one about the end. */
export function toDueMessage(row: NotificationRow): DueMessage {
  const part = FINAL_STATES.has(row.opened_state) ? 'ended' : 'opened';
  return {
    id: row.id,
    publicId: row.public_id,
    part,
    isHeld: row.opened_state === 'held',
    kind: row.kind,
    subject: row.subject,
    text: row.text,
    details: JSON.parse(row.details) as DueMessage['details'],
    openedAtMs: row.opened_at_ms,
    endedAtMs: row.ended_at_ms,
    endedHow: row.ended_how,
    attempts: row.attempts,
  };
}

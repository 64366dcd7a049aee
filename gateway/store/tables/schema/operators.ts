/**
 * The rows of the tables of what operators see: notices, notifications, the audit log, sessions. ../schema.ts says what
 * all tables have in common.
 */
import type { Generated } from 'kysely';
import type { AuditActor, AuditOutcome } from '../../contract/operators/audit-store.js';
import type { NoticeKind } from '../../contract/operators/notice-store.js';

/** A notice for operators. For each kind and subject at most one notice is unresolved or unread. */
export interface NoticeTable {
  id: Generated<number>;
  kind: NoticeKind;
  subject: string;
  /** The notice's sentence. */
  text: string;
  /** The number of occurrences. */
  count: number;
  first_at_ms: number;
  last_at_ms: number;
  /** Null while unread. */
  read_at_ms: number | null;
  /** Null while the condition continues. */
  resolved_at_ms: number | null;
}

/** An entry of the audit log: who changed what, and with what outcome (audit-store.ts). */
export interface AuditTable {
  id: Generated<number>;
  at_ms: number;
  actor: AuditActor;
  address: string | null;
  agent: string | null;
  os_user: string | null;
  /** A name, the first characters of a hash, or the public id of an API key. */
  token: string | null;
  action: string;
  object: string;
  /** JSON objects without secrets. */
  before: string | null;
  after: string | null;
  outcome: AuditOutcome;
  code: string | null;
  /** Null while the action runs, and if its outcome is unknown. */
  ended_at_ms: number | null;
  /** The merchant who acted, or whose data was changed; null if that is none or unknown. */
  merchant_id: number | null;
  /** The merchant's user who acted, or null. */
  user_name: string | null;
  /** The name of the API key that was used, or null. */
  key_name: string | null;
}

/** A named token of an operator (operator-token-store.ts). */
export interface OperatorTokenTable {
  id: Generated<number>;
  name: string;
  role: string;
  /** SHA-256 of the token. */
  token_hash: Buffer;
  created_at_ms: number;
  last_used_at_ms: number | null;
  expires_at_ms: number | null;
  revoked_at_ms: number | null;
}

export interface ConsoleSessionTable {
  id: Generated<number>;
  /** `user`, `operator` or `link`. */
  kind: string;
  token_hash: Buffer;
  created_at_ms: number;
  expires_at_ms: number;
  address: string;
  agent: string | null;
  /** Of a user's session. */
  merchant_id: number | null;
  /** An int64: read as text. */
  user_id: number | null;
  /** Of an operator's session or link. */
  role: string | null;
  token_name: string | null;
  token_id: number | null;
  /** Of a link. */
  session_ends_at_ms: number | null;
}

/** A recipient of notifications (notify/notification-store.ts): operators, id 0, or the merchant with this id. */
export interface NotifyRecipientTable {
  id: number;
  /** Null while nothing is sent to it. */
  url: string | null;
  last_success_at_ms: number | null;
  last_error_at_ms: number | null;
  /** HTTP status; null if there was no answer. */
  last_error_status: number | null;
  last_error: string | null;
}

/** A recipient's signing secret, encrypted. The newest has no end. */
export interface NotifySecretTable {
  id: Generated<number>;
  recipient_id: number;
  secret_sealed: Buffer;
  valid_until_ms: number | null;
}

/** A trouble, with the messages about its opening and its end. */
export interface NotificationTable {
  id: Generated<number>;
  recipient_id: number;
  /** The random part of its messages' ids. */
  public_id: string;
  kind: string;
  subject: string;
  text: string;
  /** JSON of NotificationDetails. */
  details: string;
  opened_at_ms: number;
  ended_at_ms: number | null;
  ended_how: string | null;
  /** `held` back because of flapping; `dead`: given up; `skipped`: never sent. */
  opened_state: 'held' | 'pending' | 'delivered' | 'dead' | 'skipped';
  /** Null until the trouble has ended. */
  ended_state: 'pending' | 'delivered' | 'dead' | 'skipped' | null;
  /** Attempts at the message that is pending. */
  attempts: number;
  /** By the delivery clock; null if no message is pending. */
  next_attempt_at_ms: number | null;
}

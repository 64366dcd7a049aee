/**
 * The types of the tables' rows. The steps of migrations.ts create the tables; a new step changes these types too.
 *
 * Times are integers, ms since the epoch. Columns named `received_at_ms` are by the run's clock, which follows the wall
 * clock except in a sped-up simulation (protocol.md §3); others are wall-clock time unless a comment says otherwise.
 * Booleans are 0 and 1.
 *
 * Each table also has a column `sum`, the checksum of its row. Triggers compute it (row-sum-triggers.ts); except for
 * uplinks and states of locks, only `db check` reads it.
 */
import type { Generated } from 'kysely';
import type { Command, Source } from '../../../proto/wire/ping.js';
import type { AuditActor, AuditOutcome } from '../contract/audit-store.js';
import type { CommandState } from '../contract/command-record.js';
import type { NoticeKind } from '../contract/notice-store.js';
import type { RefusedWhat } from '../contract/refusal-store.js';

export interface MerchantTable {
  id: Generated<number>;
  name: string;
  created_at_ms: number;
  /** Null while the merchant is open. */
  closed_at_ms: number | null;
  /** When it was last opened again, or null. */
  reopened_at_ms: number | null;
}

export interface DeviceTable {
  id: Generated<number>;
  /** Wire spelling: 12 upper-case hex digits. */
  mac: string;
  merchant_id: number;
  /** 1 for a simulated lock: its uplinks are judged and delivered, but never billed. */
  simulated: number;
  created_at_ms: number;
  /** Null while the lock is in service. The row of a removed lock stays, since its history refers to the row. */
  removed_at_ms: number | null;
  /** Chosen by the merchant or an operator; null for a lock without a name. */
  name: Generated<string | null>;
  /** JSON object of the labels (device-labels.ts), in the order of their keys; null for a lock without labels. */
  labels: Generated<string | null>;
}

/**
 * The credential of a lock, or of a phone that acts for it. Newer credentials have higher ids, which orders uplinks.
 */
export interface CredentialTable {
  id: Generated<number>;
  device_id: number;
  kind: 'lock' | 'phone';
  /** HMAC-SHA-256 of the secret with a key derived from the data folder's key. */
  secret_hash: Buffer;
  created_at_ms: number;
  revoked_at_ms: number | null;
  /** The phone's name; null for a lock's credential. */
  name: string | null;
  /** From this time on the credential is not valid; null if it never expires. */
  expires_at_ms: number | null;
}

/**
 * The log: every uplink once, in the order of arrival. The log is also the outbox: each webhook URL reads it from the
 * URL's cursor on. So the one commit that stores a ping also guarantees its webhooks.
 */
export interface UplinkTable {
  id: Generated<number>;
  device_id: number;
  merchant_id: number;
  credential_id: number;
  /** A counter of the lock's boots, and one of its uplinks since that boot. */
  boot: number;
  sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`: distinguishes a repeat from other content with the same key. */
  digest: Buffer;
  /**
   * 0 acknowledgement, 1 cellular, 2 GPS, 3 close connection. Only pings (above 0) are events for merchants. −1 is an
   * erased uplink: only its key is left, so that a repeat is recognised.
   */
  kind: number;
  bytes: Buffer;
  received_at_ms: number;
  buffered: number;
  /** Computed by uplink-sum.ts; never null in an open store. */
  sum: number | null;
}

/** The index of the log by key, without the newest uplinks, which are in the memtable (uplink-memtable.ts). */
export interface UplinkNameTable {
  credential_id: number;
  boot: number;
  sequence: number;
  uplink_id: number;
}

/** The index of the log by lock, without the newest uplinks. */
export interface UplinkOfDeviceTable {
  device_id: number;
  uplink_id: number;
}

/** Up to where the two indexes are complete; the table has one row. */
export interface UplinkSettledTable {
  /** The key of the only row. */
  one: 1;
  /** The indexes have every uplink up to this id. */
  settled_id: number;
  /** Uplinks up to this id were stored by an older version, which had no such indexes. */
  caught_up_at: number;
}

/** The state of a lock: what the judge has concluded from its uplinks in the order of protocol.md §1. */
export interface DeviceStateTable {
  device_id: number;
  /** JSON of a DeviceState. */
  state: string;
  /** The state includes the lock's uplinks up to this id, and no later uplink of the lock. */
  through_uplink_id: number;
}

/** Events of a lock's connection, in addition to the log; traces contain both. */
export interface LockEventTable {
  id: Generated<number>;
  device_id: number;
  at_ms: number;
  /** The newest uplink in the log at the time of the event. */
  after_uplink_id: number;
  /** JSON of a LockEvent. */
  event: string;
  /** The lock's merchant at that time; null if unknown. */
  merchant_id: number | null;
}

/**
 * A breach of a rule of the protocol, found by the judge. `credential_id`, `boot` and `sequence` are the key of its
 * uplink, or null.
 */
export interface FindingTable {
  id: Generated<number>;
  device_id: number;
  at_ms: number;
  rule: string;
  severity: 'violation' | 'warning';
  message: string;
  credential_id: number | null;
  boot: number | null;
  sequence: number | null;
  /** The lock's merchant at that time. */
  merchant_id: number | null;
}

/** Bytes that can't be accepted as an uplink, with the reason. */
export interface QuarantineTable {
  id: Generated<number>;
  device_id: number;
  credential_id: number;
  received_at_ms: number;
  code: string;
  message: string;
  bytes: Buffer;
  /** The lock's merchant at that time. */
  merchant_id: number | null;
}

export interface WebhookUrlTable {
  id: Generated<number>;
  merchant_id: number;
  url: string;
  /** JSON object of the custom headers, each value sealed, in base64. */
  headers: string;
  /** 0 if an older version left the values unencrypted; the next start seals them. */
  headers_sealed: Generated<number>;
  /** The newest signing secret, encrypted. */
  secret_sealed: Buffer;
  state: 'active' | 'disabled';
  /** Why the URL is disabled, as a sentence; null while active. */
  disabled_why: string | null;
  /** Every event up to this uplink id is delivered or has a row in `delivery`. */
  cursor: number;
  created_at_ms: number;
  /** 1 if a lock's later events wait for a failed event. */
  ordered: Generated<number>;
  /** The URL gets only events after this uplink id. */
  started_after: Generated<number>;
  /** Which events the URL gets, as JSON (contract/webhooks/webhook-filter.ts); null if it gets all. */
  filter: Generated<string | null>;
  /** After this uplink id the cursor may have passed events that a filter left out; null if it never had one. */
  filtered_after: Generated<number | null>;
  /** The end of those; null while the URL has a filter, or if it never had one. */
  filtered_until: Generated<number | null>;
  attempts_per_second: Generated<number | null>;
  /** The time limit of an attempt. */
  timeout_ms: Generated<number | null>;
  /** PEM: the only certificate authorities that the URL's certificate may come from. */
  ca: Generated<string | null>;
  /** When the first attempt since the last success failed; null if no attempt failed since. */
  failing_since_ms: Generated<number | null>;
  /** How long the URL has failed since then, counting only time in which a gateway ran and could send. */
  failing_for_ms: Generated<number>;
  /**
   * The end, by the clock of deliveries (wall-clock time at the gateway's start, monotonic from then on), and the
   * initial length of a pause that the receiver asked for; or null.
   */
  held_until_ms: Generated<number | null>;
  held_for_ms: Generated<number | null>;
}

/** A replaced signing secret: attempts are also signed with it until it expires. */
export interface WebhookOldSecretTable {
  id: Generated<number>;
  url_id: number;
  secret_sealed: Buffer;
  valid_until_ms: number;
}

/** Events that were not sent since the URL was disabled: uplink ids after `after_id` up to `until_id`. */
export interface WebhookGapTable {
  url_id: number;
  after_id: number;
  until_id: number;
}

/** A delivery that failed at its first attempt, or is to be sent again. One that succeeded at once has no row. */
export interface DeliveryTable {
  url_id: number;
  uplink_id: number;
  /** The uplink's lock, for ordered URLs. */
  device_id: Generated<number>;
  state: 'pending' | 'delivered' | 'dead' | 'damaged';
  attempts: number;
  /** Attempts before the event was last resent; the retry schedule does not count them. */
  attempts_before: Generated<number>;
  next_attempt_at_ms: number | null;
}

export interface AttemptTable {
  id: Generated<number>;
  url_id: number;
  uplink_id: number;
  number: number;
  at_ms: number;
  duration_ms: number;
  /** HTTP status; null if there was no answer. */
  status: number | null;
  /** What failed, as a sentence; null on success. */
  error: string | null;
  /** The first 1 KiB of the answer. */
  answer: string | null;
}

/** A command to a lock, and its result. Times are by the run's clock. */
export interface CommandTable {
  id: Generated<number>;
  device_id: number;
  merchant_id: number;
  type: Command['type'];
  /** JSON of the command's other members. */
  parameters: string;
  state: CommandState;
  created_at_ms: number;
  /** The earliest time to send it. */
  not_before_ms: number | null;
  expires_at_ms: number;
  first_sent_at_ms: number | null;
  last_sent_at_ms: number | null;
  sent_count: number;
  finished_at_ms: number | null;
  /** The lock's reason. */
  detail: string;
  asked_by: string;
}

/** Events for merchants that are not in the log yet; the end of a command stages one (migration 0029). */
export interface StagedEventTable {
  id: Generated<number>;
  device_id: number;
  /** The merchant that had the lock when the command was accepted. */
  merchant_id: number;
  /** As in `uplink`. */
  kind: number;
  /** By the run's clock. */
  at_ms: number;
  /** JSON (contract/webhooks/merchant-event.ts). */
  content: string;
}

/** Named values about the store itself, such as the time of the run's clock. */
export interface MetadataTable {
  name: string;
  value: string;
}

/** An activated SIM. It belongs to the lock for ever, also after the device is removed. */
export interface SimTable {
  mac: string;
  activated_at_ms: number;
}

/** A lock's usage in a month (UTC) under a merchant. The `billed_` columns are the part that closed statements have. */
export interface UsageTable {
  /** For example `2026-11`. */
  month: string;
  mac: string;
  merchant_id: number;
  simulated: number;
  changed_at_ms: number;
  messages_up: number;
  messages_down: number;
  connections: number;
  bytes_up: number;
  bytes_down: number;
  billed_messages_up: Generated<number>;
  billed_messages_down: Generated<number>;
  billed_connections: Generated<number>;
  billed_bytes_up: Generated<number>;
  billed_bytes_down: Generated<number>;
}

/** A merchant's prices from a month on, until a later plan starts. Prices are decimal texts. */
export interface PricePlanTable {
  merchant_id: number;
  from_month: string;
  per_mb: string;
  per_sim: string;
  currency: string;
  set_at_ms: number;
}

/** A closed month of a merchant: written once, never changed. */
export interface StatementTable {
  merchant_id: number;
  month: string;
  closed_at_ms: number;
  /** JSON of a Statement. */
  body: string;
}

/** The answer to a merchant's call with an idempotency key (contract/command-record.ts). Times are wall-clock time. */
export interface IdempotentAnswerTable {
  id: Generated<number>;
  merchant_id: number;
  route: string;
  key: string;
  body_digest: Buffer;
  answer: string;
  created_at_ms: number;
}

/** A merchant's API key. */
export interface ApiKeyTable {
  id: Generated<number>;
  merchant_id: number;
  /** The part of the key that identifies it; not secret. */
  public_id: string;
  name: string;
  /** HMAC-SHA-256 of the whole key. */
  secret_hash: Buffer;
  created_at_ms: number;
  last_used_at_ms: number | null;
  revoked_at_ms: number | null;
  /** Separated by spaces (key-scopes.ts). */
  scopes: Generated<string>;
  /** Null for a key that does not expire. */
  expires_at_ms: number | null;
}

/** A bearer token that was issued for an API key. */
export interface AccessTokenTable {
  id: Generated<number>;
  key_id: number;
  /** HMAC-SHA-256 of the token. */
  token_hash: Buffer;
  /** Separated by spaces, as in OAuth. */
  scopes: string;
  expires_at_ms: number;
}

/** A merchant's user. Ids are any int64: read them as text, since a number would round them. */
export interface UserAccountTable {
  merchant_id: number;
  id: bigint;
  username: string | null;
  /** The key by which names are compared (merchants/username-key.ts). */
  username_key: string | null;
  first_name: string | null;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  /** An Argon2id hash in PHC format; null for a user who can't log in. */
  password_hash: string | null;
  user_status: number | null;
  created_at_ms: number;
  /** The role on the dashboard (merchants/dashboard-roles.ts), or null. */
  dashboard_role: string | null;
}

export interface UserSessionTable {
  id: Generated<number>;
  merchant_id: number;
  user_id: bigint;
  /** HMAC-SHA-256 of the session's token. */
  token_hash: Buffer;
  expires_at_ms: number;
}

/** A merchant's pet. The store assigns the ids, which count from 1 for each merchant. */
export interface PetTable {
  merchant_id: number;
  id: bigint;
  name: string;
  owner_id: string | null;
  species: string | null;
  breed: string | null;
  status: string | null;
  /** JSON. */
  photo_urls: string;
  /** JSON with exact int64 ids; null if the pet has none. */
  category: string | null;
  /** JSON, as `category`. */
  tags: string | null;
  created_at_ms: number;
  changed_at_ms: number;
}

/** The last id that the store assigned to a merchant's users or pets. */
export interface MerchantSequenceTable {
  merchant_id: number;
  what: 'user' | 'pet';
  last_id: number;
}

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

/** Refusals of a lock for one reason (contract/refusal-store.ts). Times are by the run's clock. */
export interface RefusalTable {
  id: Generated<number>;
  device_id: number;
  /** The lock's merchant at that time. */
  merchant_id: number;
  source: Source;
  what: RefusedWhat;
  reason: string;
  why: string;
  address: string;
  count: number;
  first_at_ms: number;
  last_at_ms: number;
}

/** A reflash of a lock: uplinks from this time on belong to a new life (mark-store.ts). */
export interface ReflashMarkTable {
  id: Generated<number>;
  device_id: number;
  mark_ms: number;
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

/** An open invitation of a user of the dashboard (merchants/invitation-store.ts). */
export interface InvitationTable {
  id: Generated<number>;
  merchant_id: number;
  /** HMAC-SHA-256 of the token. */
  token_hash: Buffer;
  /** The name that the user gets, and its key; null if the invited person chooses. */
  username: string | null;
  username_key: string | null;
  dashboard_role: string;
  created_at_ms: number;
  expires_at_ms: number;
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
  opened_state: 'held' | 'pending' | 'delivered' | 'dead' | 'skipped';
  /** Null until the trouble has ended. */
  ended_state: 'pending' | 'delivered' | 'dead' | 'skipped' | null;
  /** Attempts at the message that is pending. */
  attempts: number;
  /** By the clock of deliveries; null if no message is pending. */
  next_attempt_at_ms: number | null;
}

export interface Tables {
  merchant: MerchantTable;
  device: DeviceTable;
  credential: CredentialTable;
  uplink: UplinkTable;
  uplink_name: UplinkNameTable;
  uplink_of_device: UplinkOfDeviceTable;
  staged_event: StagedEventTable;
  uplink_settled: UplinkSettledTable;
  device_state: DeviceStateTable;
  lock_event: LockEventTable;
  finding: FindingTable;
  quarantine: QuarantineTable;
  webhook_url: WebhookUrlTable;
  webhook_old_secret: WebhookOldSecretTable;
  webhook_gap: WebhookGapTable;
  delivery: DeliveryTable;
  attempt: AttemptTable;
  command: CommandTable;
  fact: MetadataTable;
  sim: SimTable;
  usage: UsageTable;
  price_plan: PricePlanTable;
  statement: StatementTable;
  api_key: ApiKeyTable;
  access_token: AccessTokenTable;
  user_account: UserAccountTable;
  user_session: UserSessionTable;
  invitation: InvitationTable;
  pet: PetTable;
  merchant_sequence: MerchantSequenceTable;
  notice: NoticeTable;
  audit: AuditTable;
  refusal: RefusalTable;
  reflash_mark: ReflashMarkTable;
  operator_token: OperatorTokenTable;
  console_session: ConsoleSessionTable;
  notify_recipient: NotifyRecipientTable;
  notify_secret: NotifySecretTable;
  notification: NotificationTable;
  idempotent_answer: IdempotentAnswerTable;
}

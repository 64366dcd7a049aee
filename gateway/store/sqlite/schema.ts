/**
 * The tables, as types. `migrations.ts` makes them; the two are changed together.
 *
 * Times are integers, ms since the epoch; those called `received_at_ms` are by the run's clock (protocol.md §3), all
 * others by the wall's. Booleans are 0 and 1.
 *
 * Each table has a column `sum` besides, the checksum of its row. Triggers fill it (row-sum-triggers.ts), and nothing
 * but `db check` reads it.
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
}

export interface DeviceTable {
  id: Generated<number>;
  /** Wire spelling: 12 upper-case hex digits. */
  mac: string;
  merchant_id: number;
  /** 1 for a lock that a simulator plays: judged and delivered, never billed. */
  simulated: number;
  created_at_ms: number;
  /** Null while it is in service. The row outlives the removal, because the history names it. */
  removed_at_ms: number | null;
}

/** What a lock, or a phone that acts for it, proves itself with. Ids grow with age, which orders uplinks. */
export interface CredentialTable {
  id: Generated<number>;
  device_id: number;
  kind: 'lock' | 'phone';
  /** HMAC-SHA-256 of the secret under a key derived from the data folder's. */
  secret_hash: Buffer;
  created_at_ms: number;
  revoked_at_ms: number | null;
  /** What people call a phone's; null for a lock's own. */
  name: string | null;
  /** From then on it proves nothing; null where it never expires. */
  expires_at_ms: number | null;
}

/**
 * The log: every uplink once, in the order of arrival. It is the outbox too: each webhook URL follows it with a cursor
 * of its own, so a stored ping and the certainty of its webhook are one row and one commit.
 */
export interface UplinkTable {
  id: Generated<number>;
  device_id: number;
  merchant_id: number;
  credential_id: number;
  boot: number;
  sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`: tells a repeat from other content under the same name. */
  digest: Buffer;
  /**
   * 0 acknowledgement, 1 cellular, 2 GPS, 3 close connection. Only pings (above 0) are events for merchants. −1 is one
   * that was erased: nothing is left of it but its name, so that a repeat is known for one.
   */
  kind: number;
  bytes: Buffer;
  received_at_ms: number;
  buffered: number;
  /** By uplink-sum.ts; null in no row of a store that is open. */
  sum: number | null;
}

/** The log by name, but for its tail (uplink-memtable.ts). */
export interface UplinkNameTable {
  credential_id: number;
  boot: number;
  sequence: number;
  uplink_id: number;
}

/** The log by lock, but for its tail. */
export interface UplinkOfDeviceTable {
  device_id: number;
  uplink_id: number;
}

/** How far the two are, in one row. */
export interface UplinkSettledTable {
  one: 1;
  /** They have every uplink up to this id. */
  settled_id: number;
  /** Uplinks up to this id are from before there were such tables. */
  caught_up_at: number;
}

/** What is known of a lock from its uplinks, in the order of protocol.md §1. */
export interface DeviceStateTable {
  device_id: number;
  /** JSON of a DeviceState. */
  state: string;
  /** The last uplink in the log that went into it, or one between that and the lock's next. */
  through_uplink_id: number;
}

/** What happened to a lock's connection; with the log, it makes a trace. */
export interface LockEventTable {
  id: Generated<number>;
  device_id: number;
  at_ms: number;
  /** The newest uplink when it happened: those up to it came before. */
  after_uplink_id: number;
  /** JSON of a LockEvent. */
  event: string;
  /** Whose lock it was then. */
  merchant_id: number | null;
}

/** A breach of a rule. Its uplink is named by the last three of its columns, which are null where there is none. */
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
  /** Whose lock it was then. */
  merchant_id: number | null;
}

/** Bytes that can't be taken as an uplink, with the reason. */
export interface QuarantineTable {
  id: Generated<number>;
  device_id: number;
  credential_id: number;
  received_at_ms: number;
  code: string;
  message: string;
  bytes: Buffer;
  /** Whose lock it was then. */
  merchant_id: number | null;
}

export interface WebhookUrlTable {
  id: Generated<number>;
  merchant_id: number;
  url: string;
  /** JSON object of the custom headers, each value sealed, in base64. */
  headers: string;
  /** 0 where an older version left the values in clear: the next start seals them. */
  headers_sealed: Generated<number>;
  /** The newest signing secret, encrypted. */
  secret_sealed: Buffer;
  state: 'active' | 'disabled';
  /** Why it is disabled, for people; null while active. */
  disabled_why: string | null;
  /** Every event up to this uplink id is delivered or has a row in `delivery`. */
  cursor: number;
  created_at_ms: number;
  /** 1 where a lock's later events wait behind one that fails. */
  ordered: Generated<number>;
  /** Where it began to follow the log: events up to this uplink id are none of its. */
  started_after: Generated<number>;
  /** When the first attempt failed after the last that went well; null where the last one went well. */
  failing_since_ms: Generated<number | null>;
  /** How long it was seen to fail since then: time in which a gateway ran and could send. */
  failing_for_ms: Generated<number>;
  /**
   * Until when its receiver asked to be left alone, by the clock that deliveries wait by, and for how long; or null.
   */
  held_until_ms: Generated<number | null>;
  held_for_ms: Generated<number | null>;
}

/** A signing secret that a newer one follows: attempts are signed with it too until its time is over. */
export interface WebhookOldSecretTable {
  id: Generated<number>;
  url_id: number;
  secret_sealed: Buffer;
  valid_until_ms: number;
}

/** Events that a URL's cursor passed unsent, while it was disabled: after one uplink id, up to another. */
export interface WebhookGapTable {
  url_id: number;
  after_id: number;
  until_id: number;
}

/** An event that a URL did not take at the first attempt, or is to get again. What went well at once has no row. */
export interface DeliveryTable {
  url_id: number;
  uplink_id: number;
  /** The uplink's lock, for URLs that keep its order. */
  device_id: Generated<number>;
  state: 'pending' | 'delivered' | 'dead' | 'damaged';
  attempts: number;
  /** Attempts that were made before it was last sent anew: the schedule begins after them. */
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
  /** HTTP status; null where there was no answer. */
  status: number | null;
  /** What went wrong, for people; null on success. */
  error: string | null;
  /** The first 1 KiB of the answer. */
  answer: string | null;
}

/** A command to a lock, and what became of it; its times are by the run's clock. */
export interface CommandTable {
  id: Generated<number>;
  device_id: number;
  merchant_id: number;
  type: Command['type'];
  /** JSON of the command's other members. */
  parameters: string;
  state: CommandState;
  created_at_ms: number;
  /** When it is scheduled for. */
  not_before_ms: number | null;
  expires_at_ms: number;
  first_sent_at_ms: number | null;
  last_sent_at_ms: number | null;
  sent_count: number;
  finished_at_ms: number | null;
  /** The lock's word on why. */
  detail: string;
  asked_by: string;
}

/** Facts about the store itself, such as where the run's clock stands. */
export interface MetadataTable {
  name: string;
  value: string;
}

/** A SIM that was activated. It is the lock's for ever, whatever becomes of the device. */
export interface SimTable {
  mac: string;
  activated_at_ms: number;
}

/** What a lock used in a month (UTC) as a merchant's. The billed columns: what closed statements have of it. */
export interface UsageTable {
  /** As `2026-11`. */
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

/** What a merchant pays from a month on, until a later plan begins. Prices are decimal texts. */
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

/** A merchant's API key. */
export interface ApiKeyTable {
  id: Generated<number>;
  merchant_id: number;
  /** The part of the key that names it; not secret. */
  public_id: string;
  name: string;
  /** HMAC-SHA-256 of the whole key. */
  secret_hash: Buffer;
  created_at_ms: number;
  last_used_at_ms: number | null;
  revoked_at_ms: number | null;
}

/** A bearer token that a key was given. */
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
  /** The name as it is compared (people/username-key.ts). */
  username_key: string | null;
  first_name: string | null;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  /** Argon2id in PHC's spelling; null for a user who can't log in. */
  password_hash: string | null;
  user_status: number | null;
  created_at_ms: number;
}

export interface UserSessionTable {
  id: Generated<number>;
  merchant_id: number;
  user_id: bigint;
  /** HMAC-SHA-256 of the session's token. */
  token_hash: Buffer;
  expires_at_ms: number;
}

/** A merchant's pet. Its ids are ours, and count from 1 for each merchant. */
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
  /** JSON, int64 to the digit; null where it has none. */
  category: string | null;
  /** JSON as well. */
  tags: string | null;
  created_at_ms: number;
  changed_at_ms: number;
}

/** The last id that a merchant's users or pets were given. */
export interface MerchantSequenceTable {
  merchant_id: number;
  what: 'user' | 'pet';
  last_id: number;
}

/** Something that an operator should know. Of a kind and subject, at most one goes on or is unread. */
export interface NoticeTable {
  id: Generated<number>;
  kind: NoticeKind;
  subject: string;
  /** A sentence for people. */
  text: string;
  /** How often it happened. */
  count: number;
  first_at_ms: number;
  last_at_ms: number;
  /** Null while nobody has read it. */
  read_at_ms: number | null;
  /** Null while it goes on. */
  resolved_at_ms: number | null;
}

/** What was changed, by whom, and what came of it (audit-store.ts). */
export interface AuditTable {
  id: Generated<number>;
  at_ms: number;
  actor: AuditActor;
  address: string | null;
  agent: string | null;
  os_user: string | null;
  /** The beginning of the hash of the token that was used. */
  token: string | null;
  action: string;
  object: string;
  /** JSON objects without secrets. */
  before: string | null;
  after: string | null;
  outcome: AuditOutcome;
  code: string | null;
  /** Null while it is under way. */
  ended_at_ms: number | null;
}

/** What was refused of a lock, for one reason (contract/refusal-store.ts). Its times are by the run's clock. */
export interface RefusalTable {
  id: Generated<number>;
  device_id: number;
  /** Whose lock it was. */
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

/** A lock was reflashed: its uplinks from this time on are of a new life. */
export interface ReflashMarkTable {
  id: Generated<number>;
  device_id: number;
  mark_ms: number;
}

export interface Tables {
  merchant: MerchantTable;
  device: DeviceTable;
  credential: CredentialTable;
  uplink: UplinkTable;
  uplink_name: UplinkNameTable;
  uplink_of_device: UplinkOfDeviceTable;
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
  pet: PetTable;
  merchant_sequence: MerchantSequenceTable;
  notice: NoticeTable;
  audit: AuditTable;
  refusal: RefusalTable;
  reflash_mark: ReflashMarkTable;
}

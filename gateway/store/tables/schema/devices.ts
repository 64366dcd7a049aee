/**
 * The rows of the tables of locks, and of what the gateway knows about them. ../schema.ts says what all tables have in
 * common.
 */
import type { Generated } from 'kysely';
import type { Command, Source } from '../../../../proto/wire/ping.js';
import type { CommandState } from '../../contract/command-record.js';
import type { RefusedWhat } from '../../contract/devices/refusal-store.js';

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
  /** By the run's clock. */
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
  /** By the run's clock. */
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

/** Refusals of a lock for one reason (contract/devices/refusal-store.ts). Times are by the run's clock. */
export interface RefusalTable {
  id: Generated<number>;
  device_id: number;
  /** The lock's merchant at that time. */
  merchant_id: number;
  source: Source;
  what: RefusedWhat;
  /** The reason's code, and its sentence. */
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
  /** By the clock of the locks: wall-clock time, except in a sped-up simulation. */
  mark_ms: number;
}

/** The rows of the tables of the log of uplinks and its indexes. ../schema.ts says what all tables have in common. */
import type { Generated } from 'kysely';

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
   * 0 acknowledgement of a command, 1 cellular, 2 GPS, 3 close connection. From 4 on: events for merchants that are not
   * uplinks (contract/webhooks/merchant-event.ts). Pings (1 to 3) are events for merchants too. −1 is an erased uplink:
   * only its key is left, so that a repeat is recognised.
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
  /** What is known of the uplink without its row (log/uplink-hint.ts); null if nothing is. Only SQLite has it. */
  hint: number | null;
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

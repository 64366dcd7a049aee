/** The columns by which hand-written SQL selects a stored uplink with its lock, and the conversion of such a row. */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { StoredUplink } from '../contract/log/stored-uplink.js';
import { FIRST_EVENT_KIND } from '../contract/webhooks/merchant-event.js';
import { matchesChecksum } from './uplink-sum.js';

/** A row of {@link UPLINK_COLUMNS}. */
export interface UplinkRow {
  id: number;
  device_id: number;
  merchant_id: number;
  mac: string;
  simulated: number;
  credential_id: number;
  /** The kind of its credential; null for an event that is not an uplink, and if the credential is missing. */
  kind: Source | null;
  boot: number;
  sequence: number;
  digest: Buffer;
  bytes: Buffer;
  received_at_ms: number;
  buffered: number;
  /** The kind of the uplink itself, as in `StoredUplink.kind`. */
  uplink_kind: number;
  /** The row's checksum. */
  sum: number | null;
}

/** The columns in SQL; the statement must name the uplink `u` and its device `d`. */
export const UPLINK_COLUMNS = `u.id, u.device_id, u.merchant_id, d.mac, d.simulated, u.credential_id,
  u.boot, u.sequence, u.digest, u.bytes, u.received_at_ms, u.buffered,
  u.kind AS uplink_kind, u.sum, (SELECT c.kind FROM credential c WHERE c.id = u.credential_id) AS kind`;

/** Converts a row, and compares it with its checksum. */
export function toUplink(row: UplinkRow): StoredUplink {
  return convert(row, !matchesChecksum({ ...row, kind: row.uplink_kind }));
}

/** Converts a row that did not come from the disk, so that it can't be damaged. */
export function toUndamagedUplink(row: UplinkRow): StoredUplink {
  return convert(row, false);
}

function convert(row: UplinkRow, isDamaged: boolean): StoredUplink {
  return {
    id: row.id,
    deviceId: row.device_id,
    merchantId: row.merchant_id,
    mac: row.mac as Mac,
    simulated: row.simulated === 1,
    credentialId: row.credential_id,
    source: row.kind ?? 'lock',
    boot: row.boot,
    sequence: row.sequence,
    kind: row.uplink_kind,
    digest: row.digest,
    bytes: row.bytes,
    receivedAtMs: row.received_at_ms,
    buffered: row.buffered === 1,
    isDamaged,
  };
}

/** A condition in SQL: the row `u` of `uplink` is a ping. The first part lets SQLite use the index of events. */
export const IS_PING = `u.kind > 0 AND u.kind < ${FIRST_EVENT_KIND}`;
/** A condition in SQL: the row `u` of `uplink` is an uplink that is not erased; an erased one has the kind -1. */
export const IS_UPLINK = `u.kind >= 0 AND u.kind < ${FIRST_EVENT_KIND}`;

/** The id of the newest uplink, in SQL; 0 if there is none. */
export const NEWEST_UPLINK = '(SELECT coalesce(max(id), 0) FROM uplink)';

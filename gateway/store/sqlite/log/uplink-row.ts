/** A stored uplink with its lock, as the hand-written SQL selects it. */
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import type { StoredUplink } from '../../contract/store.js';
import { fitsItsSum } from './uplink-sum.js';

/** A row of {@link UPLINK_COLUMNS}. */
export interface UplinkRow {
  id: number;
  device_id: number;
  merchant_id: number;
  mac: string;
  simulated: number;
  credential_id: number;
  kind: Source | null;
  boot: number;
  sequence: number;
  digest: Buffer;
  bytes: Buffer;
  received_at_ms: number;
  buffered: number;
  /** The kind of the uplink; `kind` above is its credential's. */
  uplink_kind: number;
  sum: number | null;
}

/** The columns in SQL: `u` is the uplink and `d` its device. */
export const UPLINK_COLUMNS = `u.id, u.device_id, u.merchant_id, d.mac, d.simulated, u.credential_id,
  u.boot, u.sequence, u.digest, u.bytes, u.received_at_ms, u.buffered,
  u.kind AS uplink_kind, u.sum, (SELECT c.kind FROM credential c WHERE c.id = u.credential_id) AS kind`;

/** Converts a row, and compares it with its sum. */
export function toUplink(row: UplinkRow): StoredUplink {
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
    digest: row.digest,
    bytes: row.bytes,
    receivedAtMs: row.received_at_ms,
    buffered: row.buffered === 1,
    isDamaged: !fitsItsSum({ ...row, kind: row.uplink_kind }),
  };
}

/** The id of the newest uplink; 0 where there is none. */
export const NEWEST_UPLINK = '(SELECT coalesce(max(id), 0) FROM uplink)';

/** The checksum of uplinks (../../log/uplink-sum.ts) as a function of SQL. */
import type { Database } from 'better-sqlite3';
import { type SummedRow, uplinkSum } from '../../log/uplink-sum.js';

/** The checksum of a row of `uplink` in SQL, for a connection with the function of {@link addUplinkSum}. */
export const UPLINK_SUM = `uplink_sum(id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
  received_at_ms, buffered)`;

/** Adds the SQL function `uplink_sum` to a connection. */
export function addUplinkSum(db: Database): void {
  db.function('uplink_sum', { deterministic: true, varargs: true }, (...values: unknown[]) => {
    // The arguments in the order of UPLINK_SUM.
    const [id, device_id, merchant_id, credential_id, boot, sequence] = values as number[];
    const [digest, kind, bytes, received_at_ms, buffered] = values.slice(6) as [Buffer, number, Buffer, number, number];
    const numbers = { id, device_id, merchant_id, credential_id, boot, sequence } as SummedRow;
    return uplinkSum({ ...numbers, digest, kind, bytes, received_at_ms, buffered });
  });
}

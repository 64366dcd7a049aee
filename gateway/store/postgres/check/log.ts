/**
 * Checks each row of the log: its own checksum, which also finds what PostgreSQL's checksums of pages do not (a wrong
 * page in a right place, or a database without them), its slot, and that no uplink is there twice.
 */
import { SLOT_COUNT } from '../../contract/log/log-position.js';
import { matchesChecksum, type SummedRow } from '../../log/uplink-sum.js';
import { slotOfId } from '../position.js';
import type { CheckContext, CheckOutcome } from './context.js';

const ROWS_PER_FETCH = 2_000;

type LogRow = SummedRow & { readonly sum: number | null; readonly has_right_slot: boolean };

export async function checkLog({ sql, damage, progress }: CheckContext): Promise<CheckOutcome> {
  let count = 0;
  await sql.run(
    `DECLARE log_rows NO SCROLL CURSOR FOR
     SELECT id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes, received_at_ms, buffered,
       sum, slot = ${slotOfId('id')} AND slot < ${SLOT_COUNT} AS has_right_slot FROM uplink`,
  );
  for (;;) {
    const rows = await sql.all<LogRow>(`FETCH ${ROWS_PER_FETCH} FROM log_rows`);
    if (rows.length === 0) break;
    for (const row of rows) {
      if (!matchesChecksum(row))
        damage('uplink', row.id, row.sum === null ? 'it has no checksum' : 'it does not match its checksum');
      if (!row.has_right_slot) damage('uplink', row.id, 'its slot is not the one of its id');
    }
    count += rows.length;
    progress(count);
  }
  await sql.run('CLOSE log_rows');
  await checkKeys({ sql, damage, progress });
  return { count };
}

/** Finds ids and uplinks that are there twice: there is no unique index over all partitions. */
async function checkKeys({ sql, damage }: CheckContext): Promise<void> {
  const twice = await sql.all<{ id: number; count: number }>(
    'SELECT id, count(*) AS count FROM uplink GROUP BY id HAVING count(*) > 1 ORDER BY id',
  );
  for (const { id, count } of twice) damage('uplink', id, `its id is there ${count} times`);
  // Two uplinks with one key and different bytes are a finding about the lock; the same bytes must be stored once.
  const repeated = await sql.all<{ id: number; count: number }>(
    `SELECT min(id) AS id, count(*) AS count FROM uplink WHERE kind >= 0 AND credential_id > 0
     GROUP BY credential_id, boot, sequence, digest HAVING count(*) > 1 ORDER BY 1`,
  );
  for (const { id, count } of repeated) damage('uplink', id, `it is stored ${count} times`);
}

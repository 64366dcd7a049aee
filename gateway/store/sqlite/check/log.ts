/**
 * Checks the log's indexes by key and by lock (migration 0009). Their rows repeat columns of the log and have no
 * checksums: each row is compared with its uplink. No row may be missing up to the uplink up to which the indexes are
 * complete.
 */
import type { CheckContext, CheckOutcome } from './context.js';

/** Each index, and the columns that it shares with the log. */
const INDEXES = [
  { table: 'uplink_name', columns: ['credential_id', 'boot', 'sequence'] },
  { table: 'uplink_of_device', columns: ['device_id'] },
] as const;

/** Checks both indexes. */
export function checkLog({ db, damage, progress }: CheckContext): CheckOutcome {
  const indexedId = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number | undefined;
  if (indexedId === undefined) damage('uplink_settled', null, 'its only row is missing');
  const inLog = db
    .prepare('SELECT count(*) FROM uplink WHERE id <= ?')
    .pluck()
    .get(indexedId ?? 0) as number;
  let examined = 0;
  for (const { table, columns } of INDEXES) {
    const differs = columns.map((column) => `u.${column} IS NOT n.${column}`).join(' OR ');
    const wrong = db
      .prepare(`SELECT n.uplink_id FROM ${table} n LEFT JOIN uplink u ON u.id = n.uplink_id WHERE ${differs}`)
      .pluck();
    for (const id of wrong.iterate() as IterableIterator<number>)
      damage(table, `uplink ${id}`, 'it differs from the log');
    const count = db
      .prepare(`SELECT count(*) FROM ${table} WHERE uplink_id <= ?`)
      .pluck()
      .get(indexedId ?? 0) as number;
    if (count !== inLog) damage(table, null, `it has ${count} uplinks up to ${indexedId}; the log has ${inLog}`);
    examined += count;
    progress(examined);
  }
  return { count: examined };
}

/**
 * The log's indexes by key and by lock (migration 0009). They have nothing that the log lacks, so their rows have no
 * sums: each is compared with its uplink, and none may be missing up to the uplink up to which they are complete.
 */
import type { CheckContext, CheckOutcome } from './context.js';

/** Each index, and the columns that it shares with the log. */
const INDEXES = [
  { table: 'uplink_name', columns: ['credential_id', 'boot', 'sequence'] },
  { table: 'uplink_of_device', columns: ['device_id'] },
] as const;

/** Checks both. */
export function checkLog({ db, damage, progress }: CheckContext): CheckOutcome {
  const indexedId = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number | undefined;
  if (indexedId === undefined) damage('uplink_settled', null, 'its only row is missing');
  const inLog = db
    .prepare('SELECT count(*) FROM uplink WHERE id <= ?')
    .pluck()
    .get(indexedId ?? 0) as number;
  let looked = 0;
  for (const { table, columns } of INDEXES) {
    const differs = columns.map((column) => `u.${column} IS NOT n.${column}`).join(' OR ');
    const wrong = db
      .prepare(`SELECT n.uplink_id FROM ${table} n LEFT JOIN uplink u ON u.id = n.uplink_id WHERE ${differs}`)
      .pluck();
    for (const id of wrong.iterate() as IterableIterator<number>)
      damage(table, `uplink ${id}`, 'it is not what the log has of this uplink');
    const count = db
      .prepare(`SELECT count(*) FROM ${table} WHERE uplink_id <= ?`)
      .pluck()
      .get(indexedId ?? 0) as number;
    if (count !== inLog) damage(table, null, `it has ${count} uplinks up to ${indexedId}; the log has ${inLog}`);
    looked += count;
    progress(looked);
  }
  return { count: looked };
}

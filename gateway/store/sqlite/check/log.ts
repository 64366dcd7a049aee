/**
 * The tables that find an uplink by its name and by its lock (migration 0009). They have nothing that the log hasn't,
 * so their rows carry no sums: each is compared with the uplink that it is about, and up to where they are settled none
 * may be missing.
 */
import type { CheckContext, CheckOutcome } from './context.js';

/** A table, the columns that it shares with the log, and how its rows are called. */
const LOOKUPS = [
  { table: 'uplink_name', columns: ['credential_id', 'boot', 'sequence'] },
  { table: 'uplink_of_device', columns: ['device_id'] },
] as const;

/** Looks at both. */
export function checkLog({ db, damage, progress }: CheckContext): CheckOutcome {
  const settled = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number | undefined;
  if (settled === undefined) damage('uplink_settled', null, 'its only row is missing');
  const inLog = db
    .prepare('SELECT count(*) FROM uplink WHERE id <= ?')
    .pluck()
    .get(settled ?? 0) as number;
  let looked = 0;
  for (const { table, columns } of LOOKUPS) {
    const differs = columns.map((column) => `u.${column} IS NOT n.${column}`).join(' OR ');
    const wrong = db
      .prepare(`SELECT n.uplink_id FROM ${table} n LEFT JOIN uplink u ON u.id = n.uplink_id WHERE ${differs}`)
      .pluck();
    for (const id of wrong.iterate() as IterableIterator<number>)
      damage(table, `uplink ${id}`, 'it is not what the log has of this uplink');
    const count = db
      .prepare(`SELECT count(*) FROM ${table} WHERE uplink_id <= ?`)
      .pluck()
      .get(settled ?? 0) as number;
    if (count !== inLog) damage(table, null, `it has ${count} uplinks up to ${settled}; the log has ${inLog}`);
    looked += count;
    progress(looked);
  }
  return { count: looked };
}

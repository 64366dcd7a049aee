/**
 * Checks the two indexes of the log of all uplinks (messages from locks), by key (the columns below) and by lock
 * (migration 0009). Their rows repeat columns of the log (the table `uplink`) and have no checksums, so each row is
 * compared with its uplink. The indexes are filled later than the log; the table `uplink_settled` says up to which
 * uplink they are complete. Up to there no row may be missing.
 */
import type { Database } from 'better-sqlite3';
import { type HintedRow, uplinkHint } from '../../log/uplink-hint.js';
import { matchesChecksum } from '../../log/uplink-sum.js';
import type { CheckContext, CheckOutcome } from './context.js';

type DamageableRow = Parameters<typeof matchesChecksum>[0];

/** Each index, and the columns that it shares with the log. */
const INDEXES = [
  { table: 'uplink_name', columns: ['credential_id', 'boot', 'sequence'] },
  { table: 'uplink_of_device', columns: ['device_id'] },
] as const;

/** Checks both indexes. */
export function checkLog({ db, damage, progress }: CheckContext): CheckOutcome {
  const indexedId = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number | undefined;
  if (indexedId === undefined) damage('uplink_settled', null, 'its only row is missing');
  const logCount = db
    .prepare('SELECT count(*) FROM uplink WHERE id <= ?')
    .pluck()
    .get(indexedId ?? 0) as number;
  let examined = 0;
  for (const { table, columns } of INDEXES) {
    // Also true for a row whose uplink is missing: its columns are null then.
    const isDifferent = columns.map((column) => `u.${column} IS NOT n.${column}`).join(' OR ');
    const wrongIds = db
      .prepare(`SELECT n.uplink_id FROM ${table} n LEFT JOIN uplink u ON u.id = n.uplink_id WHERE ${isDifferent}`)
      .pluck();
    for (const id of wrongIds.iterate() as IterableIterator<number>)
      damage(table, `uplink ${id}`, 'it differs from the log');
    const count = db
      .prepare(`SELECT count(*) FROM ${table} WHERE uplink_id <= ?`)
      .pluck()
      .get(indexedId ?? 0) as number;
    if (count !== logCount) damage(table, null, `it has ${count} uplinks up to ${indexedId}; the log has ${logCount}`);
    examined += count;
    progress(examined);
  }
  checkHints(db, (id) => damage('uplink_of_device', `uplink ${id}`, 'its hint differs from the log'));
  return { count: examined };
}

/** Compares each hint (../../log/uplink-hint.ts) with its uplink. A damaged uplink is reported by its own checksum. */
function checkHints(db: Database, damage: (id: number) => void): void {
  const rows = db.prepare(
    `SELECT u.*, n.hint FROM uplink u CROSS JOIN uplink_of_device n ON n.device_id = u.device_id AND n.uplink_id = u.id
     WHERE n.hint IS NOT NULL`,
  );
  for (const { hint, ...row } of rows.iterate() as IterableIterator<HintedRow & DamageableRow & { hint: unknown }>)
    if (hint !== uplinkHint(row) && matchesChecksum(row)) damage(row.id);
}

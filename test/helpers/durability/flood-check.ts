/** What has to be true between what locks were told is safe and the file of the store, read with SQLite alone. */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { FIRST_SEQUENCE } from '../../bench/load/ping-template.js';
import { FLOOD_BOOT, type FloodLock } from './flood-crowd.js';

interface LockRow {
  readonly mac: string;
  readonly events: number;
  readonly names: number;
  readonly first: number;
  readonly last: number;
}

/** Whether a row `t` of a table is that of the uplink `u`. */
const FITS = {
  uplink_name: '(t.credential_id, t.boot, t.sequence) = (u.credential_id, u.boot, u.sequence)',
  uplink_of_device: 't.device_id = u.device_id',
} as const;

/** Of each table that is filled later, the rows of the log that it lacks though it is said to have them. */
const LACKING = Object.entries(FITS).map(
  ([table, fits]) => `SELECT count(*) FROM uplink u, uplink_settled s WHERE u.id <= s.settled_id
    AND NOT EXISTS (SELECT 1 FROM ${table} t WHERE t.uplink_id = u.id AND ${fits})`,
);
/** Rows of theirs that the log has not. */
const STRAY = Object.keys(FITS).map(
  (table) => `SELECT count(*) FROM ${table} WHERE uplink_id NOT IN (SELECT id FROM uplink)`,
);

/**
 * Every promise that the file breaks; empty where all is well. Each lock sends one ping after the other, so up to the
 * last that it was told is safe all are there, each once, and after it at most the one that it had under way.
 */
export function floodFaults(data: string, locks: readonly FloodLock[]): string[] {
  const db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'), { readonly: true });
  const faults: string[] = [];
  const rows = db
    .prepare(
      `SELECT d.mac, count(*) AS events, count(DISTINCT u.sequence) AS names, min(u.sequence) AS "first",
         max(u.sequence) AS "last"
       FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.boot = ${FLOOD_BOOT} GROUP BY d.id`,
    )
    .all() as LockRow[];
  const known = new Map(rows.map((row) => [row.mac.replaceAll(':', '').toUpperCase(), row]));
  for (const { mac, last } of locks) {
    const row = known.get(mac);
    if (row === undefined) {
      if (last > FIRST_SEQUENCE) faults.push(`${mac} was told up to ${last} and has nothing in the log`);
      continue;
    }
    const span = row.last - FIRST_SEQUENCE;
    if (row.last < last) faults.push(`${mac} was told that ${last} is safe, and the log ends at ${row.last}`);
    if (row.last > last + 1) faults.push(`${mac} has ${row.last} in the log and was told up to ${last}`);
    if (row.first !== FIRST_SEQUENCE + 1 || row.names !== span) faults.push(`${mac} has ${row.names} of ${span} names`);
    if (row.events !== row.names) faults.push(`${mac} has ${row.events} events under ${row.names} names`);
  }
  for (const sql of [...LACKING, ...STRAY]) {
    const count = db.prepare(sql).pluck().get() as number;
    if (count > 0) faults.push(`${count} rows: ${sql}`);
  }
  const integrity = db.pragma('integrity_check', { simple: true });
  if (integrity !== 'ok') faults.push(`integrity_check: ${String(integrity)}`);
  db.close();
  return faults;
}

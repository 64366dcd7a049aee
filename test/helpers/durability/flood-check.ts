/**
 * Compares the locks' acknowledged pings with the file of the store after a flood (flood-run.ts). Reads the file
 * directly with SQLite, without the gateway.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { SEQUENCE_BEFORE_FIRST } from '../../bench/load/ping-template.js';
import { FLOOD_BOOT, type FloodLock } from './flood-locks.js';

/** What the store has of one lock. */
interface LockRow {
  readonly mac: string;
  readonly storedPings: number;
  readonly distinctSequences: number;
  readonly lowestSequence: number;
  readonly highestSequence: number;
}

/** SQL: whether a row `t` of an index table belongs to the row `u` of the table `uplink`. */
const BELONGS_TO = {
  uplink_name: '(t.credential_id, t.boot, t.sequence) = (u.credential_id, u.boot, u.sequence)',
  uplink_of_device: 't.device_id = u.device_id',
} as const;

/** SQL for each index table: uplinks that the table lacks, although it must have all uplinks up to `settled_id`. */
const MISSING = Object.entries(BELONGS_TO).map(
  ([table, belongsTo]) => `SELECT count(*) FROM uplink u, uplink_settled s WHERE u.id <= s.settled_id
    AND NOT EXISTS (SELECT 1 FROM ${table} t WHERE t.uplink_id = u.id AND ${belongsTo})`,
);
/** SQL for each index table: rows without a row in the table `uplink`. */
const STRAY = Object.keys(BELONGS_TO).map(
  (table) => `SELECT count(*) FROM ${table} WHERE uplink_id NOT IN (SELECT id FROM uplink)`,
);

/**
 * Returns every fault of the file as a sentence; empty if there is none. Each lock sends one ping at a time, so the
 * file must have every ping up to the last acknowledged one exactly once, and after it at most one more.
 */
export function floodFaults(data: string, locks: readonly FloodLock[]): string[] {
  const db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'), { readonly: true });
  const faults: string[] = [];
  const rows = db
    .prepare(
      `SELECT d.mac, count(*) AS storedPings, count(DISTINCT u.sequence) AS distinctSequences,
         min(u.sequence) AS lowestSequence, max(u.sequence) AS highestSequence
       FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.boot = ${FLOOD_BOOT} GROUP BY d.id`,
    )
    .all() as LockRow[];
  const rowsByMac = new Map(rows.map((row) => [row.mac.replaceAll(':', '').toUpperCase(), row]));
  // The first ping of each lock has the sequence SEQUENCE_BEFORE_FIRST + 1.
  for (const { mac, lastAcked } of locks) {
    const row = rowsByMac.get(mac);
    if (row === undefined) {
      if (lastAcked > SEQUENCE_BEFORE_FIRST)
        faults.push(`${mac} got PUBACKs up to ${lastAcked}, and the store has no ping of it`);
      continue;
    }
    const { storedPings, distinctSequences, lowestSequence, highestSequence } = row;
    const expectedCount = highestSequence - SEQUENCE_BEFORE_FIRST;
    if (highestSequence < lastAcked)
      faults.push(`${mac} got the PUBACK of ${lastAcked}, and the stored pings end at ${highestSequence}`);
    if (highestSequence > lastAcked + 1)
      faults.push(`${mac} has the stored ping ${highestSequence}, and got PUBACKs up to ${lastAcked}`);
    if (lowestSequence !== SEQUENCE_BEFORE_FIRST + 1 || distinctSequences !== expectedCount)
      faults.push(`${mac} has ${distinctSequences} of ${expectedCount} sequences`);
    if (storedPings !== distinctSequences)
      faults.push(`${mac} has ${storedPings} stored pings with ${distinctSequences} sequences`);
  }
  for (const sql of [...MISSING, ...STRAY]) {
    const count = db.prepare(sql).pluck().get() as number;
    if (count > 0) faults.push(`${count} rows: ${sql}`);
  }
  const integrity = db.pragma('integrity_check', { simple: true });
  if (integrity !== 'ok') faults.push(`integrity_check: ${String(integrity)}`);
  db.close();
  return faults;
}

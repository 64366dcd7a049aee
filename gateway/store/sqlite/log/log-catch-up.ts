/**
 * Upgrades the log of an older version (migration 0009): fills the indexes by key and by lock, and computes the rows'
 * checksums. Each step is a transaction that records its progress, so an interrupted upgrade is resumed.
 */
import type { Database } from 'better-sqlite3';
import { afterThisTurn } from '../../../../proto/clock.js';
import type { CatchUpProgress } from '../../contract/store-options.js';
import { inTransaction } from '../durable-file.js';
import { UPLINK_SUM } from './uplink-sum-function.js';

/**
 * Number of uplink ids in one step: large, so that a lock's uplinks are indexed together; limited, so that the WAL
 * stays small.
 */
const STEP_IDS = 100_000;

/** Resolves when the upgrade is complete; at once for a store of this version. Calls `report` before each step. */
export async function catchUp(db: Database, report: (progress: CatchUpProgress) => void): Promise<void> {
  // `caught_up_at` is an id: the last uplink that the older version wrote.
  const readProgress = db.prepare('SELECT settled_id AS done, caught_up_at AS "of" FROM uplink_settled');
  const steps = [
    `INSERT OR IGNORE INTO uplink_name SELECT credential_id, boot, sequence, id FROM uplink
     WHERE id > @from AND id <= @to ORDER BY credential_id, boot, sequence, id`,
    `INSERT OR IGNORE INTO uplink_of_device (device_id, uplink_id) SELECT device_id, id FROM uplink
     WHERE id > @from AND id <= @to ORDER BY device_id, id`,
    `UPDATE uplink SET sum = ${UPLINK_SUM} WHERE id > @from AND id <= @to`,
  ].map((sql) => db.prepare(sql));
  const recordProgress = db.prepare('UPDATE uplink_settled SET settled_id = ?');
  for (
    let progress = readProgress.get() as CatchUpProgress;
    progress.done < progress.of;
    progress = readProgress.get() as CatchUpProgress
  ) {
    report(progress);
    const range = { from: progress.done, to: Math.min(progress.done + STEP_IDS, progress.of) };
    inTransaction(db, () => {
      for (const step of steps) step.run(range);
      recordProgress.run(range.to);
    });
    // Lets the event loop answer health checks between two steps.
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

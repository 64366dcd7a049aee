/**
 * Puts the log of a store from before into the tables by name and by lock, and gives its rows their sums (migration
 * 0009). It goes on where it was ended: each step is a transaction that says how far it is.
 */
import type { Database } from 'better-sqlite3';
import { afterThisTurn } from '../../../../proto/clock.js';
import type { CatchUpProgress } from '../../contract/store-options.js';
import { inTransaction } from '../durable-file.js';
import { UPLINK_SUM } from './uplink-sum.js';

/** Ids of one step: a lock's many go into the tables together, and the WAL stays small. */
const STEP_IDS = 100_000;

/** Resolves when all is done; at once in a store that has nothing from before. `tell` hears of each step. */
export async function catchUp(db: Database, tell: (progress: CatchUpProgress) => void): Promise<void> {
  const read = db.prepare('SELECT settled_id AS done, caught_up_at AS "of" FROM uplink_settled');
  const steps = [
    `INSERT OR IGNORE INTO uplink_name SELECT credential_id, boot, sequence, id FROM uplink
     WHERE id > @from AND id <= @to ORDER BY credential_id, boot, sequence, id`,
    `INSERT OR IGNORE INTO uplink_of_device SELECT device_id, id FROM uplink
     WHERE id > @from AND id <= @to ORDER BY device_id, id`,
    `UPDATE uplink SET sum = ${UPLINK_SUM} WHERE id > @from AND id <= @to`,
  ].map((sql) => db.prepare(sql));
  const moveSettled = db.prepare('UPDATE uplink_settled SET settled_id = ?');
  for (
    let progress = read.get() as CatchUpProgress;
    progress.done < progress.of;
    progress = read.get() as CatchUpProgress
  ) {
    tell(progress);
    const range = { from: progress.done, to: Math.min(progress.done + STEP_IDS, progress.of) };
    inTransaction(db, () => {
      for (const step of steps) step.run(range);
      moveSettled.run(range.to);
    });
    // Whoever asks meanwhile how it stands is answered.
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

/** The partitions of the log: one for each day of ids, so that old days can go as a whole. */
import { Days } from '../../../proto/clock.js';
import { CLOCK_ID_EPOCH_MS, lowestIdAt } from '../contract/slots/clock-id.js';
import { ADVISORY_LOCKS } from './migrate.js';
import type { Sql } from './sql.js';

/** How many days there are partitions for, with the present one. */
const DAYS_AHEAD = 3;
/** The advisory lock under which partitions are made, so that two gateways that start together don't both make one. */
const PARTITION_LOCK = 3;

/** Makes the partitions of this day and the next ones where they are missing. @param nowMs the database's time */
export async function ensurePartitions(sql: Sql, nowMs: number): Promise<void> {
  await sql.get('SELECT pg_advisory_lock(@locks::int, @lock::int)', { locks: ADVISORY_LOCKS, lock: PARTITION_LOCK });
  try {
    for (let ahead = 0; ahead < DAYS_AHEAD; ahead += 1) {
      const day = Math.floor((nowMs - CLOCK_ID_EPOCH_MS) / Days(1)) + ahead;
      await ensureDay(sql, day);
    }
  } finally {
    await sql.get('SELECT pg_advisory_unlock(@locks::int, @lock::int)', {
      ...{ locks: ADVISORY_LOCKS, lock: PARTITION_LOCK },
    });
  }
}

/**
 * Makes the partition of a day, unless the default one has uplinks of that day already, from a gateway that ran on for
 * longer than it had partitions for: PostgreSQL refuses the partition then, and the day stays in the default one.
 *
 * @param day days since the start of the clock of ids
 */
async function ensureDay(sql: Sql, day: number): Promise<void> {
  const name = `uplink_day_${day}`;
  const row = await sql.get<{ found: boolean }>('SELECT to_regclass(@name) IS NOT NULL AS found', { name });
  if (row?.found === true) return;
  const [from, to] = [day, day + 1].map((each) => lowestIdAt(CLOCK_ID_EPOCH_MS + each * Days(1), 0));
  const early = await sql.get('SELECT 1 AS one FROM uplink_default WHERE id >= @from AND id < @to LIMIT 1', {
    ...{ from, to },
  });
  if (early !== undefined) return;
  await sql.run(`CREATE TABLE ${name} PARTITION OF uplink FOR VALUES FROM (${from}) TO (${to})`);
}

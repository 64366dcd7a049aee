/**
 * The partitions of the log: one for each day of ids. A gateway makes those of the next days at its start and each hour
 * (`PartitionKeeper`), and old days are dropped as a whole (`dropOldPartition`).
 */
import { type Clock, Days, Hours, type Timer } from '../../../proto/clock.js';
import { CLOCK_ID_EPOCH_MS, lowestIdAt } from '../contract/slots/clock-id.js';
import { isLockTimeout, LIMIT_LOCK_WAIT } from './lock-wait.js';
import { ADVISORY_LOCKS } from './migrate.js';
import type { Sql } from './sql.js';

/** For how many days there are partitions, counting the present one. */
const DAYS_AHEAD = 3;
const KEEP_INTERVAL = Hours(1);
/** The advisory lock under which partitions are made, so that two gateways don't both make one. */
const PARTITION_LOCK = 3;

/** The table of a day. @param day days since the start of the clock of ids */
export function partitionName(day: number): string {
  return `uplink_day_${day}`;
}

/** The ids of a day: from the first to below the second. */
export function idsOfDay(day: number): readonly [from: number, to: number] {
  const [from, to] = [day, day + 1].map((each) => lowestIdAt(CLOCK_ID_EPOCH_MS + each * Days(1), 0));
  return [from as number, to as number];
}

/** Makes the partitions of this day and the next ones where they are missing. Must run in a transaction. */
export async function ensurePartitions(sql: Sql): Promise<void> {
  await sql.get('SELECT pg_advisory_xact_lock(@locks::int, @lock::int)', {
    locks: ADVISORY_LOCKS,
    lock: PARTITION_LOCK,
  });
  await sql.get(LIMIT_LOCK_WAIT);
  const row = await sql.get<{ now_ms: number }>('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now_ms');
  const today = Math.floor(((row?.now_ms ?? 0) - CLOCK_ID_EPOCH_MS) / Days(1));
  for (let ahead = 0; ahead < DAYS_AHEAD; ahead += 1) await ensureDay(sql, today + ahead);
}

/**
 * Makes the partition of a day, unless the default one has uplinks of that day already, from a time when none could be
 * made: PostgreSQL refuses the partition then, and the day stays in the default one. Attaching a finished table locks
 * only the default partition; making one in place would lock the whole log.
 */
async function ensureDay(sql: Sql, day: number): Promise<void> {
  const name = partitionName(day);
  const row = await sql.get<{ found: boolean }>('SELECT to_regclass(@name) IS NOT NULL AS found', { name });
  if (row?.found === true) return;
  const [from, to] = idsOfDay(day);
  const early = await sql.get('SELECT 1 AS one FROM uplink_default WHERE id >= @from AND id < @to LIMIT 1', {
    from,
    to,
  });
  if (early !== undefined) return;
  await sql.run(`CREATE TABLE ${name} (LIKE uplink INCLUDING ALL)`);
  await sql.run(`ALTER TABLE uplink ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`);
}

export interface PartitionKeeperParts {
  /** Runs a transaction. */
  readonly run: (work: (sql: Sql) => Promise<void>) => Promise<void>;
  readonly clock: Clock;
}

/** Makes partitions for as long as the gateway runs. */
export class PartitionKeeper {
  readonly #parts: PartitionKeeperParts;
  #timer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: PartitionKeeperParts) {
    this.#parts = parts;
  }

  /**
   * Makes missing partitions now, and then each hour.
   * @throws what the first time throws, unless reads of the log held it up
   */
  async start(): Promise<void> {
    await this.#parts.run(ensurePartitions).catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
    });
    this.#later();
  }

  /** Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#working;
  }

  #later(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.clock.after(KEEP_INTERVAL, () => {
      // After a failure the next hour tries again: there are partitions for two more days.
      this.#working = this.#parts
        .run(ensurePartitions)
        .catch(() => undefined)
        .then(() => this.#later());
    });
  }
}

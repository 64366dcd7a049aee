/**
 * SIM cards, usage counts, price plans and statements. Activations and counts, which may change every second for each
 * active lock, are written by the engine together with uplinks; everything else goes through Kysely.
 */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { type Month, monthEndMs } from '../../usage/month.js';
import type { PricePlan } from '../../usage/price.js';
import type { StatementBasis, UnbilledUsage } from '../../usage/statement.js';
import {
  COUNTING_SINCE_METADATA,
  type DatedPlan,
  type StatementClosing,
  type StoredStatement,
  type UsageDelta,
  type UsageFilter,
  type UsagePage,
  type UsageRow,
  type UsageStore,
} from '../contract/usage-store.js';
import { sql } from './kysely.js';
import { findMerchant } from './registry.js';
import type { PricePlanTable, UsageTable } from './schema/usage.js';
import type { Tables } from './schema.js';
import type { TableParts, WriteBatched } from './table-parts.js';

export interface UsageParts extends TableParts {
  readonly writeBatched: WriteBatched;
}

export class Usage implements UsageStore {
  readonly #mutex: TableParts['mutex'];
  readonly #tables: Kysely<Tables>;
  readonly #reads: Kysely<Tables>;
  readonly #lockUsage: TableParts['dialect']['lockUsage'];
  readonly #writeBatched: UsageParts['writeBatched'];
  /** Up to when this gateway has added its counts, ms since the epoch ({@link UsageStore.noteCounted}). */
  #countedThroughMs = 0;

  constructor({ mutex, tables, readTables, dialect, writeBatched }: UsageParts) {
    this.#lockUsage = dialect.lockUsage;
    this.#mutex = mutex;
    this.#writeBatched = writeBatched;
    this.#tables = tables;
    this.#reads = readTables;
  }

  activate(sims: readonly { readonly mac: Mac; readonly atMs: number }[]): Promise<void> {
    return this.#writeBatched('activate a SIM', { type: 'sims', sims });
  }

  add(deltas: readonly UsageDelta[], nowMs: number): Promise<void> {
    return this.#writeBatched('add usage', { type: 'usage', deltas, nowMs });
  }

  noteCounted(throughMs: number): void {
    this.#countedThroughMs = throughMs;
  }

  async readCountedThrough(): Promise<number> {
    return this.#countedThroughMs;
  }

  async readActivations(): Promise<{ mac: Mac; activatedAtMs: number }[]> {
    const rows = await this.#reads.selectFrom('sim').selectAll().execute();
    return rows.map((row) => ({ mac: row.mac as Mac, activatedAtMs: row.activated_at_ms }));
  }

  async read({ month, mac, merchant }: UsageFilter): Promise<UsageRow[]> {
    let query = this.#reads
      .selectFrom('usage')
      .innerJoin('merchant', 'merchant.id', 'usage.merchant_id')
      .selectAll('usage')
      .select('merchant.name as merchant_name');
    if (month !== undefined) query = query.where('usage.month', '=', month);
    if (mac !== undefined) query = query.where('usage.mac', '=', mac);
    if (merchant !== undefined) query = query.where('merchant.name', '=', merchant);
    const rows = await query.orderBy('usage.month').orderBy('usage.mac').orderBy('usage.merchant_id').execute();
    return rows.map((row) => {
      return { ...toCounts(row, 'all'), merchantId: row.merchant_id, merchantName: row.merchant_name };
    });
  }

  putPlan(merchant: string, plan: PricePlan, from: Month, nowMs: number): Promise<DatedPlan> {
    return this.#transaction(async (db) => {
      const { id } = await findMerchant(db, merchant);
      const latest = await db
        .selectFrom('statement')
        .select(({ fn }) => fn.max('month').as('month'))
        .where('merchant_id', '=', id)
        .executeTakeFirst();
      if (latest !== undefined && latest.month !== null && latest.month >= from)
        throw new LockgateError(
          'usage-month-closed',
          `a plan can't start in ${from}: ${latest.month} is closed for ${merchant}, and a closed month can't change`,
        );
      const prices = { per_mb: plan.perMb, per_sim: plan.perSim, currency: plan.currency, set_at_ms: nowMs };
      const row = { merchant_id: id, from_month: from, ...prices };
      await db
        .insertInto('price_plan')
        .values(row)
        .onConflict((conflict) => conflict.columns(['merchant_id', 'from_month']).doUpdateSet(prices))
        .execute();
      return toPlan({ ...row, merchant_name: merchant });
    });
  }

  async readPlans(merchant?: string): Promise<DatedPlan[]> {
    let query = this.#reads
      .selectFrom('price_plan')
      .innerJoin('merchant', 'merchant.id', 'price_plan.merchant_id')
      .selectAll('price_plan')
      .select('merchant.name as merchant_name');
    if (merchant !== undefined) query = query.where('merchant.name', '=', merchant);
    return (await query.orderBy('price_plan.merchant_id').orderBy('price_plan.from_month').execute()).map(toPlan);
  }

  async readClosedMonths(merchantId: number): Promise<Month[]> {
    return await closedMonths(this.#reads, merchantId);
  }

  async readPage({ merchantId, month, after, limit }: UsagePage): Promise<UsageRow[]> {
    let query = this.#reads
      .selectFrom('usage')
      .innerJoin('merchant', 'merchant.id', 'usage.merchant_id')
      .selectAll('usage')
      .select('merchant.name as merchant_name')
      .where('usage.merchant_id', '=', merchantId)
      .where('usage.month', '=', month);
    if (after !== undefined) {
      const { mac } = after;
      const simulated = after.simulated ? 1 : 0;
      query = query
        .where('usage.mac', '>=', mac)
        .where(({ eb, or }) => or([eb('usage.mac', '>', mac), eb('usage.simulated', '>', simulated)]));
    }
    const rows = await query.orderBy('usage.mac').orderBy('usage.simulated').limit(limit).execute();
    return rows.map((row) => {
      return { ...toCounts(row, 'all'), merchantId: row.merchant_id, merchantName: row.merchant_name };
    });
  }

  async readClosings(merchantId: number, limit: number, before?: Month): Promise<StatementClosing[]> {
    let query = this.#reads
      .selectFrom('statement')
      .select(['month', 'closed_at_ms'])
      .where('merchant_id', '=', merchantId);
    if (before !== undefined) query = query.where('month', '<', before);
    const rows = await query.orderBy('month', 'desc').limit(limit).execute();
    return rows.map((row) => ({ month: row.month as Month, closedAtMs: row.closed_at_ms }));
  }

  async findStatement(merchantId: number, month: Month): Promise<string | null> {
    const row = await this.#reads
      .selectFrom('statement')
      .select('body')
      .where('merchant_id', '=', merchantId)
      .where('month', '=', month)
      .executeTakeFirst();
    return row?.body ?? null;
  }

  async readStatements(month: Month, merchant?: string): Promise<StoredStatement[]> {
    let query = this.#reads
      .selectFrom('statement')
      .innerJoin('merchant', 'merchant.id', 'statement.merchant_id')
      .select(['statement.merchant_id', 'statement.body', 'merchant.name'])
      .where('statement.month', '=', month);
    if (merchant !== undefined) query = query.where('merchant.name', '=', merchant);
    const rows = await query.orderBy('statement.merchant_id').execute();
    return rows.map((row) => ({ merchantId: row.merchant_id, merchantName: row.name, month, body: row.body }));
  }

  close(merchantId: number, month: Month, nowMs: number, make: (basis: StatementBasis) => string): Promise<boolean> {
    return this.#transaction(async (db) => {
      // What is added between reading the counts and noting them as billed would never be billed.
      await this.#lockUsage?.execute(db);
      const closed = await closedMonths(db, merchantId);
      if (closed.includes(month)) return false;
      const earlierClosed = closed.filter((closedMonth) => closedMonth < month);
      const basis = await readBasis(db, merchantId, month, earlierClosed, nowMs);
      const row = { merchant_id: merchantId, month, closed_at_ms: nowMs, body: make(basis) };
      await db.insertInto('statement').values(row).execute();
      // What is counted from now on for these months is billed as late usage by the next statement.
      await db
        .updateTable('usage')
        .set(({ ref }) => ({
          billed_messages_up: ref('messages_up'),
          billed_messages_down: ref('messages_down'),
          billed_connections: ref('connections'),
          billed_bytes_up: ref('bytes_up'),
          billed_bytes_down: ref('bytes_down'),
        }))
        .where('merchant_id', '=', merchantId)
        .where('month', 'in', [month, ...earlierClosed])
        .execute();
      return true;
    });
  }

  #transaction<T>(work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
    return this.#mutex.runExclusive(() => this.#tables.transaction().execute(work));
  }
}

async function closedMonths(db: Kysely<Tables>, merchantId: number): Promise<Month[]> {
  const rows = await db
    .selectFrom('statement')
    .select('month')
    .where('merchant_id', '=', merchantId)
    .orderBy('month')
    .execute();
  return rows.map((row) => row.month as Month);
}

/** Reads all that a month's statement is computed from. */
async function readBasis(
  db: Transaction<Tables>,
  merchantId: number,
  month: Month,
  earlierClosed: readonly Month[],
  closedAtMs: number,
): Promise<StatementBasis> {
  const { name } = await db
    .selectFrom('merchant')
    .select('name')
    .where('id', '=', merchantId)
    .executeTakeFirstOrThrow();
  const countingSince = await db
    .selectFrom('fact')
    .select('value')
    .where('name', '=', COUNTING_SINCE_METADATA)
    .executeTakeFirst();
  const plan = await db
    .selectFrom('price_plan')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('from_month', '<=', month)
    .orderBy('from_month', 'desc')
    .limit(1)
    .executeTakeFirst();
  const sims = await db.selectFrom('sim').selectAll().where('activated_at_ms', '<', monthEndMs(month)).execute();
  return {
    merchant: name,
    month,
    closedAtMs,
    countingSinceMs: countingSince === undefined ? null : Number(countingSince.value),
    plan: plan === undefined ? null : { perMb: plan.per_mb, perSim: plan.per_sim, currency: plan.currency },
    usage: await readUnbilled(db, merchantId, [month]),
    late: await readUnbilled(db, merchantId, earlierClosed),
    activations: new Map(sims.map((sim) => [sim.mac as Mac, sim.activated_at_ms])),
    simsOf: await findBilledSims(db, merchantId, month),
  };
}

/** Reads the counts of these months that no statement has billed yet. */
async function readUnbilled(
  db: Transaction<Tables>,
  merchantId: number,
  months: readonly Month[],
): Promise<UnbilledUsage[]> {
  if (months.length === 0) return [];
  const rows = await db
    .selectFrom('usage')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('month', 'in', months)
    .where(({ eb, or }) =>
      or([
        eb('bytes_up', '>', eb.ref('billed_bytes_up')),
        eb('bytes_down', '>', eb.ref('billed_bytes_down')),
        eb('connections', '>', eb.ref('billed_connections')),
        eb('messages_up', '>', eb.ref('billed_messages_up')),
        eb('messages_down', '>', eb.ref('billed_messages_down')),
      ]),
    )
    .execute();
  return rows.map((row) => toCounts(row, 'unbilled'));
}

/**
 * Returns the locks whose SIM the merchant pays for: those that it has, or had when they were removed, if they were
 * added before the month's end; and locks that were added later or again, if their latest usage in the month was under
 * this merchant. So each SIM is paid for once.
 */
async function findBilledSims(db: Transaction<Tables>, merchantId: number, month: Month): Promise<Mac[]> {
  const devices = await db
    .selectFrom('device')
    .select(['mac', 'merchant_id', 'simulated'])
    .where('created_at_ms', '<', monthEndMs(month))
    .execute();
  const present = new Set(devices.map(({ mac }) => mac));
  const ownLocks = devices.filter((device) => device.merchant_id === merchantId && device.simulated === 0);
  const lastUses = await db
    .selectFrom('usage')
    .select(['mac', 'merchant_id', sql<number>`max(changed_at_ms)`.as('last_at_ms')])
    .where('month', '=', month)
    .where('simulated', '=', 0)
    .groupBy(['mac', 'merchant_id'])
    .orderBy('last_at_ms')
    .execute();
  // Sorted by time, so a lock's latest merchant overwrites earlier ones.
  const lastMerchant = new Map(lastUses.map((row) => [row.mac, row.merchant_id]));
  const addedLater = [...lastMerchant].filter(([mac, merchant]) => merchant === merchantId && !present.has(mac));
  return [...ownLocks.map(({ mac }) => mac), ...addedLater.map(([mac]) => mac)] as Mac[];
}

/** Converts a row: all its counts, or what no statement has billed yet. */
function toCounts(row: Selectable<UsageTable>, counts: 'all' | 'unbilled'): UnbilledUsage {
  const billedFactor = counts === 'unbilled' ? 1 : 0;
  return {
    month: row.month as Month,
    mac: row.mac as Mac,
    simulated: row.simulated === 1,
    messagesUp: row.messages_up - billedFactor * row.billed_messages_up,
    messagesDown: row.messages_down - billedFactor * row.billed_messages_down,
    connections: row.connections - billedFactor * row.billed_connections,
    bytesUp: row.bytes_up - billedFactor * row.billed_bytes_up,
    bytesDown: row.bytes_down - billedFactor * row.billed_bytes_down,
  };
}

function toPlan(row: Selectable<PricePlanTable> & { merchant_name: string }): DatedPlan {
  return {
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    from: row.from_month as Month,
    perMb: row.per_mb,
    perSim: row.per_sim,
    currency: row.currency,
    setAtMs: row.set_at_ms,
  };
}

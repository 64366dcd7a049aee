/**
 * A month's statement for a merchant, made of what the store has (interfaces.md §5). Pure: the same basis gives the
 * same statement. It is stored as it is made here and never made again.
 */
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { toDate } from '../../proto/wire/ping-json.js';
import { addCounts, bytesOf, type CountsJson, countsJson, NO_USAGE, type UsageCounts } from './counts.js';
import { type Month, monthEndMs, monthStartMs } from './month.js';
import {
  type Amount,
  BYTES_PER_MB,
  formatAmount,
  type PricePlan,
  priceOfBytes,
  priceOfSims,
  ROUNDING,
  roundAmount,
} from './price.js';

/** Counts of one lock in one month that no statement has yet. */
export interface UnbilledUsage extends UsageCounts {
  readonly month: Month;
  readonly mac: Mac;
  readonly simulated: boolean;
}

/** What a statement rests on. */
export interface StatementBasis {
  readonly merchant: string;
  readonly month: Month;
  readonly closedAtMs: number;
  /** When the gateway began to count, ms since the epoch; null where it never noted it. */
  readonly countingSinceMs: number | null;
  /** The plan in force in the month; null where there is none. */
  readonly plan: PricePlan | null;
  /** Of this month. */
  readonly usage: readonly UnbilledUsage[];
  /** Of earlier months whose statements were closed without it. */
  readonly late: readonly UnbilledUsage[];
  /** When the SIMs of the locks in question were activated, ms since the epoch. */
  readonly activations: ReadonlyMap<Mac, number>;
  /** The locks whose SIM this merchant pays for, if it is active. */
  readonly simsOf: readonly Mac[];
}

export interface StatementLine extends CountsJson {
  readonly mac: string;
  readonly activated_at: string | null;
  readonly activated_in_month: boolean;
  /** Its SIM is charged for on this statement. */
  readonly active: boolean;
  /** Decimal texts, exact; null where no plan is in force. */
  readonly data_amount: string | null;
  readonly sim_amount: string | null;
  readonly amount: string | null;
}

export interface StatementCorrection extends CountsJson {
  /** The closed month to which it belongs. */
  readonly month: string;
  readonly mac: string;
  readonly amount: string | null;
}

export interface Statement {
  readonly statement: 'lockgate';
  readonly version: 1;
  readonly merchant: string;
  readonly month: string;
  /** The first moment of the month, and the first that is no longer of it, UTC. */
  readonly from: string;
  readonly until: string;
  readonly closed_at: string;
  readonly counting_since: string | null;
  readonly plan: {
    readonly per_mb: string;
    readonly bytes_per_mb: number;
    readonly per_sim: string;
    readonly currency: string;
    readonly rounding: string;
  } | null;
  readonly lines: readonly StatementLine[];
  readonly corrections: readonly StatementCorrection[];
  readonly totals: CountsJson & {
    readonly locks: number;
    readonly active_sims: number;
    readonly data_amount: string | null;
    readonly sim_amount: string | null;
    readonly corrections_amount: string | null;
    /** The sum of all lines and corrections, exact. */
    readonly amount: string | null;
    /** That, rounded: what is to be paid. */
    readonly total: string | null;
  };
  /** What went over the air for locks that are marked simulated. */
  readonly not_billed: CountsJson & { readonly simulated_locks: number };
  readonly notes: readonly string[];
}

const NOTES: readonly string[] = Object.freeze([
  'Bytes are those of the TCP connection in both directions, with TLS and MQTT; TCP/IP headers are not included.',
  'Phones and locks marked simulated are not billed. A connection that was refused is nobody’s, and not billed.',
  'A SIM is active in a month when it was activated before the month’s end. It is charged to the merchant who has ' +
    'the lock when the month is closed.',
  'Corrections are bytes and messages of months that were closed without them, at the prices of this statement.',
]);

/** Makes the statement. Its lines and corrections add up to its totals, amounts included. */
export function makeStatement(basis: StatementBasis): Statement {
  const { merchant, month, closedAtMs, countingSinceMs, plan, usage, late } = basis;
  const money = moneyOf(plan);
  const active = new Set(activeSims(basis));
  const counts = byLock(billed(usage));
  const macs = [...new Set([...counts.keys(), ...active])].sort();
  const lines = macs.map((mac) => makeLine(basis, money, mac, counts.get(mac) ?? NO_USAGE, active.has(mac)));
  const corrections = billed(late)
    .sort((a, b) => compare(`${a.month} ${a.mac}`, `${b.month} ${b.mac}`))
    .map((row) => ({
      month: row.month,
      mac: formatMac(row.mac),
      ...countsJson(row),
      amount: money.data(bytesOf(row)),
    }));
  const simulated = usage.filter((row) => row.simulated);
  return {
    statement: 'lockgate',
    version: 1,
    merchant,
    month,
    from: toDate(monthStartMs(month)),
    until: toDate(monthEndMs(month)),
    closed_at: toDate(closedAtMs),
    counting_since: countingSinceMs === null ? null : toDate(countingSinceMs),
    plan: plan && {
      per_mb: plan.perMb,
      bytes_per_mb: BYTES_PER_MB,
      per_sim: plan.perSim,
      currency: plan.currency,
      rounding: ROUNDING,
    },
    lines,
    corrections,
    totals: makeTotals(billed(usage), billed(late), lines.length, active.size, money),
    not_billed: { simulated_locks: new Set(simulated.map(({ mac }) => mac)).size, ...countsJson(sum(simulated)) },
    notes: NOTES,
  };
}

function makeLine(
  { month, activations }: StatementBasis,
  money: Money,
  mac: Mac,
  counts: UsageCounts,
  isActiveSim: boolean,
): StatementLine {
  const activatedAtMs = activations.get(mac);
  const sims = isActiveSim ? 1 : 0;
  return {
    mac: formatMac(mac),
    ...countsJson(counts),
    activated_at: activatedAtMs === undefined ? null : toDate(activatedAtMs),
    activated_in_month:
      activatedAtMs !== undefined && activatedAtMs >= monthStartMs(month) && activatedAtMs < monthEndMs(month),
    active: isActiveSim,
    data_amount: money.data(bytesOf(counts)),
    sim_amount: money.sims(sims),
    amount: money.both(bytesOf(counts), sims),
  };
}

function makeTotals(
  usage: readonly UnbilledUsage[],
  late: readonly UnbilledUsage[],
  locks: number,
  sims: number,
  money: Money,
): Statement['totals'] {
  const bytes = bytesOf(sum(usage));
  const lateBytes = bytesOf(sum(late));
  return {
    locks,
    active_sims: sims,
    ...countsJson(sum([...usage, ...late])),
    data_amount: money.data(bytes),
    sim_amount: money.sims(sims),
    corrections_amount: money.data(lateBytes),
    amount: money.both(bytes + lateBytes, sims),
    total: money.rounded(bytes + lateBytes, sims),
  };
}

/** The SIMs that are charged for: this merchant's, and activated before the month's end. */
function activeSims({ simsOf, activations, month }: StatementBasis): Mac[] {
  const end = monthEndMs(month);
  return simsOf.filter((mac) => (activations.get(mac) ?? Number.POSITIVE_INFINITY) < end);
}

/** Amounts as texts; null throughout where there is no plan. */
interface Money {
  readonly data: (bytes: number) => string | null;
  readonly sims: (sims: number) => string | null;
  readonly both: (bytes: number, sims: number) => string | null;
  readonly rounded: (bytes: number, sims: number) => string | null;
}

function moneyOf(plan: PricePlan | null): Money {
  const text = (make: (plan: PricePlan) => Amount): string | null => plan && formatAmount(make(plan), plan.currency);
  const both = (of: PricePlan, bytes: number, sims: number): Amount => priceOfBytes(of, bytes) + priceOfSims(of, sims);
  return {
    data: (bytes) => text((of) => priceOfBytes(of, bytes)),
    sims: (sims) => text((of) => priceOfSims(of, sims)),
    both: (bytes, sims) => text((of) => both(of, bytes, sims)),
    rounded: (bytes, sims) => text((of) => roundAmount(both(of, bytes, sims), of.currency)),
  };
}

function billed(rows: readonly UnbilledUsage[]): UnbilledUsage[] {
  return rows.filter(({ simulated }) => !simulated);
}

function sum(rows: readonly UsageCounts[]): UsageCounts {
  return rows.reduce(addCounts, NO_USAGE);
}

/** A lock has several rows where it was marked simulated, or not, in mid-month. */
function byLock(rows: readonly UnbilledUsage[]): Map<Mac, UsageCounts> {
  const counts = new Map<Mac, UsageCounts>();
  for (const row of rows) counts.set(row.mac, addCounts(counts.get(row.mac) ?? NO_USAGE, row));
  return counts;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * Makes a merchant's statement for a month from stored usage (interfaces.md §5). Pure: the same basis gives the same
 * statement. The statement is stored as made here and never computed again.
 */
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import { addCounts, bytesOf, type CountsJson, countsJson, type UsageCounts, ZERO_USAGE } from './counts.js';
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

/** The data from which a statement is made. */
export interface StatementBasis {
  readonly merchant: string;
  readonly month: Month;
  readonly closedAtMs: number;
  /** When the gateway started to count usage, ms since the epoch; null if unknown. */
  readonly countingSinceMs: number | null;
  /** The plan in force in the month; null if there is none. */
  readonly plan: PricePlan | null;
  /** The usage of this month. */
  readonly usage: readonly UnbilledUsage[];
  /** The usage of earlier months that their statements lack: it was stored after they were closed. */
  readonly late: readonly UnbilledUsage[];
  /** When the locks' SIMs were activated, ms since the epoch. */
  readonly activations: ReadonlyMap<Mac, number>;
  /** The locks of this merchant, who pays for their active SIMs. */
  readonly simsOf: readonly Mac[];
}

export interface StatementLine extends CountsJson {
  readonly mac: string;
  readonly activated_at: string | null;
  readonly activated_in_month: boolean;
  /** Whether the lock's SIM is charged for on this statement. */
  readonly active: boolean;
  /** Decimal texts, exact; null if no plan is in force. */
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
  /** The start of the month, and the start of the next one, UTC. */
  readonly from: string;
  readonly until: string;
  readonly closed_at: string;
  /** When the gateway started to count usage; null if unknown. */
  readonly counting_since: string | null;
  /** The prices, as decimal texts in units of the currency; null if no plan was in force. */
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
    /** `amount` rounded: what the merchant pays. */
    readonly total: string | null;
  };
  /** The usage of locks that are marked simulated. */
  readonly not_billed: CountsJson & { readonly simulated_locks: number };
  readonly notes: readonly string[];
}

const NOTES: readonly string[] = Object.freeze([
  'Bytes are those of the TCP connection in both directions, with TLS and MQTT; TCP/IP headers are not included.',
  'Phones and locks marked simulated are not billed. A refused connection has no merchant and is not billed.',
  'A SIM is active in a month when it was activated before the month’s end. It is charged to the merchant who has ' +
    'the lock when the month is closed.',
  'Corrections are bytes and messages of months that were closed without them, at the prices of this statement.',
]);

/** Makes the statement. Its totals are the exact sums of its lines and corrections. */
export function makeStatement(basis: StatementBasis): Statement {
  const { merchant, month, closedAtMs, countingSinceMs, plan, usage, late } = basis;
  const amounts = amountsOf(plan);
  const active = new Set(activeSims(basis));
  const counts = sumByLock(withoutSimulated(usage));
  const macs = [...new Set([...counts.keys(), ...active])].sort();
  const lines = macs.map((mac) => makeLine(basis, amounts, mac, counts.get(mac) ?? ZERO_USAGE, active.has(mac)));
  const corrections = withoutSimulated(late)
    .sort((a, b) => compare(`${a.month} ${a.mac}`, `${b.month} ${b.mac}`))
    .map((row) => ({
      month: row.month,
      mac: formatMac(row.mac),
      ...countsJson(row),
      amount: amounts.data(bytesOf(row)),
    }));
  const simulated = usage.filter((row) => row.simulated);
  return {
    statement: 'lockgate',
    version: 1,
    merchant,
    month,
    from: formatDate(monthStartMs(month)),
    until: formatDate(monthEndMs(month)),
    closed_at: formatDate(closedAtMs),
    counting_since: countingSinceMs === null ? null : formatDate(countingSinceMs),
    plan: plan && {
      per_mb: plan.perMb,
      bytes_per_mb: BYTES_PER_MB,
      per_sim: plan.perSim,
      currency: plan.currency,
      rounding: ROUNDING,
    },
    lines,
    corrections,
    totals: makeTotals(withoutSimulated(usage), withoutSimulated(late), lines.length, active.size, amounts),
    not_billed: { simulated_locks: new Set(simulated.map(({ mac }) => mac)).size, ...countsJson(sum(simulated)) },
    notes: NOTES,
  };
}

function makeLine(
  { month, activations }: StatementBasis,
  amounts: Amounts,
  mac: Mac,
  counts: UsageCounts,
  isActiveSim: boolean,
): StatementLine {
  const activatedAtMs = activations.get(mac);
  const sims = isActiveSim ? 1 : 0;
  return {
    mac: formatMac(mac),
    ...countsJson(counts),
    activated_at: activatedAtMs === undefined ? null : formatDate(activatedAtMs),
    activated_in_month:
      activatedAtMs !== undefined && activatedAtMs >= monthStartMs(month) && activatedAtMs < monthEndMs(month),
    active: isActiveSim,
    data_amount: amounts.data(bytesOf(counts)),
    sim_amount: amounts.sims(sims),
    amount: amounts.total(bytesOf(counts), sims),
  };
}

function makeTotals(
  usage: readonly UnbilledUsage[],
  late: readonly UnbilledUsage[],
  locks: number,
  sims: number,
  amounts: Amounts,
): Statement['totals'] {
  const bytes = bytesOf(sum(usage));
  const lateBytes = bytesOf(sum(late));
  return {
    locks,
    active_sims: sims,
    ...countsJson(sum([...usage, ...late])),
    data_amount: amounts.data(bytes),
    sim_amount: amounts.sims(sims),
    corrections_amount: amounts.data(lateBytes),
    amount: amounts.total(bytes + lateBytes, sims),
    total: amounts.rounded(bytes + lateBytes, sims),
  };
}

/** The SIMs that are charged for: this merchant's SIMs that were activated before the month's end. */
function activeSims({ simsOf, activations, month }: StatementBasis): Mac[] {
  const end = monthEndMs(month);
  return simsOf.filter((mac) => (activations.get(mac) ?? Number.POSITIVE_INFINITY) < end);
}

/** Functions that format the amounts of one plan as texts. Without a plan, every text is null. */
interface Amounts {
  readonly data: (bytes: number) => string | null;
  readonly sims: (sims: number) => string | null;
  readonly total: (bytes: number, sims: number) => string | null;
  readonly rounded: (bytes: number, sims: number) => string | null;
}

function amountsOf(plan: PricePlan | null): Amounts {
  if (plan === null) return { data: () => null, sims: () => null, total: () => null, rounded: () => null };
  const format = (amount: Amount): string => formatAmount(amount, plan.currency);
  const total = (bytes: number, sims: number): Amount => priceOfBytes(plan, bytes) + priceOfSims(plan, sims);
  return {
    data: (bytes) => format(priceOfBytes(plan, bytes)),
    sims: (sims) => format(priceOfSims(plan, sims)),
    total: (bytes, sims) => format(total(bytes, sims)),
    rounded: (bytes, sims) => format(roundAmount(total(bytes, sims), plan.currency)),
  };
}

function withoutSimulated(rows: readonly UnbilledUsage[]): UnbilledUsage[] {
  return rows.filter(({ simulated }) => !simulated);
}

function sum(rows: readonly UsageCounts[]): UsageCounts {
  return rows.reduce(addCounts, ZERO_USAGE);
}

/** The sum of each lock's counts. A lock has several if it was marked or unmarked as simulated within the month. */
function sumByLock(rows: readonly UnbilledUsage[]): Map<Mac, UsageCounts> {
  const counts = new Map<Mac, UsageCounts>();
  for (const row of rows) counts.set(row.mac, addCounts(counts.get(row.mac) ?? ZERO_USAGE, row));
  return counts;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * Calculates the monthly price of a planned fleet, with the code that calculates statements (gateway/usage/price.ts).
 */
import type { MonthSize } from '../../../../firmware-sim/plan/sizing.js';
import {
  type Amount,
  checkPlan,
  formatAmount,
  type PricePlan,
  priceOfBytes,
  priceOfSims,
  roundAmount,
} from '../../../../gateway/usage/price.js';
import { LockgateError } from '../../../../proto/errors.js';
import type { PlanFlags } from '../flags.js';

/** Reads the price flags; null if none is given. @throws LockgateError `input-price`, `input-currency` */
export function readPrices({ perMb, perSim, currency }: PlanFlags): PricePlan | null {
  if (perMb === undefined && perSim === undefined && currency === undefined) return null;
  if (perMb === undefined || perSim === undefined || currency === undefined)
    throw new LockgateError(
      'input-price',
      '--per-mb, --per-sim and --currency go together: expected all three or none',
    );
  return checkPlan({ perMb, perSim, currency });
}

/** The monthly price of locks, as decimal text. */
export interface MonthPrice {
  /** For all locks, rounded to the currency's minor unit, as a statement's total is. */
  readonly total: string;
  /** The mean per lock, rounded to four decimals. */
  readonly perLock: string;
}

/** The monthly price of `locks` locks with the given traffic. Each lock's SIM counts as active. */
export function priceOf(prices: PricePlan, { bytes }: MonthSize, locks: number): MonthPrice {
  const price = (ofBytes: number, sims: number): Amount => {
    return priceOfBytes(prices, Math.round(ofBytes)) + priceOfSims(prices, sims);
  };
  const { currency } = prices;
  return {
    total: formatAmount(roundAmount(price(bytes.value, locks), currency), currency),
    perLock: withDecimals(formatAmount(toTenThousandth(price(bytes.value / locks, 1)), currency)),
  };
}

/** A ten-thousandth of the currency as an Amount, whose unit is 10^-12 of the currency. */
const TEN_THOUSANDTH = 10n ** 8n;
const DECIMALS = 4;

/** Pads an amount to four decimals, so that the decimal points of a column line up. */
function withDecimals(amount: string): string {
  const [integer = '', fraction = ''] = amount.split('.');
  return `${integer}.${fraction.padEnd(DECIMALS, '0')}`;
}

/** Rounds an amount to a ten-thousandth of the currency. */
function toTenThousandth(amount: Amount): Amount {
  return ((amount + TEN_THOUSANDTH / 2n) / TEN_THOUSANDTH) * TEN_THOUSANDTH;
}

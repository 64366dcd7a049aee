/**
 * Prices and amounts of money as exact integers of a tiny unit, never as floating-point numbers. Pure.
 *
 * A price has at most six decimals. A byte is a millionth of an MB, so the price of a byte has at most twelve, and
 * every line of a statement is exact; only the total is rounded, once.
 */
import { RequestFaults } from '../faults.js';

/** As in the tariffs of networks; 2^20 bytes would be an MiB. */
export const BYTES_PER_MB = 1_000_000;

/** The rounding rule, as statements print it. */
export const ROUNDING = 'no line is rounded; the total is, once, half up, to the currency’s minor unit';

const PRICE_DECIMALS = 6;
/** Decimals of an amount: those of a price, and six because bytes are counted and MB are priced. */
const AMOUNT_DECIMALS = 12;
const MICROS_PER_UNIT = 10n ** BigInt(PRICE_DECIMALS);

const PRICE = /^(\d{1,9})(?:\.(\d{1,6}))?$/;

/** Currencies whose minor unit does not have two decimals (ISO 4217). */
const MINOR_DECIMALS: Readonly<Record<string, number>> = Object.freeze({
  ...decimals(0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'),
  ...decimals(3, 'BHD IQD JOD KWD LYD OMR TND'),
  ...decimals(4, 'CLF UYW'),
});

function decimals(count: number, currencies: string): Record<string, number> {
  return Object.fromEntries(currencies.split(' ').map((currency) => [currency, count]));
}

/** An amount of money in units of 10^-12 of the currency. */
export type Amount = bigint;

/** The prices that a merchant pays, as decimal texts. */
export interface PricePlan {
  /** The price of 1,000,000 bytes, both directions together. */
  readonly perMb: string;
  /** The price of an active SIM for a month. */
  readonly perSim: string;
  /** ISO 4217, three letters. */
  readonly currency: string;
}

/** Checks an operator's input and returns it. @throws RequestFaults `input-price`, `input-currency` */
export function checkPlan(plan: PricePlan): PricePlan {
  // Called for their checks.
  microsOf(plan.perMb, '/per_mb');
  microsOf(plan.perSim, '/per_sim');
  if (!/^[A-Z]{3}$/.test(plan.currency) || !Intl.supportedValuesOf('currency').includes(plan.currency))
    throw faultAt(
      'input-currency',
      '/currency',
      `${JSON.stringify(plan.currency.slice(0, 20))} is no currency: expected the three letters of ISO 4217, as EUR`,
    );
  return plan;
}

/** The price of `bytes`, which must be a safe integer. */
export function priceOfBytes(plan: PricePlan, bytes: number): Amount {
  // Millionths of the currency per MB, times bytes: a byte is a millionth of an MB, which gives the other six decimals.
  return BigInt(bytes) * microsOf(plan.perMb);
}

/** The price of a number of active SIMs for a month. */
export function priceOfSims(plan: PricePlan, sims: number): Amount {
  // The last factor turns millionths of the currency into units of an amount, as bytes of an MB do in priceOfBytes.
  return BigInt(sims) * microsOf(plan.perSim) * BigInt(BYTES_PER_MB);
}

/** The exact amount, with at least the decimals of the currency's minor unit. */
export function formatAmount(amount: Amount, currency: string): string {
  const digits = String(amount).padStart(AMOUNT_DECIMALS + 1, '0');
  const minDecimals = minorDecimals(currency);
  const fraction = digits.slice(-AMOUNT_DECIMALS);
  const shown = fraction.replace(/0+$/, '').padEnd(minDecimals, '0');
  return `${digits.slice(0, -AMOUNT_DECIMALS)}${shown === '' ? '' : `.${shown}`}`;
}

/** Rounds half up, to the currency's minor unit. Amounts are never negative, so up is away from zero. */
export function roundAmount(amount: Amount, currency: string): Amount {
  const unit = 10n ** BigInt(AMOUNT_DECIMALS - minorDecimals(currency));
  return ((amount + unit / 2n) / unit) * unit;
}

function minorDecimals(currency: string): number {
  return MINOR_DECIMALS[currency] ?? 2;
}

function faultAt(code: string, pointer: string, detail: string): RequestFaults {
  return new RequestFaults(code, detail, [{ pointer, detail }]);
}

/** @param pointer the member of a request that has the price. @throws RequestFaults `input-price` */
function microsOf(price: string, pointer = ''): bigint {
  const [, whole, fraction = ''] = PRICE.exec(price) ?? [];
  if (whole === undefined)
    throw faultAt(
      'input-price',
      pointer,
      `${JSON.stringify(price.slice(0, 20))} is no price: expected one such as 0.12, with at most 6 decimals`,
    );
  return BigInt(whole) * MICROS_PER_UNIT + BigInt(fraction.padEnd(PRICE_DECIMALS, '0'));
}

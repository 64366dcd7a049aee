/**
 * The result of one measurement, a row in the bench's table: lockgate's figure, its comparisons with peers (the systems
 * that lockgate is compared with) in the same run, and its floors and aims (quality.md §1).
 */
import type { FigureSummary } from './measure.js';

/** A lower or upper bound of a value, used as a floor (required) or an aim (desired). */
export interface Bound {
  readonly text: string;
  /** `text` without the unit, for narrow columns. */
  readonly short: string;
  readonly holds: (value: number) => boolean;
}

/** How a comparison's value is computed from the figure and the peer's; `itself` is the figure without a peer. */
export type Measure = 'ratio' | 'difference' | 'itself';

/** The comparison of a row's figure with a peer's, or of a value of the row with fixed bounds. */
export interface Comparison {
  /** The peer's name; empty without a peer. */
  readonly name: string;
  /** The peer's figures; null without a peer. */
  readonly rates: FigureSummary | null;
  readonly measure: Measure;
  /** Null if it was not measured. */
  readonly value: number | null;
  /** The unit of a difference, or of the figure itself. */
  readonly unit: string;
  readonly floor: Bound | null;
  readonly aim: Bound | null;
  /** Why the comparison was not measured, and what it needs. */
  readonly missing?: string;
}

/** One measurement. */
export interface BenchRow {
  /** The name for `--only`. */
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** The rounds' figures, in `unit`: rates in most rows, but durations or sizes in others. */
  readonly rates: FigureSummary;
  readonly against: readonly Comparison[];
  /** Further observations, as sentences. */
  readonly details: readonly string[];
}

/** How to run a bench. */
export interface BenchOptions {
  /** Fewer and shorter rounds: to see that everything runs, with rough figures. */
  readonly quick: boolean;
  /** The folder for profiles of the gateway; null for none. */
  readonly profiles: string | null;
  /** Of the row `neighbour`, only the floods whose names contain this text; null for all. */
  readonly flood: string | null;
}

const NUMBERS = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** The bound `≥ minimum`. */
export function atLeast(minimum: number, unit = '×'): Bound {
  return boundOf('≥', minimum, unit, (value) => value >= minimum);
}

/** The bound `≤ maximum`. */
export function atMost(maximum: number, unit = '×'): Bound {
  return boundOf('≤', maximum, unit, (value) => value <= maximum);
}

/** The bound `≤ +maximum` of a difference to the peer. */
export function atMostMore(maximum: number, unit: string): Bound {
  return boundOf('≤ +', maximum, unit, (value) => value <= maximum);
}

/** A bound whose text is the sign, the value and the unit. */
function boundOf(sign: string, value: number, unit: string, test: Bound['holds']): Bound {
  const short = `${sign}${sign.endsWith('+') ? '' : ' '}${NUMBERS.format(value)}`;
  return { text: `${short} ${unit}`, short, holds: test };
}

/** What a value is held to: a floor that it must reach, and an aim that it should reach. */
export interface Targets {
  readonly floor?: Bound;
  readonly aim?: Bound;
}

/** The targets as a comparison has them, null for a missing one. */
function targetsOf({ floor = null, aim = null }: { floor?: Bound | null; aim?: Bound | null }) {
  return { floor, aim };
}

/** A comparison by the figure's median divided by the peer's median. */
export function ratioTo(
  name: string,
  rates: FigureSummary,
  peerRates: FigureSummary,
  targets: Targets = {},
): Comparison {
  const value = rates.median / peerRates.median;
  return { name, rates: peerRates, measure: 'ratio', value, unit: '×', ...targetsOf(targets) };
}

/** A comparison by the figure's median minus the peer's median. */
export function differenceTo(
  name: string,
  rates: FigureSummary,
  peerRates: FigureSummary,
  unit: string,
  targets: Targets = {},
): Comparison {
  const value = rates.median - peerRates.median;
  return { name, rates: peerRates, measure: 'difference', value, unit, ...targetsOf(targets) };
}

/** A value without a peer, compared only with its bounds: the figure itself, or another value of the row. */
export function withoutPeer(value: number, unit: string, targets: Targets = {}, name = ''): Comparison {
  return { name, rates: null, measure: 'itself', value, unit, ...targetsOf(targets) };
}

/** A comparison that was not measured, with the reason and the remedy (`missing`). */
export function notMeasured(name: string, targets: Targets, missing: string): Comparison {
  return { name, rates: null, measure: 'ratio', value: null, unit: '×', ...targetsOf(targets), missing };
}

/** Whether the floor holds; null if nothing was measured or there is no floor. */
export function holds({ value, floor }: Comparison): boolean | null {
  return value === null || floor === null ? null : floor.holds(value);
}

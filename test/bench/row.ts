/** What a bench found: a figure, what it is beside in the same run, and which bars it holds (quality.md §1). */
import type { Rates } from './measure.js';

/** What a value has to keep: at least or at most so much. */
export interface Bar {
  readonly text: string;
  /** The same without its unit, for where there is little room. */
  readonly short: string;
  readonly holds: (value: number) => boolean;
}

/** How a figure stands to what it is compared with; `itself` is the figure beside a fixed bar. */
export type Measure = 'ratio' | 'difference' | 'itself';

export interface Comparison {
  /** What it is compared with; empty beside a fixed bar. */
  readonly name: string;
  readonly rates: Rates | null;
  readonly measure: Measure;
  /** Null where it could not be measured. */
  readonly value: number | null;
  /** The unit of a difference, or of the figure itself. */
  readonly unit: string;
  readonly floor: Bar | null;
  readonly aim: Bar | null;
  /** Why it was not measured, and how it can be. */
  readonly missing?: string;
}

export interface Row {
  /** As `--only` takes it. */
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly rates: Rates;
  readonly against: readonly Comparison[];
  /** Whole sentences on what was seen beside the figure. */
  readonly details: readonly string[];
}

/** How a bench is to be run. */
export interface BenchOptions {
  /** Fewer rounds of less: to see that all runs, and roughly what comes of it. */
  readonly quick: boolean;
  /** The folder for profiles of the gateway; null where none is wanted. */
  readonly profiles: string | null;
}

const NUMBERS = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** At least so much. */
export function atLeast(least: number, unit = '×'): Bar {
  return bar('≥', least, unit, (value) => value >= least);
}

/** At most so much. */
export function atMost(most: number, unit = '×'): Bar {
  return bar('≤', most, unit, (value) => value <= most);
}

/** So much more than what it is compared with, at most. */
export function atMostOver(most: number, unit: string): Bar {
  return bar('≤ +', most, unit, (value) => value <= most);
}

function bar(sign: string, value: number, unit: string, test: Bar['holds']): Bar {
  const short = `${sign}${sign.endsWith('+') ? '' : ' '}${NUMBERS.format(value)}`;
  return { text: `${short} ${unit}`, short, holds: test };
}

/** The figure over that of what it is compared with, by their medians. */
export function ratioTo(name: string, rates: Rates, peer: Rates, floor: Bar | null, aim: Bar | null): Comparison {
  return { name, rates: peer, measure: 'ratio', value: rates.median / peer.median, unit: '×', floor, aim };
}

/** The figure less that of what it is compared with. */
export function overThat(
  name: string,
  rates: Rates,
  peer: Rates,
  unit: string,
  floor: Bar | null,
  aim: Bar | null,
): Comparison {
  return { name, rates: peer, measure: 'difference', value: rates.median - peer.median, unit, floor, aim };
}

/** A value beside a fixed bar: the figure, or another that belongs to it. */
export function fixedBar(value: number, unit: string, floor: Bar | null, aim: Bar | null, name = ''): Comparison {
  return { name, rates: null, measure: 'itself', value, unit, floor, aim };
}

/** What could not be compared, and how it can be. */
export function notMeasured(name: string, floor: Bar, aim: Bar, missing: string): Comparison {
  return { name, rates: null, measure: 'ratio', value: null, unit: '×', floor, aim, missing };
}

/** Whether the floor holds; null where nothing was measured, or there is none. */
export function holds({ value, floor }: Comparison): boolean | null {
  return value === null || floor === null ? null : floor.holds(value);
}

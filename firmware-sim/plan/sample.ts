/**
 * Stratified sampling of a fleet that is too large to simulate: how many locks of each part are simulated, and the
 * accuracy of the estimates. A stratum is a group that is sampled separately. Each part of the fleet's mix is a
 * stratum, since the locks of one part are alike. Pure.
 */
import { assignMix, type MixPart } from '../fleet/mix.js';

/** A part of the fleet that is sampled separately. */
export interface Stratum {
  /** The part's share of the fleet and the settings of its locks. */
  readonly part: MixPart;
  /** The number of locks in the part. */
  readonly locks: number;
  /** How many of them are simulated. */
  readonly sampled: number;
}

/** A number that was measured, or estimated from a sample. */
export interface Estimate {
  readonly value: number;
  /** The standard error of scaling the sample to the fleet; 0 if all locks were simulated. */
  readonly standardError: number;
}

/** The smallest sample of a part: a smaller one does not show how much its locks differ. */
const MIN_SAMPLE_OF_PART = 30;

/**
 * Distributes about `maxSampled` simulated locks among the parts in proportion to their size. Small parts get more
 * than their share.
 */
export function drawStrata(mix: readonly MixPart[], locks: number, maxSampled: number): Stratum[] {
  const counts = new Map<MixPart, number>(mix.map((part) => [part, 0]));
  for (const part of assignMix(mix, locks)) counts.set(part, (counts.get(part) ?? 0) + 1);
  const sampledShare = Math.min(1, maxSampled / locks);
  return [...counts]
    .filter(([, count]) => count > 0)
    .map(([part, count]) => {
      const sampled = Math.min(count, Math.max(MIN_SAMPLE_OF_PART, Math.round(count * sampledShare)));
      return { part, locks: count, sampled };
    });
}

/** How many locks of the fleet each simulated lock of the part represents. */
export function weightOf({ locks, sampled }: Stratum): number {
  return locks / sampled;
}

/**
 * The total of a part, from the values of its simulated locks, with the standard error of simple random sampling
 * without replacement.
 */
export function totalOf({ locks, sampled }: Stratum, values: readonly number[]): Estimate {
  const sum = values.reduce((a, b) => a + b, 0);
  const mean = sum / sampled;
  if (locks === sampled) return { value: sum, standardError: 0 };
  const squares = values.reduce((a, value) => a + (value - mean) ** 2, 0);
  const variance = squares / (sampled - 1);
  return { value: mean * locks, standardError: locks * Math.sqrt((variance / sampled) * (1 - sampled / locks)) };
}

/**
 * As {@link totalOf}, for shares 0…1. Even if all simulated locks have equal shares, other locks may differ. So the
 * error is computed as if two more locks had been simulated, with the shares 0 and 1 (Agresti and Coull, The American
 * Statistician 52, 1998).
 */
export function shareTotalOf(stratum: Stratum, shares: readonly number[]): Estimate {
  const { locks, sampled } = stratum;
  const total = totalOf(stratum, shares);
  if (locks === sampled) return total;
  const extended = [...shares, 0, 1];
  const mean = extended.reduce((a, b) => a + b, 0) / extended.length;
  const variance = extended.reduce((a, share) => a + (share - mean) ** 2, 0) / (extended.length - 1);
  return { ...total, standardError: locks * Math.sqrt((variance / extended.length) * (1 - sampled / locks)) };
}

/** The sum of estimates for parts that are sampled independently. */
export function sumOf(estimates: readonly Estimate[]): Estimate {
  return {
    value: estimates.reduce((sum, { value }) => sum + value, 0),
    standardError: Math.sqrt(estimates.reduce((sum, { standardError }) => sum + standardError ** 2, 0)),
  };
}

/** A multiple of an estimate. */
export function scaled({ value, standardError }: Estimate, factor: number): Estimate {
  return { value: value * factor, standardError: standardError * factor };
}

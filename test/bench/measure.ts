/**
 * How a figure is taken: what is measured and what it is compared with take turns in one run, after a warm-up, so that
 * a noisy machine is noisy for both; the median of the rounds counts.
 */

/** One thing that can be run, and how much it did: the count that the rate is of. */
export type Work = () => number | Promise<number>;

/** Rates a second, of each round. */
export interface Rates {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly rates: Rates;
  /** What it is compared with in the same run; null where a fixed bar is all there is. */
  readonly peer: { readonly name: string; readonly rates: Rates } | null;
  /** The figure over the peer's, or over nothing. */
  readonly ratio: number | null;
  readonly floor: string;
  readonly aim: string;
}

const ROUNDS = 5;

/** What a rate is counted by, in seconds that have passed. */
export type Stopwatch = () => number;

/** The time on the wall. */
const wallSeconds: Stopwatch = () => performance.now() / 1000;

/** The time that this process has had of all cores, those of the garbage collector's threads included. */
export const cpuSeconds: Stopwatch = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** Runs them in turn; the first round is the warm-up and does not count. */
export async function takeTurns(works: readonly Work[], stopwatch = wallSeconds, rounds = ROUNDS): Promise<Rates[]> {
  const rates: number[][] = works.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, work] of works.entries()) {
      const startedAt = stopwatch();
      const count = await work();
      const rate = count / (stopwatch() - startedAt);
      if (round > 0) rates[index]?.push(rate);
    }
  }
  return rates.map(ratesOf);
}

/** The median, the least and the most of some figures. */
export function ratesOf(rates: readonly number[]): Rates {
  const sorted = [...rates].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return { median: middle, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 };
}

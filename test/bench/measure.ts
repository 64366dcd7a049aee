/**
 * How a figure is taken: what is measured and what it is compared with take turns in one run, after a warm-up, so that
 * a noisy machine is noisy for both; the median of the rounds counts.
 */

/** One thing that can be run, and how much it did: the count that the rate is of. */
export type Work = () => number | Promise<number>;

/** Figures of the rounds, in whatever unit. */
export interface Rates {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

const ROUNDS = 5;
const QUICK_ROUNDS = 2;

/** Rounds that count, by whether it shall be quick. */
export function roundsOf(quick: boolean): number {
  return quick ? QUICK_ROUNDS : ROUNDS;
}

/** What a rate is counted by, in seconds that have passed. */
export type Stopwatch = () => number;

/** The time on the wall. */
export const wallSeconds: Stopwatch = () => performance.now() / 1000;

/** The time that this process has had of all cores, those of the garbage collector's threads included. */
export const cpuSeconds: Stopwatch = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** Runs them in turn, always in this order; the first round is the warm-up and does not count. */
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

/**
 * Runs them in turn, and the other way round every second time, so that what one leaves behind is not always the same
 * one's burden. The first round is the warm-up and does not count, where there is one. What each gave, round by round.
 *
 * @param before done before each round, for what is the same for all of it
 */
export async function inTurns<T>(
  works: readonly (() => Promise<T>)[],
  rounds: number,
  warmUps = 1,
  before: () => Promise<void> = async () => undefined,
): Promise<T[][]> {
  const given: T[][] = works.map(() => []);
  for (let round = 0; round < warmUps + rounds; round++) {
    await before();
    const order = [...works.entries()];
    if (round % 2 === 1) order.reverse();
    for (const [index, work] of order) {
      const figure = await work();
      if (round >= warmUps) given[index]?.push(figure);
    }
  }
  return given;
}

/** The median, the least and the most of some figures; of an even number, the median is between the middle two. */
export function ratesOf(rates: readonly number[]): Rates {
  const sorted = [...rates].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const [below = 0, above = 0] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return { median: (below + above) / 2, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 };
}

/** The smallest of them that is not exceeded by this share of them. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.ceil(sorted.length * share), sorted.length) - 1] ?? 0;
}

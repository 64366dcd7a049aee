/**
 * How a figure is measured: lockgate and its peer (the system that it is compared with) alternate in one run, after a
 * warm-up, so that noise of the machine affects both. The figure is the median of the rounds.
 */

/** Work to measure. Returns how many units (pings, locks × days) it processed, from which the rate is computed. */
export type Work = () => number | Promise<number>;

/** The median, minimum and maximum of the rounds' figures, in the unit of the row. */
export interface FigureSummary {
  readonly median: number;
  readonly minimum: number;
  readonly maximum: number;
}

const ROUNDS = 5;
const QUICK_ROUNDS = 2;

/** The number of measured rounds of a normal or a quick run. */
export function roundCount(quick: boolean): number {
  return quick ? QUICK_ROUNDS : ROUNDS;
}

/** Returns a time in seconds; a rate divides by the difference of two such times. */
export type Stopwatch = () => number;

/** Real time. */
export const elapsedSeconds: Stopwatch = () => performance.now() / 1000;

/** CPU time of this process on all cores, including the threads of the garbage collector. */
export const cpuSeconds: Stopwatch = () => {
  const { user, system } = process.cpuUsage();
  // Node gives µs.
  return (user + system) / 1e6;
};

/**
 * Runs the works in turn, always in this order, and returns the rates of each. The first rounds are unmeasured
 * warm-ups.
 */
export async function measureRates(
  works: readonly Work[],
  stopwatch = elapsedSeconds,
  rounds = ROUNDS,
  warmUps = 1,
): Promise<FigureSummary[]> {
  const rates: number[][] = works.map(() => []);
  for (let round = 0; round < warmUps + rounds; round++) {
    for (const [index, work] of works.entries()) {
      const startedAt = stopwatch();
      const count = await work();
      const rate = count / (stopwatch() - startedAt);
      if (round >= warmUps) rates[index]?.push(rate);
    }
  }
  return rates.map(summarizeFigures);
}

/**
 * Runs the works in turn and reverses their order every second round, so that no work always runs after the same other
 * one. Returns the figures of each work, round by round, without the warm-up rounds.
 *
 * @param before called before each round
 */
export async function measureAlternating<T>(
  works: readonly (() => Promise<T>)[],
  rounds: number,
  warmUps = 1,
  before: () => Promise<void> = async () => undefined,
): Promise<T[][]> {
  const figuresByWork: T[][] = works.map(() => []);
  for (let round = 0; round < warmUps + rounds; round++) {
    await before();
    const order = [...works.entries()];
    if (round % 2 === 1) order.reverse();
    for (const [index, work] of order) {
      const figure = await work();
      if (round >= warmUps) figuresByWork[index]?.push(figure);
    }
  }
  return figuresByWork;
}

/** The median, minimum and maximum. For an even number of figures the median is the mean of the middle two. */
export function summarizeFigures(figures: readonly number[]): FigureSummary {
  const sorted = [...figures].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const [below = 0, above = 0] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return { median: (below + above) / 2, minimum: sorted[0] ?? 0, maximum: sorted.at(-1) ?? 0 };
}

/** The smallest value that is at least as large as this share of all values: 0.99 gives the 99th percentile. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.ceil(sorted.length * share), sorted.length) - 1] ?? 0;
}

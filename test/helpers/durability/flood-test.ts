/**
 * Adds the tests of a gateway that is killed during a flood of pings (quality.md §2), in a quick or a long form. Tests
 * with a sabotage, which makes the gateway lose pings on purpose, prove that the check finds a loss.
 */
import type { Test } from 'tap';
import { chooseSeed } from '../pair/seeded-chance.js';
import { SYNCHRONOUS_NORMAL } from '../store/synchronous-normal.js';
import { FloodRun, type FloodRunOptions } from './flood-run.js';
import { PowerLoss } from './power-loss.js';
import type { EventSabotageName } from './sabotage.js';

/**
 * Of so few uplinks the store makes a *run*, which it sorts into its indexes at once: most kills then interrupt the
 * sorting. What each number limits: store-options.ts.
 */
const SMALL_RUN_SIZE = { minUplinks: 400, uplinksPerCredential: 1, maxUplinks: 1200 };
const NO_COMPILER_MESSAGE = 'there is no g++ to build the load generator';
const NO_LIBRARY_MESSAGE = 'losses of power are not tried: the library for them needs Linux and g++';
const MAX_SHOWN_FAULTS = 8;

/** Where the tests are, and in which form they run. */
interface FloodTestForm {
  /** The test file that repeats the run. */
  readonly repeat: string;
  /** Whether to run all sabotages, and also the gateway's normal number of uplinks before each sorting. */
  readonly isLong: boolean;
}

/** Adds the tests. */
export function testFlood(t: Test, load: Omit<FloodRunOptions, 'seed'>, { repeat, isLong }: FloodTestForm): void {
  const seed = chooseSeed();
  const powerLoss = isLong ? PowerLoss.build(t) : undefined;
  // Two hours, or 80 s.
  const timeout = isLong ? 7_200_000 : 80_000;
  t.comment(`seed ${seed}, options ${JSON.stringify(load)}; repeat: LOCKGATE_SEED=${seed} npm test -- ${repeat}`);

  const testNoLoss = (name: string, options: Partial<FloodRunOptions>): void =>
    void t.test(name, { timeout }, async (t) => {
      const result = await FloodRun.run(t, { ...load, ...options, seed });
      if (result === undefined) {
        t.comment(NO_COMPILER_MESSAGE);
        return;
      }
      t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks`);
      t.same(result.faults.slice(0, MAX_SHOWN_FAULTS), [], `${String(result.faults.length)} faults; seed ${seed}`);
      t.same(result.errorLines, [], 'the gateway wrote nothing to stderr');
      t.equal(result.exitCode, 0, 'the gateway stops normally after SIGTERM');
    });
  const testLossIsFound = (name: string, options: Partial<FloodRunOptions>): void =>
    void t.test(name, { timeout }, async (t) => {
      const result = await FloodRun.run(t, { ...load, ...options, seed });
      if (result === undefined) {
        t.comment(NO_COMPILER_MESSAGE);
        return;
      }
      t.ok(result.faults.length > 0, `${result.faults.length} faults, ${result.faults[0]}; seed ${seed}`);
    });

  testNoLoss('kills during a flood lose no acknowledged ping', { runSize: SMALL_RUN_SIZE });
  if (isLong) testNoLoss('kills lose none with the gateway’s normal number of uplinks before each sorting either', {});
  if (isLong && powerLoss === undefined) t.comment(NO_LIBRARY_MESSAGE);
  if (powerLoss !== undefined)
    testNoLoss('losses of power during a flood lose no acknowledged ping', {
      powerLoss,
      runSize: SMALL_RUN_SIZE,
    });
  for (const sabotage of ['ack-first', 'skip-event'] satisfies EventSabotageName[])
    if (isLong || sabotage === 'ack-first')
      testLossIsFound(`the check finds the losses of the sabotage ${sabotage}`, { sabotage, kills: isLong ? 3 : 1 });
  if (powerLoss !== undefined)
    testLossIsFound('the check finds the losses of power with synchronous NORMAL', {
      powerLoss,
      environment: SYNCHRONOUS_NORMAL,
      kills: 3,
    });
}

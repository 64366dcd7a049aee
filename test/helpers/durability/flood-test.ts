/** The tests of a gateway that is killed during a flood, in a quick form and a long form. */
import type { Test } from 'tap';
import { chooseSeed } from '../pair/seeded-chance.js';
import { SYNCHRONOUS_NORMAL } from '../store/synchronous-normal.js';
import { FloodRun, type FloodRunOptions } from './flood-run.js';
import { PowerLoss } from './power-loss.js';
import type { EventSabotageName } from './sabotage.js';

/** A small size of the log's runs, so that most kills hit a flush of the memtable. */
const SHORT_RUNS = { minUplinks: 400, uplinksPerCredential: 1, maxUplinks: 1200 };
const NO_COMPILER = 'there is no g++ to build the crowd with';
const SHOWN_FAULTS = 8;

interface Form {
  /** The test file to run for a repetition. */
  readonly repeat: string;
  /** Whether to run all sabotages, and also the gateway's normal size of runs. */
  readonly isWhole: boolean;
}

/** Adds the tests. */
export function testFlood(t: Test, load: Omit<FloodRunOptions, 'seed'>, { repeat, isWhole }: Form): void {
  const seed = chooseSeed();
  const powerLoss = isWhole ? PowerLoss.make(t) : undefined;
  t.comment(`seed ${seed}, options ${JSON.stringify(load)}; repeat: LOCKGATE_SEED=${seed} npm test -- ${repeat}`);

  const clean = (name: string, options: Partial<FloodRunOptions>): void =>
    void t.test(name, { timeout: isWhole ? 7_200_000 : 80_000 }, async (t) => {
      const result = await FloodRun.run(t, { ...load, ...options, seed });
      if (result === undefined) {
        t.comment(NO_COMPILER);
        return;
      }
      t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks`);
      t.same(result.faults.slice(0, SHOWN_FAULTS), [], `${String(result.faults.length)} faults; seed ${seed}`);
      t.same(result.complaints, [], 'the gateway had nothing to complain about');
      t.equal(result.exitCode, 0, 'and ends by itself when it is asked to');
    });
  const sabotaged = (name: string, options: Partial<FloodRunOptions>): void =>
    void t.test(name, { timeout: isWhole ? 7_200_000 : 80_000 }, async (t) => {
      const result = await FloodRun.run(t, { ...load, ...options, seed });
      if (result === undefined) {
        t.comment(NO_COMPILER);
        return;
      }
      t.ok(result.faults.length > 0, `${result.faults.length} faults, ${result.faults[0]}; seed ${seed}`);
    });

  const noPower = powerLoss === undefined ? {} : { powerLoss };
  clean('a flood, killed', { runSize: SHORT_RUNS });
  if (isWhole) clean('a flood, killed, in runs as a gateway has them', {});
  if (isWhole) clean('a flood that loses its power', { ...noPower, runSize: SHORT_RUNS });
  for (const sabotage of ['ack-first', 'skip-event'] satisfies EventSabotageName[])
    if (isWhole || sabotage === 'ack-first')
      sabotaged(`the check finds ${sabotage}`, { sabotage, kills: isWhole ? 3 : 1 });
  if (isWhole && powerLoss !== undefined)
    sabotaged('the check finds synchronous NORMAL', { powerLoss, environment: SYNCHRONOUS_NORMAL, kills: 3 });
}

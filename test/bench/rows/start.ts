/**
 * The bench's row `start`: how long `serve` takes to be ready with ten million stored pings, compared with an empty
 * store (quality.md §1).
 */

import { largeStores } from '../large-stores.js';
import { registerLocks } from '../load/lock-logins.js';
import { measureAlternating, roundCount, summarizeFigures } from '../measure.js';
import { withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, ratioTo } from '../row.js';
import { ServeSetup, startServe } from '../serve-setup.js';
import { BENCH_LOCKS, roundDurationMs } from './ingest.js';

/** How long a stop may take; it is not measured. */
const STOP_SECONDS = 30;

/** The row `start`. */
export function benchStart({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const { largerFolder } = await largeStores(quick);
    const empty = resources.makeFolder();
    await registerLocks(empty, BENCH_LOCKS);
    // First each lock sends a ping, so that the store has the state of each lock, which `serve` reads at its start.
    await withResources(async (before) => {
      const setup = await ServeSetup.open(before, { locks: BENCH_LOCKS, urls: 0, data: largerFolder.data });
      // `true`: the short duration, also in a full run, since this load is not measured.
      await setup.floodFor(roundDurationMs(true));
      await setup.stop();
    });
    const measureStart = (data: string) => async (): Promise<number> => {
      const startedAt = performance.now();
      const { program } = await startServe(resources, data);
      const ms = performance.now() - startedAt;
      program.kill('SIGTERM');
      await program.waitForExit(STOP_SECONDS);
      return ms;
    };
    const [rates, peerRates] = (
      await measureAlternating([measureStart(largerFolder.data), measureStart(empty)], roundCount(quick))
    ).map(summarizeFigures);
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      name: 'start',
      title: `from the start of serve to ready, ${largerFolder.pings.toLocaleString('en')} pings stored`,
      unit: 'ms',
      rates,
      against: [ratioTo('with an empty store', rates, peerRates, { floor: atMost(2), aim: atMost(1.1) })],
      details: [`both know ${BENCH_LOCKS.toLocaleString('en')} locks; the store with pings has a state of each`],
    };
  });
}

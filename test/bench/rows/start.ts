/** The row `start`: how long `serve` takes to be ready with ten million stored pings and with none (quality.md §1). */

import { largeStores } from '../large-stores.js';
import { provisionCrowd } from '../load/crowd-accounts.js';
import { alternate, ratesOf, roundsOf } from '../measure.js';
import { withResources } from '../resources.js';
import { atMost, type BenchOptions, type Row, ratioTo } from '../row.js';
import { ServeSetup, startServe } from '../serve-setup.js';
import { LOCKS, roundMs } from './ingest.js';

const STOP_SECONDS = 30;

/** The row `start`. */
export function benchStart({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const { larger } = await largeStores(quick);
    const empty = resources.folder();
    await provisionCrowd(empty, LOCKS);
    // A ping of each lock first, so that the store has a state of each, which a start must read.
    await withResources(async (before) => {
      const setup = await ServeSetup.open(before, { locks: LOCKS, urls: 0, data: larger.data });
      await setup.run(roundMs(true));
      await setup.stop();
    });
    const start = (data: string) => async (): Promise<number> => {
      const beganAt = performance.now();
      const { program } = await startServe(resources, data);
      const ms = performance.now() - beganAt;
      program.kill('SIGTERM');
      await program.end(STOP_SECONDS);
      return ms;
    };
    const [rates, peer] = (await alternate([start(larger.data), start(empty)], roundsOf(quick))).map(ratesOf);
    if (rates === undefined || peer === undefined) throw new Error('nothing was measured');
    return {
      name: 'start',
      title: `from the start of serve to ready, ${larger.pings.toLocaleString('en')} pings stored`,
      unit: 'ms',
      rates,
      against: [ratioTo('with an empty store', rates, peer, atMost(2), atMost(1.1))],
      details: [`both know ${LOCKS.toLocaleString('en')} locks; the store with pings has a state of each`],
    };
  });
}

/** How long `serve` takes until it is ready, with ten million pings stored and with none (quality.md §1). */
import { provisionCrowd } from '../load/crowd-accounts.js';
import { inTurns, ratesOf, roundsOf } from '../measure.js';
import { atMost, type BenchOptions, type Row, ratioTo } from '../row.js';
import { ServeSite, startServe } from '../serve-site.js';
import { onStage } from '../stage.js';
import { stock } from '../stock.js';
import { LOCKS, roundMs } from './ingest.js';

const STOP_SECONDS = 30;

/** The row `start`. */
export function benchStart({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const { many } = await stock(quick);
    const empty = stage.folder();
    await provisionCrowd(empty, LOCKS);
    // Every lock has been heard of, as in any store of that size: what is known of each is read at the start.
    await onStage(async (before) => {
      const site = await ServeSite.open(before, { locks: LOCKS, urls: 0, data: many.data });
      await site.run(roundMs(true));
      await site.stop();
    });
    const start = (data: string) => async (): Promise<number> => {
      const beganAt = performance.now();
      const { program } = await startServe(stage, data);
      const ms = performance.now() - beganAt;
      program.kill('SIGTERM');
      await program.end(STOP_SECONDS);
      return ms;
    };
    const [rates, peer] = (await inTurns([start(many.data), start(empty)], roundsOf(quick))).map(ratesOf);
    if (rates === undefined || peer === undefined) throw new Error('nothing was measured');
    return {
      name: 'start',
      title: `from the start of serve to ready, ${many.pings.toLocaleString('en')} pings stored`,
      unit: 'ms',
      rates,
      against: [ratioTo('with an empty store', rates, peer, atMost(2), atMost(1.1))],
      details: [`both know ${LOCKS.toLocaleString('en')} locks; the store with pings has a state of each`],
    };
  });
}

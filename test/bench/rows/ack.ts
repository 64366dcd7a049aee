/**
 * How long a lock waits for its PUBACK (quality.md §1): at half of the highest rate that the gateway was seen to take
 * just before, by a schedule that waits for nobody, and beside bare aedes at the same rate.
 */

import { inTurns, ratesOf, roundsOf } from '../measure.js';
import { atMostOver, type BenchOptions, overThat, type Row } from '../row.js';
import { type FloodFigures, ServeSite } from '../serve-site.js';
import { onStage } from '../stage.js';
import { AedesSite, floodDetails, LOCKS, roundMs } from './ingest.js';

/** How long one round lasts, s. */
const SECONDS = 1;
/**
 * More and shorter ones than elsewhere: a disk of a shared machine stands still for a tenth of a second now and then,
 * and that one round has it is enough.
 */
const ROUNDS = 9;
/** Floods before the first round: by then the code that pings take is compiled. */
const WARM_UP_FLOODS = 3;
/** Rounds that do not count: what a flood leaves to be compiled for a quieter gateway. */
const WARM_UP_ROUNDS = 2;

/** The row `ack`. */
export function benchAck({ quick, profiles }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const site = await ServeSite.open(stage, { locks: LOCKS, urls: 1, profiles });
    const aedes = await AedesSite.open(stage, LOCKS);
    for (let flood = 0; flood < WARM_UP_FLOODS; flood++) await site.run(roundMs(quick));
    const halves: number[] = [];
    let rate = 0;
    // A machine is not as fast at one time as at another, so half of what it could do a minute ago may be all it can.
    const seek = async (): Promise<void> => {
      rate = Math.round((await site.run(roundMs(true))).rate / 2);
      halves.push(rate);
    };
    let last: FloodFigures | undefined;
    const ours = async (): Promise<number> => {
      last = await site.pace(SECONDS * rate, rate);
      return last.played.p99_ms;
    };
    const theirs = async (): Promise<number> => (await aedes.generator.pace(SECONDS * rate, rate)).p99_ms;
    const turns = await inTurns([ours, theirs], quick ? roundsOf(quick) : ROUNDS, WARM_UP_ROUNDS, seek);
    const [rates, peer] = turns.map(ratesOf);
    await site.stop();
    if (rates === undefined || peer === undefined || last === undefined) throw new Error('nothing was measured');
    const { median: half, least, most } = ratesOf(halves.slice(WARM_UP_ROUNDS));
    const [from, to] = [least.toLocaleString('en'), most.toLocaleString('en')];
    return {
      name: 'ack',
      title: `from PUBLISH to PUBACK at ${half.toLocaleString('en')} pings/s, p99`,
      unit: 'ms',
      rates,
      against: [overThat('bare aedes at the same rate', rates, peer, 'ms', atMostOver(15, 'ms'), atMostOver(5, 'ms'))],
      details: [
        `half of the highest rate seen before each round, ${from} to ${to}; of the last round, half of the pings ` +
          `waited up to ${last.played.p50_ms.toFixed(1)} ms, the one that waited longest ` +
          `${last.played.max_ms.toFixed(0)} ms`,
        ...floodDetails(last),
      ],
    };
  });
}

/**
 * How long a lock waits for its PUBACK (quality.md §1): at half of the highest rate that the gateway was seen to take,
 * by a schedule that waits for nobody, and beside bare aedes at the same rate.
 */
import { AedesSite, floodDetails, LOCKS, roundMs } from './ingest.js';
import { inTurns, ratesOf, roundsOf } from './measure.js';
import { atMostOver, type BenchOptions, overThat, type Row } from './row.js';
import { type FloodFigures, ServeSite } from './serve-site.js';
import { onStage } from './stage.js';

/** How long one round lasts, s. */
const SECONDS = 2;
/** Floods in which the highest rate is looked for, after a warm-up. */
const CALIBRATIONS = 3;

/** The row `ack`. */
export function benchAck({ quick, profiles }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const site = await ServeSite.open(stage, { locks: LOCKS, urls: 1, profiles });
    const aedes = await AedesSite.open(stage, LOCKS);
    const highest: number[] = [];
    for (let flood = 0; flood <= CALIBRATIONS; flood++) {
      const { rate } = await site.run(roundMs(true));
      if (flood > 0) highest.push(rate);
    }
    const rate = Math.round(Math.max(...highest) / 2);
    const count = (quick ? 1 : SECONDS) * rate;
    let last: FloodFigures | undefined;
    const ours = async (): Promise<number> => {
      last = await site.pace(count, rate);
      return last.played.p99_ms;
    };
    const theirs = async (): Promise<number> => (await aedes.generator.pace(count, rate)).p99_ms;
    const [rates, peer] = (await inTurns([ours, theirs], roundsOf(quick))).map(ratesOf);
    await site.stop();
    if (rates === undefined || peer === undefined || last === undefined) throw new Error('nothing was measured');
    const { p50_ms: half, max_ms: most } = last.played;
    return {
      name: 'ack',
      title: `from PUBLISH to PUBACK at ${rate.toLocaleString('en')} pings/s, p99`,
      unit: 'ms',
      rates,
      against: [overThat('bare aedes at the same rate', rates, peer, 'ms', atMostOver(15, 'ms'), atMostOver(5, 'ms'))],
      details: [
        `half of the highest rate seen; of the last round, half of the pings waited up to ${half.toFixed(1)} ms, the ` +
          `one that waited longest ${most.toFixed(0)} ms`,
        ...floodDetails(last),
      ],
    };
  });
}

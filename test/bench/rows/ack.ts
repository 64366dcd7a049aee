/**
 * The bench's row `ack`: how long a lock waits for its PUBACK (quality.md §1), at half of the highest rate that was
 * measured just before. Compared with bare aedes (the broker library without lockgate's code) at the same rate. Pings
 * leave by a schedule, even if answers are late.
 */

import { TwentyConsoles } from '../console/twenty-consoles.js';
import { measureAlternating, roundCount, summarizeRates } from '../measure.js';
import { withResources } from '../resources.js';
import { atMostMore, type BenchOptions, type BenchRow, differenceTo, withoutPeer } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';
import { AedesSetup, BENCH_LOCKS, floodDetails, roundDurationMs } from './ingest.js';

const ROUND_SECONDS = 1;
/**
 * More and shorter rounds than in other rows: the disk of a shared machine sometimes stalls for a tenth of a second,
 * which should affect only one round.
 */
const ROUNDS = 9;
/** Floods before the first round, after which V8 has compiled the code that pings run. */
const WARM_UP_FLOODS = 3;
/** Unmeasured rounds, in which V8 compiles the code that runs only at the lower rate. */
const WARM_UP_ROUNDS = 2;

/** The row `ack`. */
export function benchAck({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const setup = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1, profiles });
    const consoles = await TwentyConsoles.start(resources, setup);
    const aedes = await AedesSetup.open(resources, BENCH_LOCKS);
    for (let flood = 0; flood < WARM_UP_FLOODS; flood++) await setup.floodFor(roundDurationMs(quick));
    const halfRates: number[] = [];
    /** Pings a second in the present round. */
    let rate = 0;
    // Before each round, since the machine's speed changes: half of the rate of a minute ago may now be the full rate.
    // `true`: the short duration, also in a full run, since this is no measurement of the row.
    const measureHalfRate = async (): Promise<void> => {
      rate = Math.round((await setup.floodFor(roundDurationMs(true))).rate / 2);
      halfRates.push(rate);
    };
    let lastFlood: FloodFigures | undefined;
    const runLockgate = async (): Promise<number> => {
      lastFlood = await setup.sendBySchedule(ROUND_SECONDS * rate, rate);
      return lastFlood.load.p99_ms;
    };
    const runWithConsoles = async (): Promise<number> =>
      await consoles.whileOpen(async () => (await setup.sendBySchedule(ROUND_SECONDS * rate, rate)).load.p99_ms);
    const runAedes = async (): Promise<number> =>
      (await aedes.generator.sendBySchedule(ROUND_SECONDS * rate, rate)).p99_ms;
    // `rates` are a row's figures whatever their unit, here the 99th percentiles of the delay, ms.
    const delaysByBroker = await measureAlternating(
      [runLockgate, runAedes, runWithConsoles],
      quick ? roundCount(quick) : ROUNDS,
      WARM_UP_ROUNDS,
      measureHalfRate,
    );
    const [rates, peerRates, consoleRates] = delaysByBroker.map(summarizeRates);
    await setup.stop();
    if (rates === undefined || peerRates === undefined || consoleRates === undefined || lastFlood === undefined)
      throw new Error('nothing was measured');
    const { median: half, minimum, maximum } = summarizeRates(halfRates.slice(WARM_UP_ROUNDS));
    const [from, to] = [minimum.toLocaleString('en'), maximum.toLocaleString('en')];
    return {
      name: 'ack',
      title: `from PUBLISH to PUBACK at ${half.toLocaleString('en')} pings/s, p99`,
      unit: 'ms',
      rates,
      against: [
        differenceTo('bare aedes at the same rate', rates, peerRates, 'ms', {
          floor: atMostMore(15, 'ms'),
          aim: atMostMore(5, 'ms'),
        }),
        withoutPeer(consoleRates.median - rates.median, 'ms', {}, 'more with 20 open consoles'),
      ],
      details: [
        `with 20 open consoles: p99 ${consoleRates.median.toFixed(1)} ms (${consoleRates.minimum.toFixed(1)} to ` +
          `${consoleRates.maximum.toFixed(1)}); ${consoles.text}`,
        `half of the highest rate seen before each round, ${from} to ${to}; of the last round, half of the ` +
          `pings waited up to ${lastFlood.load.p50_ms.toFixed(1)} ms, the one that waited longest ` +
          `${lastFlood.load.max_ms.toFixed(0)} ms`,
        ...floodDetails(lastFlood),
      ],
    };
  });
}

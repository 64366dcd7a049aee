/**
 * The bench's row `ack`: how long a lock waits for its PUBACK (quality.md §1), at half of the highest rate that was
 * measured just before. Compared with bare aedes (the broker library without lockgate's code) at the same rate, plus
 * twice what the disk alone takes to write a commit: a ping waits for the commit that is under way and for its own.
 * Pings leave by a schedule, even if answers are late.
 */

import { TwentyConsoles } from '../console/twenty-consoles.js';
import { type FigureSummary, measureAlternating, roundCount, summarizeFigures } from '../measure.js';
import { diskWriteP99Ms } from '../peers/disk-writes.js';
import { withResources } from '../resources.js';
import { atMostMore, type BenchOptions, type BenchRow, differenceTo, withoutPeer } from '../row.js';
import { type FloodFigures, ServeSetup, type WrittenSoFar } from '../serve-setup.js';
import { AedesSetup, BENCH_LOCKS, floodDetails, roundDurationMs } from './ingest.js';

const ROUND_SECONDS = 1;
/**
 * More and shorter rounds than in other rows. One pause of ten milliseconds decides a second's 99th percentile, so
 * rounds differ much; and the disk of a shared machine sometimes stalls for a tenth of a second, which should affect
 * only one round.
 */
const ROUNDS = 15;
/** Floods before the first round, after which V8 has compiled the code that pings run. */
const WARM_UP_FLOODS = 3;
/** Unmeasured rounds, in which V8 compiles the code that runs only at the lower rate. */
const WARM_UP_ROUNDS = 2;

/** The commits of a round, and the bytes that each wrote on average: log, indexes and checkpoints. */
interface CommitSize {
  readonly commits: number;
  readonly bytes: number;
}

function commitSize(before: WrittenSoFar, after: WrittenSoFar): CommitSize {
  const commits = after.commits - before.commits;
  return { commits, bytes: Math.ceil((after.bytes - before.bytes) / Math.max(commits, 1)) };
}

function delayText({ median, minimum, maximum }: FigureSummary): string {
  return `p99 ${median.toFixed(1)} ms (${minimum.toFixed(1)} to ${maximum.toFixed(1)})`;
}

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
    let commit: CommitSize = { commits: 0, bytes: 0 };
    const runLockgate = async (): Promise<number> => {
      const before = await setup.written();
      lastFlood = await setup.sendBySchedule(ROUND_SECONDS * rate, rate);
      commit = commitSize(before, await setup.written());
      return lastFlood.load.p99_ms;
    };
    const runDisk = async (): Promise<number> => diskWriteP99Ms(setup.data, commit.commits, commit.bytes);
    const runAedes = async (): Promise<number> =>
      (await aedes.generator.sendBySchedule(ROUND_SECONDS * rate, rate)).p99_ms;
    // Here the `rates` of the row are delays: 99th percentiles, in ms.
    const delaysByBroker = await measureAlternating(
      [runLockgate, runDisk, runAedes],
      quick ? roundCount(quick) : ROUNDS,
      WARM_UP_ROUNDS,
      measureHalfRate,
    );
    const [rates, diskRates, aedesRates] = delaysByBroker.map(summarizeFigures);
    const consoleCost = await consoles.costOf(runLockgate, quick);
    await setup.stop();
    if (!rates || !diskRates || !aedesRates || !lastFlood) throw new Error('nothing was measured');
    // The medians are added, since the rounds of the two peers are not one pair.
    const median = aedesRates.median + 2 * diskRates.median;
    const peerRates = { median, minimum: median, maximum: median };
    const { median: half, minimum, maximum } = summarizeFigures(halfRates.slice(WARM_UP_ROUNDS));
    const [from, to] = [minimum.toLocaleString('en'), maximum.toLocaleString('en')];
    return {
      name: 'ack',
      title: `from PUBLISH to PUBACK at ${half.toLocaleString('en')} pings/s, p99`,
      unit: 'ms',
      rates,
      against: [
        differenceTo('bare aedes at the same rate + 2 writes of the disk', rates, peerRates, 'ms', {
          floor: atMostMore(10, 'ms'),
          aim: atMostMore(0, 'ms'),
        }),
        withoutPeer(consoleCost.median, 'ms', {}, 'more with 20 open consoles'),
      ],
      details: [
        `bare aedes: ${delayText(aedesRates)}; a write with fdatasync of ${(commit.bytes / 1000).toFixed(0)} kB, the ` +
          `size of a commit: ${delayText(diskRates)}`,
        `with 20 open consoles: ${delayText(consoleCost.withConsoles)}, without ` +
          `${delayText(consoleCost.without)}; in half of the ${consoleCost.pairs} pairs of rounds the difference was ` +
          `${consoleCost.lower.toFixed(1)} to ${consoleCost.upper.toFixed(1)} ms; ${consoles.text}`,
        `half of the highest rate seen before each round, ${from} to ${to}; of the last round, half of the ` +
          `pings waited up to ${lastFlood.load.p50_ms.toFixed(1)} ms, the one that waited longest ` +
          `${lastFlood.load.max_ms.toFixed(0)} ms`,
        ...floodDetails(lastFlood),
      ],
    };
  });
}

/**
 * The bench's row `retention`: how much deletion by age (`--keep-days`) slows down ingest. The gateway's store has
 * pings that exceed the age limit. The gateway starts to delete them a minute after its start; ingest is measured
 * before and during the deletion.
 */
import { Days, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { startFillingStore } from '../large-stores.js';
import { registerLocks } from '../load/lock-logins.js';
import { roundCount, summarizeFigures } from '../measure.js';
import { withResources } from '../resources.js';
import { type BenchOptions, type BenchRow, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';
import { BENCH_LOCKS, floodDetails, roundDurationMs } from './ingest.js';

/** The age limit, and the age of the old pings. */
const KEEP_DAYS = 31;
const OLD_DAYS = 40;
const POLL_EVERY_MS = 100;
/** The time by which the gateway must have started to delete. */
const MAX_SWEEP_WAIT_MS = Minutes(2);

/** How many old pings the store has. */
function oldPings(quick: boolean): number {
  return quick ? 150_000 : 500_000;
}

/** The row `retention`. */
export function benchRetention({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const data = resources.makeFolder();
    await registerLocks(data, BENCH_LOCKS);
    const receivedAtMs = systemClock.now() - Days(OLD_DAYS);
    // It starts a process, and returns a function that has it store so many pings.
    await (await startFillingStore(resources, { data, locks: BENCH_LOCKS, receivedAtMs }))(oldPings(quick));
    const args = ['--keep-days', String(KEEP_DAYS)];
    const setup = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1, data, args, profiles });
    const [oldestId, newestOldId] = [setup.stored.firstId(), setup.stored.lastId()];
    const hasDeletionStarted = (): boolean => setup.stored.firstId() > oldestId;
    const isDeletionDone = (): boolean => setup.stored.firstId() > newestOldId;
    let lastFlood: FloodFigures | undefined;
    const [ratesBefore, ratesDuring]: [number[], number[]] = [[], []];
    for (let round = 0; round <= roundCount(quick); round++) {
      const { rate } = await setup.floodFor(roundDurationMs(quick));
      // The first round is the warm-up.
      if (round > 0 && !hasDeletionStarted()) ratesBefore.push(rate);
    }
    await waitUntil(hasDeletionStarted);
    const [startedAt, firstIdAtStart] = [performance.now(), setup.stored.firstId()];
    for (let round = 0; round < roundCount(quick); round++) {
      lastFlood = await setup.floodFor(roundDurationMs(quick));
      if (!isDeletionDone()) ratesDuring.push(lastFlood.rate);
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const deleted = Math.min(setup.stored.firstId(), newestOldId) - firstIdAtStart;
    await setup.stop();
    if (lastFlood === undefined || ratesBefore.length === 0 || ratesDuring.length === 0)
      throw new Error('no round was entirely before the deletion, or none entirely during it');
    const [rates, peerRates] = [summarizeFigures(ratesDuring), summarizeFigures(ratesBefore)];
    return {
      name: 'retention',
      title: 'durable pings while old ones are deleted',
      unit: 'pings/s',
      rates,
      against: [ratioTo('before the deletion starts', rates, peerRates, {})],
      details: [
        `${Math.round(deleted / seconds).toLocaleString('en')} pings were deleted each second, in ` +
          `${ratesDuring.length} rounds; ${ratesBefore.length} rounds before`,
        ...floodDetails(lastFlood),
      ],
    };
  });
}

/** Waits until the deletion has started. */
async function waitUntil(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + MAX_SWEEP_WAIT_MS;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`no ping was deleted within ${MAX_SWEEP_WAIT_MS / Seconds(1)} s`);
    await new Promise<void>((resolve) => systemClock.after(POLL_EVERY_MS, resolve));
  }
}

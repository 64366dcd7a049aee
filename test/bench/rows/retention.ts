/**
 * The row `retention`: how much deletion by age (`--keep-days`) slows down ingest. A gateway's store has pings beyond
 * their age limit; ingest is measured before the gateway starts to delete them, a minute after its start, and during
 * the deletion.
 */
import { Days, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { filler } from '../large-stores.js';
import { provisionCrowd } from '../load/crowd-accounts.js';
import { ratesOf, roundsOf } from '../measure.js';
import { withResources } from '../resources.js';
import { type BenchOptions, type Row, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';
import { floodDetails, LOCKS, roundMs } from './ingest.js';

const KEEP_DAYS = 31;
const OLD_DAYS = 40;
const POLL_EVERY_MS = 100;
/** The latest start of the first sweep. */
const SWEEP_WITHIN = Minutes(2);

function oldPings(quick: boolean): number {
  return quick ? 150_000 : 500_000;
}

/** The row `retention`. */
export function benchRetention({ quick, profiles }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const data = resources.folder();
    await provisionCrowd(data, LOCKS);
    const receivedAtMs = systemClock.now() - Days(OLD_DAYS);
    await (await filler(resources, { data, locks: LOCKS, receivedAtMs }))(oldPings(quick));
    const args = ['--keep-days', String(KEEP_DAYS)];
    const setup = await ServeSetup.open(resources, { locks: LOCKS, urls: 1, data, args, profiles });
    const [oldest, youngestOld] = [setup.stored.firstId(), setup.stored.lastId()];
    const hasBegun = (): boolean => setup.stored.firstId() > oldest;
    const isOver = (): boolean => setup.stored.firstId() > youngestOld;
    let last: FloodFigures | undefined;
    const [without, sweeping]: [number[], number[]] = [[], []];
    for (let round = 0; round <= roundsOf(quick); round++) {
      const { rate } = await setup.run(roundMs(quick));
      if (round > 0 && !hasBegun()) without.push(rate);
    }
    await until(hasBegun);
    const [beganAt, first] = [performance.now(), setup.stored.firstId()];
    for (let round = 0; round < roundsOf(quick); round++) {
      last = await setup.run(roundMs(quick));
      if (!isOver()) sweeping.push(last.rate);
    }
    const seconds = (performance.now() - beganAt) / 1000;
    const deleted = Math.min(setup.stored.firstId(), youngestOld) - first;
    await setup.stop();
    if (last === undefined || without.length === 0 || sweeping.length === 0)
      throw new Error('no round was entirely before the deletion, or none entirely during it');
    const [rates, peer] = [ratesOf(sweeping), ratesOf(without)];
    return {
      name: 'retention',
      title: 'durable pings while old ones are deleted',
      unit: 'pings/s',
      rates,
      against: [ratioTo('before the deletion starts', rates, peer, null, null)],
      details: [
        `${Math.round(deleted / seconds).toLocaleString('en')} pings were deleted each second, in ` +
          `${sweeping.length} rounds; ${without.length} rounds before`,
        ...floodDetails(last),
      ],
    };
  });
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + SWEEP_WITHIN;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`no ping was deleted within ${SWEEP_WITHIN / Seconds(1)} s`);
    await new Promise<void>((resolve) => systemClock.after(POLL_EVERY_MS, resolve));
  }
}

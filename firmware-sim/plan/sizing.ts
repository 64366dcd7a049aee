/**
 * Estimates the load of a planned fleet: a virtual run, a simulation without a gateway, measures connections, connects
 * and uplinks by hour of the day, and traffic and batteries by part of the mix. The mix says which kinds of locks the
 * fleet has; its parts are the strata of the sample (sample.ts). The CLI computes prices
 * (cli/commands/sim/plan/price.ts).
 *
 * The measurement starts a day after the run. All locks of a run are switched on at the same moment, unlike the locks
 * of a real fleet. If the first day were measured, these first connects would be the peak of every run.
 */
import { Days, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { CommandSchedule } from '../fleet/command-schedule.js';
import { assignMix, type MixPart } from '../fleet/mix.js';
import { type VirtualOptions, VirtualRun } from '../fleet/virtual-run.js';
import type { WireSize } from '../link/wire-size.js';
import { type BatterySize, byCause, meanBattery, type UsedCharge } from './battery-size.js';
import { byMinuteOfDay, HOURS_OF_DAY, LoadProfile } from './load-profile.js';
import { drawStrata, type Estimate, type Stratum, scaled, shareTotalOf, sumOf, totalOf, weightOf } from './sample.js';
import { type LockTraffic, Traffic } from './traffic.js';

/** The length of a month in a plan. */
export const MONTH_DAYS = 30;
/** The simulated time before the measurement. */
const WARM_UP_MS: Milliseconds = Days(1);
/** The span in which uplinks are counted to compute uplinks per second. */
export const RATE_WINDOW_MS: Milliseconds = Minutes(1);
/**
 * An estimated peak is the mean plus this many standard deviations. Independent locks exceed that about once in a
 * thousand moments.
 */
const PEAK_DEVIATIONS = 3;
/**
 * A rush is a minute of the day in which many locks act together. A busy minute of a sample may also be an accident,
 * which averaging over the days does not remove, since a lock's daily ping is always in the same minute. So a minute
 * counts as a rush only if its events in the sample exceed the hour's mean plus five standard deviations plus five.
 */
const RUSH = { deviations: 5, minimumEvents: 5 } as const;

/** The planned fleet, and how to simulate it. */
export interface SizingOptions extends Pick<VirtualOptions, 'seed' | 'pace' | 'worldOf'> {
  /** The number of locks in the fleet. */
  readonly locks: number;
  /** Maximum number of locks to simulate. A larger fleet is estimated from a sample. */
  readonly sample: number;
  /** The length of the measurement, whole days. */
  readonly days: number;
  /** The start of the measurement: a midnight (UTC), ms since the epoch. */
  readonly startMs: number;
  readonly mix: readonly MixPart[];
  readonly wire: WireSize;
  readonly commandSchedule?: CommandSchedule;
}

/** The monthly traffic of a part of the fleet, for 30 days. */
export interface PartSize {
  /** The part's name in the mix. */
  readonly name: string;
  /** The number of locks in the part. */
  readonly locks: number;
  /** How many of them are simulated. */
  readonly sampled: number;
  /** The traffic of all locks of the part together. */
  readonly month: MonthSize;
  /** Null if the world of the locks has no battery. */
  readonly battery: BatterySize | null;
}

/** Traffic in 30 days. "Up" is from the locks to the gateway. */
export interface MonthSize {
  readonly connections: Estimate;
  readonly messagesUp: Estimate;
  readonly messagesDown: Estimate;
  readonly keepalives: Estimate;
  readonly bytesUp: Estimate;
  readonly bytesDown: Estimate;
  readonly bytes: Estimate;
}

/** The load in an hour of the day (UTC). */
export interface HourSize {
  /** 0 to 23. */
  readonly hour: number;
  /** Mean number of open connections. */
  readonly connected: Estimate;
  /** Maximum number of open connections. */
  readonly connectedPeak: number;
  /** In the hour's busiest minute. */
  readonly connectsPerMinutePeak: number;
  readonly uplinksPerSecond: number;
  /** In the hour's busiest minute. */
  readonly uplinksPerSecondPeak: number;
}

/** The estimated load of the fleet. */
export interface Sizing {
  /** The number of locks in the fleet. */
  readonly locks: number;
  /** How many of them were simulated. */
  readonly sampled: number;
  /** The length of the measurement. */
  readonly days: number;
  readonly parts: readonly PartSize[];
  readonly total: MonthSize;
  /** Null if a part has no battery. */
  readonly battery: BatterySize | null;
  /** One for each hour of the day. */
  readonly hours: readonly HourSize[];
}

/** A run that the caller advances in steps. At its end it returns the measurement. */
export class SizingRun {
  readonly endMs: number;
  readonly #options: SizingOptions;
  readonly #strata: readonly Stratum[];
  readonly #locksOf: ReadonlyMap<Stratum, readonly Mac[]>;
  readonly #run: VirtualRun;
  readonly #traffic: Traffic;
  readonly #load: LoadProfile;
  /** The consumption of each lock before the measurement; undefined until the measurement starts. */
  #usedBefore: ReadonlyMap<Mac, UsedCharge | null> | undefined;

  constructor(options: SizingOptions) {
    const { seed, pace, worldOf, startMs, days, commandSchedule, mix } = options;
    this.#options = options;
    this.endMs = startMs + Days(days);
    this.#strata = drawStrata(mix, options.locks, options.sample);
    // The sink uses `#traffic` and `#load`, which are set below: it is called only when the run advances.
    this.#run = new VirtualRun({
      seed,
      locks: this.#strata.reduce((sum, { sampled }) => sum + sampled, 0),
      days: days + WARM_UP_MS / Days(1),
      startMs: startMs - WARM_UP_MS,
      mix: mixOf(this.#strata),
      sink: {
        connect: (mac, atMs) => {
          this.#traffic.connect(mac, atMs);
          this.#load.connect(mac, atMs);
        },
        uplink: (mac, atMs, uplink) => {
          this.#traffic.uplink(mac, atMs, uplink);
          this.#load.uplink(mac, atMs);
        },
        command: (mac, atMs, downlink) => this.#traffic.command(mac, atMs, downlink),
        disconnect: (mac, atMs, cause) => {
          this.#traffic.disconnect(mac, atMs, cause);
          this.#load.disconnect(mac, atMs);
        },
      },
      ...(pace && { pace }),
      ...(worldOf && { worldOf }),
      ...(commandSchedule && { commandSchedule }),
    });
    this.#locksOf = locksByStratum(this.#run, this.#strata);
    const weights = new Map<Mac, number>();
    for (const [stratum, macs] of this.#locksOf) for (const mac of macs) weights.set(mac, weightOf(stratum));
    this.#traffic = new Traffic(options.wire, startMs, this.endMs);
    this.#load = new LoadProfile({ weights, fromMs: startMs, toMs: this.endMs });
  }

  get nowMs(): number {
    return this.#run.nowMs;
  }

  /** The number of simulated locks. */
  get sampled(): number {
    return this.#run.locks.length;
  }

  /** Advances to `untilMs`, at most to the end. */
  advance(untilMs: number): void {
    const { startMs } = this.#options;
    if (this.#usedBefore === undefined && untilMs >= startMs) {
      this.#run.advance(startMs);
      this.#usedBefore = this.#usedCharge(startMs);
    }
    this.#run.advance(untilMs);
  }

  /** The consumption of each lock up to `atMs`; null for a lock whose world has no battery. */
  #usedCharge(atMs: number): ReadonlyMap<Mac, UsedCharge | null> {
    return new Map(this.#run.locks.map(({ mac, battery }) => [mac, battery?.usedMah(atMs) ?? null]));
  }

  /** The result. To be called once, at the end of the run. */
  finish(): Sizing {
    this.#traffic.finish();
    this.#load.finish();
    const { locks, days } = this.#options;
    const parts = this.#strata.map((stratum) => this.#partSize(stratum));
    const total = monthSize((name) => sumOf(parts.map(({ month }) => month[name])));
    const battery = meanBattery(parts.map((part) => ({ locks: part.locks, used: part.battery?.byCause ?? null })));
    return { locks, sampled: this.sampled, days, parts, total, battery, hours: this.#hours() };
  }

  /** The mean consumption of these locks in the measurement; null if one of them has no battery. */
  #batterySize(macs: readonly Mac[]): BatterySize | null {
    const usedAtEnd = this.#usedCharge(this.endMs);
    const { days } = this.#options;
    return meanBattery(
      macs.map((mac) => {
        const [before, after] = [this.#usedBefore?.get(mac) ?? null, usedAtEnd.get(mac) ?? null];
        return { locks: 1, used: before && after && byCause((cause) => (after[cause] - before[cause]) / days) };
      }),
    );
  }

  #partSize(stratum: Stratum): PartSize {
    const { part, locks, sampled } = stratum;
    const traffic = (this.#locksOf.get(stratum) ?? []).map((mac) => this.#traffic.of(mac));
    const monthFactor = MONTH_DAYS / this.#options.days;
    const month = monthSize((name) => scaled(totalOf(stratum, traffic.map(COUNTS[name])), monthFactor));
    const battery = this.#batterySize(this.#locksOf.get(stratum) ?? []);
    return { name: part.name, locks, sampled, month, battery };
  }

  #hours(): HourSize[] {
    const isComplete = this.#strata.every(({ locks, sampled }) => locks === sampled);
    // For each simulated lock: the share of each hour of the day in which the lock was connected.
    const hourShares = new Map(
      [...this.#locksOf].map(([stratum, macs]) => [stratum, macs.map((mac) => this.#load.connectedShares(mac))]),
    );
    const connects = this.#peaks(this.#load.connects, isComplete);
    const uplinks = this.#peaks(this.#load.uplinks, isComplete);
    return Array.from({ length: HOURS_OF_DAY }, (_, hour) => {
      const sharesByStratum = [...hourShares].map(([stratum, locks]) => ({
        stratum,
        shares: locks.map((sharesOfDay) => sharesOfDay[hour] ?? 0),
      }));
      const connected = sumOf(sharesByStratum.map(({ stratum, shares }) => shareTotalOf(stratum, shares)));
      // At a random moment a lock is connected with probability `share`, so its variance is share · (1 - share).
      const variance = sumOf(
        sharesByStratum.map(({ stratum, shares }) =>
          totalOf(
            stratum,
            shares.map((share) => share * (1 - share)),
          ),
        ),
      );
      const estimatedPeak = Math.min(
        this.#options.locks,
        connected.value + PEAK_DEVIATIONS * Math.sqrt(Math.max(0, variance.value)),
      );
      return {
        hour,
        connected,
        connectedPeak: isComplete ? (this.#load.peakConnected[hour] ?? 0) : estimatedPeak,
        connectsPerMinutePeak: connects[hour]?.peak ?? 0,
        uplinksPerSecond: (uplinks[hour]?.mean ?? 0) / (RATE_WINDOW_MS / Seconds(1)),
        uplinksPerSecondPeak: (uplinks[hour]?.peak ?? 0) / (RATE_WINDOW_MS / Seconds(1)),
      };
    });
  }

  /**
   * The mean and the busiest minute for each hour of the day. If all locks were simulated, the busiest minute is
   * measured. The busiest minute of a sample would depend on the sample more than on the fleet. So its peak is the
   * hour's mean, or a rush, plus the random deviation of that many independent locks.
   */
  #peaks(minutes: Float64Array, isComplete: boolean): { mean: number; peak: number }[] {
    const { locks } = this.#options;
    const means = byMinuteOfDay(minutes);
    const minutesOfHour = means.length / HOURS_OF_DAY;
    return Array.from({ length: HOURS_OF_DAY }, (_, hour) => {
      const meansOfHour = means.subarray(hour * minutesOfHour, (hour + 1) * minutesOfHour);
      const mean = meansOfHour.reduce((a, b) => a + b, 0) / minutesOfHour;
      if (isComplete) return { mean, peak: busiestMinuteOf(minutes, hour, minutesOfHour) };
      const sampleMean = (mean * this.sampled) / locks;
      const rushThreshold =
        (sampleMean + RUSH.deviations * Math.sqrt(sampleMean) + RUSH.minimumEvents) * (locks / this.sampled);
      const busiest = meansOfHour.reduce((a, b) => Math.max(a, b), 0);
      const expectedPeak = busiest > rushThreshold ? busiest : mean;
      // A rush recurs each day, so only the locks outside the rush add a random deviation. A count of independent
      // events has its mean as variance.
      return { mean, peak: expectedPeak + PEAK_DEVIATIONS * Math.sqrt(mean) };
    });
  }
}

/** The mix of the simulated locks: the weight of each part is its sample. */
function mixOf(strata: readonly Stratum[]): MixPart[] {
  return strata.map(({ part, sampled }) => ({ ...part, weight: sampled }));
}

/** The simulated locks of each part. The fleet assigns its mix in the order of its locks. */
function locksByStratum(run: VirtualRun, strata: readonly Stratum[]): ReadonlyMap<Stratum, readonly Mac[]> {
  const mix = mixOf(strata);
  const locksOf = new Map<Stratum, Mac[]>(strata.map((stratum) => [stratum, []]));
  const order = assignMix(mix, run.locks.length);
  for (const [index, { mac }] of run.locks.entries()) {
    const stratum = strata[mix.indexOf(order[index] as MixPart)];
    if (stratum !== undefined) locksOf.get(stratum)?.push(mac);
  }
  for (const [{ sampled }, macs] of locksOf)
    if (macs.length !== sampled) throw new Error('the fleet assigned its mix differently from the sample');
  return locksOf;
}

/** The highest count of a minute in this hour of any day. `minutes` starts at midnight. */
function busiestMinuteOf(minutes: Float64Array, hour: number, minutesOfHour: number): number {
  let busiest = 0;
  for (let first = hour * minutesOfHour; first < minutes.length; first += minutesOfHour * HOURS_OF_DAY) {
    for (const count of minutes.subarray(first, first + minutesOfHour)) busiest = Math.max(busiest, count);
  }
  return busiest;
}

type CountName = keyof MonthSize;

/** How each count of a month follows from the traffic of a lock. */
const COUNTS: Readonly<Record<CountName, (traffic: LockTraffic) => number>> = {
  connections: ({ connections }) => connections,
  messagesUp: ({ messagesUp }) => messagesUp,
  messagesDown: ({ messagesDown }) => messagesDown,
  keepalives: ({ keepalives }) => keepalives,
  bytesUp: ({ bytesUp }) => bytesUp,
  bytesDown: ({ bytesDown }) => bytesDown,
  bytes: ({ bytesUp, bytesDown }) => bytesUp + bytesDown,
};

function monthSize(estimateOf: (name: CountName) => Estimate): MonthSize {
  return {
    connections: estimateOf('connections'),
    messagesUp: estimateOf('messagesUp'),
    messagesDown: estimateOf('messagesDown'),
    keepalives: estimateOf('keepalives'),
    bytesUp: estimateOf('bytesUp'),
    bytesDown: estimateOf('bytesDown'),
    bytes: estimateOf('bytes'),
  };
}

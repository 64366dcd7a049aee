/**
 * Says why a bug can't show in a run: its locks are in no state in which the bug matters, or the run is too short or
 * too calm. It judges by how the locks start, so it may miss a reason; it does not warn of a bug that can show. Pure.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { PowerSettings } from '../../proto/wire/ping.js';
import type { Bug, BugNeed } from './bug.js';

/** How a lock starts. */
export interface LockAtStart {
  readonly power: PowerSettings;
  readonly batteryPercent: number;
}

/** The run in which a bug is to show. */
export interface BugStage {
  /** The locks that have the bug. */
  readonly locks: readonly LockAtStart[];
  readonly pace: 'everyday' | 'lively';
  /** The length of the run; null where it ends by hand. */
  readonly days: number | null;
  /** Whether a gateway can send commands. */
  readonly hasGateway: boolean;
}

/** At the everyday pace a bicycle is stolen about once in this many days (world/pace.ts: 0.4 % of parking periods). */
const EVERYDAY_DAYS_PER_THEFT = 80;
/** So many thefts must be expected for one to be likely. */
const LIKELY_THEFTS = 3;
/** The first rides of a commuter's first day are over by then. */
const FIRST_RIDE_HOURS = 10;

/** Why the bug can't show, or hardly, as a clause with the remedy; null if nothing speaks against it. */
export function whyHidden({ needs = [] }: Bug, stage: BugStage): string | null {
  for (const need of needs) {
    const why = WHY_HIDDEN[need](stage);
    if (why !== null) return why;
  }
  return null;
}

const NO_LOCK = 'no lock with the bug starts';

const WHY_HIDDEN: Readonly<Record<BugNeed, (stage: BugStage) => string | null>> = {
  rides: (stage) => hiddenRides(stage),
  'tracked-rides': (stage) => {
    if (!stage.locks.some(({ power }) => power.rideTracking)) return `${NO_LOCK} with ride tracking (--mix mid+ride)`;
    return hiddenRides(stage);
  },
  thefts: ({ pace, days, locks }) => {
    if (pace === 'lively' || days === null || days * locks.length >= LIKELY_THEFTS * EVERYDAY_DAYS_PER_THEFT)
      return null;
    return `everyday thefts are rare, about one in ${EVERYDAY_DAYS_PER_THEFT} days of a lock (--pace lively)`;
  },
  mid: ({ locks }) => (has(locks, 'MID') ? null : `${NO_LOCK} in MID (--mix mid)`),
  high: ({ locks }) => (has(locks, 'HIGH') ? null : `${NO_LOCK} in HIGH (--mix high)`),
  recovery: ({ locks }) => (has(locks, 'RECOVERY') ? null : `${NO_LOCK} in recovery mode (--mix recovery)`),
  'kept-connection': ({ locks }) => {
    return has(locks, 'HIGH') || has(locks, 'RECOVERY') ? null : `${NO_LOCK} in HIGH or recovery mode (--mix high)`;
  },
  airplane: ({ locks, pace }) => {
    if (pace === 'lively' || has(locks, 'AIRPLANE')) return null;
    return `${NO_LOCK} in airplane mode, which is rare at the everyday pace (--mix airplane)`;
  },
  'low-battery': ({ locks, pace }) => {
    if (pace === 'lively' || has(locks, 'LOW_BATTERY')) return null;
    return `${NO_LOCK} with a low battery, which takes weeks at the everyday pace (--mix low-battery)`;
  },
  commands: ({ hasGateway }) => {
    return hasGateway ? null : 'a virtual run sends no commands (use --scenario, or a run against a gateway)';
  },
  'six-hours': ({ days }) => hiddenBefore(6, days),
  'a-day': ({ days }) => hiddenBefore(25, days),
};

function hiddenRides(stage: BugStage): string | null {
  const { locks, pace, days } = stage;
  if (!(has(locks, 'MID') || has(locks, 'HIGH') || has(locks, 'RECOVERY')))
    return 'its locks start in airplane mode or with a low battery, in which a ride sends nothing (--mix mid)';
  return pace === 'lively' ? null : hiddenBefore(FIRST_RIDE_HOURS, days);
}

function hiddenBefore(hours: number, days: number | null): string | null {
  const neededDays = (Math.floor((hours / 24) * 10) + 1) / 10;
  return days === null || days * 24 > hours ? null : `it takes a run of over ${hours} h (--days ${neededDays})`;
}

function has(locks: readonly LockAtStart[], state: string): boolean {
  return locks.some(({ power, batteryPercent }) => effectiveRow(POWER_MODEL, power, batteryPercent).state === state);
}

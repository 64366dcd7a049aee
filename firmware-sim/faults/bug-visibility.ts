/**
 * Says why a firmware bug of simulated locks can't show in a run: no lock with the bug is in a state in which the bug
 * matters, or the run is too short or too uneventful. It knows how the locks start and the terms of the run, but not
 * what will happen, so it may miss a reason; a bug that it calls hardly visible may show after all. Pure.
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
export interface RunConditions {
  /** The locks that have the bug. */
  readonly locks: readonly LockAtStart[];
  /** How eventful the locks' days are (world/pace.ts). */
  readonly pace: 'everyday' | 'lively';
  /** The length of the run; null if the user ends it. */
  readonly days: number | null;
  /** Whether a gateway can send commands. */
  readonly hasGateway: boolean;
}

/**
 * At the everyday pace a bicycle is stolen about once in this many days: in 0.4 % of its parking periods
 * (world/pace.ts), of which it has some three a day.
 */
const EVERYDAY_DAYS_PER_THEFT = 80;
/** If this many thefts are expected, at least one is likely. */
const LIKELY_THEFTS = 3;
/** By this hour of the run, a commuter has ridden for the first time. */
const FIRST_RIDE_HOURS = 10;

/** Why the bug can't or can hardly show, as a clause with the remedy; null if it can show. */
export function whyHidden({ needs = [] }: Bug, run: RunConditions): string | null {
  for (const need of needs) {
    const why = WHY_HIDDEN[need](run);
    if (why !== null) return why;
  }
  return null;
}

const NO_LOCK = 'no lock with the bug starts';

/** Why a need of a bug is not met; null if it is. */
const WHY_HIDDEN: Readonly<Record<BugNeed, (run: RunConditions) => string | null>> = {
  rides: (run) => hiddenRides(run),
  'tracked-rides': (run) => {
    if (!run.locks.some(({ power }) => power.rideTracking)) return `${NO_LOCK} with ride tracking (--mix mid+ride)`;
    return hiddenRides(run);
  },
  thefts: ({ pace, days, locks }) => {
    if (pace === 'lively' || days === null || days * locks.length >= LIKELY_THEFTS * EVERYDAY_DAYS_PER_THEFT)
      return null;
    return `everyday thefts are rare, about one in ${EVERYDAY_DAYS_PER_THEFT} days of a lock (--pace lively)`;
  },
  mid: ({ locks }) => (someStartIn(locks, 'MID') ? null : `${NO_LOCK} in MID (--mix mid)`),
  high: ({ locks }) => (someStartIn(locks, 'HIGH') ? null : `${NO_LOCK} in HIGH (--mix high)`),
  recovery: ({ locks }) => (someStartIn(locks, 'RECOVERY') ? null : `${NO_LOCK} in recovery mode (--mix recovery)`),
  // Only HIGH, in its high window, and recovery mode keep a connection open.
  'kept-connection': ({ locks }) => {
    if (someStartIn(locks, 'HIGH') || someStartIn(locks, 'RECOVERY')) return null;
    return `${NO_LOCK} in HIGH or recovery mode (--mix high)`;
  },
  airplane: ({ locks, pace }) => {
    if (pace === 'lively' || someStartIn(locks, 'AIRPLANE')) return null;
    return `${NO_LOCK} in airplane mode, which is rare at the everyday pace (--mix airplane)`;
  },
  'low-battery': ({ locks, pace }) => {
    if (pace === 'lively' || someStartIn(locks, 'LOW_BATTERY')) return null;
    return `${NO_LOCK} with a low battery, which takes weeks at the everyday pace (--mix low-battery)`;
  },
  commands: ({ hasGateway }) => {
    return hasGateway ? null : 'a virtual run sends no commands (use --scenario, or a run against a gateway)';
  },
  'six-hours': ({ days }) => hiddenBefore(6, days),
  // After 25 h without a daily ping, the rule period-overdue is broken.
  'a-day': ({ days }) => hiddenBefore(25, days),
};

/** Why a bug that shows in rides is hidden; null if it can show. */
function hiddenRides(run: RunConditions): string | null {
  const { locks, pace, days } = run;
  if (!(someStartIn(locks, 'MID') || someStartIn(locks, 'HIGH') || someStartIn(locks, 'RECOVERY')))
    return 'its locks start in airplane mode or with a low battery, in which a ride sends nothing (--mix mid)';
  return pace === 'lively' ? null : hiddenBefore(FIRST_RIDE_HOURS, days);
}

/** Why a run is too short for a bug that shows only after some hours; null if it is long enough. */
function hiddenBefore(hours: number, days: number | null): string | null {
  // Rounded up to a tenth of a day.
  const neededDays = (Math.floor((hours / 24) * 10) + 1) / 10;
  return days === null || days * 24 > hours ? null : `it takes a run of over ${hours} h (--days ${neededDays})`;
}

/** Whether at least one lock starts in this state of the power model. */
function someStartIn(locks: readonly LockAtStart[], state: string): boolean {
  return locks.some(({ power, batteryPercent }) => effectiveRow(POWER_MODEL, power, batteryPercent).state === state);
}

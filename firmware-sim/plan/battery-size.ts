/** Computes how long the batteries of a fleet last from the consumption of its locks (world/battery/). Pure. */
import type { PowerCause } from '../world/battery/battery.js';
import { POWER_DRAW } from '../world/battery/power-draw.js';

/** Below this charge a lock falls silent (specification, Limits). */
const LOW_PERCENT = 10;

/** The mean consumption of a lock. */
export interface BatterySize {
  /** The total consumption, mAh a day. */
  readonly mahPerDay: number;
  /** The consumption of each cause, mAh a day. */
  readonly byCause: Readonly<Record<PowerCause, number>>;
  /** Days from a full battery to a low battery. */
  readonly days: number;
}

/** Consumption by cause, mAh. */
export type UsedCharge = Readonly<Record<PowerCause, number>>;

/** Everything that uses charge. */
const CAUSES: PowerCause[] = ['idle', 'selfDischarge', 'modem', 'connect', 'send', 'gps', 'motor', 'tone', 'siren'];

/** Computes a value for each cause. */
export function byCause(chargeOf: (cause: PowerCause) => number): UsedCharge {
  return Object.fromEntries(CAUSES.map((cause) => [cause, chargeOf(cause)])) as UsedCharge;
}

/** The mean of groups of locks, each with its consumption in mAh a day; null if a group has no battery. */
export function meanBattery(
  groups: readonly { readonly locks: number; readonly used: UsedCharge | null }[],
): BatterySize | null {
  const locks = groups.reduce((sum, group) => sum + group.locks, 0);
  const groupsWithBattery = groups.flatMap((group) =>
    group.used === null ? [] : [{ locks: group.locks, used: group.used }],
  );
  if (groupsWithBattery.length < groups.length) return null;
  const mean = byCause(
    (cause) => groupsWithBattery.reduce((sum, group) => sum + group.locks * group.used[cause], 0) / locks,
  );
  const mahPerDay = CAUSES.reduce((sum, cause) => sum + mean[cause], 0);
  const usableMah = (POWER_DRAW.capacity.value * (100 - LOW_PERCENT)) / 100;
  return { mahPerDay, byCause: mean, days: usableMah / mahPerDay };
}

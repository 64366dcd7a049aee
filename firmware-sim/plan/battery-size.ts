/** How long the batteries of a fleet last, from what its locks took out of theirs (battery.ts). */
import type { PowerCause } from '../world/battery/battery.js';
import { POWER_DRAW } from '../world/battery/power-draw.js';

/** Below it a lock falls silent (specification, Limits). */
const LOW_PERCENT = 10;

/** What a lock takes out of its battery, on the average. */
export interface BatterySize {
  /** All in all, mAh a day. */
  readonly mahPerDay: number;
  readonly byCause: Readonly<Record<PowerCause, number>>;
  /** How long a full battery lasts until it is low. */
  readonly days: number;
}

/** What was taken by each cause, mAh. */
export type UsedCharge = Readonly<Record<PowerCause, number>>;

const CAUSES = [
  ...(['idle', 'selfDischarge', 'modem', 'connect', 'send', 'gps', 'motor', 'tone', 'siren'] as const),
] satisfies PowerCause[];

/** The same of each cause. */
export function byCause(of: (cause: PowerCause) => number): UsedCharge {
  return Object.fromEntries(CAUSES.map((cause) => [cause, of(cause)])) as UsedCharge;
}

/** What a lock takes on the average of so many, each with its mAh a day; null where one of them has no battery. */
export function meanBattery(
  parts: readonly { readonly locks: number; readonly used: UsedCharge | null }[],
): BatterySize | null {
  const locks = parts.reduce((sum, part) => sum + part.locks, 0);
  const known = parts.flatMap((part) => (part.used === null ? [] : [{ locks: part.locks, used: part.used }]));
  if (known.length < parts.length) return null;
  const mean = byCause((cause) => known.reduce((sum, part) => sum + part.locks * part.used[cause], 0) / locks);
  const mahPerDay = CAUSES.reduce((sum, cause) => sum + mean[cause], 0);
  const usable = (POWER_DRAW.capacity.value * (100 - LOW_PERCENT)) / 100;
  return { mahPerDay, byCause: mean, days: usable / mahPerDay };
}

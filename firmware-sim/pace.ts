/** How much happens: a year of ordinary days, or a demo in which nobody wants to wait. */
import { Days, Hours, Minutes } from '../proto/clock.js';
import type { Chances } from './chapter.js';
import type { Prng } from './prng.js';

export interface Pace {
  readonly name: 'everyday' | 'lively';
  /** When the next ride begins, after `fromMs`. */
  departsMs(prng: Prng, fromMs: number): number;
  /** Of times that the bicycle stands. */
  readonly theft: number;
  readonly chances: Chances;
  readonly batteryPercentPerHour: number;
  readonly batteryPercentPerRide: number;
}

/** The hours of the day (UTC) in which rides begin, and how likely each is on a day. */
const EVERYDAY_RIDES = [
  { hour: 8, chance: 0.55 },
  { hour: 17, chance: 0.55 },
  { hour: 20, chance: 0.15 },
] as const;

/** Commuters: to work, back, and out in the evening. */
export const EVERYDAY: Pace = {
  name: 'everyday',
  departsMs(prng, fromMs) {
    for (let day = Math.floor(fromMs / Days(1)); ; day++) {
      for (const { hour, chance } of EVERYDAY_RIDES) {
        const atMs = Days(day) + Hours(hour) + prng.between(-Minutes(70), Minutes(70));
        if (prng.chance(chance) && atMs > fromMs + Minutes(15)) return Math.round(atMs);
      }
    }
  },
  theft: 0.004,
  chances: { jostled: 0.15, outage: 0.03, modemReset: 0.01, reboot: 0.004, airplane: 0.004 },
  batteryPercentPerHour: 0.05,
  batteryPercentPerRide: 0.4,
};

/** A demo at 60 times speed: a ride every few seconds of those who watch, a theft every few minutes. */
export const LIVELY: Pace = {
  name: 'lively',
  departsMs: (prng, fromMs) => Math.round(fromMs + prng.between(Minutes(8), Minutes(40))),
  theft: 0.12,
  chances: { jostled: 0.3, outage: 0.08, modemReset: 0.06, reboot: 0.02, airplane: 0.03 },
  batteryPercentPerHour: 1.5,
  batteryPercentPerRide: 1,
};

/** How much happens: a year of ordinary days, or a demo in which nobody wants to wait. */
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Prng } from '../prng.js';
import type { Chances } from './chapter.js';
import { CommuterWeek, type DayPattern } from './day-pattern.js';

export interface Pace {
  readonly name: 'everyday' | 'lively';
  /** When somebody rides. `prng` is the pattern's own; the offset is that of the clocks there against UTC. */
  patternOf(prng: Prng, utcOffset: Milliseconds): DayPattern;
  /** Of times that the bicycle stands. */
  readonly theft: number;
  readonly chances: Chances;
  /** How many times faster than in life the lock's battery is drained and charged. */
  readonly batteryTimes: number;
}

/** Commuters: to work, back, out in the evening and at the weekend, away now and then. */
export const EVERYDAY: Pace = {
  name: 'everyday',
  patternOf: (prng, utcOffset) => new CommuterWeek(prng, utcOffset),
  theft: 0.004,
  chances: { jostled: 0.15, outage: 0.03, modemReset: 0.01, reboot: 0.004, airplane: 0.004 },
  batteryTimes: 1,
};

/** A demo at 60 times speed: a ride every few seconds of those who watch, a theft every few minutes. */
export const LIVELY: Pace = {
  name: 'lively',
  patternOf: (prng) => ({
    next: (fromMs) => ({ atMs: Math.round(fromMs + prng.between(Minutes(8), Minutes(40))), goal: 'any' }),
  }),
  theft: 0.12,
  chances: { jostled: 0.3, outage: 0.08, modemReset: 0.06, reboot: 0.02, airplane: 0.03 },
  // A battery that lasts for months would never be seen to run low.
  batteryTimes: 10,
};

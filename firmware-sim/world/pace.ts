/**
 * The two paces (flag `--pace`), which define how eventful a generated life is, the series of events that happen to a
 * simulated lock: ordinary days, or a fast demo.
 */
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Prng } from '../prng.js';
import { CommuterWeek, type DayPattern } from './day-pattern.js';
import type { EventProbabilities } from './episode.js';

/** See the top of this file. */
export interface Pace {
  readonly name: 'everyday' | 'lively';
  /** Makes the pattern of rides. Only the pattern may use `prng`; `utcOffset` is the offset of local time from UTC. */
  patternOf(prng: Prng, utcOffset: Milliseconds): DayPattern;
  /** The probability of a theft per parking period. */
  readonly theftProbability: number;
  readonly eventProbabilities: EventProbabilities;
  /** How many times faster than in reality the lock's battery is drained and charged. */
  readonly batterySpeedup: number;
}

/** Commuters: they ride to work and back, go out in the evening and at the weekend, and are sometimes away. */
export const EVERYDAY: Pace = {
  name: 'everyday',
  patternOf: (prng, utcOffset) => new CommuterWeek(prng, utcOffset),
  theftProbability: 0.004,
  eventProbabilities: { jostled: 0.15, outage: 0.03, modemReset: 0.01, reboot: 0.004, airplane: 0.004 },
  batterySpeedup: 1,
};

/** A demo at 60 × speed: a ride every few seconds of the viewer's time, a theft every few minutes. */
export const LIVELY: Pace = {
  name: 'lively',
  patternOf: (prng) => ({
    next: (fromMs) => ({ atMs: Math.round(fromMs + prng.between(Minutes(8), Minutes(40))), purpose: 'any' }),
  }),
  theftProbability: 0.12,
  eventProbabilities: { jostled: 0.3, outage: 0.08, modemReset: 0.06, reboot: 0.02, airplane: 0.03 },
  // At normal speed the battery would last for months, and a demo would never show it run low.
  batterySpeedup: 10,
};

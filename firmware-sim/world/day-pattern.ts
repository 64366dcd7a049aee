/**
 * When a simulated rider rides, and why: to work on working days, out at the weekend, not at all while away. The habits
 * of a rider are drawn once from the seed. The rides of a day are drawn from the seed and the day's number (days since
 * 1970-01-01), so that a ride that did not take place changes no other day. The probabilities are plausible guesses.
 */
import { Days, Hours, type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Prng } from '../prng.js';

/** The purpose of a ride. `any`: between home and work, or to some other place. */
export type TripPurpose = 'work' | 'home' | 'out' | 'any';

/** The start of a ride. */
export interface Departure {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly purpose: TripPurpose;
}

/** When rides start. */
export interface DayPattern {
  /** The next ride at least 15 minutes after `fromMs`. */
  next(fromMs: number): Departure;
}

const MIN_REST_MS: Milliseconds = Minutes(15);
const SUNDAY = 0;
const SATURDAY = 6;
/** Absences are drawn per span of this many days. */
const SPAN_DAYS = 14;
const AWAY_PROBABILITY = 0.06;
/** How many days' rides are cached. A power of two, so that a day's lowest bits give its place in the cache. */
const CACHED_DAYS = 4;
const NO_RIDES: readonly Departure[] = [];

/** An ordinary working week. Hours are local time. */
export class CommuterWeek implements DayPattern {
  readonly #prng: Prng;
  readonly #utcOffset: Milliseconds;
  /** When the rider leaves for work, ms after midnight, and how long the rider stays there. */
  readonly #leavesAfterMidnight: Milliseconds;
  readonly #workSpan: Milliseconds;
  /** The probabilities of cycling to work on a working day, and of going out on a day of the weekend. */
  readonly #commuteProbability: number;
  readonly #outingProbability: number;
  /** The free weekday of a rider who works four days, 0 = Sunday; 7 means none. */
  readonly #freeDay: number;
  /** The cache: the days whose rides were drawn last, and these rides. `next` looks at the same days repeatedly. */
  readonly #days = new Array<number>(CACHED_DAYS).fill(Number.NaN);
  readonly #rides = new Array<readonly Departure[]>(CACHED_DAYS).fill(NO_RIDES);
  /** The span of days whose absence was drawn last, and the absence: from the first day up to the second, exclusive. */
  #span = Number.NaN;
  #awayDays: readonly [number, number] = [0, 0];

  constructor(prng: Prng, utcOffset: Milliseconds) {
    this.#prng = prng;
    this.#utcOffset = utcOffset;
    this.#leavesAfterMidnight = prng.between(Hours(6.5), Hours(9.5));
    this.#workSpan = prng.between(Hours(4), Hours(9));
    this.#commuteProbability = prng.between(0.3, 0.9);
    this.#outingProbability = prng.between(0.2, 0.7);
    this.#freeDay = prng.chance(0.25) ? prng.integer(1, 5) : 7;
  }

  next(fromMs: number): Departure {
    // A ride home of the previous day may start after midnight.
    for (let day = Math.floor((fromMs + this.#utcOffset) / Days(1)) - 1; ; day++) {
      const next = this.#ridesOf(day).find(({ atMs }) => atMs >= fromMs + MIN_REST_MS);
      if (next !== undefined) return next;
    }
  }

  /** The rides of a day, in order of time. */
  #ridesOf(day: number): readonly Departure[] {
    const slot = day & (CACHED_DAYS - 1);
    if (day !== this.#days[slot]) {
      // The sorted copy has no spare capacity, which would be most of what these lists take in a large fleet.
      this.#rides[slot] = this.#isAway(day) ? NO_RIDES : this.#drawRides(day).toSorted((a, b) => a.atMs - b.atMs);
      this.#days[slot] = day;
    }
    return this.#rides[slot] as readonly Departure[];
  }

  #drawRides(day: number): Departure[] {
    const prng = this.#prng.fork(day);
    const midnightMs = Days(day) - this.#utcOffset;
    const rides: Departure[] = [];
    const addRide = (purpose: TripPurpose, after: Milliseconds): void => {
      rides.push({ atMs: Math.round(midnightMs + after), purpose });
    };
    const addOuting = (from: Milliseconds, until: Milliseconds): void => {
      const leaves = prng.between(from, until);
      addRide('out', leaves);
      addRide('home', leaves + prng.between(Hours(0.7), Hours(4)));
    };
    // Day 0, 1 January 1970, was a Thursday, weekday 4.
    const weekday = (((day + 4) % 7) + 7) % 7;
    const isWeekend = weekday === SATURDAY || weekday === SUNDAY;
    if (isWeekend || weekday === this.#freeDay) {
      if (prng.chance(this.#outingProbability)) addOuting(Hours(10), Hours(16));
    } else if (prng.chance(this.#commuteProbability)) {
      const leaves = this.#leavesAfterMidnight + prng.between(-Minutes(12), Minutes(12));
      addRide('work', leaves);
      addRide('home', leaves + this.#workSpan + prng.between(-Minutes(25), Minutes(25)));
    }
    if (prng.chance(weekday === SATURDAY ? 0.25 : 0.1)) addOuting(Hours(19), Hours(21));
    return rides;
  }

  #isAway(day: number): boolean {
    const span = Math.floor(day / SPAN_DAYS);
    if (span !== this.#span) {
      const prng = this.#prng.fork(`away/${span}`);
      const firstDay = span * SPAN_DAYS + prng.integer(0, 5);
      this.#awayDays = prng.chance(AWAY_PROBABILITY) ? [firstDay, firstDay + prng.integer(3, 9)] : [0, 0];
      this.#span = span;
    }
    return day >= this.#awayDays[0] && day < this.#awayDays[1];
  }
}

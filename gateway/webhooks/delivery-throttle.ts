/**
 * Gives pings priority over webhooks: while the gateway stores very many pings, webhook attempts get only the event
 * loop time that pings leave, however many URLs there are. A lock waits for its acknowledgement with its radio on; a
 * webhook waits safely in the log at no cost. Both share one thread, and an attempt takes as much time as twenty pings.
 * Without the throttle, a merchant with five URLs would slow all locks down.
 *
 * The throttle is in one of two modes:
 *
 * - *off*: attempts start freely. Very many uplinks, in one commit or in several that follow one another, turn the
 *   throttle on; so does a commit that shows that they will soon be very many (a sudden start). Otherwise the attempts
 *   of the first hundredth of a second, which also open connections, would hold up the pings of the first tenth.
 * - *on*: fifty times a second or more often the throttle grants a number of attempts and wakes waiting workers, the
 *   longest waiting first, so that every URL gets its share. The rate follows the measured idle time of the event loop:
 *   the rate rises while the loop is often idle and falls while the loop is rarely idle, but not below a minimum. If a
 *   sudden start was not followed by very many uplinks, the rate rises whenever it is used up. Some time after the last
 *   of very many uplinks the throttle turns off.
 */
import {
  type Clock,
  type LoopTime,
  loopTime,
  type Milliseconds,
  Seconds,
  systemClock,
  type Timer,
} from '../../proto/clock.js';
import { UplinkLoad } from '../fairness/uplink-load.js';

/**
 * The longest and the shortest time between two grants. Attempts that start one by one delay pings on a machine without
 * a free core: each wakes other threads and programs, which then take the core from pings. Many that start together
 * delay them too, so a grant comes sooner if it would have more than {@link ATTEMPTS_PER_GRANT}.
 */
const MAX_GRANT_INTERVAL: Milliseconds = 20;
const MIN_GRANT_INTERVAL: Milliseconds = 5;
const ATTEMPTS_PER_GRANT = 24;
/** The event loop's idle time is measured over at least this time. */
const MEASURED_TIME: Milliseconds = 50;
/** Attempts per second of all URLs together. The minimum takes 1 to 5 % of the gateway's main thread. */
const INITIAL_ATTEMPTS_PER_SECOND = 200;
export const MIN_ATTEMPTS_PER_SECOND = 100;
/**
 * The rate rises while the loop is idle for more than the first share of its time, and falls while the loop is idle for
 * less than the second share. The loop's idle time is not all free: an attempt also takes the time of other threads,
 * and those may have to share a core with the loop.
 */
const SPEED_UP_IDLE_SHARE = 0.5;
const SLOW_DOWN_IDLE_SHARE = 0.4;
const SPEED_UP_FACTOR = 1.5;
const SLOW_DOWN_FACTOR = 0.5;
/** No gateway reaches this rate. */
const MAX_ATTEMPTS_PER_SECOND = 20_000;

/** A URL's worker: starts attempts, and is woken when more are granted. */
export interface Throttled {
  wake(): void;
}

export interface DeliveryThrottleParts {
  /** Wall-clock time. */
  readonly clock: Clock;
  /** For how long the event loop has been idle and active so far, in ms. */
  readonly loopTime: () => LoopTime;
}

/** The parts outside of tests. */
const REAL: DeliveryThrottleParts = { clock: systemClock, loopTime };

export class DeliveryThrottle {
  readonly #parts: DeliveryThrottleParts;
  readonly #load: UplinkLoad;
  /** Whether uplinks were very many at the last measurement. */
  #wasHigh = false;
  #rate = INITIAL_ATTEMPTS_PER_SECOND;
  /** How many attempts may start until the next grant; infinite while the throttle is off. */
  #attemptsLeft = Number.POSITIVE_INFINITY;
  /** How many of these attempts each worker that waited for the grant may start. */
  #shares = new Map<Throttled, number>();
  /** How many of these attempts any other worker may start. */
  #maxPerWorker = Number.POSITIVE_INFINITY;
  /** How many of these attempts each worker has started. */
  #started = new Map<Throttled, number>();
  /** Waiting workers that started no attempt since the last grant, longest waiting first. */
  #waiting = new Set<Throttled>();
  /** Waiting workers that started an attempt since the last grant, longest waiting first. */
  #waitingServed = new Set<Throttled>();
  /** Whether all attempts of a grant were started since the last measurement. */
  #wasUsedUp = false;
  /** The fraction of an attempt that the rate allows but that was not granted yet. */
  #fractionLeft = 0;
  #timer: Timer | undefined;
  #lastLoopTime: LoopTime = { idle: 0, active: 0 };
  #isStopped = false;

  constructor(parts: DeliveryThrottleParts = REAL) {
    this.#parts = parts;
    this.#load = new UplinkLoad(parts.clock);
  }

  /** How many attempts a worker may start now. A worker that may start none is woken by a later grant. */
  freeAttempts(worker: Throttled): number {
    const share = this.#shares.get(worker) ?? this.#maxPerWorker;
    const freeAttempts = Math.min(this.#attemptsLeft, share - (this.#started.get(worker) ?? 0));
    if (freeAttempts <= 0) {
      const waiting = this.#started.has(worker) ? this.#waitingServed : this.#waiting;
      waiting.add(worker);
    }
    return freeAttempts;
  }

  /** Whether a worker waits for a grant. The grant wakes the worker, so new events need not. */
  isThrottled(worker: Throttled): boolean {
    return this.#waiting.has(worker) || this.#waitingServed.has(worker);
  }

  /** Must be called when a worker starts an attempt. */
  attemptStarted(worker: Throttled): void {
    if (this.#timer === undefined) return;
    this.#attemptsLeft -= 1;
    this.#started.set(worker, (this.#started.get(worker) ?? 0) + 1);
  }

  /** Must be called after each commit, with its number of uplinks. */
  uplinksStored(uplinks: number): void {
    this.#load.stored(uplinks);
    if (!this.#load.isHighOrRising || this.#isStopped || this.#timer !== undefined) return;
    this.#rate = INITIAL_ATTEMPTS_PER_SECOND;
    this.#wasHigh = this.#load.isHigh;
    this.#wasUsedUp = false;
    this.#fractionLeft = 0;
    this.#lastLoopTime = this.#parts.loopTime();
    this.#grant();
  }

  /** Turns the throttle off for good. */
  stop(): void {
    this.#isStopped = true;
    this.#turnOff();
  }

  #turnOff(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakeWaiting(Number.POSITIVE_INFINITY);
    // Workers of removed URLs must not stay in memory.
    this.#shares.clear();
  }

  #onTimer(): void {
    if (!this.#load.isHighOrRising) {
      this.#turnOff();
      return;
    }
    this.#wasUsedUp ||= this.#attemptsLeft <= 0;
    this.#adapt(this.#parts.loopTime());
    this.#grant();
  }

  /** Adapts the rate to the event loop's idle share since the last measurement, if that was long enough ago. */
  #adapt(now: LoopTime): void {
    const { isHigh } = this.#load;
    // What was right before very many uplinks came is too much for the first moments of them.
    if (isHigh && !this.#wasHigh) this.#rate = Math.min(this.#rate, INITIAL_ATTEMPTS_PER_SECOND);
    this.#wasHigh = isHigh;
    const idle = now.idle - this.#lastLoopTime.idle;
    const active = now.active - this.#lastLoopTime.active;
    if (idle + active < MEASURED_TIME) return;
    const idleShare = idle / (idle + active);
    this.#lastLoopTime = now;
    // A rate that is not used up does not rise: it would be far too high once many events wait.
    const isUsedUp = this.#wasUsedUp;
    this.#wasUsedUp = false;
    if ((idleShare > SPEED_UP_IDLE_SHARE || !isHigh) && isUsedUp)
      this.#rate = Math.min(this.#rate * SPEED_UP_FACTOR, MAX_ATTEMPTS_PER_SECOND);
    else if (idleShare < SLOW_DOWN_IDLE_SHARE && isHigh)
      this.#rate = Math.max(this.#rate * SLOW_DOWN_FACTOR, MIN_ATTEMPTS_PER_SECOND);
  }

  /** Grants the attempts of one interval, and sets the timer for the next. */
  #grant(): void {
    const interval = Math.min(
      Math.max(Math.floor((ATTEMPTS_PER_GRANT * Seconds(1)) / this.#rate), MIN_GRANT_INTERVAL),
      MAX_GRANT_INTERVAL,
    );
    this.#timer = this.#parts.clock.after(interval, () => this.#onTimer());
    const allowed = this.#fractionLeft + (this.#rate * interval) / Seconds(1);
    const attempts = Math.floor(allowed);
    this.#fractionLeft = allowed - attempts;
    this.#wakeWaiting(attempts);
  }

  /** Grants attempts to waiting workers, longest waiting first. Workers without a grant keep waiting. */
  #wakeWaiting(attempts: number): void {
    // Those that got least come first. Otherwise the URLs that get the remainder of an uneven grant would always be
    // the same, since workers begin to wait in the order in which they were woken.
    const startedBy = (worker: Throttled): number => this.#started.get(worker) ?? 0;
    const served = [...this.#waitingServed].sort((a, b) => startedBy(a) - startedBy(b));
    const waiting = [...new Set([...this.#waiting, ...served])];
    const woken = waiting.slice(0, attempts);
    this.#attemptsLeft = attempts;
    this.#divide(attempts, waiting);
    this.#started.clear();
    this.#waiting = new Set(waiting.slice(attempts));
    this.#waitingServed.clear();
    for (const worker of woken) worker.wake();
  }

  /** Gives each worker its share of the attempts. What is left after an even division goes to the first of them. */
  #divide(attempts: number, workers: readonly Throttled[]): void {
    const perWorker = attempts / Math.max(workers.length, 1);
    const ones = attempts % Math.max(workers.length, 1);
    this.#maxPerWorker = Math.ceil(perWorker);
    this.#shares = new Map(workers.map((worker, index) => [worker, Math.floor(perWorker) + (index < ones ? 1 : 0)]));
  }
}

/**
 * Gives pings priority over webhooks. While very many pings are being stored, webhook attempts get only the time of the
 * event loop that pings leave, however many URLs there are. A lock waits for its acknowledgement with its radio on, and
 * sends again after a while; a webhook waits safely in the log at no cost. Both share one thread, and an attempt takes
 * as much of it as twenty pings, so without this a merchant with five URLs would slow all locks down.
 *
 * The throttle is in one of two modes:
 *
 * - *off*: attempts start freely. A commit of many uplinks turns it on.
 * - *on*: every few milliseconds it grants a number of attempts, and wakes workers that wait, those first that have
 *   waited longest, so that every URL gets its share. The rate follows the measured idle time of the event loop: it
 *   rises while the loop is idle now and then, and falls while it never is, down to a rate that is granted in any case.
 *   Some time after the last such commit the throttle turns off.
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

/** A commit of so many uplinks means that pings arrive faster than they are committed one by one. */
const BUSY_FROM = 32;
/** From the last such commit until the throttle turns off, in real time. */
const CALM_AFTER: Milliseconds = 250;
/** How often attempts are granted. It is short, since attempts that start together hold up pings. */
const GRANT_EVERY: Milliseconds = 5;
/** The event loop's idle time is measured once in so many grants. */
const GRANTS_PER_MEASUREMENT = 10;
/** Attempts a second of all URLs together: at first, and the least, which takes some 2 % of the thread. */
const FIRST_RATE = 800;
export const LEAST_RATE = 100;
/** The rate rises while the loop is idle for more than the first share of its time, and falls below the second. */
const IDLE_ENOUGH = 0.35;
const IDLE_LITTLE = 0.25;
const FASTER = 1.5;
const SLOWER = 0.5;
/** No gateway is faster, and a rate that was never used must not take long to come down. */
const MOST_RATE = 20_000;

/** Who starts attempts, and is woken when more are granted. */
export interface Throttled {
  wake(): void;
}

export interface DeliveryThrottleParts {
  /** Wall-clock time. */
  readonly clock: Clock;
  readonly loopTime: () => LoopTime;
}

const REAL: DeliveryThrottleParts = { clock: systemClock, loopTime };

export class DeliveryThrottle {
  readonly #parts: DeliveryThrottleParts;
  #rate = FIRST_RATE;
  /** How many attempts may start until the next grant; infinite while the throttle is off. */
  #left = Number.POSITIVE_INFINITY;
  /** How many of them one worker may start, and how many each has started. */
  #share = Number.POSITIVE_INFINITY;
  #started = new Map<Throttled, number>();
  /** Workers that wait, the longest first: those that started nothing since the last grant, and those that did. */
  #waiting = new Set<Throttled>();
  #waitingServed = new Set<Throttled>();
  /** The fraction of an attempt that the rate allows and that was not granted yet. */
  #fraction = 0;
  #grants = 0;
  #busySinceMs = 0;
  #timer: Timer | undefined;
  #lastLoopTime: LoopTime = { idle: 0, active: 0 };
  #isStopped = false;

  constructor(parts: DeliveryThrottleParts = REAL) {
    this.#parts = parts;
  }

  /** How many attempts a worker may start now. Where it may start none, it is woken when it may. */
  room(worker: Throttled): number {
    const room = Math.min(this.#left, this.#share - (this.#started.get(worker) ?? 0));
    if (room <= 0) (this.#started.has(worker) ? this.#waitingServed : this.#waiting).add(worker);
    return room;
  }

  /** Whether a worker waits for a grant, which wakes it: it need not be woken for new events. */
  isThrottled(worker: Throttled): boolean {
    return this.#waiting.has(worker) || this.#waitingServed.has(worker);
  }

  /** To be called when an attempt starts. */
  begin(worker: Throttled): void {
    if (this.#timer === undefined) return;
    this.#left -= 1;
    this.#started.set(worker, (this.#started.get(worker) ?? 0) + 1);
  }

  /** A commit stored so many uplinks. */
  stored(uplinks: number): void {
    if (uplinks < BUSY_FROM || this.#isStopped) return;
    this.#busySinceMs = this.#parts.clock.now();
    if (this.#timer !== undefined) return;
    this.#rate = FIRST_RATE;
    this.#fraction = 0;
    this.#grants = 0;
    this.#lastLoopTime = this.#parts.loopTime();
    this.#grant();
  }

  /** Turns off for good. */
  stop(): void {
    this.#isStopped = true;
    this.#turnOff();
  }

  #turnOff(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wake(Number.POSITIVE_INFINITY);
  }

  #onTimer(): void {
    const { clock, loopTime } = this.#parts;
    if (Math.abs(clock.now() - this.#busySinceMs) >= CALM_AFTER) {
      this.#turnOff();
      return;
    }
    if (this.#grants % GRANTS_PER_MEASUREMENT === 0) this.#adapt(loopTime());
    this.#grant();
  }

  #adapt(now: LoopTime): void {
    const idle = now.idle - this.#lastLoopTime.idle;
    const share = idle / Math.max(idle + now.active - this.#lastLoopTime.active, 1);
    this.#lastLoopTime = now;
    if (share > IDLE_ENOUGH) this.#rate = Math.min(this.#rate * FASTER, MOST_RATE);
    else if (share < IDLE_LITTLE) this.#rate = Math.max(this.#rate * SLOWER, LEAST_RATE);
  }

  #grant(): void {
    this.#timer = this.#parts.clock.after(GRANT_EVERY, () => this.#onTimer());
    this.#grants += 1;
    const allowed = this.#fraction + (this.#rate * GRANT_EVERY) / Seconds(1);
    const attempts = Math.floor(allowed);
    this.#fraction = allowed - attempts;
    // A throttle that has just turned on grants nothing until the first attempt is allowed.
    if (attempts > 0 || this.#left === Number.POSITIVE_INFINITY) this.#wake(attempts);
  }

  /** Grants so many attempts to workers that wait, the longest first; the others wait on. */
  #wake(attempts: number): void {
    const waiting = [...new Set([...this.#waiting, ...this.#waitingServed])];
    const woken = waiting.slice(0, attempts);
    this.#left = attempts;
    this.#share = Math.ceil(attempts / Math.max(waiting.length, 1));
    this.#started.clear();
    this.#waiting = new Set(waiting.slice(attempts));
    this.#waitingServed.clear();
    for (const worker of woken) worker.wake();
  }
}

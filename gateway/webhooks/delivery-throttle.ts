/**
 * Pings first: while very many are being stored, webhooks get of the event loop what pings leave of it, however many
 * URLs there are. A ping waits for its acknowledgement with its lock's radio on, and locks that wait too long send
 * again; a webhook waits in the log, safe, and costs nothing there. Both have one thread, and an attempt takes of it
 * what twenty pings do, so without this a merchant with five URLs would slow all locks down.
 *
 * What pings leave is measured: how long the loop had nothing to do. As long as it stands idle now and then, attempts
 * may begin faster and faster; where it never does, they become fewer, down to a rate that is kept whatever happens.
 * What may begin is dealt anew many times a second, in turn, so that of many URLs none is left out.
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

/** A commit of so many uplinks says that they come faster than one by one: pings are what the thread is for then. */
const BUSY_FROM = 32;
/** When there was none such for so long, there is time for everything. In real time. */
const CALM_AFTER: Milliseconds = 250;
/** How often attempts are dealt: what begins together holds up the pings that come meanwhile, so it is little. */
const DEAL_EVERY: Milliseconds = 5;
/** How often the loop is looked at: so many times dealt. */
const DEALS_PER_LOOK = 10;
/** Attempts a second of all URLs together: as it becomes busy, and at the least, which is some 2 % of the thread. */
const FIRST_RATE = 800;
export const LEAST_RATE = 100;
/** With more of its time idle than this, more may begin the next time; with less than that, fewer. */
const IDLE_ENOUGH = 0.35;
const IDLE_LITTLE = 0.25;
const FASTER = 1.5;
const SLOWER = 0.5;
/** Faster than this nobody is: a rate that was never used must not take long to come down. */
const MOST_RATE = 20_000;

/** Who begins attempts, and waits where they are held back. */
export interface Throttled {
  wake(): void;
}

export interface DeliveryThrottleParts {
  /** The wall's clock. */
  readonly clock: Clock;
  readonly loopTime: () => LoopTime;
}

const REAL: DeliveryThrottleParts = { clock: systemClock, loopTime };

export class DeliveryThrottle {
  readonly #parts: DeliveryThrottleParts;
  #rate = FIRST_RATE;
  /** How many attempts may begin before the next look; infinite while pings are few. */
  #left = Number.POSITIVE_INFINITY;
  /** How many of them one URL may begin, and how many it has. */
  #share = Number.POSITIVE_INFINITY;
  #begun = new Map<Throttled, number>();
  /** Those that were held back, the longest first: with nothing begun since the last look, and with something. */
  #held = new Set<Throttled>();
  #served = new Set<Throttled>();
  /** The part of an attempt that the rate has earned and that was not dealt yet. */
  #earned = 0;
  #grants = 0;
  #busySinceMs = 0;
  #turn: Timer | undefined;
  #seen: LoopTime = { idle: 0, active: 0 };
  #isStopped = false;

  constructor(parts: DeliveryThrottleParts = REAL) {
    this.#parts = parts;
  }

  /** How many attempts this one may begin now. Where there are none, it is woken when there are. */
  room(worker: Throttled): number {
    const room = Math.min(this.#left, this.#share - (this.#begun.get(worker) ?? 0));
    if (room <= 0) (this.#begun.has(worker) ? this.#served : this.#held).add(worker);
    return room;
  }

  /** Whether it is held back: then it need not be woken for what is new, and is when something may begin. */
  isHeld(worker: Throttled): boolean {
    return this.#held.has(worker) || this.#served.has(worker);
  }

  /** To be called as an attempt begins. */
  begin(worker: Throttled): void {
    if (this.#turn === undefined) return;
    this.#left -= 1;
    this.#begun.set(worker, (this.#begun.get(worker) ?? 0) + 1);
  }

  /** A commit stored so many uplinks. */
  stored(uplinks: number): void {
    if (uplinks < BUSY_FROM || this.#isStopped) return;
    this.#busySinceMs = this.#parts.clock.now();
    if (this.#turn !== undefined) return;
    this.#rate = FIRST_RATE;
    this.#earned = 0;
    this.#grants = 0;
    this.#seen = this.#parts.loopTime();
    this.#grant();
  }

  /** Holds nobody back any more. */
  stop(): void {
    this.#isStopped = true;
    this.#release();
  }

  #release(): void {
    this.#turn?.cancel();
    this.#turn = undefined;
    this.#wake(Number.POSITIVE_INFINITY);
  }

  #onTurn(): void {
    const { clock, loopTime } = this.#parts;
    if (Math.abs(clock.now() - this.#busySinceMs) >= CALM_AFTER) {
      this.#release();
      return;
    }
    if (this.#grants % DEALS_PER_LOOK === 0) this.#adapt(loopTime());
    this.#grant();
  }

  #adapt(seen: LoopTime): void {
    const idle = seen.idle - this.#seen.idle;
    const share = idle / Math.max(idle + seen.active - this.#seen.active, 1);
    this.#seen = seen;
    if (share > IDLE_ENOUGH) this.#rate = Math.min(this.#rate * FASTER, MOST_RATE);
    else if (share < IDLE_LITTLE) this.#rate = Math.max(this.#rate * SLOWER, LEAST_RATE);
  }

  #grant(): void {
    this.#turn = this.#parts.clock.after(DEAL_EVERY, () => this.#onTurn());
    this.#grants += 1;
    const earned = this.#earned + (this.#rate * DEAL_EVERY) / Seconds(1);
    const attempts = Math.floor(earned);
    this.#earned = earned - attempts;
    // Until the first is earned, nothing may begin.
    if (attempts > 0 || this.#left === Number.POSITIVE_INFINITY) this.#wake(attempts);
  }

  /** Deals so many attempts to those that were held back, the longest first; the others wait on. */
  #wake(attempts: number): void {
    const held = [...new Set([...this.#held, ...this.#served])];
    const woken = held.slice(0, attempts);
    this.#left = attempts;
    this.#share = Math.ceil(attempts / Math.max(held.length, 1));
    this.#begun.clear();
    this.#held = new Set(held.slice(attempts));
    this.#served.clear();
    for (const worker of woken) worker.wake();
  }
}

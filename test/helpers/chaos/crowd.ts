/**
 * Many locks that ping at a given rate and try the gateways in turn, as behind a load balancer that does not know which
 * gateways run. One timer serves all of them. A crowd runs in the test's process, or in its own (crowd-process.ts).
 */
import { type Milliseconds, monotonicMs, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { type ChaosDiary, ChaosLock } from './chaos-lock.js';

/** How often each lock is checked, and pings that are due are made. */
const CHECK_INTERVAL = Seconds(0.02);

/** The locks of a crowd. */
export interface CrowdOptions {
  readonly locks: readonly { readonly mac: string; readonly secret: string }[];
  /** The gateways' ports. */
  readonly ports: readonly number[];
  /** The time between two pings of a lock. */
  readonly pingEveryMs: Milliseconds;
}

/** A time in which a lock was without a gateway. */
export interface LockOutage {
  /** How long before the answer the lock lost its gateway. */
  readonly lostAgoMs: Milliseconds;
  /** From the loss to the lock's next acknowledgement. */
  readonly milliseconds: Milliseconds;
}

/** What is counted while a crowd runs. */
export interface CrowdCounts {
  readonly acked: number;
  readonly unacked: number;
  /** The outages that have ended since the last call. */
  readonly outages: readonly LockOutage[];
}

/** A crowd of locks, here or in another process. */
export interface AnyCrowd {
  counts(): Promise<CrowdCounts>;
  /** Makes no new pings; what is not acknowledged is still sent. */
  stopPings(): Promise<void>;
  /** Whether a restore of the database will lose what is acknowledged from now on. */
  setLosing(isLosing: boolean): Promise<void>;
  /** Closes all connections, and returns all diaries. */
  end(): Promise<readonly ChaosDiary[]>;
}

/** A crowd in this process. */
export class Crowd implements AnyCrowd {
  readonly #locks: readonly ChaosLock[];
  readonly #pingEveryMs: Milliseconds;
  /** Outages since the last count: when each began (monotonic), and how long it was. */
  #outages: { readonly lostAtMs: Milliseconds; readonly milliseconds: Milliseconds }[] = [];
  #lastMs = monotonicMs();
  /** How many pings are due, of all locks together; its fraction grows until the next ping is due. */
  #due = 0;
  /** How many pings were due so far: the locks take turns. */
  #turn = 0;
  #isPinging = true;
  #timer: Timer | undefined;

  constructor({ locks, ports, pingEveryMs }: CrowdOptions) {
    this.#pingEveryMs = pingEveryMs;
    this.#locks = locks.map(({ mac, secret }, index) => {
      // The locks begin at different gateways.
      let tries = index;
      const nextPort = (): number => {
        tries += 1;
        return ports[tries % ports.length] ?? 0;
      };
      const onServedAgain = (milliseconds: Milliseconds): void => {
        this.#outages.push({ lostAtMs: monotonicMs() - milliseconds, milliseconds });
      };
      return new ChaosLock({ mac, secret, nextPort, onServedAgain });
    });
    this.#checkLater();
  }

  async counts(): Promise<CrowdCounts> {
    const nowMs = monotonicMs();
    const outages = this.#outages.map(({ lostAtMs, milliseconds }) => ({ lostAgoMs: nowMs - lostAtMs, milliseconds }));
    this.#outages = [];
    return {
      acked: this.#locks.reduce((sum, { ackedCount }) => sum + ackedCount, 0),
      unacked: this.#locks.reduce((sum, { unackedCount }) => sum + unackedCount, 0),
      outages,
    };
  }

  async stopPings(): Promise<void> {
    this.#isPinging = false;
  }

  async setLosing(isLosing: boolean): Promise<void> {
    for (const lock of this.#locks) lock.isLosing = isLosing;
  }

  async end(): Promise<readonly ChaosDiary[]> {
    this.#timer?.cancel();
    for (const lock of this.#locks) lock.stop();
    // The sockets' close events, at which their bytes are counted, come in later turns of the event loop.
    await new Promise<void>((resolve) => systemClock.after(CHECK_INTERVAL, resolve));
    return this.#locks.map((lock) => lock.diary());
  }

  #checkLater(): void {
    this.#timer = systemClock.after(CHECK_INTERVAL, () => {
      this.#check();
      this.#checkLater();
    });
  }

  #check(): void {
    const nowMs = monotonicMs();
    for (const lock of this.#locks) lock.check(nowMs);
    this.#due += ((nowMs - this.#lastMs) * this.#locks.length) / this.#pingEveryMs;
    this.#lastMs = nowMs;
    for (; this.#due >= 1; this.#due -= 1) {
      if (this.#isPinging) this.#locks[this.#turn % this.#locks.length]?.ping();
      this.#turn += 1;
    }
  }
}

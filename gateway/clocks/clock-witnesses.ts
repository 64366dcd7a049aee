/**
 * Counts the locks that confirm the machine's clock, each with a fresh ping whose time agrees with that clock
 * (quality.md §2). Five locks are needed, or all locks of the store if there are fewer.
 *
 * Simulated locks count only in a store without real locks: their time comes from a gateway or machine like this one.
 */
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Source } from '../../proto/wire/ping.js';

/** How many locks are needed, or fewer if the store has fewer. */
export const MAX_NEEDED_LOCKS = 5;
/** By how much a lock's time may differ from the machine's and still count as agreeing. */
export const MAX_AGREEING_DIFFERENCE: Milliseconds = Minutes(5);

/** What an uplink shows about the time. */
export interface ReportedTime {
  readonly deviceId: number;
  readonly source: Source;
  readonly simulated: boolean;
  /** When the lock made the uplink, by the lock's clock, ms since the epoch. */
  readonly timeMs: number;
  /** How many earlier uplinks waited in the lock when it sent this one. If not 0, this one may have waited too. */
  readonly kept: number;
}

/** How many locks are in service. */
export interface LockCount {
  readonly real: number;
  readonly simulated: number;
}

/** The locks that agree with the machine's clock. */
export class ClockWitnesses {
  readonly #real = new Set<number>();
  readonly #simulated = new Set<number>();
  #count: LockCount | undefined;

  /** Counts the lock of an uplink if the uplink is a lock's, fresh, and agrees with the machine's clock. */
  noteUplink({ deviceId, source, simulated, timeMs, kept }: ReportedTime, machineMs: number): void {
    if (source !== 'lock' || kept !== 0 || !(Math.abs(timeMs - machineMs) <= MAX_AGREEING_DIFFERENCE)) return;
    const witnesses = simulated ? this.#simulated : this.#real;
    // No more locks than needed are stored.
    if (witnesses.size < MAX_NEEDED_LOCKS) witnesses.add(deviceId);
  }

  /** Sets the number of locks in service. */
  setLockCount(count: LockCount): void {
    this.#count = count;
  }

  /** How many locks agree. */
  get agreeing(): number {
    return this.#count?.real === 0 ? this.#simulated.size : this.#real.size;
  }

  /** How many must agree; null if there are no locks or they have not been counted yet. */
  get needed(): number | null {
    if (this.#count === undefined) return null;
    const { real, simulated } = this.#count;
    return Math.min(real === 0 ? simulated : real, MAX_NEEDED_LOCKS) || null;
  }

  /** Whether enough locks agree. */
  get hasEnough(): boolean {
    // The maximum is certainly enough as long as the locks have not been counted. Without any lock, none can agree, and
    // an operator must confirm the clock.
    return this.agreeing >= (this.needed ?? MAX_NEEDED_LOCKS);
  }
}

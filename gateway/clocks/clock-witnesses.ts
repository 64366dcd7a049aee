/**
 * Counts the locks that confirm the machine's clock: five are needed, or all of the store where there are fewer, each
 * with a fresh ping whose own time agrees with it (quality.md §2).
 *
 * Simulated locks count only in a store that has no others: they take their time from a gateway or a machine such as
 * this one.
 */
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Source } from '../../proto/wire/ping.js';

/** How many locks are needed. */
export const WITNESSES_NEEDED = 5;
/** By how much a lock's time may differ from the machine's and still count as agreeing. */
export const AGREES_WITHIN: Milliseconds = Minutes(5);

/** What an uplink tells about the time. */
export interface Testimony {
  readonly deviceId: number;
  readonly source: Source;
  readonly simulated: boolean;
  /** When the lock made it, by its own clock, ms since the epoch. */
  readonly timeMs: number;
  /** How many earlier uplinks the lock still has buffered. Where that is not 0, this one may not be fresh. */
  readonly kept: number;
}

/** How many locks are in service. */
export interface LockCount {
  readonly real: number;
  readonly simulated: number;
}

export class ClockWitnesses {
  readonly #real = new Set<number>();
  readonly #simulated = new Set<number>();
  #count: LockCount | undefined;

  /** Takes an uplink into account, where it is a lock's, fresh, and agrees with the machine's clock. */
  hear({ deviceId, source, simulated, timeMs, kept }: Testimony, machineMs: number): void {
    if (source !== 'lock' || kept !== 0 || !(Math.abs(timeMs - machineMs) <= AGREES_WITHIN)) return;
    const witnesses = simulated ? this.#simulated : this.#real;
    // No more than needed are remembered.
    if (witnesses.size < WITNESSES_NEEDED) witnesses.add(deviceId);
  }

  /** Sets how many locks there are. */
  expect(count: LockCount): void {
    this.#count = count;
  }

  /** How many locks agree. */
  get agreeing(): number {
    return this.#count?.real === 0 ? this.#simulated.size : this.#real.size;
  }

  /** How many must agree; null where there are no locks, or they have not been counted yet. */
  get needed(): number | null {
    if (this.#count === undefined) return null;
    const { real, simulated } = this.#count;
    return Math.min(real === 0 ? simulated : real, WITNESSES_NEEDED) || null;
  }

  /** Whether enough of them agree. */
  get areEnough(): boolean {
    return this.agreeing >= (this.needed ?? WITNESSES_NEEDED);
  }
}

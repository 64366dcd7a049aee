/**
 * Stands between the machine's clock and all that can't be undone: what is deleted by age, months that are closed, what
 * expires (quality.md §2).
 *
 * The gateway keeps two clocks that run by the monotonic one, `wall` and `run`, and both are *confirmed* times. Once a
 * second they are held against the machine's date:
 *
 * - agrees: it is at most a day ahead and 5 min behind. `wall` follows it forward, not back, and `run` follows `wall`.
 * - ahead: it leapt, by more than a day past what was last noted. Both go on from where they were.
 * - behind: it was set back. Both go on from where they were.
 *
 * From *ahead* and *behind* there are three ways out: locks' fresh pings agree with the machine's clock, an operator
 * confirms it, or it comes back. The first two set `wall` to it. Since nothing was stored under the time that nobody
 * confirmed, there is nothing to take back where it proves wrong.
 *
 * In a sped-up run `run` goes its own way, and follows nobody.
 */
import { Days, type Milliseconds, Minutes } from '../../proto/clock.js';
import { AGREES_WITHIN, ClockWitnesses, type LockCount, type Testimony } from './clock-witnesses.js';
import type { MachineClock } from './machine-clock.js';
import { SteadyClock } from './steady-clock.js';

/** A machine's clock further ahead than this is not believed by itself. */
export const LEAP_OVER: Milliseconds = Days(1);
/** A clock that is further behind than this is reported. */
export const BEHIND_OVER: Milliseconds = Minutes(5);
/** A step of the run's clock that is longer is not taken for silence of the locks. */
const SILENT_STEP: Milliseconds = Minutes(1);

export const CLOCK_STATES = ['agrees', 'ahead', 'behind'] as const;
export type ClockState = (typeof CLOCK_STATES)[number];

/** How the machine's clock stands to the confirmed one. Times are ms since the epoch. */
export interface ClockReading {
  readonly state: ClockState;
  readonly machineMs: number;
  readonly confirmedMs: number;
  /** Since when it does not agree, by the confirmed clock; null where it does. */
  readonly sinceMs: number | null;
  /** How many locks agree with the machine's clock while nobody else confirms it, and how many have to. */
  readonly agreeing: number;
  readonly needed: number | null;
}

/** Who or what made the clocks agree again; null where they don't. */
export type ClockAuthority = 'locks' | 'operator' | 'machine' | null;

/** A step of the run's clock: from when to when, ms since the epoch. */
export interface RunStep {
  readonly fromMs: number;
  readonly toMs: number;
  /** Since when the machine's clock was not believed, by the run's clock; null where it was all the time. */
  readonly doubtedSinceMs: number | null;
}

export interface ClockGuardParts {
  readonly machine: MachineClock;
  /** Where the two clocks go on, ms since the epoch. */
  readonly wallMs: number;
  readonly runMs: number;
  /** How many times as fast as life `run` goes; at any other speed than 1 it does not follow `wall`. */
  readonly speed: number;
  /** Told when the state changed, or the machine's clock leapt again. */
  readonly onTurn: (reading: ClockReading, by: ClockAuthority) => void;
  /** Told of a step of the run's clock of over a minute; it calls `take`, which makes the step, exactly once. */
  readonly onStep: (step: RunStep, take: () => void) => void;
}

/** While the machine's clock is not believed. */
interface Doubt {
  readonly state: 'ahead' | 'behind';
  /** By how much the machine's clock is ahead of the confirmed one; negative where it is behind. */
  readonly aheadMs: Milliseconds;
  readonly sinceMs: number;
  readonly sinceRunMs: number;
  readonly witnesses: ClockWitnesses;
}

export class ClockGuard {
  readonly run: SteadyClock;
  readonly wall: SteadyClock;
  readonly #parts: ClockGuardParts;
  #doubt: Doubt | undefined;
  #lockCount: LockCount | undefined;

  constructor(parts: ClockGuardParts) {
    const { machine, wallMs, runMs, speed } = parts;
    this.#parts = parts;
    this.wall = new SteadyClock(machine, wallMs);
    this.run = new SteadyClock(machine, runMs, speed);
  }

  /** Whether the machine's clock waits to be confirmed: then every uplink is of interest. */
  get isDoubted(): boolean {
    return this.#doubt !== undefined;
  }

  /** By how much the machine's clock is ahead of the confirmed one, negative where behind; 0 where they agree. */
  get aheadMs(): Milliseconds {
    return this.#doubt?.aheadMs ?? 0;
  }

  reading(): ClockReading {
    const { state = 'agrees', sinceMs = null, witnesses } = this.#doubt ?? {};
    const [machineMs, confirmedMs] = [this.#parts.machine.wall(), this.wall.now()];
    const [agreeing, needed] = [witnesses?.agreeing ?? 0, witnesses?.needed ?? null];
    return { state, machineMs, confirmedMs, sinceMs, agreeing, needed };
  }

  /** Holds both clocks against the machine's. To be called often. */
  look(): void {
    const machineMs = this.#parts.machine.wall();
    const aheadMs = machineMs - this.wall.now();
    const state = stateOf(aheadMs);
    if (state === 'agrees') {
      if (aheadMs > 0) this.wall.set(machineMs);
      this.#agree('machine');
      return;
    }
    const before = this.#doubt;
    if (before?.state === state && Math.abs(before.aheadMs - aheadMs) <= AGREES_WITHIN) return;
    const witnesses = new ClockWitnesses();
    if (this.#lockCount !== undefined) witnesses.expect(this.#lockCount);
    const [sinceMs, sinceRunMs] = [before?.sinceMs ?? this.wall.now(), before?.sinceRunMs ?? this.run.now()];
    this.#doubt = { state, aheadMs, sinceMs, sinceRunMs, witnesses };
    this.#parts.onTurn(this.reading(), null);
  }

  /** An uplink came. Where its lock is the last that was needed, the machine's clock is confirmed when this returns. */
  hear(testimony: Testimony): void {
    this.#doubt?.witnesses.hear(testimony, this.#parts.machine.wall());
    this.#askWitnesses();
  }

  /** So many locks are in service. */
  expect(count: LockCount): void {
    this.#lockCount = count;
    this.#doubt?.witnesses.expect(count);
    this.#askWitnesses();
  }

  #askWitnesses(): void {
    if (this.#doubt?.witnesses.areEnough === true) this.confirm('locks');
  }

  /** The machine's clock is right. */
  confirm(by: 'locks' | 'operator'): void {
    // It may have been set since the last look.
    this.look();
    if (this.#doubt === undefined) return;
    this.wall.set(this.#parts.machine.wall());
    this.#agree(by);
  }

  /**
   * Whether something that was made at one time and expires at another may be over or not, for all that is known: by
   * the confirmed clock it is not, by the machine's it is. Both times are by the run's clock. What was made since the
   * machine's clock leapt is not in doubt, since the run's clock has measured its time.
   */
  isExpiryDoubtful(madeAtMs: number, expiresAtMs: number): boolean {
    if (this.#doubt?.state !== 'ahead' || madeAtMs > this.#doubt.sinceRunMs) return false;
    return expiresAtMs <= this.run.now() + this.#doubt.aheadMs;
  }

  /** The two agree: the run's clock follows, and whoever heard of the doubt hears that it is over. */
  #agree(by: ClockAuthority): void {
    const doubtedSinceMs = this.#doubt?.sinceRunMs ?? null;
    const wasDoubted = this.#doubt !== undefined;
    this.#doubt = undefined;
    const [fromMs, toMs] = [this.run.now(), this.wall.now()];
    if (this.#parts.speed === 1 && toMs > fromMs) {
      if (toMs - fromMs <= SILENT_STEP) this.run.set(toMs);
      else this.#parts.onStep({ fromMs, toMs, doubtedSinceMs }, () => this.run.set(toMs));
    }
    if (wasDoubted) this.#parts.onTurn(this.reading(), by);
  }
}

function stateOf(aheadMs: Milliseconds): ClockState {
  if (aheadMs > LEAP_OVER) return 'ahead';
  return aheadMs < -BEHIND_OVER ? 'behind' : 'agrees';
}

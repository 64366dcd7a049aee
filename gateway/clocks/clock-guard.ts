/**
 * Protects actions that can't be undone (deletion by age, closing of months, expiry) from a wrong machine clock
 * (quality.md §2).
 *
 * The gateway has two clocks that run by the machine's monotonic clock: `wall`, the date, and `run`, the run's clock,
 * which stamps receipts and which a demonstration can speed up (protocol.md §3). Both show *confirmed* times. Once a
 * second `wall` is compared with the machine's date, and the guard is in one of three states:
 *
 * - `agrees`: the machine's date is at most a day ahead and at most 5 min behind. `wall` follows the date forward, not
 *   back; `run` follows `wall`.
 * - `ahead`: the machine's date jumped to more than a day past the confirmed time. Both clocks ignore it and continue.
 * - `behind`: the machine's date was set back by more than 5 min. Both clocks ignore it and continue.
 *
 * Every state may follow every other, since the machine's clock can be set to any time. The guard returns to `agrees`
 * when fresh pings of locks agree with the date, when an operator confirms the date, or when the date is set right. In
 * the first two cases `wall` is set to the date. Nothing is stored with an unconfirmed time, so a wrong date leaves
 * nothing to undo.
 *
 * In a sped-up run, `run` does not follow `wall`.
 */
import { Days, type Milliseconds, Minutes } from '../../proto/clock.js';
import { ClockWitnesses, type LockCount, MAX_AGREEING_DIFFERENCE, type ReportedTime } from './clock-witnesses.js';
import type { MachineClock } from './machine-clock.js';
import { SteadyClock } from './steady-clock.js';

/** A machine clock that is further ahead than this needs confirmation. */
export const MAX_AHEAD: Milliseconds = Days(1);
/** A machine clock that is further behind than this is reported. */
export const MAX_BEHIND: Milliseconds = Minutes(5);
/**
 * Longer steps of the run's clock are passed to `onStep`, so that the judge does not take the time that was skipped for
 * time in which the locks were silent.
 */
const MAX_STEP_WITHOUT_CALLBACK: Milliseconds = Minutes(1);

export const CLOCK_STATES = ['agrees', 'ahead', 'behind'] as const;
export type ClockState = (typeof CLOCK_STATES)[number];

/** The machine's clock compared with the confirmed one. Times are ms since the epoch. */
export interface ClockReading {
  readonly state: ClockState;
  readonly machineMs: number;
  readonly confirmedMs: number;
  /** Since when the clocks disagree, by the confirmed clock; null if they agree. */
  readonly sinceMs: number | null;
  /** How many locks agree with the machine's clock while it is in doubt, and how many must; null if unknown. */
  readonly agreeing: number;
  readonly needed: number | null;
}

/** Who confirmed the machine's clock, or `machine` if it was set right; null if the clocks do not agree. */
export type ClockAuthority = 'locks' | 'operator' | 'machine' | null;

/** A step of the run's clock, from one time to another, ms since the epoch. */
export interface RunStep {
  readonly fromMs: number;
  readonly toMs: number;
  /** Since when the machine's clock was in doubt, by the run's clock; null if it was not. */
  readonly doubtedSinceMs: number | null;
}

export interface ClockGuardParts {
  readonly machine: MachineClock;
  /** The times at which the two clocks start, ms since the epoch. */
  readonly wallMs: number;
  readonly runMs: number;
  /** The speed of `run` relative to real time; at any other speed than 1 it does not follow `wall`. */
  readonly speed: number;
  /** Called when the state changed, or the machine's clock jumped again. */
  readonly onStateChange: (reading: ClockReading, by: ClockAuthority) => void;
  /** Called before a step of the run's clock of over a minute. It must call `makeStep` once. */
  readonly onStep: (step: RunStep, makeStep: () => void) => void;
}

/** The doubt about the machine's clock, in the states `ahead` and `behind`. */
interface Doubt {
  readonly state: 'ahead' | 'behind';
  /** By how much the machine's clock is ahead of the confirmed one; negative if it is behind. */
  readonly aheadMs: Milliseconds;
  /** Since when the machine's clock has been in doubt, by `wall` and by `run`. */
  readonly sinceMs: number;
  readonly sinceRunMs: number;
  /** The locks that agree with the machine's clock. */
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

  /** Whether the machine's clock is in doubt. The caller must then pass every uplink to {@link noteUplink}. */
  get isDoubted(): boolean {
    return this.#doubt !== undefined;
  }

  /** By how much the machine's clock is ahead of the confirmed one, negative if behind; 0 if they agree. */
  get aheadMs(): Milliseconds {
    return this.#doubt?.aheadMs ?? 0;
  }

  /** The machine's clock compared with the confirmed one, at this moment. */
  reading(): ClockReading {
    const { state = 'agrees', sinceMs = null, witnesses } = this.#doubt ?? {};
    const [machineMs, confirmedMs] = [this.#parts.machine.wall(), this.wall.now()];
    const [agreeing, needed] = [witnesses?.agreeing ?? 0, witnesses?.needed ?? null];
    return { state, machineMs, confirmedMs, sinceMs, agreeing, needed };
  }

  /** Compares `wall` with the machine's clock, and lets `run` follow `wall`. Must be called once a second. */
  compare(): void {
    const machineMs = this.#parts.machine.wall();
    const aheadMs = machineMs - this.wall.now();
    const state = stateOf(aheadMs);
    if (state === 'agrees') {
      if (aheadMs > 0) this.wall.set(machineMs);
      this.#agree('machine');
      return;
    }
    const before = this.#doubt;
    // The doubt goes on. A further jump of the machine's clock needs new witnesses.
    if (before?.state === state && Math.abs(before.aheadMs - aheadMs) <= MAX_AGREEING_DIFFERENCE) return;
    const witnesses = new ClockWitnesses();
    if (this.#lockCount !== undefined) witnesses.setLockCount(this.#lockCount);
    const [sinceMs, sinceRunMs] = [before?.sinceMs ?? this.wall.now(), before?.sinceRunMs ?? this.run.now()];
    this.#doubt = { state, aheadMs, sinceMs, sinceRunMs, witnesses };
    this.#parts.onStateChange(this.reading(), null);
  }

  /** Counts an uplink that agrees with the machine's clock. Confirms the machine's clock once enough locks agree. */
  noteUplink(reported: ReportedTime): void {
    this.#doubt?.witnesses.noteUplink(reported, this.#parts.machine.wall());
    this.#confirmIfEnough();
  }

  /** Sets the number of locks in service, which determines how many must agree. */
  setLockCount(count: LockCount): void {
    this.#lockCount = count;
    this.#doubt?.witnesses.setLockCount(count);
    this.#confirmIfEnough();
  }

  #confirmIfEnough(): void {
    if (this.#doubt?.witnesses.hasEnough === true) this.confirm('locks');
  }

  /** Confirms the machine's clock. */
  confirm(by: 'locks' | 'operator'): void {
    // The machine's clock may have been set since the last comparison.
    this.compare();
    if (this.#doubt === undefined) return;
    this.wall.set(this.#parts.machine.wall());
    this.#agree(by);
  }

  /**
   * Whether it is uncertain that something has expired, because the machine's clock says so and the confirmed one does
   * not. Callers must not ask about what has expired by the confirmed clock too. Both times are by the run's clock. The
   * expiry of anything made after the jump is certain, since the run's clock has measured its age.
   */
  isExpiryDoubtful(madeAtMs: number, expiresAtMs: number): boolean {
    if (this.#doubt?.state !== 'ahead' || madeAtMs > this.#doubt.sinceRunMs) return false;
    return expiresAtMs <= this.run.now() + this.#doubt.aheadMs;
  }

  /** Enters `agrees`: the run's clock follows, and the end of a doubt is reported. */
  #agree(by: ClockAuthority): void {
    const doubtedSinceMs = this.#doubt?.sinceRunMs ?? null;
    const wasDoubted = this.#doubt !== undefined;
    this.#doubt = undefined;
    const [fromMs, toMs] = [this.run.now(), this.wall.now()];
    if (this.#parts.speed === 1 && toMs > fromMs) {
      if (toMs - fromMs <= MAX_STEP_WITHOUT_CALLBACK) this.run.set(toMs);
      else this.#parts.onStep({ fromMs, toMs, doubtedSinceMs }, () => this.run.set(toMs));
    }
    if (wasDoubted) this.#parts.onStateChange(this.reading(), by);
  }
}

function stateOf(aheadMs: Milliseconds): ClockState {
  if (aheadMs > MAX_AHEAD) return 'ahead';
  return aheadMs < -MAX_BEHIND ? 'behind' : 'agrees';
}

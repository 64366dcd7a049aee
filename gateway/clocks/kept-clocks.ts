/**
 * The gateway's two clocks, whose times are recorded in the store every few seconds. At the next start the machine's
 * clock is compared with the recorded times (clock-guard.ts).
 *
 * Both clocks show confirmed times, so only confirmed times are recorded. The newest time of receipt in the store also
 * counts as a recorded time, since the run's clock stamps receipts.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import type { Store } from '../store/contract/store.js';
import { type ClockAuthority, ClockGuard, type ClockReading, type RunStep } from './clock-guard.js';
import type { Testimony } from './clock-witnesses.js';
import { type MachineClock, systemMachine } from './machine-clock.js';

/** The interval at which the clocks are recorded in the store. */
const NOTE_EVERY: Milliseconds = Seconds(5);
/** The interval at which the clocks are compared with the machine's. */
const LOOK_EVERY: Milliseconds = Seconds(1);
/** The interval at which locks are counted while the machine's clock is in doubt. */
const COUNT_EVERY: Milliseconds = Seconds(10);
/** Names of the store's metadata: the time of the run's clock, and the confirmed date. */
const RUN_FACT = 'run-clock-ms';
const WALL_FACT = 'wall-clock-ms';

export interface KeptClocksParts {
  readonly store: Pick<Store, 'readMetadata' | 'readLastReceivedAtMs' | 'writeMetadata' | 'listDevices'>;
  /** The speed of the run's clock, 1 for real time. */
  readonly speed: number;
  readonly machine?: MachineClock | undefined;
}

/** Notified of changes of the clocks. */
export interface ClockListener {
  /** The machine's clock has become doubtful, or is confirmed. */
  turned(reading: ClockReading, by: ClockAuthority): void;
  /** The run's clock is about to step. The listener must call `take`, which makes the step. */
  stepping(step: RunStep, take: () => void): void;
}

/** The doubt about the machine's clock, for parts that handle uplinks and expiry. */
export interface ClockDoubt {
  /** While true, the caller must pass every uplink to {@link hear}. */
  readonly isDoubted: boolean;
  /** By how much the machine's clock is ahead of the confirmed one; 0 if they agree. */
  readonly aheadMs: Milliseconds;
  hear(testimony: Testimony): void;
  isExpiryDoubtful(madeAtMs: number, expiresAtMs: number): boolean;
}

const NO_DOUBT: ClockDoubt = Object.freeze({
  isDoubted: false,
  aheadMs: 0,
  hear: () => undefined,
  isExpiryDoubtful: () => false,
});

export class KeptClocks {
  /** The run's clock (protocol.md §3). It never goes back. */
  readonly run: Clock;
  /** The confirmed date; in a sped-up run, which has no real bills, the machine's date. */
  readonly wall: Clock;
  readonly doubt: ClockDoubt;
  /** The last recorded time of the run's clock before this start; null in a new store. */
  readonly lastRanMs: number | null;
  readonly #parts: KeptClocksParts;
  readonly #machine: MachineClock;
  readonly #guard: ClockGuard;
  readonly #isSpedUp: boolean;
  #listener: ClockListener | undefined;
  #lookTimer: Timer | undefined;
  #noteTimer: Timer | undefined;
  #countedAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  private constructor(parts: KeptClocksParts, last: { readonly ranMs: number; readonly wallMs: number }) {
    const machine = parts.machine ?? systemMachine;
    this.#parts = parts;
    this.#machine = machine;
    this.#isSpedUp = parts.speed !== 1;
    this.lastRanMs = last.ranMs || null;
    const { ranMs: runMs, wallMs } = last;
    const { speed } = parts;
    const guard = new ClockGuard({ machine, wallMs, runMs, speed, onTurn: this.#turned, onStep: this.#stepping });
    this.#guard = guard;
    // The first comparison sets the date to the machine's, unless the machine's is in doubt.
    guard.look();
    guard.run.set(Math.max(guard.run.now(), guard.wall.now()));
    this.run = guard.run;
    this.wall = this.#isSpedUp ? { now: () => machine.wall(), after: machine.after } : guard.wall;
    this.doubt = this.#isSpedUp ? NO_DOUBT : guard;
  }

  /** Continues from the recorded times. Rejects if the store fails. */
  static async start(parts: KeptClocksParts): Promise<KeptClocks> {
    const { store, machine = systemMachine } = parts;
    const ranMs = Math.max(
      Number((await store.readMetadata(RUN_FACT)) ?? 0),
      (await store.readLastReceivedAtMs()) ?? 0,
    );
    const noted = await store.readMetadata(WALL_FACT);
    // A store without a recorded date is from an older version. Its run's clock was never behind the date, but in demos
    // ahead of it.
    const before = ranMs === 0 ? machine.wall() : Math.min(ranMs, machine.wall());
    const clocks = new KeptClocks(parts, { ranMs, wallMs: noted === null ? before : Number(noted) });
    await clocks.#note();
    clocks.#keepLooking();
    clocks.#keepNoting();
    return clocks;
  }

  /** The machine's clock compared with the confirmed one. In a sped-up run nothing depends on this, so they agree. */
  reading(): ClockReading {
    const reading = this.#guard.reading();
    if (!this.#isSpedUp) return reading;
    return { ...reading, state: 'agrees', confirmedMs: reading.machineMs, sinceMs: null, agreeing: 0, needed: null };
  }

  /** Sets the listener. Notifies it at once if the machine's clock is in doubt. */
  listen(listener: ClockListener): StopStep {
    this.#listener = listener;
    const reading = this.reading();
    if (reading.state !== 'agrees') listener.turned(reading, null);
    return stopStep('the watch on the machine’s clock', async () => {
      this.#listener = undefined;
    });
  }

  /** Confirms the machine's clock for an operator. Resolves when stored; rejects if the store fails. */
  async confirm(): Promise<void> {
    this.#guard.confirm('operator');
    await this.#note();
  }

  /** Records the clocks a last time, and stops. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#lookTimer?.cancel();
    this.#noteTimer?.cancel();
    await this.#note().catch(() => undefined);
  }

  readonly #turned = (reading: ClockReading, by: ClockAuthority): void => {
    this.#countedAt = Number.NEGATIVE_INFINITY;
    if (!this.#isSpedUp) this.#listener?.turned(reading, by);
  };

  readonly #stepping = (step: RunStep, take: () => void): void => {
    if (this.#listener === undefined) take();
    else this.#listener.stepping(step, take);
  };

  #keepLooking(): void {
    if (this.#isStopped) return;
    this.#guard.look();
    if (this.doubt.isDoubted && this.#machine.monotonic() - this.#countedAt >= COUNT_EVERY) void this.#countLocks();
    this.#lookTimer = this.#machine.after(LOOK_EVERY, () => this.#keepLooking());
  }

  async #countLocks(): Promise<void> {
    this.#countedAt = this.#machine.monotonic();
    try {
      const devices = await this.#parts.store.listDevices();
      const simulated = devices.filter(({ device }) => device.simulated).length;
      this.#guard.expect({ real: devices.length - simulated, simulated });
    } catch {
      // health/store.ts reports a failing store. The next count is soon.
    }
  }

  /** Records both clocks, in one commit. */
  async #note(): Promise<void> {
    const { store } = this.#parts;
    const [run, wall] = [String(this.run.now()), String(this.#guard.wall.now())];
    await Promise.all([store.writeMetadata(RUN_FACT, run), store.writeMetadata(WALL_FACT, wall)]);
  }

  #keepNoting(): void {
    // The clocks may have been stopped during a write.
    if (this.#isStopped) return;
    const again = (): void => this.#keepNoting();
    // health/store.ts reports a failing store. The next write is tried anyway.
    this.#noteTimer = this.#machine.after(NOTE_EVERY, () => void this.#note().then(again, again));
  }
}

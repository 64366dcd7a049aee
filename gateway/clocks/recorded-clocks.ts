/**
 * The gateway's two clocks, whose times are recorded in the store every few seconds: the run's clock, by which locks
 * live and which may be sped up, and the date. At the next start the machine's clock is compared with the recorded
 * times (clock-guard.ts).
 *
 * A machine's clock that leaps is in doubt until enough locks, or an operator, confirm it; meanwhile both clocks go on
 * from their last times, so a doubtful time is never recorded. The newest time of receipt in the store also counts as a
 * recorded time, since the run's clock stamps receipts.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import type { Store } from '../store/contract/store.js';
import { type ClockAuthority, ClockGuard, type ClockReading, type RunStep } from './clock-guard.js';
import type { ReportedTime } from './clock-witnesses.js';
import { type MachineClock, systemMachine } from './machine-clock.js';

/** The interval at which the clocks are recorded in the store. */
const RECORD_INTERVAL: Milliseconds = Seconds(5);
/** The interval at which the clocks are compared with the machine's. */
const COMPARE_INTERVAL: Milliseconds = Seconds(1);
/** The interval at which locks are counted while the machine's clock is in doubt. */
const COUNT_INTERVAL: Milliseconds = Seconds(10);
/** Names of the store's metadata: the time of the run's clock, and the confirmed date. */
const RUN_METADATA_NAME = 'run-clock-ms';
const WALL_METADATA_NAME = 'wall-clock-ms';

export interface RecordedClocksParts {
  readonly store: Pick<Store, 'readMetadata' | 'readLastReceivedAtMs' | 'writeMetadata' | 'listDevices'>;
  /** The speed of the run's clock, 1 for real time. */
  readonly speed: number;
  readonly machine?: MachineClock | undefined;
}

/** Notified of changes of the clocks. */
export interface ClockListener {
  /** The machine's clock has become doubtful, or is confirmed. */
  stateChanged(reading: ClockReading, by: ClockAuthority): void;
  /** The run's clock is about to step. The listener must call `makeStep`. */
  stepping(step: RunStep, makeStep: () => void): void;
}

/** The doubt about the machine's clock, for parts that handle uplinks and expiry. */
export interface ClockDoubt {
  /** While true, the caller must pass every uplink to {@link noteUplink}. */
  readonly isDoubted: boolean;
  /** By how much the machine's clock is ahead of the confirmed one, negative if behind; 0 if they agree. */
  readonly aheadMs: Milliseconds;
  /** Passes on the time that a lock reports: enough locks confirm the machine's clock. */
  noteUplink(reported: ReportedTime): void;
  /** Whether something has expired by the machine's clock but not by the confirmed one; times by the run's clock. */
  isExpiryDoubtful(madeAtMs: number, expiresAtMs: number): boolean;
}

const NO_DOUBT: ClockDoubt = Object.freeze({
  isDoubted: false,
  aheadMs: 0,
  noteUplink: () => undefined,
  isExpiryDoubtful: () => false,
});

export class RecordedClocks {
  /** The run's clock (protocol.md §3). It never goes back. */
  readonly run: Clock;
  /** The confirmed date; in a sped-up run, which has no real bills, the machine's date. */
  readonly wall: Clock;
  readonly doubt: ClockDoubt;
  /** The last recorded time of the run's clock before this start; null in a new store. */
  readonly lastRanMs: number | null;
  readonly #parts: RecordedClocksParts;
  readonly #machine: MachineClock;
  readonly #guard: ClockGuard;
  readonly #isSpedUp: boolean;
  #listener: ClockListener | undefined;
  #compareTimer: Timer | undefined;
  #recordTimer: Timer | undefined;
  /** When locks were last counted, ms by the machine's monotonic clock. */
  #countedAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  private constructor(parts: RecordedClocksParts, last: { readonly ranMs: number; readonly wallMs: number }) {
    const machine = parts.machine ?? systemMachine;
    this.#parts = parts;
    this.#machine = machine;
    this.#isSpedUp = parts.speed !== 1;
    this.lastRanMs = last.ranMs || null;
    const { ranMs: runMs, wallMs } = last;
    const { speed } = parts;
    const guard = new ClockGuard({
      machine,
      wallMs,
      runMs,
      speed,
      onStateChange: this.#onStateChange,
      onStep: this.#onStep,
    });
    this.#guard = guard;
    // The first comparison sets the date to the machine's, unless the machine's is in doubt.
    guard.compare();
    // Between two runs the run's clock stood still. It catches up with the date, unless it is ahead of the date.
    guard.run.set(Math.max(guard.run.now(), guard.wall.now()));
    this.run = guard.run;
    this.wall = this.#isSpedUp ? { now: () => machine.wall(), after: machine.after } : guard.wall;
    this.doubt = this.#isSpedUp ? NO_DOUBT : guard;
  }

  /** Continues from the recorded times. Rejects if the store fails. */
  static async start(parts: RecordedClocksParts): Promise<RecordedClocks> {
    const { store, machine = systemMachine } = parts;
    const ranMs = Math.max(
      Number((await store.readMetadata(RUN_METADATA_NAME)) ?? 0),
      (await store.readLastReceivedAtMs()) ?? 0,
    );
    const recordedWall = await store.readMetadata(WALL_METADATA_NAME);
    // A store without a recorded date is new, or from an older version. In the latter the run's clock was at the date,
    // or ahead of it in demos, so the date was at most the earlier of that clock and the machine's.
    const assumedWallMs = ranMs === 0 ? machine.wall() : Math.min(ranMs, machine.wall());
    const wallMs = recordedWall === null ? assumedWallMs : Number(recordedWall);
    const clocks = new RecordedClocks(parts, { ranMs, wallMs });
    await clocks.#record();
    clocks.#compareRepeatedly();
    clocks.#recordRepeatedly();
    return clocks;
  }

  /** The speed of the run's clock, 1 for real time. */
  get speed(): number {
    return this.#parts.speed;
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
    if (reading.state !== 'agrees') listener.stateChanged(reading, null);
    return stopStep('the watch on the machine’s clock', async () => {
      this.#listener = undefined;
    });
  }

  /** Confirms the machine's clock for an operator. Resolves when stored; rejects if the store fails. */
  async confirm(): Promise<void> {
    this.#guard.confirm('operator');
    await this.#record();
  }

  /** Records the clocks a last time, and stops. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#compareTimer?.cancel();
    this.#recordTimer?.cancel();
    // Without this record the next start continues from the one before it, which is a few seconds older.
    await this.#record().catch(() => undefined);
  }

  readonly #onStateChange = (reading: ClockReading, by: ClockAuthority): void => {
    // In a new doubt the locks are counted at once.
    this.#countedAt = Number.NEGATIVE_INFINITY;
    if (!this.#isSpedUp) this.#listener?.stateChanged(reading, by);
  };

  readonly #onStep = (step: RunStep, makeStep: () => void): void => {
    if (this.#listener === undefined) makeStep();
    else this.#listener.stepping(step, makeStep);
  };

  #compareRepeatedly(): void {
    if (this.#isStopped) return;
    this.#guard.compare();
    if (this.doubt.isDoubted && this.#machine.monotonic() - this.#countedAt >= COUNT_INTERVAL) void this.#countLocks();
    this.#compareTimer = this.#machine.after(COMPARE_INTERVAL, () => this.#compareRepeatedly());
  }

  async #countLocks(): Promise<void> {
    this.#countedAt = this.#machine.monotonic();
    try {
      const devices = await this.#parts.store.listDevices();
      const simulated = devices.filter(({ device }) => device.simulated).length;
      this.#guard.setLockCount({ real: devices.length - simulated, simulated });
    } catch {
      // health/store.ts reports a failing store. The next count is soon.
    }
  }

  /** Records both clocks. The store puts writes that are issued together into one commit. */
  async #record(): Promise<void> {
    const { store } = this.#parts;
    const [run, wall] = [String(this.run.now()), String(this.#guard.wall.now())];
    await Promise.all([store.writeMetadata(RUN_METADATA_NAME, run), store.writeMetadata(WALL_METADATA_NAME, wall)]);
  }

  #recordRepeatedly(): void {
    // The clocks may have been stopped during a write.
    if (this.#isStopped) return;
    const again = (): void => this.#recordRepeatedly();
    // health/store.ts reports a failing store. The next write is tried anyway.
    this.#recordTimer = this.#machine.after(RECORD_INTERVAL, () => void this.#record().then(again, again));
  }
}

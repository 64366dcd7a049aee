/**
 * The gateway's two clocks, which the store keeps: where they stood when a gateway was last seen to run is what a
 * machine's clock is held against at the next start (clock-guard.ts).
 *
 * Both are confirmed times, so what the store has of them is one too: a clock that leapt and was not confirmed is in no
 * row. The newest receipt counts beside the notes, since receipts are by the run's clock.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import type { Store } from '../store/contract/store.js';
import { type ClockAuthority, ClockGuard, type ClockReading, type RunStep } from './clock-guard.js';
import type { Testimony } from './clock-witnesses.js';
import { type MachineClock, systemMachine } from './machine-clock.js';

/** How often the clocks are noted in the store. */
const NOTE_EVERY: Milliseconds = Seconds(5);
/** How often they are held against the machine's. */
const LOOK_EVERY: Milliseconds = Seconds(1);
/** How often locks are counted while the machine's clock is doubted. */
const COUNT_EVERY: Milliseconds = Seconds(10);
/** The store's facts: the run's clock, and the confirmed date. */
const RUN_FACT = 'run-clock-ms';
const WALL_FACT = 'wall-clock-ms';

export interface KeptClocksParts {
  readonly store: Pick<Store, 'readMetadata' | 'readLastReceivedAtMs' | 'writeMetadata' | 'listDevices'>;
  /** How fast the run's clock goes, 1 for real life. */
  readonly speed: number;
  readonly machine?: MachineClock | undefined;
}

/** Who has to know. */
export interface ClockListener {
  /** The machine's clock is believed no longer, or again. */
  turned(reading: ClockReading, by: ClockAuthority): void;
  /** The run's clock is to make a step, which no lock slept through; `take` makes it. */
  stepping(step: RunStep, take: () => void): void;
}

/** What an unconfirmed clock means for those who act on uplinks and on what expires. */
export interface ClockDoubt {
  /** While it is so, {@link hear} wants every uplink. */
  readonly isDoubted: boolean;
  /** By how much the machine's clock is ahead of the confirmed one; 0 where they agree. */
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
  /** The date as far as it is confirmed; in a sped-up run, which bills nobody, the machine's. */
  readonly wall: Clock;
  readonly doubt: ClockDoubt;
  /** Where the run's clock stood when it was last seen to run, before this start; null in a new store. */
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
    // The first look brings the date up to the machine's, where that is to be believed.
    guard.look();
    guard.run.set(Math.max(guard.run.now(), guard.wall.now()));
    this.run = guard.run;
    this.wall = this.#isSpedUp ? { now: () => machine.wall(), after: machine.after } : guard.wall;
    this.doubt = this.#isSpedUp ? NO_DOUBT : guard;
  }

  /** Goes on from where the store last saw them. Rejects where the store fails. */
  static async start(parts: KeptClocksParts): Promise<KeptClocks> {
    const { store, machine = systemMachine } = parts;
    const ranMs = Math.max(
      Number((await store.readMetadata(RUN_FACT)) ?? 0),
      (await store.readLastReceivedAtMs()) ?? 0,
    );
    const noted = await store.readMetadata(WALL_FACT);
    // A store from before dates were noted: the run's clock was never behind the date, and ahead of it in a demo's.
    const before = ranMs === 0 ? machine.wall() : Math.min(ranMs, machine.wall());
    const clocks = new KeptClocks(parts, { ranMs, wallMs: noted === null ? before : Number(noted) });
    await clocks.#note();
    clocks.#keepLooking();
    clocks.#keepNoting();
    return clocks;
  }

  /** How the machine's clock stands to the confirmed one. In a sped-up run nothing goes by it, and it agrees. */
  reading(): ClockReading {
    const reading = this.#guard.reading();
    if (!this.#isSpedUp) return reading;
    return { ...reading, state: 'agrees', confirmedMs: reading.machineMs, sinceMs: null, agreeing: 0, needed: null };
  }

  /** From now on this listener hears of turns and steps; at once, where the machine's clock is not believed. */
  listen(listener: ClockListener): StopStep {
    this.#listener = listener;
    const reading = this.reading();
    if (reading.state !== 'agrees') listener.turned(reading, null);
    return stopStep('the watch on the machine’s clock', async () => {
      this.#listener = undefined;
    });
  }

  /** An operator says that the machine's clock is right; durable when this resolves. Rejects where the store fails. */
  async confirm(): Promise<void> {
    this.#guard.confirm('operator');
    await this.#note();
  }

  /** Notes them a last time; nothing of it is left when this resolves. */
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
      // The watch on the store has reported it; they are counted again soon.
    }
  }

  /** Both go into one commit. */
  async #note(): Promise<void> {
    const { store } = this.#parts;
    const [run, wall] = [String(this.run.now()), String(this.#guard.wall.now())];
    await Promise.all([store.writeMetadata(RUN_FACT, run), store.writeMetadata(WALL_FACT, wall)]);
  }

  #keepNoting(): void {
    // A note that was under way when the clocks were stopped ends here too.
    if (this.#isStopped) return;
    const again = (): void => this.#keepNoting();
    // Should the store fail, the ingest says so; the next note is tried all the same.
    this.#noteTimer = this.#machine.after(NOTE_EVERY, () => void this.#note().then(again, again));
  }
}

/**
 * Deletes what was received longer ago than the settings allow, in small steps with pauses, so that a ping never waits
 * for more than one of them.
 *
 * An event that was not delivered to a URL yet stays, however old it is, until it is delivered or the URL is disabled.
 * A repeat of a deleted uplink would count as new; uplinks may be 30 days late (protocol.md §3), so nothing younger
 * than that is deleted.
 */
import { type Clock, Days, Hours, type Milliseconds, Minutes, type Timer } from '../proto/clock.js';
import type { GatewayEvents, Swept } from './events.js';
import { AGING_TABLES, type Store } from './store/contract/store.js';

/** Rows examined in one step, which is one transaction of some milliseconds. */
const STEP_ROWS = 200;
/** The pause between two steps, which leaves the store to the pings. */
const STEP_PAUSE: Milliseconds = 20;
/** From the start of the gateway to the first sweep, and from the end of one to the next. */
const FIRST_AFTER = Minutes(1);
const SWEEP_EVERY = Hours(1);

export interface RetentionParts {
  readonly store: Pick<Store, 'deleteOld'>;
  readonly events: GatewayEvents;
  /** How long things are stored, in days; 0 for ever. */
  readonly keepDays: number;
  /** The wall clock, for the intervals. */
  readonly clock: Clock;
  /** The run's clock, which stamped the log. */
  readonly runClock: Clock;
}

export class Retention {
  readonly #parts: RetentionParts;
  #timer: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #endPause: (() => void) | undefined;
  #stopped = false;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#parts.keepDays > 0) this.#sweepAfter(FIRST_AFTER);
  }

  /** Resolves after the step that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#endPause?.();
    await this.#sweeping;
  }

  #sweepAfter(delay: Milliseconds): void {
    this.#timer = this.#parts.clock.after(delay, () => {
      this.#sweeping = this.#sweep().finally(() => {
        if (!this.#stopped) this.#sweepAfter(SWEEP_EVERY);
      });
    });
  }

  async #sweep(): Promise<void> {
    const { events, runClock, keepDays } = this.#parts;
    const swept = { beforeMs: runClock.now() - Days(keepDays), uplinks: 0, others: 0, held: 0 };
    try {
      for (const table of AGING_TABLES) await this.#sweepTable(table, swept);
    } catch (error) {
      // The next sweep tries again.
      events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
    }
    if (swept.uplinks + swept.others + swept.held > 0) events.emit('swept', { atMs: runClock.now(), ...swept });
  }

  async #sweepTable(table: (typeof AGING_TABLES)[number], swept: Mutable<Omit<Swept, 'atMs'>>): Promise<void> {
    const { beforeMs } = swept;
    for (let afterId: number | null = 0; afterId !== null && !this.#stopped; ) {
      const piece = { table, beforeMs, afterId, limit: STEP_ROWS };
      const { deleted, held, nextId } = await this.#parts.store.deleteOld(piece);
      if (table === 'uplink') swept.uplinks += deleted;
      else swept.others += deleted;
      swept.held += held;
      afterId = nextId;
      if (nextId !== null) await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#stopped) return resolve();
      const timer = this.#parts.clock.after(STEP_PAUSE, resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

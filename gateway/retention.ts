/**
 * Deletes uplinks, lock events, findings and quarantined messages that are older than the configured number of days.
 * Works in small steps with pauses, so that a ping waits for at most one step.
 *
 * An undelivered event (stored ping) stays, however old it is, until it is delivered or its URL is disabled. A repeat
 * of a deleted uplink would count as new. Uplinks may be 30 days late (protocol.md §3), so the settings allow no
 * shorter time.
 */
import { type Clock, Days, Hours, type Milliseconds, Minutes, type Timer } from '../proto/clock.js';
import type { GatewayEvents } from './events.js';
import type { Swept } from './operation-events.js';
import { AGING_TABLES, SWEPT_METADATA } from './store/contract/deletion.js';
import type { Store } from './store/contract/store.js';

/** Rows examined in one step, which is one transaction of some milliseconds. */
const STEP_ROWS = 200;
/** The pause between two steps, in which pings have the store to themselves. */
const STEP_PAUSE: Milliseconds = 20;
/** From the start of the gateway to the first sweep, and from the end of a sweep to the next sweep. */
const FIRST_SWEEP_DELAY = Minutes(1);
const SWEEP_INTERVAL = Hours(1);

export interface RetentionParts {
  readonly store: Pick<Store, 'deleteOld' | 'readMetadata' | 'writeMetadata' | 'ownership'>;
  readonly events: GatewayEvents;
  /** How long rows are stored, in days; 0 means for ever. */
  readonly keepDays: number;
  /** Wall clock: times the intervals between steps and sweeps. */
  readonly clock: Clock;
  /** The run's clock (wall-clock time, except in a sped-up simulation), which stamped the rows. */
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

  /** Schedules the first sweep, unless rows are stored for ever. */
  start(): void {
    if (this.#parts.keepDays > 0) this.#sweepAfter(FIRST_SWEEP_DELAY);
  }

  /** Resolves after the current step. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#endPause?.();
    await this.#sweeping;
  }

  #sweepAfter(delay: Milliseconds): void {
    this.#timer = this.#parts.clock.after(delay, () => {
      this.#sweeping = this.#sweep().finally(() => {
        if (!this.#stopped) this.#sweepAfter(SWEEP_INTERVAL);
      });
    });
  }

  async #sweep(): Promise<void> {
    const { events, runClock, keepDays, store } = this.#parts;
    // One gateway does it for all.
    if (!store.ownership.duties.holds('retention')) return;
    const swept = { beforeMs: runClock.now() - Days(keepDays), uplinks: 0, others: 0, held: 0 };
    try {
      await this.#noteSweep(swept.beforeMs);
      for (const table of AGING_TABLES) await this.#sweepTable(table, swept);
    } catch (error) {
      // The next sweep tries again.
      events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
    }
    if (swept.uplinks + swept.others + swept.held > 0) events.emit('swept', { atMs: runClock.now(), ...swept });
  }

  /** Stores the time before which rows may be missing from now on: a reader of events may have its cursor there. */
  async #noteSweep(beforeMs: number): Promise<void> {
    const { store } = this.#parts;
    const earlierMs = Number((await store.readMetadata(SWEPT_METADATA)) ?? 0);
    if (beforeMs > earlierMs) await store.writeMetadata(SWEPT_METADATA, String(beforeMs));
  }

  /** Deletes the old rows of a table, step by step. `swept` counts them; `held` counts undelivered events. */
  async #sweepTable(table: (typeof AGING_TABLES)[number], swept: Mutable<Omit<Swept, 'atMs'>>): Promise<void> {
    const { beforeMs } = swept;
    for (let afterId: number | null = 0; afterId !== null && !this.#stopped; ) {
      const chunk = { table, beforeMs, afterId, limit: STEP_ROWS };
      const { deleted, held, nextId } = await this.#parts.store.deleteOld(chunk);
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

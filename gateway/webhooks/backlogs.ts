/**
 * Watches each webhook URL's backlog of undelivered events (stored pings), and emits a `backlog` event when a URL falls
 * far behind or catches up.
 *
 * Every ten seconds each URL's backlog is compared with two bounds: a number of events and an age. A URL beyond one of
 * them is *behind* until it is within half of both; then it has *caught up*. The gap between the bounds and their
 * halves keeps a URL near a bound from changing its state at every check.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { GatewayEvents } from '../events.js';
import type { Store } from '../store/contract/store.js';
import type { StoreFigures, UrlBacklog } from '../store/contract/store-figures.js';

const CHECK_INTERVAL: Milliseconds = Seconds(10);
/** More undelivered events than this put a URL behind. */
export const MAX_UNDELIVERED_EVENTS = 10_000;
/**
 * An undelivered event older than this also puts a URL behind. The age is in real time: by the run's clock, divided by
 * the run's speed. An hour, since by then a failed event has had three retries.
 */
export const MAX_UNDELIVERED_AGE: Milliseconds = Hours(1);

export interface BacklogsParts {
  readonly store: Pick<Store, 'readFigures'>;
  readonly events: GatewayEvents;
  /** The clock of the checks. */
  readonly clock: Clock;
  /** The run's clock, which stamps receipts. A demonstration can run it faster than real time. */
  readonly runClock: Clock;
  /** Seconds of the run's clock per second of real time. */
  readonly speed: number;
}

export class Backlogs {
  readonly #parts: BacklogsParts;
  readonly #behindUrls = new Set<number>();
  #timer: Timer | undefined;
  #checking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: BacklogsParts) {
    this.#parts = parts;
  }

  /** Starts the checks. */
  start(): void {
    this.#checking = this.#check().finally(() => this.#scheduleCheck());
  }

  /** Resolves when the running check has finished. */
  async checked(): Promise<void> {
    await this.#checking;
  }

  /** Stops the checks. Resolves when no read of the store is running. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#checking;
  }

  /** Reads the store's current figures. Rejects if the store can't be read. */
  async read(): Promise<StoreFigures> {
    return await this.#parts.store.readFigures();
  }

  /** How long the oldest undelivered event has waited, in ms by the run's clock; null if no event waits. */
  oldestAgeMs({ oldestReceivedAtMs }: UrlBacklog): Milliseconds | null {
    return oldestReceivedAtMs === null ? null : Math.max(this.#parts.runClock.now() - oldestReceivedAtMs, 0);
  }

  #scheduleCheck(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.clock.after(CHECK_INTERVAL, () => {
      this.#checking = this.#check().finally(() => this.#scheduleCheck());
    });
  }

  async #check(): Promise<void> {
    let backlogs: readonly UrlBacklog[];
    try {
      ({ backlogs } = await this.read());
    } catch {
      // health/store.ts reports a failing store. The URLs' states stay unchanged.
      return;
    }
    for (const backlog of backlogs) this.#update(backlog);
    const ids = new Set(backlogs.map(({ urlId }) => urlId));
    for (const urlId of this.#behindUrls) if (!ids.has(urlId)) this.#enter(urlId, 'caught-up', 'it was removed');
  }

  /**
   * Compares a backlog with the bounds.
   */
  #update(backlog: UrlBacklog): void {
    // In a backlog, `behind` counts events without an attempt, `pending` events with failed ones.
    const { urlId, isDisabled, behind: unattempted, pending: failed } = backlog;
    const isBehind = this.#behindUrls.has(urlId);
    const boundFactor = isBehind ? 0.5 : 1;
    const undelivered = unattempted + failed;
    const age = this.oldestAgeMs(backlog) ?? 0;
    // Another notice reports a disabled URL.
    const isBeyondBound =
      !isDisabled &&
      (undelivered > MAX_UNDELIVERED_EVENTS * boundFactor ||
        age > MAX_UNDELIVERED_AGE * this.#parts.speed * boundFactor);
    if (isBeyondBound === isBehind) return;
    // A notice is read later, so it has a time and not an age.
    const oldest = formatDate(this.#parts.runClock.now() - age);
    const count = undelivered.toLocaleString('en');
    const why =
      undelivered === 0
        ? 'all events are delivered'
        : `${count} events are not delivered, the oldest received at ${oldest}`;
    this.#enter(urlId, isBeyondBound ? 'behind' : 'caught-up', why);
  }

  #enter(urlId: number, state: 'behind' | 'caught-up', why: string): void {
    if (state === 'behind') this.#behindUrls.add(urlId);
    else this.#behindUrls.delete(urlId);
    const { events, runClock } = this.#parts;
    events.emit('backlog', { atMs: runClock.now(), urlId, state, why });
  }
}

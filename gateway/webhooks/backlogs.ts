/**
 * The store's figures, and an event when a webhook URL falls far behind (quality.md §2, undelivered events).
 *
 * Every ten seconds each URL's backlog is compared with two bounds. A URL beyond one of them is *behind* until it is
 * within half of both; then it has *caught up*. So a URL at a bound does not change state again and again.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Store } from '../store/contract/store.js';
import type { StoreFigures, UrlBacklog } from '../store/contract/store-figures.js';

const CHECK_EVERY: Milliseconds = Seconds(10);
/** More undelivered events than this put a URL behind. */
export const FAR_EVENTS = 10_000;
/** So does an older event, by the run's clock over its speed: an event that fails at times has had three retries. */
export const FAR_AGE: Milliseconds = Hours(1);

export interface BacklogsParts {
  readonly store: Pick<Store, 'readFigures'>;
  readonly events: GatewayEvents;
  /** The clock of the checks. */
  readonly clock: Clock;
  /** The clock of the events' times of receipt. */
  readonly runClock: Clock;
  /** The speed of the run's clock, 1 for real time. */
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

  /** Checks from now on. */
  start(): void {
    this.#checking = this.#check().finally(() => this.#arm());
  }

  /** Resolves when the check under way has ended. */
  async checked(): Promise<void> {
    await this.#checking;
  }

  /** Resolves when nothing is asked of the store any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#checking;
  }

  /** The figures as of now. Rejects where the store can't be read. */
  async read(): Promise<StoreFigures> {
    return await this.#parts.store.readFigures();
  }

  /** How long the oldest undelivered event has waited, in ms by the run's clock; null where none waits. */
  oldestAgeMs({ oldestReceivedAtMs }: UrlBacklog): Milliseconds | null {
    return oldestReceivedAtMs === null ? null : Math.max(this.#parts.runClock.now() - oldestReceivedAtMs, 0);
  }

  #arm(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.clock.after(CHECK_EVERY, () => {
      this.#checking = this.#check().finally(() => this.#arm());
    });
  }

  async #check(): Promise<void> {
    let backlogs: readonly UrlBacklog[];
    try {
      ({ backlogs } = await this.read());
    } catch {
      // The watch on the store reports the failure; the URLs' states stay as they are.
      return;
    }
    for (const backlog of backlogs) this.#judge(backlog);
    const ids = new Set(backlogs.map(({ urlId }) => urlId));
    for (const urlId of this.#behindUrls) if (!ids.has(urlId)) this.#enter(urlId, 'caught-up', 'it was removed');
  }

  #judge(backlog: UrlBacklog): void {
    const { urlId, isDisabled, behind, pending } = backlog;
    const isFar = this.#behindUrls.has(urlId);
    const share = isFar ? 0.5 : 1;
    const undelivered = behind + pending;
    const age = this.oldestAgeMs(backlog) ?? 0;
    // A disabled URL has a notice of its own.
    const isPast = !isDisabled && (undelivered > FAR_EVENTS * share || age > FAR_AGE * this.#parts.speed * share);
    if (isPast === isFar) return;
    const why = `${undelivered} events are not delivered, the oldest received ${Math.round(age / Seconds(1))} s ago`;
    this.#enter(urlId, isPast ? 'behind' : 'caught-up', why);
  }

  #enter(urlId: number, state: 'behind' | 'caught-up', why: string): void {
    if (state === 'behind') this.#behindUrls.add(urlId);
    else this.#behindUrls.delete(urlId);
    const { events, runClock } = this.#parts;
    events.emit('backlog', { atMs: runClock.now(), urlId, state, why });
  }
}

/**
 * The store's figures for whoever asks, and a word to operators where a webhook URL is too far behind (quality.md §2,
 * undelivered events).
 *
 * They are read in a thread, and one answer serves all who ask while another one is made. Every ten seconds each URL's
 * backlog is held against two bounds; a URL that is past one of them is *far behind* until it is within half of both,
 * so that one at the bound does not come and go.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Store } from '../store/contract/store.js';
import type { StoreFigures, UrlBacklog } from '../store/contract/store-figures.js';

const LOOK_EVERY: Milliseconds = Seconds(10);
/** From so many undelivered events on a URL is far behind. */
export const FAR_EVENTS = 10_000;
/** Or from this age of its oldest on, in life's own time: what fails now and then has its third retry by then. */
export const FAR_AGE: Milliseconds = Hours(1);

export interface BacklogsParts {
  readonly store: Pick<Store, 'readFigures'>;
  readonly events: GatewayEvents;
  /** By which it is looked again. */
  readonly clock: Clock;
  /** By which events are received. */
  readonly runClock: Clock;
  /** How fast the run's clock goes, 1 for real life. */
  readonly speed: number;
}

export class Backlogs {
  readonly #parts: BacklogsParts;
  readonly #far = new Set<number>();
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: BacklogsParts) {
    this.#parts = parts;
  }

  /** Watches from now on. */
  start(): void {
    this.#looking = this.#look().finally(() => this.#arm());
  }

  /** Resolves when the look that is under way has ended. */
  async looked(): Promise<void> {
    await this.#looking;
  }

  /** Resolves when nothing is asked of the store any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#looking;
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
    this.#timer = this.#parts.clock.after(LOOK_EVERY, () => {
      this.#looking = this.#look().finally(() => this.#arm());
    });
  }

  async #look(): Promise<void> {
    let backlogs: readonly UrlBacklog[];
    try {
      ({ backlogs } = await this.read());
    } catch {
      // The watch on the store tells of a store that fails; what is known of URLs stays.
      return;
    }
    for (const backlog of backlogs) this.#judge(backlog);
    const ids = new Set(backlogs.map(({ urlId }) => urlId));
    for (const urlId of this.#far) if (!ids.has(urlId)) this.#turn(urlId, 'caught-up', 'it was removed');
  }

  #judge(backlog: UrlBacklog): void {
    const { urlId, isDisabled, behind, pending } = backlog;
    const isFar = this.#far.has(urlId);
    const share = isFar ? 0.5 : 1;
    const undelivered = behind + pending;
    const age = this.oldestAgeMs(backlog) ?? 0;
    // One that is disabled has a notice of its own.
    const isPast = !isDisabled && (undelivered > FAR_EVENTS * share || age > FAR_AGE * this.#parts.speed * share);
    if (isPast === isFar) return;
    const why = `${undelivered} events are not delivered, the oldest received ${Math.round(age / Seconds(1))} s ago`;
    this.#turn(urlId, isPast ? 'behind' : 'caught-up', why);
  }

  #turn(urlId: number, state: 'behind' | 'caught-up', why: string): void {
    if (state === 'behind') this.#far.add(urlId);
    else this.#far.delete(urlId);
    const { events, runClock } = this.#parts;
    events.emit('backlog', { atMs: runClock.now(), urlId, state, why });
  }
}

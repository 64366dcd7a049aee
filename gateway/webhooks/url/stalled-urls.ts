/**
 * Tracks the stalled URLs: nothing can be sent to them because this machine lacks something, such as memory or a name
 * service (own-failure.ts). For each thing that it can lack, a `cannot-send` event reports when the first URL stalls
 * and when no URL is stalled any more.
 */
import type { Clock } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import type { OwnFailure } from '../sending/own-failure.js';

export class StalledUrls {
  readonly #events: GatewayEvents;
  readonly #runClock: Clock;
  /** The ids of stalled URLs, by what this machine lacks. */
  readonly #urls = new Map<OwnFailure, Set<number>>();

  /** @param runClock stamps the events */
  constructor(events: GatewayEvents, runClock: Clock) {
    this.#events = events;
    this.#runClock = runClock;
  }

  /** An attempt at this URL could not be made; `why` is a sentence for people. */
  stall(lacked: OwnFailure, urlId: number, why: string): void {
    this.#resumeExcept(urlId, lacked);
    const urls = this.#urls.get(lacked) ?? new Set();
    if (urls.size === 0) this.#report(lacked, 'began', why);
    this.#urls.set(lacked, urls.add(urlId));
  }

  /** An attempt at this URL was made, successful or not; or the URL's worker has stopped. */
  resume(urlId: number): void {
    if (this.#urls.size > 0) this.#resumeExcept(urlId);
  }

  #resumeExcept(urlId: number, except?: OwnFailure): void {
    for (const [lacked, urls] of this.#urls) {
      if (lacked === except || !urls.delete(urlId) || urls.size > 0) continue;
      this.#urls.delete(lacked);
      this.#report(lacked, 'ended', 'attempts are made again');
    }
  }

  #report(lacked: OwnFailure, state: 'began' | 'ended', why: string): void {
    this.#events.emit('cannot-send', { atMs: this.#runClock.now(), what: lacked, state, why });
  }
}

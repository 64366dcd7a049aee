/**
 * The URLs that can't be sent to for a reason of our own. An event reports when the first URL stalls for a reason, and
 * when no URL does any more.
 */
import type { Clock } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import type { OwnFailure } from '../sending/own-failure.js';

export class StalledUrls {
  readonly #events: GatewayEvents;
  readonly #runClock: Clock;
  /** Their ids, by what this machine lacks. */
  readonly #urls = new Map<OwnFailure, Set<number>>();

  /** `runClock` stamps the events. */
  constructor(events: GatewayEvents, runClock: Clock) {
    this.#events = events;
    this.#runClock = runClock;
  }

  /** An attempt at this URL could not be made; `why` is a sentence for people. */
  stall(what: OwnFailure, urlId: number, why: string): void {
    this.#endOthers(urlId, what);
    const urls = this.#urls.get(what) ?? new Set();
    if (urls.size === 0) this.#report(what, 'began', why);
    this.#urls.set(what, urls.add(urlId));
  }

  /** An attempt at this URL was made, with any result; or its worker has stopped. */
  resume(urlId: number): void {
    if (this.#urls.size > 0) this.#endOthers(urlId);
  }

  #endOthers(urlId: number, besides?: OwnFailure): void {
    for (const [what, urls] of this.#urls) {
      if (what === besides || !urls.delete(urlId) || urls.size > 0) continue;
      this.#urls.delete(what);
      this.#report(what, 'ended', 'attempts are made again');
    }
  }

  #report(what: OwnFailure, state: 'began' | 'ended', why: string): void {
    this.#events.emit('cannot-send', { atMs: this.#runClock.now(), what, state, why });
  }
}

/**
 * Ends what gateways whose epoch has ended left open: entries of the audit log, and notices of conditions that ended
 * with them. Of several gateways that share a store, one does this for all, every few seconds.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { Ownership } from '../store/contract/slots/ownership.js';
import type { Store } from '../store/contract/store.js';

const INTERVAL = Seconds(5);

export interface LeftoversParts {
  readonly store: Pick<Store, 'audit'>;
  readonly ownership: Ownership;
  readonly notices: { endLeftOpen(): Promise<void> };
  readonly events: GatewayEvents;
  /** The run's clock, for events. */
  readonly clock: Clock;
  /** A clock in real time. */
  readonly timers: Clock;
}

export class Leftovers {
  readonly #parts: LeftoversParts;
  #timer: Timer | undefined;
  #ending: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: LeftoversParts) {
    this.#parts = parts;
  }

  /** Does nothing if this gateway has the store to itself: then its start has ended everything. */
  start(): void {
    const { ownership, timers } = this.#parts;
    if (ownership.locks.isSole || this.#isStopped) return;
    this.#timer = timers.after(INTERVAL, () => {
      this.#ending = this.#end().then(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#ending;
  }

  async #end(): Promise<void> {
    const { store, ownership, notices, events, clock } = this.#parts;
    if (!ownership.duties.holds('leftovers')) return;
    try {
      await store.audit.abandon();
      await notices.endLeftOpen();
    } catch (error) {
      events.emit('store-failed', { atMs: clock.now(), why: (error as Error).message });
    }
  }
}

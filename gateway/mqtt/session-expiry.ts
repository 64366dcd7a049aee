/** Ends connections whose credential expires while they are open, within some seconds. */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import type { Session } from './sessions.js';

/** An expired credential's connection outlives it by this much at the most. */
const LOOK_EVERY = Seconds(2);

/**
 * It looks again and again rather than waiting for the moment: somebody may set the machine's clock meanwhile. While no
 * connection has a credential that expires, it does nothing.
 */
export class SessionExpiry {
  readonly #clock: Clock;
  readonly #end: (session: Session) => void;
  readonly #expiring = new Set<Session>();
  #timer: Timer | undefined;

  /** `clock` is the wall's; `end` ends one connection. */
  constructor(clock: Clock, end: (session: Session) => void) {
    this.#clock = clock;
    this.#end = end;
  }

  add(session: Session): void {
    if (session.expiresAtMs === null) return;
    this.#expiring.add(session);
    this.#arm();
  }

  remove(session: Session): void {
    this.#expiring.delete(session);
    if (this.#expiring.size === 0) this.stop();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    this.#timer ??= this.#clock.after(LOOK_EVERY, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    for (const session of [...this.#expiring]) {
      if ((session.expiresAtMs as number) > nowMs) continue;
      this.#expiring.delete(session);
      this.#end(session);
    }
    if (this.#expiring.size > 0) this.#arm();
  }
}

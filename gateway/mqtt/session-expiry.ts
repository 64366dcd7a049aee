/** Ends sessions (authenticated MQTT connections) within seconds after their credential expires. */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import type { Session } from './sessions.js';

/** A session outlives its credential by at most this much. */
const CHECK_INTERVAL = Seconds(2);

/**
 * Polls instead of setting a timer for the expiry, since the machine's clock may be changed meanwhile. While no session
 * has a credential that expires, no timer runs.
 */
export class SessionExpiry {
  readonly #clock: Clock;
  readonly #end: (session: Session) => void;
  readonly #expiring = new Set<Session>();
  #timer: Timer | undefined;

  /** `clock` is the wall clock; `end` ends one session. */
  constructor(clock: Clock, end: (session: Session) => void) {
    this.#clock = clock;
    this.#end = end;
  }

  add(session: Session): void {
    if (session.expiresAtMs === null) return;
    this.#expiring.add(session);
    this.#scheduleCheck();
  }

  remove(session: Session): void {
    this.#expiring.delete(session);
    if (this.#expiring.size === 0) this.stop();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #scheduleCheck(): void {
    this.#timer ??= this.#clock.after(CHECK_INTERVAL, () => this.#check());
  }

  #check(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    for (const session of [...this.#expiring]) {
      // Only sessions whose credential expires are added.
      if ((session.expiresAtMs as number) > nowMs) continue;
      this.#expiring.delete(session);
      this.#end(session);
    }
    if (this.#expiring.size > 0) this.#scheduleCheck();
  }
}

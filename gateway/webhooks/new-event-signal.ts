/**
 * Wakes calls that wait for a merchant's next event (a stored ping): the long polls of `GET /v1/events` (interfaces.md
 * §2). Reads and stores nothing: a call that is woken reads the log itself.
 */
import type { Clock, Milliseconds } from '../../proto/clock.js';

/** Maximum number of calls of one merchant that wait at the same time. */
export const MAX_WAITING_PER_MERCHANT = 16;
/** Maximum number of calls of all merchants that wait at the same time: half of the port's connections. */
export const MAX_WAITING = 1_000;

/** One call's wait. {@link end} must be called. */
export interface EventWait {
  /** Resolves when the merchant may have got an event since the last call, or when the wait is over. */
  next(): Promise<void>;
  /** Whether the time is up, the client has disconnected, or the gateway stops. */
  isOver(): boolean;
  /** Ends the wait. */
  end(): void;
}

export class NewEventSignal {
  readonly #clock: Clock;
  /** The functions that wake the waiting calls of each merchant. */
  readonly #waiting = new Map<number, Set<() => void>>();
  #isStopped = false;
  #waitingCount = 0;

  /** @param clock measures how long a call waits */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Must be called after each commit, with the merchants that have new events. */
  wake(merchantIds: ReadonlySet<number>): void {
    if (this.#waiting.size === 0) return;
    for (const merchantId of merchantIds) for (const wakeCall of this.#waiting.get(merchantId) ?? []) wakeCall();
  }

  /** Must be called when any merchant may have new events. */
  wakeAll(): void {
    this.wake(new Set(this.#waiting.keys()));
  }

  /** Ends every wait, and lets no further call wait: the gateway stops. */
  stop(): void {
    this.#isStopped = true;
    this.wakeAll();
  }

  /**
   * Starts a wait. The caller reads the log after this, so that an event that arrives during the read wakes it. Returns
   * null if too many calls wait already, of the merchant or of all.
   *
   * @param limit the longest wait
   * @param signal aborts when the client has disconnected
   */
  listen(merchantId: number, limit: Milliseconds, signal: AbortSignal): EventWait | null {
    const calls = this.#waiting.get(merchantId) ?? new Set();
    if (calls.size >= MAX_WAITING_PER_MERCHANT || this.#waitingCount >= MAX_WAITING) return null;
    this.#waitingCount += 1;
    let isWoken = false;
    let isTimeUp = false;
    let resolveNext = (): void => undefined;
    const wakeCall = (): void => {
      isWoken = true;
      resolveNext();
    };
    const timer = this.#clock.after(limit, () => {
      isTimeUp = true;
      wakeCall();
    });
    const isOver = (): boolean => isTimeUp || signal.aborted || this.#isStopped;
    this.#waiting.set(merchantId, calls.add(wakeCall));
    signal.addEventListener('abort', wakeCall, { once: true });
    return {
      isOver,
      next: async () => {
        if (!isWoken && !isOver()) {
          await new Promise<void>((resolve) => {
            resolveNext = resolve;
          });
        }
        isWoken = false;
      },
      end: () => {
        if (!calls.delete(wakeCall)) return;
        this.#waitingCount -= 1;
        timer.cancel();
        signal.removeEventListener('abort', wakeCall);
        if (calls.size === 0) this.#waiting.delete(merchantId);
      },
    };
  }
}

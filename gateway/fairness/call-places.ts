/**
 * Limits how many calls run at a time, of each merchant and of all together (docs/http.md, "How much"). A call beyond
 * the limit waits for a place. The reason: a call divides its work into short slices, but sixty running calls would
 * have sixty slices ready in one turn of the event loop, and a ping would wait for all of them.
 *
 * A place that becomes free goes to the merchant who has waited longest for one since the merchant's last turn, so a
 * merchant with many calls delays another merchant by a few calls at most. Calls of one merchant start in the order of
 * their arrival. Only keeps books: it reads no clock, and knows nothing about HTTP.
 */

export interface PlaceLimits {
  /** Maximum number of running calls of one merchant. */
  readonly perMerchant: number;
  /** At this number of running calls of all merchants, a merchant has one at a time. */
  readonly total: number;
}

/**
 * Reads of the log wait for the scan thread most of the time, so a merchant's calls need more places than one: with
 * two, short calls waited behind long ones although the event loop was free.
 */
export const PLACE_LIMITS: PlaceLimits = { perMerchant: 6, total: 8 };

/** The place of one running call. */
export interface CallPlace {
  /** Gives the place up for as long as `wait` takes, then waits for a place again. For calls that wait for an event. */
  readonly waitWithoutPlace: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Gives the place up; to be called once, when the call has ended. */
  readonly leave: () => void;
}

interface MerchantCalls {
  running: number;
  /** Starts the calls that wait for a place, in the order of their arrival. */
  readonly waiting: Set<() => void>;
}

export class CallPlaces {
  readonly #limits: PlaceLimits;
  /** Merchants with running or waiting calls. The first in this order gets the next place. */
  readonly #merchants = new Map<number, MerchantCalls>();
  #running = 0;

  constructor(limits: PlaceLimits = PLACE_LIMITS) {
    this.#limits = limits;
  }

  /** The number of running calls. */
  get running(): number {
    return this.#running;
  }

  /**
   * Resolves when a call of the merchant may run.
   *
   * @param signal aborted when the caller has hung up
   * @throws the signal's reason if it is aborted while the call waits
   */
  async enter(merchantId: number, signal: AbortSignal): Promise<CallPlace> {
    await this.#take(merchantId, signal);
    let isHeld = true;
    const leave = (): void => {
      if (isHeld) this.#release(merchantId);
      isHeld = false;
    };
    const waitWithoutPlace = async <T>(wait: () => Promise<T>): Promise<T> => {
      leave();
      const result = await wait();
      await this.#take(merchantId, signal);
      isHeld = true;
      return result;
    };
    return { waitWithoutPlace, leave };
  }

  async #take(merchantId: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const calls = this.#callsOf(merchantId);
    if (calls.waiting.size === 0 && this.#mayStart(calls)) {
      this.#start(calls);
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const start = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        calls.waiting.delete(start);
        this.#forgetIfIdle(merchantId, calls);
        reject(signal.reason);
      };
      calls.waiting.add(start);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  #callsOf(merchantId: number): MerchantCalls {
    const known = this.#merchants.get(merchantId);
    if (known !== undefined) return known;
    const calls: MerchantCalls = { running: 0, waiting: new Set() };
    this.#merchants.set(merchantId, calls);
    return calls;
  }

  #start(calls: MerchantCalls): void {
    calls.running += 1;
    this.#running += 1;
  }

  #release(merchantId: number): void {
    const calls = this.#callsOf(merchantId);
    calls.running -= 1;
    this.#running -= 1;
    this.#startWaiting();
    this.#forgetIfIdle(merchantId, calls);
  }

  /**
   * Whether a call may start. The first call of a merchant always may: slow calls of others must not keep it waiting.
   */
  #mayStart({ running }: MerchantCalls): boolean {
    const { perMerchant, total } = this.#limits;
    return running === 0 || (running < perMerchant && this.#running < total);
  }

  /** Starts every waiting call that may start. */
  #startWaiting(): void {
    for (const [merchantId, calls] of this.#merchants) {
      const [start] = calls.waiting;
      if (start === undefined || !this.#mayStart(calls)) continue;
      calls.waiting.delete(start);
      // Now every other merchant comes first; this one is visited again after them.
      this.#merchants.delete(merchantId);
      this.#merchants.set(merchantId, calls);
      this.#start(calls);
      start();
    }
  }

  #forgetIfIdle(merchantId: number, calls: MerchantCalls): void {
    if (calls.running === 0 && calls.waiting.size === 0) this.#merchants.delete(merchantId);
  }
}

/**
 * Who may do how much over HTTP (interfaces.md §2, Fairness). A merchant has budgets of its own; what no merchant
 * answers for is counted for the address that it comes from. A refusal costs the event loop something too, so whoever
 * goes on after many of them waits a second for each.
 */
import { type Clock, type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Fairness, Rate } from './fairness-settings.js';
import { type BudgetName, OverBudget } from './over-budget.js';
import { TokenBuckets } from './token-bucket.js';

/** Refusals of one merchant or one address that are answered at once. */
const REFUSALS: Rate = { perSecond: 20, burst: 100 };
/** How long a refusal beyond those waits. */
const REFUSAL_WAITS: Milliseconds = Seconds(1);
/** Users of a list that cost as much as a request: writing them takes about as long. */
const USERS_OF_A_REQUEST = 100;

export class HttpBudgets {
  readonly #clock: Clock;
  readonly #requests: TokenBuckets;
  readonly #bytes: TokenBuckets;
  readonly #hashes: TokenBuckets;
  readonly #strangers: TokenBuckets;
  readonly #probes: TokenBuckets;
  readonly #refusals: TokenBuckets;

  /** @param clock monotonic */
  constructor(fairness: Fairness, clock: Clock) {
    this.#clock = clock;
    this.#requests = new TokenBuckets(fairness.requests, clock);
    this.#bytes = new TokenBuckets(fairness.bytes, clock);
    this.#hashes = new TokenBuckets(fairness.passwordHashes, clock);
    this.#strangers = new TokenBuckets(fairness.strangers, clock);
    this.#probes = new TokenBuckets(fairness.strangers, clock);
    this.#refusals = new TokenBuckets(REFUSALS, clock);
  }

  /**
   * Counts a request of a merchant's.
   *
   * @param bytes of its body, where they are known before it is read; else 0
   * @throws OverBudget `requests`, `bytes`
   */
  takeRequest(merchantId: number, bytes: number): void {
    take(this.#requests, String(merchantId), 1, 'requests', 'requests');
    take(this.#bytes, String(merchantId), bytes, 'bytes', 'bytes of bodies');
  }

  /** Counts bytes of a body whose length was known only when it had been read. */
  chargeBytes(merchantId: number, bytes: number): void {
    this.#bytes.charge(String(merchantId), bytes);
  }

  /** A long list costs as much as several requests. */
  chargeUsers(merchantId: number, users: number): void {
    const more = Math.ceil(users / USERS_OF_A_REQUEST) - 1;
    if (more > 0) this.#requests.charge(String(merchantId), more);
  }

  /** Counts passwords that are to be hashed or compared. @throws OverBudget `password-hashes` */
  takeHashes(merchantId: number, count: number): void {
    if (count > 0) take(this.#hashes, String(merchantId), count, 'password-hashes', 'passwords');
  }

  /**
   * Counts a request that no merchant answers for. Probes of health have a budget of their own, so that whoever floods
   * the rest from an address that a load balancer shares does not take the gateway out of service.
   *
   * @throws OverBudget `address`
   */
  takeStranger(address: string, kind: 'request' | 'probe' = 'request'): void {
    take(kind === 'probe' ? this.#probes : this.#strangers, address, 1, 'address', 'requests without a key');
  }

  /**
   * Waits until a refusal may be answered: the first ones at once, and a second for those that come too fast.
   *
   * @param who a merchant's id or an address
   * @param gone fires when nobody waits for the answer any more
   */
  async refusalTurn(who: number | string, gone: AbortSignal): Promise<void> {
    if (gone.aborted || this.#refusals.take(String(who), 1) === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(REFUSAL_WAITS, resolve);
      gone.addEventListener('abort', () => {
        timer.cancel();
        resolve();
      });
    });
  }
}

function take(buckets: TokenBuckets, name: string, cost: number, budget: BudgetName, what: string): void {
  const retryAfterMs = buckets.take(name, cost);
  if (retryAfterMs === 0) return;
  const { perSecond, burst } = buckets.rate;
  const [every, often] = perSecond < 1 ? ['minute', perSecond * 60] : ['second', perSecond];
  const most = `${often.toLocaleString('en')} ${what} a ${every}, and ${burst.toLocaleString('en')} at once`;
  throw OverBudget.rate(budget, `too much in a short time: at most ${most}`, retryAfterMs);
}

/**
 * The budgets of HTTP requests (docs/http.md, "How much"). Each merchant has its own budgets. A client without a
 * merchant's key or token is a "stranger": its requests count for its address. Refusals cost the gateway time too, so
 * after many of them each further refusal is delayed by a second.
 */
import { type Clock, type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Fairness, Rate } from './fairness-settings.js';
import { type BudgetName, OverBudget } from './over-budget.js';
import { TokenBuckets } from './token-bucket.js';

/** How many refusals of one merchant or one address are answered at once. */
const PROMPT_REFUSALS: Rate = { perSecond: 20, burst: 100 };
/** How long a refusal beyond those is delayed. */
const REFUSAL_DELAY: Milliseconds = Seconds(1);
/** How many users of a list count as one request: writing them takes about as long. */
const USERS_PER_REQUEST = 100;
/** How many rows of a long read count as one request. */
const ROWS_PER_REQUEST = 1_000;

export class HttpBudgets {
  readonly #clock: Clock;
  readonly #requests: TokenBuckets;
  readonly #bytes: TokenBuckets;
  readonly #hashes: TokenBuckets;
  readonly #strangers: TokenBuckets;
  /** Health probes of strangers. */
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
    this.#refusals = new TokenBuckets(PROMPT_REFUSALS, clock);
  }

  /**
   * Counts a merchant's request.
   *
   * @param bytes the length of the body if known before it is read; otherwise 0
   * @param cost how many requests it counts as
   * @throws OverBudget `requests`, `bytes`
   */
  takeRequest(merchantId: number, bytes: number, cost = 1): void {
    take(this.#requests, String(merchantId), cost, 'requests', 'requests');
    take(this.#bytes, String(merchantId), bytes, 'bytes', 'bytes of bodies');
  }

  /** Counts bytes of a body whose length was not known before it was read. */
  chargeBytes(merchantId: number, bytes: number): void {
    this.#bytes.charge(String(merchantId), bytes);
  }

  /** Counts a long list of users as several requests. */
  chargeUsers(merchantId: number, users: number): void {
    const furtherRequests = Math.ceil(users / USERS_PER_REQUEST) - 1;
    if (furtherRequests > 0) this.#requests.charge(String(merchantId), furtherRequests);
  }

  /** Counts the rows of a read in addition to its request. @param rows how many rows this part of the read examined */
  chargeRows(merchantId: number, rows: number): void {
    // A part counts exactly: a long read in many short parts costs as much as in one.
    this.#requests.charge(String(merchantId), rows / ROWS_PER_REQUEST);
  }

  /** Counts passwords to be hashed or compared. @throws OverBudget `password-hashes` */
  takeHashes(merchantId: number, count: number): void {
    if (count > 0) take(this.#hashes, String(merchantId), count, 'password-hashes', 'passwords');
  }

  /**
   * Counts a request without a merchant's key or token. Health probes have a separate budget: a flood from the address
   * of a load balancer must not make its probes fail.
   *
   * @throws OverBudget `address`
   */
  takeStranger(address: string, kind: 'request' | 'probe' = 'request'): void {
    take(kind === 'probe' ? this.#probes : this.#strangers, address, 1, 'address', 'requests without a key');
  }

  /**
   * Resolves when a refusal may be answered: at once for the first refusals, after a second if there are too many.
   *
   * @param client a merchant's id or an address
   * @param disconnected aborted when the client has disconnected
   */
  async waitForRefusal(client: number | string, disconnected: AbortSignal): Promise<void> {
    if (disconnected.aborted || this.#refusals.take(String(client), 1) === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(REFUSAL_DELAY, resolve);
      disconnected.addEventListener('abort', () => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/**
 * Takes a cost from a bucket.
 *
 * @param limited what the bucket limits, in the plural, for the error's sentence
 * @throws OverBudget
 */
function take(buckets: TokenBuckets, name: string, cost: number, budget: BudgetName, limited: string): void {
  const retryAfterMs = buckets.take(name, cost);
  if (retryAfterMs === 0) return;
  const { perSecond, burst } = buckets.rate;
  const [unit, perUnit] = perSecond < 1 ? ['minute', perSecond * 60] : ['second', perSecond];
  const limit = `${perUnit.toLocaleString('en')} ${limited} a ${unit}, and ${burst.toLocaleString('en')} at once`;
  throw OverBudget.rate(budget, `too much in a short time: at most ${limit}`, retryAfterMs);
}

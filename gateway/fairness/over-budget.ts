/**
 * The error for an exhausted budget or a full quota (docs/http.md, "How much"): over HTTP a 429 with `Retry-After` and
 * the budget's name.
 */
import { Hours, type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';

/**
 * Every budget by its public name, with a sentence about what it limits. Quotas, such as `pets`, are among them. Pets
 * are records that a merchant stores with the pet operations of the service specification. A story is the series of
 * pings that a theft would cause, each sent as a test webhook.
 */
export const BUDGETS = {
  requests: 'A merchant’s requests per second.',
  bytes: 'Bytes per second in the bodies that a merchant sends.',
  'password-hashes': 'A merchant’s passwords hashed or compared per minute.',
  pets: 'A merchant’s stored pets.',
  users: 'A merchant’s stored users.',
  'kept-bytes': 'All stored data of a merchant in bytes.',
  address: 'Unauthenticated requests per second from one address.',
  'login-guesses': 'Wrong passwords for an account from one address in 5 minutes.',
  'test-webhooks': 'A merchant’s test webhooks per minute.',
  'story-pings': 'Pings of webhook stories sent to a merchant per minute.',
  'waiting-calls': 'A merchant’s calls that wait for events at the same time.',
  streams: 'A merchant’s open streams.',
} as const;

export type BudgetName = keyof typeof BUDGETS;

/** The `Retry-After` of a full quota. Nobody knows when data is deleted or the operator raises the quota. */
const QUOTA_RETRY_AFTER: Milliseconds = Hours(1);

/** A request exceeds a budget or a quota. */
export class OverBudget extends LockgateError {
  readonly budget: BudgetName;
  /** The time after which another try may succeed. */
  readonly retryAfterMs: Milliseconds;

  private constructor(code: string, budget: BudgetName, message: string, retryAfterMs: Milliseconds) {
    super(code, message);
    this.name = 'OverBudget';
    this.budget = budget;
    this.retryAfterMs = retryAfterMs;
  }

  /** Too many at once: `rate-limited`. @param message a sentence for people that names the limit */
  static rate(budget: BudgetName, message: string, retryAfterMs: Milliseconds): OverBudget {
    return new OverBudget('rate-limited', budget, message, retryAfterMs);
  }

  /** Too much stored: `quota-full`. @param message a sentence for people that names the limit */
  static quota(budget: BudgetName, message: string): OverBudget {
    return new OverBudget('quota-full', budget, message, QUOTA_RETRY_AFTER);
  }

  /** The value of the header `Retry-After`: whole seconds, at least one. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil(this.retryAfterMs / Seconds(1)));
  }
}

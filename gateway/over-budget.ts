/**
 * What is refused because a budget is spent or a quota is full (interfaces.md §2, Fairness): over HTTP a 429 with
 * `Retry-After` and the budget's name.
 */

import { Hours, type Milliseconds } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';

/** Every budget, by the name that callers see. */
export const BUDGETS = [
  'requests',
  'bytes',
  'password-hashes',
  'pets',
  'users',
  'kept-bytes',
  'address',
  'login-guesses',
  'test-webhooks',
] as const;

export type BudgetName = (typeof BUDGETS)[number];

/** What is kept makes room only when somebody deletes or the operator raises the quota: nobody knows when. */
export const QUOTA_RETRY: Milliseconds = Hours(1);

export class OverBudget extends LockgateError {
  readonly budget: BudgetName;
  readonly retryAfterMs: Milliseconds;

  /** @param message a sentence for people that says which limit it is */
  constructor(budget: BudgetName, message: string, retryAfterMs: Milliseconds) {
    super('over-budget', message);
    this.name = 'OverBudget';
    this.budget = budget;
    this.retryAfterMs = retryAfterMs;
  }
}

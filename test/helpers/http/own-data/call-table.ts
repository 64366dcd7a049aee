/**
 * The types of the tables of calls to the operations on a merchant's own data (interfaces.md §2). For each operation of
 * the merchants' HTTP interface a table has a call, so that tests can make every call with different API keys.
 */
import type { MerchantCall } from '../merchant-call.js';
import type { Subject } from './site.js';

/** A path with its query, and the method, headers and body of the call; the test adds the key. */
export type CallTerms = readonly [path: string, call?: MerchantCall];

/** How one operation is called in tests. Its calls are about a {@link Subject}: a merchant and its lock. */
export interface OwnDataCall {
  /** A call about a merchant and its lock, which succeeds with that merchant's key. It may be made repeatedly. */
  readonly callFor: (about: Subject) => CallTerms;
  /** The status of that call. */
  readonly status: number;
  /** The status of that call with the key of another merchant: 404, or 200 for a list, which then lacks the lock. */
  readonly statusForOthers: number;
  /** Whether each call makes a new object, so that no two answers are the same. */
  readonly createsNew?: true;
  /** A call for each other documented status, such as 400, made with the merchant's own key. */
  readonly otherStatuses?: Readonly<Record<number, (about: Subject) => CallTerms>>;
}

/** Calls by operation: `GET /v1/locks/{mac}`. */
export type CallTable = Readonly<Record<string, OwnDataCall>>;

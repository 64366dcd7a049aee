/** The type of the table of calls to the operations on a merchant's own data. */
import type { MerchantCall } from '../merchant-call.js';
import type { Subject } from './site.js';

/** A path with its query, and the rest of the call without a key. */
export type CallTerms = readonly [where: string, terms?: MerchantCall];

/** How one operation is called in tests. */
export interface OwnDataCall {
  /** A call about a merchant and its lock, which succeeds with that merchant's key. It may be made repeatedly. */
  readonly make: (about: Subject) => CallTerms;
  /** The status of that call. */
  readonly status: number;
  /** The status of that call with the key of a merchant who has no such lock: 404, or that of a list without it. */
  readonly ofOthers: number;
  /** Whether each call makes another object, so that no two answers are the same. */
  readonly makesNew?: true;
  /** A call for each further documented status, such as 400, made by the owner. */
  readonly further?: Readonly<Record<number, (about: Subject) => CallTerms>>;
}

/** Calls by operation: `GET /v1/locks/{mac}`. */
export type CallTable = Readonly<Record<string, OwnDataCall>>;

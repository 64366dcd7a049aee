/** An error for a request with several faults, each with its place (like `errors` in RFC 9457's example). */
import { LockgateError } from '../proto/errors.js';

/** Maximum number of faults of one request that are reported; further ones are only counted. */
export const MAX_REPORTED_FAULTS = 100;

/** One fault of a request: a JSON pointer and a sentence (RFC 9457). */
export interface Fault {
  readonly pointer: string;
  readonly detail: string;
}

/** Several faults of a request. */
export class RequestFaults extends LockgateError {
  readonly faults: readonly Fault[];

  constructor(code: string, message: string, faults: readonly Fault[]) {
    super(code, message);
    this.name = 'ManyFaults';
    this.faults = faults;
  }
}

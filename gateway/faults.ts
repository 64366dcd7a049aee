/** An error for a request with several faults, each with a pointer to the faulty member (RFC 9457). */
import { LockgateError } from '../proto/errors.js';

/** Maximum number of faults of one request that are reported; further ones are left out. */
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
    this.name = 'RequestFaults';
    this.faults = faults;
  }
}

/** The fault of one member of a body; from the pointer, the command line finds the flag that it came from. */
export function faultAt(code: string, pointer: string, detail: string): RequestFaults {
  return new RequestFaults(code, detail, [{ pointer, detail }]);
}

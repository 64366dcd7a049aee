/** What the caller got wrong in several places at once, each with where it stands (RFC 9457's example of `errors`). */
import { LockgateError } from '../proto/errors.js';

/** Faults of one request that are told; of the rest there is only a count. */
export const FAULTS_REPORTED = 100;

/** What is wrong with one member of what was sent: a JSON pointer and a sentence (RFC 9457). */
export interface Fault {
  readonly pointer: string;
  readonly detail: string;
}

/** What the caller got wrong, in several places. */
export class ManyFaults extends LockgateError {
  readonly faults: readonly Fault[];

  constructor(code: string, message: string, faults: readonly Fault[]) {
    super(code, message);
    this.name = 'ManyFaults';
    this.faults = faults;
  }
}

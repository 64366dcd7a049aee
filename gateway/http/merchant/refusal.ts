/** The error for a refused call of the merchants' interface, with the status, headers and faults of its answer. */
import { type Fault, RequestFaults } from '../../faults.js';

export interface RefusalTerms {
  /** The HTTP status. */
  readonly status: number;
  /** The kind of error, for programs; does not change between versions. */
  readonly code: string;
  /** A sentence for people. */
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly faults?: readonly Fault[] | undefined;
  /** Additional members of the problem, such as OAuth's `error`. */
  readonly members?: Readonly<Record<string, string>> | undefined;
}

export class Refusal extends RequestFaults {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, string>>;

  constructor({ status, code, detail, headers = {}, faults = [], members = {} }: RefusalTerms) {
    super(code, detail, faults);
    this.name = 'Refusal';
    this.status = status;
    this.headers = headers;
    this.members = members;
  }
}

/**
 * The refusal of a call whose query or body does not fit: 400 with the code `input-query` or `input-body`, by where the
 * first fault is. A fault that programs handle apart from others has a code of its own, such as `input-cursor`.
 *
 * @param faults one at least
 */
export function inputRefusal(place: 'query' | 'body', faults: readonly Fault[]): Refusal {
  const [first] = faults;
  const detail = `the request does not fit: ${first?.pointer || 'the body'}: ${first?.detail}`;
  return new Refusal({ status: 400, code: `input-${place}`, detail, faults });
}

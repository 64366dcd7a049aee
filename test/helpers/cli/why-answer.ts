/** Requests the explanation of an event from a gateway (`GET /why`), as `lockgate why` does. */
import type { Gateway } from '../../../gateway/gateway.js';
import { callOperator } from './operator-call.js';

/** A step of the explanation. */
export interface StepJson {
  readonly kind: string;
  readonly code: string;
  readonly sentence: string;
  /** The section of the specification or the protocol that the step follows from, and a link to it. */
  readonly rests_on: string;
  readonly link: string;
  /** When it happened, and by which clock: the run's, which a simulation may speed up, or the wall clock. */
  readonly at: string | null;
  readonly clock: string;
}

/** The answer; times are RFC 3339. */
export interface WhyAnswer {
  /** What is explained. */
  readonly about: { readonly kind: string; readonly id: string; readonly mac: string | null };
  readonly now: string;
  readonly wall_now: string;
  readonly steps: readonly StepJson[];
}

/** Sends the request, about the time `at` if given. @throws Error if the status is not 200 */
export async function requestWhy(gateway: Gateway, id: string, at?: string): Promise<WhyAnswer> {
  const query = new URLSearchParams({ id, ...(at !== undefined && { at }) });
  const { status, body } = await callOperator(gateway, 'GET', `/why?${query}`);
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as WhyAnswer;
}

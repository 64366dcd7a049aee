/**
 * The trace context of an attempt (W3C Trace Context, the header `traceparent`): with it the receiver's tracing shows
 * all attempts at an event as one trace. Pure.
 *
 * Both ids are hashes of what is stored of each attempt, so lists of deliveries name them without storing them, and
 * they survive a restart. The standard forbids ids of zeros only; no hash begins with that many zeros in practice.
 */
import { hash } from 'node:crypto';

/** Hex digits of the two ids. */
const TRACE_ID_DIGITS = 32;
const PARENT_ID_DIGITS = 16;

/** What distinguishes an attempt from all others. */
export interface TracedAttempt {
  readonly eventId: string;
  readonly urlId: number;
  /** The attempt's number at this event and URL, 1 for the first. */
  readonly number: number;
  /** When it started, in wall-clock time. An attempt whose outcome was lost in a crash is repeated with its number. */
  readonly atMs: number;
}

/** The trace id of an event: the same in all attempts at all URLs. */
export function traceId(eventId: string): string {
  return hash('sha256', eventId).slice(0, TRACE_ID_DIGITS);
}

/**
 * The header's value: version 00, the trace id, a parent id that no other attempt has, and the flag `sampled`, since
 * every attempt is recorded.
 */
export function traceParent({ eventId, urlId, number, atMs }: TracedAttempt): string {
  const parentId = hash('sha256', `${eventId} ${urlId} ${number} ${atMs}`).slice(0, PARENT_ID_DIGITS);
  return `00-${traceId(eventId)}-${parentId}-01`;
}

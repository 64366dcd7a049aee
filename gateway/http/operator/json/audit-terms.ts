/**
 * Describes how the audit log records a route's change (gateway/audit/audit.ts). Each route names the recorded members;
 * all others are left out, so that a new member is not recorded by accident.
 */
import type { AuditDetails } from '../../../audit/audit.js';

/** How a change is recorded. The functions may get a request that does not fit its schemas, and may then throw. */
export interface AuditTerms<Parts, Request> {
  /** The changed object: a MAC, a name or an id. `answer` is undefined before the change and for a refused change. */
  readonly object: (request: Request, answer?: AuditDetails) => string;
  /** The state before the change, if reading it is cheap. */
  readonly before?: (parts: Parts, request: Request) => Promise<AuditDetails | null>;
  /** The recorded members of the request and its result. */
  readonly after?: (request: Request, answer?: AuditDetails) => AuditDetails;
  /** The name of the merchant whose data is changed; by default the recorded member `merchant`. */
  readonly merchant?: (request: Request, answer?: AuditDetails) => string | undefined;
}

/** The existing members with these names. */
export function pick(from: unknown, ...names: readonly string[]): AuditDetails {
  const members = (from ?? {}) as AuditDetails;
  return Object.fromEntries(names.filter((name) => members[name] !== undefined).map((name) => [name, members[name]]));
}

/** The number of items of a list member; undefined if it is no list. */
export function countOf(from: AuditDetails | undefined, name: string): number | undefined {
  const items = from?.[name];
  return Array.isArray(items) ? items.length : undefined;
}

/** A URL's scheme, host and port. The path and the query may contain a secret of the receiver. */
export function originOf(url: unknown): string | undefined {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : undefined;
}

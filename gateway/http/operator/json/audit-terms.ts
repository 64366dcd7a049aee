/**
 * What the audit log records of a route's change (gateway/audit/audit.ts). Each route names the recorded members;
 * others are left out, so that a new member of a body is not recorded until someone has decided that it may be.
 */
import type { AuditDetails } from '../../../audit/audit.js';

/** How a change is recorded. The functions may get a request that does not fit its schemas, and may then throw. */
export interface AuditTerms<Parts, Request> {
  /** The changed object: a MAC, a name, an id. `answer` is undefined before the change and for a refused one. */
  readonly object: (request: Request, answer?: AuditDetails) => string;
  /** The state before, if it is cheap to find. */
  readonly before?: (parts: Parts, request: Request) => Promise<AuditDetails | null>;
  /** The request and its result. */
  readonly after?: (request: Request, answer?: AuditDetails) => AuditDetails;
}

/** The members of these names that exist. */
export function pick(from: unknown, ...names: readonly string[]): AuditDetails {
  const members = (from ?? {}) as AuditDetails;
  return Object.fromEntries(names.filter((name) => members[name] !== undefined).map((name) => [name, members[name]]));
}

/** How many items a member has. */
export function countOf(from: AuditDetails | undefined, name: string): number | undefined {
  const items = from?.[name];
  return Array.isArray(items) ? items.length : undefined;
}

/** Scheme, host and port: a path or a query may be all that keeps strangers out of a receiver. */
export function originOf(url: unknown): string | undefined {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : undefined;
}

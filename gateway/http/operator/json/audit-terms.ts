/**
 * What the audit log keeps of a row's change (gateway/audit/audit.ts): each row names the members, and what it does not
 * name is left out. So a new member of a body is out of the log until somebody has thought about it.
 */
import type { AuditFacts } from '../../../audit/audit.js';

/** What is told of a change. The functions may meet a request that does not fit its schemas, and may throw then. */
export interface AuditTerms<Parts, Request> {
  /** What it is done to: a MAC, a name, an id. `answer` is undefined before it is done, and where it was refused. */
  readonly object: (request: Request, answer?: AuditFacts) => string;
  /** How it was before, where that is cheap to find. */
  readonly before?: (parts: Parts, request: Request) => Promise<AuditFacts | null>;
  /** What was asked for, and what came of it. */
  readonly after?: (request: Request, answer?: AuditFacts) => AuditFacts;
}

/** These members, those that are there. */
export function pick(from: unknown, ...names: readonly string[]): AuditFacts {
  const members = (from ?? {}) as AuditFacts;
  return Object.fromEntries(names.filter((name) => members[name] !== undefined).map((name) => [name, members[name]]));
}

/** How many items a member has. */
export function countOf(from: AuditFacts | undefined, name: string): number | undefined {
  const items = from?.[name];
  return Array.isArray(items) ? items.length : undefined;
}

/** Scheme, host and port: a path or a query may be all that keeps strangers out of a receiver. */
export function originOf(url: unknown): string | undefined {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : undefined;
}

/**
 * The type of a route of the merchants' interface, and the answers that routes share (interfaces.md §2). A route's
 * schemas validate requests, serialise answers and document both, so the documentation can't differ from the behaviour.
 */
import type { Readable } from 'node:stream';
import { type TSchema, Type } from 'typebox';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { AuditAction } from '../../audit/actions.js';
import type { AuditDetails } from '../../audit/audit.js';
import { BUDGETS, type BudgetName } from '../../fairness/over-budget.js';
import type { Fault } from '../../faults.js';
import type { Health } from '../../health/health.js';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type { DashboardRole } from '../../store/contract/merchants/dashboard-roles.js';
import type { KeyScope } from '../../store/contract/merchants/key-scopes.js';
import type { AuditWho } from '../../store/contract/operators/audit-store.js';
import type { UserConsoleSession } from '../../store/contract/operators/console-session-store.js';
import type { Refusal } from './refusal.js';

/**
 * How a caller authenticates. `none`: not at all; `api-key`: with a merchant's API key; `bearer`: with a bearer token
 * with the scope `pets:write`; `access-token`: with a token in the body with the scope `webhooks:test`; `session`: with
 * the cookie of a session of the dashboard. Where a route takes an API key, such a session is accepted too, within the
 * rights of its role.
 */
export type Scheme = 'none' | 'api-key' | 'bearer' | 'access-token' | 'session';

export const JSON_TYPE = 'application/json';
export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** One call, authenticated and validated. */
export interface Call {
  /** The store and the services that routes use, such as API keys, users and budgets. */
  readonly parts: MerchantParts;
  /** The caller's merchant; 0 if the route needs no authentication, or takes its token from the body. */
  readonly merchantId: number;
  /** Set if the caller sent an API key, and the route's scheme is `api-key`. */
  readonly key: ApiKey | undefined;
  /** Set if the caller is a user of the dashboard. */
  readonly session: UserConsoleSession | undefined;
  /** Who calls, for the audit log; undefined if nobody is authenticated. */
  readonly who: AuditWho | undefined;
  /** The request's path and query, as sent. */
  readonly url: string;
  /** The parts of the path that the route's path names in braces, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Valid by the route's schema. Whole numbers are numbers; empty parameters are absent. */
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Valid by the route's schema. */
  readonly body: unknown;
  readonly address: string;
  /** Whether the caller's connection is over TLS, according to a trusted proxy. */
  readonly isHttps: boolean;
  /** Charges the call to a merchant who is identified only by the body. @throws OverBudget */
  readonly takeRequest: (merchantId: number) => void;
  /** Aborts when the client has hung up. */
  readonly signal: AbortSignal;
  /**
   * Gives up the call's place among the running calls (call-places.ts) while `wait` runs, then waits for a place again.
   * For calls that wait for an event.
   */
  readonly waitWithoutPlace: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Resolves to whether the caller may still make this call; for calls that last long. */
  readonly isStillAllowed: () => Promise<boolean>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Serialised as JSON by the route's schema; undefined for an empty body. */
  readonly body?: unknown;
  /** A body that is not JSON, instead of `body`. */
  readonly text?: { readonly type: string; readonly content: string | Readable };
  /** A body of bytes, instead of `body`; its content type is among the headers. */
  readonly bytes?: Buffer;
}

/** Documents and serialises a route's answers with one status. */
export interface ResponseTerms {
  readonly description: string;
  /** Absent if the body is empty, or is not JSON. */
  readonly schema?: TSchema;
  readonly example?: unknown;
  /** The content type of a body that fits the schema, if it is neither `application/json` nor a problem's. */
  readonly jsonType?: string;
  /** Types of bodies that are not JSON, with an example each; for the documentation. */
  readonly otherTypes?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly type: 'integer' | 'string' }>>;
  /** Whether the body is an RFC 9457 problem document. */
  readonly isProblem?: boolean;
}

/**
 * The groups of operations in the documentation. Pets and users are here because the specification of the gateway asks
 * for a pet registry and a user service too (docs/specification.md).
 */
export const TAGS = {
  pets: 'The pet registry.',
  users: 'Users and their sessions.',
  webhooks: 'Webhook URLs and their deliveries; test webhooks.',
  tokens: 'Bearer and access tokens.',
  locks: 'Own locks: what they report, their history, their names.',
  commands: 'Commands to own locks.',
  billing: 'Traffic and statements.',
  events: 'The events that webhooks deliver, for clients that fetch them.',
  health: 'Probes.',
} as const;

interface RouteTerms {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As in the documentation: `/v1/locks/{mac}`. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  /** Details in Markdown, for the documentation. */
  readonly description?: string;
  readonly responses: Readonly<Record<number, ResponseTerms>>;
}

/** What the audit log records of a change (gateway/audit/audit.ts): only these members, none of them a secret. */
export interface CallAudit {
  /** As operators' changes are named: `user.set`. */
  readonly action: AuditAction;
  /** The changed object: a MAC, a name or an id. */
  readonly object: string;
  readonly after: AuditDetails | null;
  /** Who acted, if that is not the call's `who`. */
  readonly who?: AuditWho;
}

/** A route for merchants. */
export interface MerchantRoute extends RouteTerms {
  readonly scheme: Scheme;
  /** The scope that the caller's API key, or the key of the caller's token, must have. */
  readonly keyScope: KeyScope;
  /** The names in braces in the path, with their meanings. */
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** The largest body in bytes; enforced before authentication. */
  readonly bodyBytes?: number;
  /** JSON by default. */
  readonly bodyType?: typeof JSON_TYPE | typeof FORM_TYPE;
  /** Whether JSON may also come as `text/plain`. */
  readonly takesPlainText?: boolean;
  /** An example of the body, for the documentation. */
  readonly bodyExample?: unknown;
  /** Headers that the route reads, for the documentation. */
  readonly headers?: TSchema;
  /** Of a route with the scheme `session`: the roles that may call it; all if undefined. */
  readonly roles?: readonly DashboardRole[];
  /** Whether the route opens a session of the dashboard: then only our own page may call it. */
  readonly isLogin?: boolean;
  /** How many requests a call counts as; 1 if undefined. */
  readonly cost?: number;
  /** Whether the documentation leaves the route out. */
  readonly isHidden?: boolean;
  /** A body that is a longer list is refused with 413. */
  readonly maxItems?: number;
  /** The refusal of a request that does not fit the schemas; by default a 400 with the faults. */
  readonly refuse?: (faults: readonly Fault[]) => Refusal;
  readonly handle: (call: Call) => Promise<HttpAnswer>;
  /** Describes the change that a call has made, for the audit log; null if it has changed nothing. */
  readonly audit?: (call: Call, answer: HttpAnswer) => CallAudit | null;
}

/** A probe, `/healthz` or `/readyz`: needs no authentication, and answers from the gateway's health alone. */
export interface HealthRoute extends RouteTerms {
  readonly scheme: 'none';
  readonly answer: (health: Health) => HttpAnswer;
}

export type HttpRoute = MerchantRoute | HealthRoute;

/** The names of the budgets with their descriptions, for the documentation. */
function budgetsInWords(): string {
  return Object.entries(BUDGETS)
    .map(([name, words]) => `${name}: ${words.charAt(0).toLowerCase()}${words.slice(1)}`)
    .join(' ');
}

/** The body of every error (RFC 9457). */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'Always about:blank: the status tells the kind of error.' }),
    title: Type.String({ description: 'The status in words.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'A sentence for people.' }),
    code: Type.String({ description: 'The kind of error, for programs.' }),
    budget: Type.Optional(
      Type.Unsafe<BudgetName>({
        type: 'string',
        enum: Object.keys(BUDGETS),
        description: `With 429, the budget that is used up or the quota that is full. ${budgetsInWords()}`,
      }),
    ),
    errors: Type.Optional(
      Type.Array(Type.Object({ pointer: Type.String(), detail: Type.String() }), {
        description: 'Each bad member: its JSON pointer and a sentence. At most 100.',
      }),
    ),
  },
  { title: 'Problem', description: 'An error (RFC 9457).' },
);

/** A problem document as an answer. */
export function problemResponse(description: string, headers?: ResponseTerms['headers']): ResponseTerms {
  return { description, schema: Problem, isProblem: true, ...(headers && { headers }) };
}

export const UNAUTHORIZED: ResponseTerms = problemResponse('No API key or token, or an invalid one.', {
  'www-authenticate': { description: 'The required scheme.', type: 'string' },
});

/** The answer to a valid key that may not call the operation. */
export function lacksScopeResponse(scope: KeyScope): ResponseTerms {
  return problemResponse(`The API key lacks the scope ${scope}.`);
}

/** The scope `spec` allows the operations of the specification: pets, users, test webhooks and their tokens. */
export const LACKS_SPEC: ResponseTerms = lacksScopeResponse('spec');

/** The answer to a body of more than `bytes`. `suffix` ends the sentence with further limits of the route. */
export function tooLarge(bytes: number, suffix = ''): ResponseTerms {
  return problemResponse(`The body is over ${sizeInWords(bytes)}${suffix}.`);
}

/** Bytes in words: 16 KiB, 1 MiB, 1,000 bytes. */
export function sizeInWords(bytes: number): string {
  if (bytes % 1024 ** 2 === 0) return `${bytes / 1024 ** 2} MiB`;
  return bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes.toLocaleString('en')} bytes`;
}

const RETRY_AFTER = { 'retry-after': { description: 'When to try again, in seconds.', type: 'integer' } } as const;

/** The answer to a request over budget. `prefix` names another limit of the route, such as `Over 9 a minute. Or: `. */
export function tooMany(prefix = ''): ResponseTerms {
  return problemResponse(`${prefix}A budget is used up or a quota is full; \`budget\` names it.`, RETRY_AFTER);
}

export const WRONG_TYPE: ResponseTerms = problemResponse('The body does not have the required content type.');

export const UNAVAILABLE: ResponseTerms = problemResponse(
  'The gateway is starting or stopping, its store can’t write, or its queues are full. Nothing was changed.',
  RETRY_AFTER,
);

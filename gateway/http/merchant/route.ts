/**
 * What a row of the merchants' interface says (interfaces.md §2). Its schemas check what comes, write what goes, and
 * document both, so that the three can't differ.
 */
import { type TSchema, Type } from 'typebox';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import { BUDGETS, type BudgetName } from '../../fairness/over-budget.js';
import type { Fault } from '../../faults.js';
import type { Health } from '../../health/health.js';
import type { ApiKey } from '../../store/contract/access-store.js';
import type { Refusal } from './refusal.js';

/**
 * Who may call: anybody; whoever has a merchant's API key; whoever has a bearer token with the scope `pets:write`;
 * whoever has a token with `webhooks:test`, which stands in the body.
 */
export type Scheme = 'none' | 'api-key' | 'bearer' | 'access-token';

export const JSON_TYPE = 'application/json';
export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** One call, after it was authenticated and checked. */
export interface Call {
  readonly parts: MerchantParts;
  /** The caller's; 0 where the row wants nobody to say who they are, or the body says it. */
  readonly merchantId: number;
  /** Where the row wants one. */
  readonly key: ApiKey | undefined;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As the row's schema says it is. */
  readonly body: unknown;
  readonly address: string;
  /** Whether the caller's connection is said to be over TLS. */
  readonly isHttps: boolean;
  /** Counts the call for the merchant that its body names, where nothing before the body does. @throws OverBudget */
  readonly takeRequest: (merchantId: number) => void;
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Undefined for an empty body. */
  readonly body?: unknown;
}

/** What an answer of one status is, for those who read the documentation and for those who write the answer. */
export interface ResponseTerms {
  readonly description: string;
  /** Absent where the body is empty. */
  readonly schema?: TSchema;
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly type: 'integer' | 'string' }>>;
  /** Whether it is an RFC 9457 problem. */
  readonly isProblem?: boolean;
}

interface RouteTerms {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'pets' | 'users' | 'webhooks' | 'tokens' | 'health';
  readonly summary: string;
  /** More of it, in Markdown, for the documentation. */
  readonly description?: string;
  readonly responses: Readonly<Record<number, ResponseTerms>>;
}

/** A row for merchants. */
export interface MerchantRoute extends RouteTerms {
  readonly scheme: Scheme;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** The most bytes that a body may have; it holds before anybody is authenticated. */
  readonly bodyBytes?: number;
  /** JSON unless it says otherwise. */
  readonly bodyType?: typeof JSON_TYPE | typeof FORM_TYPE;
  /** Whether JSON may also come as `text/plain`. */
  readonly takesPlainText?: boolean;
  /** An example of the body, for the documentation. */
  readonly bodyExample?: unknown;
  /** Headers that the row looks at, for the documentation. */
  readonly headers?: TSchema;
  /** A body that is a longer list is refused with 413. */
  readonly mostItems?: number;
  /** How the row says no to what does not fit its schemas; a 400 with the faults where it has no way of its own. */
  readonly refuse?: (faults: readonly Fault[]) => Refusal;
  readonly handle: (call: Call) => Promise<HttpAnswer>;
}

/** A row for whoever can reach the port. */
export interface HealthRoute extends RouteTerms {
  readonly scheme: 'none';
  readonly answer: (health: Health) => HttpAnswer;
}

export type HttpRoute = MerchantRoute | HealthRoute;

function budgetsInWords(): string {
  return Object.entries(BUDGETS)
    .map(([name, words]) => `${name}: ${words.charAt(0).toLowerCase()}${words.slice(1)}`)
    .join(' ');
}

/** An error, as every row answers one (RFC 9457). */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'Always about:blank: the status says what kind it is.' }),
    title: Type.String({ description: 'The status in words.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'A sentence for people.' }),
    code: Type.String({ description: 'What it is, for programs.' }),
    budget: Type.Optional(
      Type.Unsafe<BudgetName>({
        type: 'string',
        enum: Object.keys(BUDGETS),
        description: `With 429, which budget is spent or which quota is full. ${budgetsInWords()}`,
      }),
    ),
    errors: Type.Optional(
      Type.Array(Type.Object({ pointer: Type.String(), detail: Type.String() }), {
        description: 'Each bad member by its JSON pointer, with a sentence. At most 100.',
      }),
    ),
  },
  { title: 'Problem', description: 'An error (RFC 9457).' },
);

/** A problem as an answer of a row. */
export function problemResponse(description: string, headers?: ResponseTerms['headers']): ResponseTerms {
  return { description, schema: Problem, isProblem: true, ...(headers && { headers }) };
}

export const UNAUTHORIZED: ResponseTerms = problemResponse('No API key or token, or one that is not in force.', {
  'www-authenticate': { description: 'The scheme that is wanted.', type: 'string' },
});

/** The answer to a body of more than so many bytes; `also` is what else is too much. */
export function tooLarge(bytes: number, also = ''): ResponseTerms {
  return problemResponse(`The body is over ${sizeInWords(bytes)}${also}.`);
}

/** Bytes in words: 16 KiB, 1 MiB, 1,000 bytes. */
export function sizeInWords(bytes: number): string {
  if (bytes % 1024 ** 2 === 0) return `${bytes / 1024 ** 2} MiB`;
  return bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes.toLocaleString('en')} bytes`;
}

const RETRY_AFTER = { 'retry-after': { description: 'When to try again, in seconds.', type: 'integer' } } as const;

/** The answer to what is more than a budget allows; `also` is a limit of the row's own. */
export function tooMany(also = ''): ResponseTerms {
  return problemResponse(`${also}A budget is spent or a quota is full; \`budget\` names it.`, RETRY_AFTER);
}

export const WRONG_TYPE: ResponseTerms = problemResponse('The body is not of the type that is wanted.');

export const UNAVAILABLE: ResponseTerms = problemResponse(
  'The gateway starts or stops, its store takes nothing at the moment, or too much waits. Nothing was changed.',
  RETRY_AFTER,
);

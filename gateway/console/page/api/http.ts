/**
 * Calls of the gateway's interface from a page: JSON both ways, the header that marks the page's own calls, and
 * refusals as errors with the gateway's sentence.
 */

/** The header that the gateway demands of changes, since other pages can't set it (gateway/console/page-guard.ts). */
const PAGE_HEADER = 'x-lockgate-console';

/** A call that the gateway refused, or that did not reach it. */
export class ApiFailure extends Error {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** The stable code of the refusal, such as `not-logged-in`; empty if there is none. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** A page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** The members of a problem document (RFC 9457) that a page shows. */
interface Problem {
  readonly title?: string;
  readonly detail?: string;
  readonly code?: string;
}

/** The answer to a GET. Its form is not checked, since it is the page's own gateway that answers. @throws ApiFailure */
export async function getJson<Answer>(
  path: string,
  query: Readonly<Record<string, string | number | null>> = {},
): Promise<Answer> {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== '');
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]));
  return (await call('GET', text.size > 0 ? `${path}?${text}` : path)) as Answer;
}

/** The answer to a change; null if it has no body. @throws ApiFailure */
export async function sendJson<Answer>(
  method: 'POST' | 'PATCH' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return (await call(method, path, body, headers)) as Answer;
}

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  const request = {
    method,
    headers: { accept: 'application/json', [PAGE_HEADER]: '1', ...content, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
  let answer: Response;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new ApiFailure(0, 'unreachable', 'The gateway does not answer. It may be restarting.');
  }
  if (!answer.ok) throw await failureOf(answer);
  // A body that is no JSON counts as none: the change is made all the same.
  return answer.status === 204 ? null : await answer.json().catch(() => null);
}

async function failureOf(answer: Response): Promise<ApiFailure> {
  const problem = ((await answer.json().catch(() => null)) ?? {}) as Problem;
  const sentence = problem.detail ?? problem.title ?? `the gateway answered ${answer.status}`;
  return new ApiFailure(answer.status, problem.code ?? '', `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`);
}

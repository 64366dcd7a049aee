/**
 * Generates the OpenAPI 3.1 document of the operators' interface from the served routes. The schemas of bodies and
 * queries also validate requests, and a test validates every answer. Pure.
 */
import type { TObject, TSchema } from 'typebox';
import { VERSION } from '../../version.js';
import { Problem } from '../merchant/route.js';
import type { RouteTerms } from './routes.js';
import { PATH_MEMBERS } from './schemas.js';

/** The data of a route that the document describes. */
export interface DocumentedRoute extends RouteTerms {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** 200 by default. */
  readonly success?: 200 | 201;
  /** JSON by default. */
  readonly answerType?: string;
  /** Further statuses, besides problems. */
  readonly otherwise?: Readonly<Record<number, string>>;
}

const DESCRIPTION =
  'The operator’s interface of lockgate. Every call needs a bearer token: the one in the data folder’s file ' +
  'operator-token, or a named token whose role allows the call; without one the answer is always 401. Errors are ' +
  'application/problem+json (RFC 9457). Unknown members are refused. ' +
  'Every call except GET is recorded in the audit log.';

/** The errors that any call may have. */
const PROBLEMS: Readonly<Record<string, string>> = {
  400: 'A member is missing, unknown or invalid; errors[] names each by its JSON pointer.',
  401: 'No token, or the wrong one.',
  403: 'The token’s role does not allow this.',
  500: 'An internal error.',
  503: 'The gateway is stopping, or its store can’t write. Nothing was changed.',
};
/** Errors of calls whose path or query names an object. */
const PROBLEMS_OF_NAMED = { 404: 'Nothing has that name.' };
/** Errors of calls that change something. */
const PROBLEMS_OF_CHANGES = {
  409: 'The current state does not allow it: the name is taken, or a limit is reached.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  429: 'A quota or budget of the merchant is exhausted; `budget` names it. Nothing was changed.',
};
/** The header of a list that is answered page by page. */
const LINK = { description: 'The next page, with rel="next"; absent on the last page.', schema: { type: 'string' } };
const STATUSES_WITH_RETRY_AFTER: ReadonlySet<string> = new Set(['429', '503']);
const RETRY_AFTER = { description: 'When to try again, in seconds.', schema: { type: 'integer' } };

/** The complete document. */
export function operatorDocument(routes: readonly DocumentedRoute[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'lockgate, for operators', version: VERSION, description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ operatorToken: [] }],
    paths,
    components: {
      securitySchemes: { operatorToken: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem },
    },
  };
}

function operationOf(route: DocumentedRoute): object {
  const { operation, path, method, summary, query, body } = route;
  const parameters = [...pathParameters(path), ...queryParameters(query)];
  return {
    operationId: operation,
    tags: [operation.split('.', 1)[0]],
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: !isBodyOptional(body), content: { 'application/json': { schema: body } } },
    }),
    responses: { ...problemsOf(method === 'GET', path.includes(':') || query !== undefined), ...answersOf(route) },
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    return { name, in: 'path', required: true, schema: PATH_MEMBERS[name] ?? { type: 'string' } };
  });
}

function queryParameters(query: TObject | undefined): object[] {
  const required = new Set(query?.required);
  return Object.entries(query?.properties ?? {}).map(([name, schema]) => {
    return { name, in: 'query', required: required.has(name), schema };
  });
}

/** Whether the body is optional. */
function isBodyOptional(body: TSchema): boolean {
  const { anyOf } = body as { readonly anyOf?: readonly { readonly type?: string }[] };
  return anyOf?.some(({ type }) => type === 'null') === true;
}

function answersOf({ success = 200, answer, answerType = 'application/json', otherwise }: DocumentedRoute): object {
  const content = { [answerType]: { schema: answer } };
  return {
    [success]: { description: 'Done.', ...(isPaged(answer) && { headers: { link: LINK } }), content },
    ...Object.fromEntries(
      Object.entries(otherwise ?? {}).map(([status, description]) => [status, { description, content }]),
    ),
  };
}

/** Whether the answer is a page of a list. */
function isPaged(answer: TSchema): boolean {
  const { properties = {} } = answer as { readonly properties?: object };
  return 'next_cursor' in properties;
}

/** The errors of a route: `isReading` if it changes nothing, `isNamed` if its path or query may name an object. */
function problemsOf(isReading: boolean, isNamed: boolean): object {
  const problems = {
    ...PROBLEMS,
    ...(isNamed && PROBLEMS_OF_NAMED),
    ...(!isReading && { ...PROBLEMS_OF_NAMED, ...PROBLEMS_OF_CHANGES }),
  };
  return Object.fromEntries(
    Object.entries(problems).map(([status, description]) => [
      status,
      {
        description,
        ...(STATUSES_WITH_RETRY_AFTER.has(status) && { headers: { 'retry-after': RETRY_AFTER } }),
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

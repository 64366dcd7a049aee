/**
 * The document of the operator's interface (OpenAPI 3.1), made of the rows that are served: what it says of a body or a
 * query is what checks them, and a test holds every answer against what it says of answers.
 */
import type { TObject, TSchema } from 'typebox';
import { VERSION } from '../../version.js';
import { Problem } from '../merchant/route.js';
import type { RouteTerms } from './routes.js';
import { PATH_MEMBERS } from './schemas.js';

/** A row, as far as the document tells of it. */
export interface DocumentedRoute extends RouteTerms {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** 200 where it is left out. */
  readonly success?: 200 | 201;
  /** JSON where it is left out. */
  readonly answerType?: string;
  /** What it answers beside that and problems. */
  readonly otherwise?: Readonly<Record<number, string>>;
}

const DESCRIPTION =
  'The operator’s interface of lockgate. Every call needs the token of the data folder’s file operator-token as a ' +
  'bearer token; without it nothing is answered but 401. Errors are application/problem+json (RFC 9457). A member ' +
  'that is not named here is refused. Whatever is not GET is noted in the audit log.';

/** What any call may be answered with. */
const PROBLEMS: Readonly<Record<string, string>> = {
  400: 'A member is missing, unknown or wrong; errors[] has each by its JSON pointer.',
  401: 'No token, or not the one in force.',
  500: 'Something of ours broke.',
  503: 'The gateway stops, or its store takes nothing at the moment. Nothing was changed.',
};
const FOR_NAMED = { 404: 'There is nothing of that name.' };
const FOR_CHANGES = {
  409: 'The state of things does not allow it: a name that is taken, a limit that is reached.',
  413: 'The body is too large.',
  415: 'The body is not of the type that is wanted.',
  429: 'What it would add or send is over a quota or budget of the merchant; `budget` names it. Nothing was changed.',
};
/** Those that say when to try again. */
const RETRIED: ReadonlySet<string> = new Set(['429', '503']);
const RETRY_AFTER = { description: 'When to try again, in seconds.', schema: { type: 'integer' } };

/** The whole document. */
export function operatorDocument(routes: readonly DocumentedRoute[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const where = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[where] = { ...paths[where], [route.method.toLowerCase()]: operationOf(route) };
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
      requestBody: { required: !takesNothing(body), content: { 'application/json': { schema: body } } },
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

/** Whether a body may be left out. */
function takesNothing(body: TSchema): boolean {
  const { anyOf } = body as { readonly anyOf?: readonly { readonly type?: string }[] };
  return anyOf?.some(({ type }) => type === 'null') === true;
}

function answersOf({ success = 200, answer, answerType = 'application/json', otherwise }: DocumentedRoute): object {
  const content = { [answerType]: { schema: answer } };
  return {
    [success]: { description: 'Done.', content },
    ...Object.fromEntries(
      Object.entries(otherwise ?? {}).map(([status, description]) => [status, { description, content }]),
    ),
  };
}

function problemsOf(isReading: boolean, isNamed: boolean): object {
  const told = { ...PROBLEMS, ...(isNamed && FOR_NAMED), ...(!isReading && { ...FOR_NAMED, ...FOR_CHANGES }) };
  return Object.fromEntries(
    Object.entries(told).map(([status, description]) => [
      status,
      {
        description,
        ...(RETRIED.has(status) && { headers: { 'retry-after': RETRY_AFTER } }),
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

/** A row's schemas as Fastify takes them: it writes answers by them, and the documentation is made of them. */
import type { FastifySchema } from 'fastify';
import { type HttpRoute, problemResponse, type ResponseTerms } from '../merchant/route.js';

/** Any row may find that something of ours is broken. */
const BROKEN = problemResponse('Something of ours broke.');

/** The names of the schemes, as the documentation declares them. */
const SECURITY: Readonly<Record<HttpRoute['scheme'], readonly Record<string, string[]>[]>> = {
  none: [],
  'api-key': [{ apiKey: [] }],
  bearer: [{ bearer: ['pets:write'] }],
  // It stands in the body.
  'access-token': [],
};

/** What Fastify's schema has beside its own members, for the documentation. */
interface DocumentedSchema extends FastifySchema {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly consumes?: readonly string[];
  readonly security: readonly Record<string, string[]>[];
}

/** The schema of a row. */
export function routeSchema(row: HttpRoute): DocumentedSchema {
  const { operationId, tag, summary, description, scheme, responses } = row;
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: SECURITY[scheme],
    ...('handle' in row && row.query !== undefined && { querystring: row.query }),
    ...('handle' in row && row.headers !== undefined && { headers: row.headers }),
    ...('handle' in row &&
      row.body !== undefined && {
        body: row.bodyExample === undefined ? row.body : { ...row.body, examples: [row.bodyExample] },
        consumes: [row.bodyType ?? 'application/json'],
      }),
    response: Object.fromEntries(
      Object.entries({ ...responses, 500: BROKEN }).map(([status, terms]) => [status, responseSchema(terms)]),
    ),
  };
}

function responseSchema({ description, schema, example, headers, isProblem }: ResponseTerms): unknown {
  if (schema === undefined) return { description, type: 'null', ...(headers && { headers }) };
  const type = isProblem === true ? 'application/problem+json' : 'application/json';
  const content = { [type]: { schema, ...(example !== undefined && { example }) } };
  return { description, content, ...(headers && { headers }) };
}

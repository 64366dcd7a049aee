/** Converts a route to schemas for Fastify, which serialises answers and generates the documentation from them. */
import type { FastifySchema } from 'fastify';
import { type HttpRoute, problemResponse, type ResponseTerms } from '../merchant/route.js';

/** The answer that every route may give. */
const INTERNAL_ERROR = problemResponse('An internal error.');

/** The security requirement of each authentication scheme, by the names that the documentation declares. */
const SECURITY: Readonly<Record<HttpRoute['scheme'], readonly Record<string, string[]>[]>> = {
  none: [],
  'api-key': [{ apiKey: [] }],
  // Only updating a pet takes a bearer token (specification, Endpoints), so all of them need this scope.
  bearer: [{ bearer: ['pets:write'] }],
  // This scheme's token is in the body, which OpenAPI can't express.
  'access-token': [],
  // Not in the documentation.
  session: [],
};

/** Fastify's schema with the members that the documentation adds. */
interface DocumentedSchema extends FastifySchema {
  readonly operationId: string;
  /** Left out of the documentation. */
  readonly hide?: boolean;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly consumes?: readonly string[];
  readonly security: readonly Record<string, string[]>[];
}

/** The Fastify schema of a route. */
export function routeSchema(route: HttpRoute): DocumentedSchema {
  const { operationId, tag, summary, description, scheme, responses } = route;
  return {
    operationId,
    ...('handle' in route && route.isHidden === true && { hide: true }),
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    // OpenAPI 3.1 lists roles in this place; here they are a key's scopes.
    security: scheme === 'api-key' && 'keyScope' in route ? [{ apiKey: [route.keyScope] }] : SECURITY[scheme],
    ...('handle' in route && route.params !== undefined && { params: route.params }),
    ...('handle' in route && route.query !== undefined && { querystring: route.query }),
    ...('handle' in route && route.headers !== undefined && { headers: route.headers }),
    ...('handle' in route &&
      route.body !== undefined && {
        body: route.bodyExample === undefined ? route.body : { ...route.body, examples: [route.bodyExample] },
        consumes: [route.bodyType ?? 'application/json'],
      }),
    response: Object.fromEntries(
      Object.entries({ ...responses, 500: INTERNAL_ERROR }).map(([status, terms]) => [status, responseSchema(terms)]),
    ),
  };
}

/** One answer in the form that Fastify's documentation reads. */
function responseSchema(terms: ResponseTerms): unknown {
  const { description, schema, example, otherTypes, headers, isProblem } = terms;
  if (schema === undefined && otherTypes === undefined)
    return { description, type: 'null', ...(headers && { headers }) };
  const { jsonType = isProblem === true ? 'application/problem+json' : 'application/json' } = terms;
  const otherContent = Object.entries(otherTypes ?? {}).map(([name, text]) => {
    return [name, { schema: { type: 'string' }, example: text }] as const;
  });
  const content = {
    ...(schema !== undefined && { [jsonType]: { schema, ...(example !== undefined && { example }) } }),
    ...Object.fromEntries(otherContent),
  };
  return { description, content, ...(headers && { headers }) };
}

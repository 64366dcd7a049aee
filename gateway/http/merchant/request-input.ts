/**
 * Checks the input of a request to the merchants' port against its route: the content type, the query and the body
 * (interfaces.md §2). Reports for each bad member its place and the expected value.
 */
import type { FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { Fault } from '../../faults.js';
import { dropNulls } from '../shared/null-members.js';
import { isAllowed } from './answer-headers.js';
import { faultsOf } from './check-value.js';
import { inputRefusal, Refusal } from './refusal.js';
import { JSON_TYPE, type MerchantRoute } from './route.js';

/** The content type that generic clients send; only some routes accept it. */
export const PLAIN_TEXT_TYPE = 'text/plain';

/**
 * Checks the content type of a body. Some routes also accept JSON as plain text, since clients generated from a
 * document without content types, such as the public Petstore's, send it. But a web page of any origin could send plain
 * text, without a preflight request and with the key that the browser remembers; so plain text is refused from pages
 * whose origin is not allowed.
 *
 * @throws Refusal 415
 */
export function checkBodyType(request: FastifyRequest, route: MerchantRoute, origins: readonly string[]): void {
  const { headers } = request;
  const expected = route.bodyType ?? JSON_TYPE;
  const length = headers['content-length'];
  const hasBody = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  const contentType = headers['content-type'];
  if (!hasBody && contentType === undefined) return;
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = parameters.every((text) => !text.startsWith('charset=') || /^charset="?utf-?8"?$/.test(text));
  const isUncompressed = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
  const isAllowedPage = headers.origin === undefined || isAllowed(request, origins);
  const isAccepted = type === expected || (route.takesPlainText === true && type === PLAIN_TEXT_TYPE && isAllowedPage);
  if (isAccepted && isUtf8 && isUncompressed) return;
  const detail = `the body must be ${expected}, in UTF-8 and not compressed`;
  throw new Refusal({ status: 415, code: 'wrong-type', detail, headers: { accept: expected } });
}

/**
 * Checks the query and the body.
 *
 * @returns the query, with whole numbers as numbers and without parameters that are empty
 * @throws Refusal if either does not fit the route's schemas
 */
export function checkedQuery(route: MerchantRoute, request: FastifyRequest): Readonly<Record<string, unknown>> {
  const { body } = request;
  if (route.maxItems !== undefined && Array.isArray(body) && body.length > route.maxItems)
    throw new Refusal({
      status: 413,
      code: 'too-many-items',
      detail: `the list has ${body.length} items: at most ${route.maxItems} are allowed in one call`,
    });
  if (route.body !== undefined) dropNulls(route.body, body);
  const query = queryOf(route.query, request.query as Readonly<Record<string, unknown>>);
  // The query first: a pointer must not leave open which of the two it points into.
  const repeated = repeatedFaults(route.query, query);
  const queryFaults = route.query === undefined || repeated.length > 0 ? repeated : faultsOf(route.query, query);
  if (queryFaults.length > 0) throw route.refuse?.(queryFaults) ?? inputRefusal('query', queryFaults);
  const bodyFaults = route.body === undefined ? [] : faultsOf(route.body, body);
  if (bodyFaults.length > 0) throw route.refuse?.(bodyFaults) ?? inputRefusal('body', bodyFaults);
  return query;
}

/** A list in a query: the parameter repeated, or its values separated by commas. */
function listOf(given: unknown): unknown {
  const values = Array.isArray(given) ? given : [given];
  return values
    .flatMap((value) => (typeof value === 'string' ? value.split(',') : [value]))
    .filter((each) => each !== '');
}

/** The parameters of a query that were given more than once, although they have one value. */
function repeatedFaults(schema: TSchema | undefined, query: Readonly<Record<string, unknown>>): readonly Fault[] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, { type }]) =>
    type !== 'array' && Array.isArray(query[name])
      ? [{ pointer: `/${name}`, detail: 'expected one value: the parameter is repeated' }]
      : [],
  );
}

type Properties = Readonly<Record<string, { readonly type?: string }>>;

function propertiesOf(schema: TSchema | undefined): Properties {
  return ((schema ?? {}) as { readonly properties?: Properties }).properties ?? {};
}

/** Converts a query to its schema's types: digits to numbers; an empty parameter is dropped unless it is required. */
function queryOf(schema: TSchema | undefined, sent: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { required = [] } = (schema ?? {}) as { readonly required?: readonly string[] };
  const query: Record<string, unknown> = { ...sent };
  for (const [name, { type }] of Object.entries(propertiesOf(schema))) {
    const text = query[name];
    if (text === undefined) continue;
    if (text === '' && !required.includes(name)) delete query[name];
    else if (type === 'array') query[name] = listOf(text);
    else if (type === 'integer' && typeof text === 'string' && /^-?\d{1,15}$/.test(text)) query[name] = Number(text);
  }
  return query;
}

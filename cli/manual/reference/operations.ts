/** The reference of both HTTP interfaces, from the tables of routes that the gateway serves. Pure. */

import type { HttpRoute, Scheme } from '../../../gateway/http/merchant/route.js';
import type { DocumentedRoute } from '../../../gateway/http/operator/document.js';
import { roleNeeded } from '../../../gateway/http/operator/roles.js';
import { markdownTable } from '../../../proto/reference/generated-parts.js';
import { memberRows, type SchemaWords } from './schema-words.js';

const MEMBER_HEAD = ['member', 'value', 'required', 'meaning'];

/** What a call needs. Where a scope is needed too, it completes the sentence. */
const SCHEMES: Readonly<Record<Scheme, string>> = {
  none: 'No credential.',
  'api-key': 'An API key, or a session of the dashboard',
  bearer: 'A bearer token, of an API key',
  'access-token': 'An access token in the body, of an API key',
  session: 'A session of the dashboard.',
};

/** A list of members under a word in bold; nothing if there is none. */
function members(title: string, schema: unknown): string[] {
  const rows = memberRows(objectIn(schema as SchemaWords | undefined));
  return rows.length === 0 ? [] : [`**${title}**`, markdownTable(MEMBER_HEAD, rows)];
}

/** The object among the choices of a schema: a body may also be null, or a list of objects. */
function objectIn(schema: SchemaWords | undefined): SchemaWords {
  if (schema === undefined || schema.properties !== undefined) return schema ?? {};
  if (schema.items !== undefined) return objectIn(schema.items);
  return (schema.anyOf ?? []).map(objectIn).find(({ properties }) => properties !== undefined) ?? {};
}

/** An operation's path as documents write it, such as `/devices/{mac}`. */
function writtenPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

function operatorsOperation(route: DocumentedRoute): string {
  const { method, path, summary, query, body, answer } = route;
  const successes = { [route.success ?? 200]: 'Done.', ...route.otherwise };
  return [
    `### ${method} ${writtenPath(path)}`,
    `${summary} Operation \`${route.operation}\`; role \`${roleNeeded(route)}\`.`,
    ...members('Query', query),
    ...members('Body', body),
    ...members('Answer', answer),
    Object.entries(successes)
      .map(([status, words]) => `${status}: ${words}`)
      .join(' '),
  ].join('\n\n');
}

/** The page of the operators' interface. */
export function operatorsPage(routes: readonly DocumentedRoute[]): string {
  const groups = [...new Set(routes.map(({ operation }) => operation.split('.', 1)[0] as string))];
  const parts = groups.map((group) => {
    const own = routes.filter(({ operation }) => operation.startsWith(`${group}.`));
    return [`## ${group}`, ...own.map(operatorsOperation)].join('\n\n');
  });
  return [
    '# The operators’ HTTP operations',
    'Each call needs a token with the role that is named, or a higher one: `metrics`, `read`, `operate`, `admin`. ' +
      '[The operator’s interface](../operator.md) explains tokens and errors. Any call may also answer 400, 401, ' +
      '403, 500 or 503; a call that names something 404; a change 409, 413, 415 or 429, each with a ' +
      '[code](errors.md).',
    ...parts,
  ].join('\n\n');
}

function merchantsOperation(route: HttpRoute): string {
  const scope = 'keyScope' in route && route.scheme !== 'none' && route.scheme !== 'session' ? route.keyScope : null;
  const needs = scope === null ? SCHEMES[route.scheme] : `${SCHEMES[route.scheme]} with the scope \`${scope}\`.`;
  const terms = route as HttpRoute & { readonly query?: unknown; readonly body?: unknown; readonly params?: unknown };
  const answers = Object.entries(route.responses).map(([status, { description }]) => [status, description]);
  return [
    `### ${route.method} ${route.path}`,
    `${route.summary} Operation \`${route.operationId}\`. ${needs} [Explained with an example](${explained(route)}).`,
    ...members('Query', terms.query),
    ...members('Body', terms.body),
    markdownTable(['status', 'when'], answers),
  ].join('\n\n');
}

/** The operation's section in docs/http.md. */
function explained({ method, path }: HttpRoute): string {
  // These two have one section together.
  if (/^\/v1\/invitations\/(look-up|accept)$/.test(path)) return '../http.md#accept-an-invitation';
  const slug = `${method} ${path}`.toLowerCase().replace(/[^a-z0-9_ -]/g, '');
  return `../http.md#${slug.replaceAll(' ', '-')}`;
}

/** The page of the merchants' interface. */
export function merchantsPage(routes: readonly HttpRoute[], tags: Readonly<Record<string, string>>): string {
  const shown = routes.filter((route) => !('isHidden' in route && route.isHidden === true));
  const parts = Object.entries(tags).map(([tag, words]) => {
    const own = shown.filter((route) => route.tag === tag);
    return [`## ${tag}`, words, ...own.map(merchantsOperation)].join('\n\n');
  });
  return [
    '# The merchants’ HTTP operations',
    'Every operation of the merchants’ port. [The merchants’ HTTP interface](../http.md) has the examples, and ' +
      'what all calls share; each error has a [code](errors.md).',
    ...parts,
  ].join('\n\n');
}

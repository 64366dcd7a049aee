/**
 * What all lists of the merchants' interface have in common: the parameters `limit` and `cursor`, the answer
 * `{"data": […], "next_cursor": …}`, and the header `Link: rel="next"` (interfaces.md §2).
 */
import { type TSchema, Type } from 'typebox';
import { slicedJson } from '../../shared/sliced-json.js';
import { Refusal } from '../refusal.js';
import { type Call, type HttpAnswer, JSON_TYPE, type ResponseTerms } from '../route.js';
import { decodeCursor, encodeCursor, MAX_CURSOR_CHARS, type Position } from './cursor.js';

/** The size of a page if a call names none. */
export const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/** The parameter `limit`. */
export const LIMIT_QUERY = Type.Optional(
  Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'The size of a page.' }),
);

/** The parameters of every list. */
export const PAGE_QUERY = {
  limit: LIMIT_QUERY,
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_CURSOR_CHARS, description: 'The `next_cursor` of the page before.' }),
  ),
};

/** A page that a caller requests. */
export interface Page {
  readonly limit: number;
  /** The position before the page's first item; undefined for the first page. */
  readonly after: Position | undefined;
}

/** The type of each value of a list's positions; `any` for a value that the caller checks itself. */
export type PositionShape = readonly ('string' | 'number' | 'any')[];

/**
 * Returns the page that a call requests, by its valid query.
 *
 * @param listKey the name of the list and whatever its order and its members depend on, such as filters: a cursor is
 *   valid only for the key that it was made with
 * @throws Refusal 400 `input-cursor`
 */
export function readPage({ query }: Pick<Call, 'query'>, listKey: string, shape: PositionShape): Page {
  const { limit = DEFAULT_LIMIT, cursor } = query as { limit?: number; cursor?: string };
  if (cursor === undefined) return { limit, after: undefined };
  return { limit, after: readCursor('cursor', cursor, listKey, shape) };
}

/** The position of a cursor in the parameter `name`. @throws Refusal 400 `input-cursor` */
export function readCursor(name: string, text: string, listKey: string, shape: PositionShape): Position {
  const position = decodeCursor(listKey, text);
  if (position !== undefined && fits(position, shape)) return position;
  throw wrongCursor(name);
}

/** The refusal of a cursor in the parameter `name`. */
export function wrongCursor(name: string): Refusal {
  const detail = 'expected a cursor from an answer to the same query, unchanged';
  return new Refusal({
    status: 400,
    code: 'input-cursor',
    detail: `the request does not fit: /${name}: ${detail}`,
    faults: [{ pointer: `/${name}`, detail }],
  });
}

function fits(position: Position, shape: PositionShape): boolean {
  return (
    position.length === shape.length && shape.every((type, index) => type === 'any' || typeof position[index] === type)
  );
}

/**
 * The answer with one page of a list.
 *
 * @param next the position of the page's last item; null if there is no further page
 */
export function pageAnswer(
  call: Pick<Call, 'url'>,
  listKey: string,
  { data, next }: { readonly data: readonly unknown[]; readonly next: Position | null },
): HttpAnswer {
  const cursor = next === null ? null : encodeCursor(listKey, next);
  const headers = cursor === null ? {} : { link: linkTo(call.url, 'cursor', cursor) };
  return { status: 200, headers, body: { data, next_cursor: cursor } };
}

/**
 * The answer with a page that may be long: its items are converted to JSON in slices, between which other work runs.
 * They are not serialised by the route's schema, so `toJson` must return just the members of the schema.
 */
export async function longPageAnswer<Item>(
  call: Pick<Call, 'url' | 'parts' | 'signal'>,
  listKey: string,
  page: { readonly items: readonly Item[]; readonly toJson: (item: Item) => unknown; readonly next: Position | null },
): Promise<HttpAnswer> {
  const { items, toJson, next } = page;
  const { headers = {} } = pageAnswer(call, listKey, { data: [], next });
  const cursor = next === null ? null : encodeCursor(listKey, next);
  return { status: 200, headers, text: await listText(call, items, toJson, { next_cursor: cursor }) };
}

/** The body `{"data": […], …}` of a long list, converted in slices. @param rest the members after `data` */
export async function listText<Item>(
  { parts, signal }: Pick<Call, 'parts' | 'signal'>,
  items: readonly Item[],
  toJson: (item: Item) => unknown,
  rest: object,
): Promise<NonNullable<HttpAnswer['text']>> {
  const content = await slicedJson({ name: 'data', items, toJson, rest }, parts.ownData.readTurns, signal);
  return { type: `${JSON_TYPE}; charset=utf-8`, content };
}

/**
 * The header `Link` (RFC 8288) to the same request with another cursor.
 *
 * @param otherName another name of the parameter, which the link does not have
 */
export function linkTo(url: string, name: string, cursor: string, otherName?: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const members = new URLSearchParams(query);
  members.set(name, cursor);
  if (otherName !== undefined) members.delete(otherName);
  return `<${path}?${members}>; rel="next"`;
}

/** The documentation of a list's answer. */
export function pageResponse(description: string, item: TSchema, example: unknown): ResponseTerms {
  const schema = Type.Object({
    data: Type.Array(item),
    next_cursor: Type.Unsafe<string | null>({
      anyOf: [{ type: 'string' }, { type: 'null' }],
      description: 'The `cursor` of the next page; null if this is the last one.',
    }),
  });
  return {
    description,
    schema,
    example: { data: [example], next_cursor: null },
    headers: { link: { description: 'The next page, with `rel="next"`; absent on the last page.', type: 'string' } },
  };
}

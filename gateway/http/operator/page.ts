/**
 * What all long lists of the operators' interface have in common: `limit` and `cursor` in the query, `next_cursor` in
 * the answer, and the header `Link: rel="next"`. Cursors are those of the merchants' lists (interfaces.md §2).
 */
import { Type } from 'typebox';
import { LockgateError } from '../../../proto/errors.js';
import { decodeCursor, encodeCursor, MAX_CURSOR_CHARS, type Position } from '../merchant/own-data/cursor.js';
import { linkTo } from '../merchant/own-data/list.js';
import { type SlicedList, slicedJson } from '../shared/sliced-json.js';
import { limitOf, textOf } from './query.js';
import type { Query } from './routes.js';
import { Limit, MaybeText } from './schemas.js';

/** The members of a list's query: the size of a page, and where it starts. */
export function pageQuery(maxLimit: number, defaultLimit: number) {
  return {
    limit: Limit(maxLimit, defaultLimit),
    cursor: Type.Optional(
      Type.String({ maxLength: MAX_CURSOR_CHARS, description: 'The next_cursor of the page before.' }),
    ),
  };
}

/** The member `next_cursor` of an answer; null on the last page. */
export const NextCursor = MaybeText;

/** The type of each value of a list's positions. */
type PositionShape = readonly ('string' | 'number')[];

/** A page that a caller requests. */
export interface Page {
  readonly limit: number;
  /** The position before the page's first item; undefined for the first page. */
  readonly after: Position | undefined;
}

/**
 * The page that a query requests.
 *
 * @param listKey the name of the list and whatever selects and orders its items: a cursor is valid only for its own key
 * @throws LockgateError `input-cursor`
 */
export function readPage(query: Query, listKey: string, shape: PositionShape, defaultLimit: number): Page {
  const limit = limitOf(query, defaultLimit);
  const cursor = textOf(query, 'cursor');
  if (cursor === undefined) return { limit, after: undefined };
  const position = decodeCursor(listKey, cursor);
  const fits = position?.length === shape.length && shape.every((type, index) => typeof position[index] === type);
  if (!fits) throw wrongCursor();
  return { limit, after: position };
}

/** The error for a cursor that does not belong to the list. */
export function wrongCursor(): LockgateError {
  return new LockgateError(
    'input-cursor',
    'cursor: expected the next_cursor of an answer to the same query, unchanged',
  );
}

/** The `next_cursor` of a page that ends at this position; null after the last page. */
export function nextCursor(listKey: string, end: Position | null): string | null {
  return end === null ? null : encodeCursor(listKey, end);
}

/**
 * A page and the position of its end, from a read of one item more than the page has; that item shows that there is a
 * further page.
 */
export function cutPage<Item>(
  items: readonly Item[],
  limit: number,
  positionOf: (item: Item) => Position,
): { readonly shown: readonly Item[]; readonly end: Position | null } {
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  return { shown, end: items.length > limit && last !== undefined ? positionOf(last) : null };
}

/** The answer of a route whose page may be long: its JSON, made in slices (../shared/sliced-json.ts). */
export class LongAnswer {
  readonly text: string;
  /** The cursor of the next page; null if there is none. */
  readonly next_cursor: string | null;

  private constructor(text: string, nextCursor: string | null) {
    this.text = text;
    this.next_cursor = nextCursor;
  }

  /**
   * Makes the answer with this list and its `next_cursor`.
   *
   * @param nextCursor null for the last page
   * @param turns waits for other work
   */
  static async of<Item>(
    list: Omit<SlicedList<Item>, 'rest'>,
    nextCursor: string | null,
    turns: { next(): Promise<void> },
  ): Promise<LongAnswer> {
    return new LongAnswer(await slicedJson({ ...list, rest: { next_cursor: nextCursor } }, turns), nextCursor);
  }
}

/** The header `Link` to the next page (RFC 8288); undefined if the answer is not a list or has no further page. */
export function nextLink(url: string, answer: unknown): string | undefined {
  const { next_cursor: cursor } = (answer ?? {}) as { readonly next_cursor?: unknown };
  return typeof cursor === 'string' ? linkTo(url, 'cursor', cursor) : undefined;
}

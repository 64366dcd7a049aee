/** The list of locks for operators: its query, and a page of it (interfaces.md §4). */
import { Type } from 'typebox';
import type { Mac } from '../../../proto/wire/mac.js';
import { LISTED_STATES, PRESENCES, parseLabelFilter } from '../../locks/list/lock-filter.js';
import type { ListPosition } from '../../locks/list/lock-list.js';
import { parseSort, SORTS } from '../../locks/list/lock-order.js';
import { noSuchMerchant } from '../../store/contract/errors.js';
import { decodeCursor, type Position } from '../merchant/own-data/cursor.js';
import { listedLockJson } from './json/device.js';
import { nextCursor, pageQuery, wrongCursor } from './page.js';
import { limitOf, textOf } from './query.js';
import type { OperatorParts, Query } from './routes.js';
import { Exact, Name, OneOf } from './schemas.js';

const MAX_LIMIT = 1_000;
const MAX_SEARCH_CHARS = 100;

export const DeviceListQuery = Exact({
  merchant: Type.Optional(Name),
  presence: Type.Optional(Type.Array(OneOf(PRESENCES), { description: 'Only these presences; can be repeated.' })),
  state: Type.Optional(Type.Array(OneOf(LISTED_STATES), { description: 'Only these states; can be repeated.' })),
  label: Type.Optional(Type.Array(Type.String(), { description: 'key=value, or key; all of them; can be repeated.' })),
  search: Type.Optional(Type.String({ maxLength: MAX_SEARCH_CHARS, description: 'Part of a MAC, a name or a label.' })),
  sort: Type.Optional(OneOf(SORTS, 'By default trouble first; - reverses an order.')),
  // The default is the maximum.
  ...pageQuery(MAX_LIMIT, MAX_LIMIT),
});

/** A page of the list. @throws LockgateError `no-such-merchant`, `input-cursor` */
export async function listDevices(parts: OperatorParts, query: Query) {
  const { store, usage, merchants } = parts;
  const merchant = textOf(query, 'merchant');
  const filter = {
    merchantId: merchant === undefined ? undefined : await merchantIdOf(store, merchant),
    presences: someOf(query.presence, PRESENCES),
    states: someOf(query.state, LISTED_STATES),
    labels: listOf(query.label)?.map(parseLabelFilter),
    search: textOf(query, 'search'),
  };
  const asked = { filter, order: parseSort(textOf(query, 'sort') ?? 'trouble') };
  const listKey = `devices ${JSON.stringify(asked)}`;
  const page = await merchants.ownData.lockList.page(asked, {
    limit: limitOf(query, MAX_LIMIT),
    after: positionOf(textOf(query, 'cursor'), listKey),
  });
  return {
    devices: page.locks.map((lock) => listedLockJson(lock, usage)),
    next_cursor: nextCursor(listKey, page.next && toPosition(page.next)),
  };
}

async function merchantIdOf(store: OperatorParts['store'], name: string): Promise<number> {
  const merchant = (await store.listMerchants()).find((each) => each.name === name);
  if (merchant === undefined) throw noSuchMerchant(name);
  return merchant.id;
}

function listOf(given: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof given === 'string' ? [given] : given;
}

/** The words of a repeated member, which the schema has checked. */
function someOf<Word extends string>(
  given: string | readonly string[] | undefined,
  words: readonly Word[],
): readonly Word[] | undefined {
  const wanted = listOf(given);
  return wanted && words.filter((word) => wanted.includes(word));
}

/** The values of a cursor; {@link positionOf} reads them back. */
function toPosition({ value, mac, orderId, offset }: ListPosition): Position {
  return [value, mac, orderId, offset];
}

/** @throws LockgateError `input-cursor` */
function positionOf(cursor: string | undefined, listKey: string): ListPosition | undefined {
  if (cursor === undefined) return undefined;
  const [value = null, mac, orderId = null, offset] = decodeCursor(listKey, cursor) ?? [];
  if (typeof mac === 'string' && typeof offset === 'number' && typeof orderId !== 'number')
    return { value, mac: mac as Mac, orderId, offset };
  throw wrongCursor();
}

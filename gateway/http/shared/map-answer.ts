/** What the operators' and the merchants' port answer to a page that asks for the streets of its map. */
import { Days, Seconds } from '../../../proto/clock.js';
import type { CachedTiles } from '../../map/cached-tiles.js';
import type { StreetLines } from '../../map/street-lines.js';
import { readTilePlace } from '../../map/tile-place.js';
import { Refusal } from '../merchant/refusal.js';

/** The headers and the bytes of an answer. */
export interface MapAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

/**
 * The answer.
 *
 * @param params the parts `z`, `x` and `y` of the path
 * @param signal aborted when the client has hung up
 * @throws Refusal 404 `no-such-tile` outside the map and where it is empty
 * @throws LockgateError `tile-unavailable`, `busy`
 */
export async function tileAnswer(
  tiles: CachedTiles,
  params: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<MapAnswer> {
  const place = readTilePlace(params);
  if (place === undefined) throw noSuchTile();
  const { tile, maxAge } = await tiles.get(place, signal);
  const headers = { 'cache-control': `private, max-age=${Math.floor(maxAge / Seconds(1))}` };
  if (tile === null) throw noSuchTile(headers);
  const { type, encoding, bytes } = tile;
  const encoded = encoding === undefined ? {} : { 'content-encoding': encoding };
  // An image that is opened by itself must not do more than be shown.
  const safe = { 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' };
  return { headers: { ...headers, ...encoded, ...safe, 'content-type': type }, bytes };
}

/**
 * The answer to a page that asks for the lines of streets. The address changes with their content, so browsers keep
 * them. Every browser takes gzip.
 */
export function streetsAnswer({ gzip }: StreetLines): MapAnswer {
  const cacheControl = `private, max-age=${Days(1) / Seconds(1)}`;
  const type = { 'content-type': 'application/geo+json', 'content-encoding': 'gzip' };
  return { headers: { ...type, 'cache-control': cacheControl, 'x-content-type-options': 'nosniff' }, bytes: gzip };
}

function noSuchTile(headers: Readonly<Record<string, string>> = {}): Refusal {
  return new Refusal({ status: 404, code: 'no-such-tile', detail: 'the map has no such tile', headers });
}

/** What both ports answer to a page that asks for a tile of its map. */
import { Seconds } from '../../../proto/clock.js';
import type { CachedTiles } from '../../map/cached-tiles.js';
import { readTilePlace } from '../../map/tile-place.js';
import { Refusal } from '../merchant/refusal.js';

/** The headers and the bytes of a tile. */
export interface TileAnswer {
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
): Promise<TileAnswer> {
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

function noSuchTile(headers: Readonly<Record<string, string>> = {}): Refusal {
  return new Refusal({ status: 404, code: 'no-such-tile', detail: 'the map has no such tile', headers });
}

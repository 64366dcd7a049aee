/** A tile, where tiles come from, and the failure to get one. */
import type { Milliseconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { TilePlace } from './tile-place.js';

/** The content of a tile. */
export interface Tile {
  /** The content type, such as `image/png`. */
  readonly type: string;
  readonly bytes: Buffer;
  /** The bytes' encoding, if they are compressed. */
  readonly encoding?: 'gzip';
}

/** A tile, and for how long it may be kept. */
export interface AgingTile {
  /** Null if there is no such tile: the map has nothing there. */
  readonly tile: Tile | null;
  readonly maxAge: Milliseconds;
}

/**
 * The failure to get a tile from where tiles come from.
 *
 * @param why a sentence for people, without the tile server's address, which may have a key
 */
export function tileUnavailable(why: string): LockgateError {
  return new LockgateError('tile-unavailable', why);
}

/** Where tiles come from. */
export interface TileSource {
  /**
   * Gets a tile.
   *
   * @param signal aborted when nobody waits for the tile any more
   * @throws LockgateError `tile-unavailable`
   */
  get(place: TilePlace, signal: AbortSignal): Promise<AgingTile>;
  /** Closes what is open. */
  close(): Promise<void>;
}

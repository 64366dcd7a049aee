/** The streets of the pages' maps: what the gateway serves for them, and what the pages must know of it. */
import type { Clock } from '../../proto/clock.js';
import { CachedTiles } from './cached-tiles.js';
import { type MapNote, NO_STREETS, TILES_PATH } from './map-note.js';
import type { TileServerAddress } from './map-tiles.js';
import { TileCache } from './tile-cache.js';
import { TileServer } from './tile-server.js';

export interface StreetMap {
  readonly note: MapNote;
  /** Null if no tiles are set. */
  readonly tiles: CachedTiles | null;
  readonly close: () => Promise<void>;
}

/** What {@link openStreetMap} needs besides the setting. */
export interface StreetMapOptions {
  readonly clock: Clock;
  readonly userAgent: string;
  /** Called with a sentence when a tile could not be fetched. */
  readonly onFailure: (why: string) => void;
}

/** A map without streets. */
export const NO_STREET_MAP: StreetMap = { note: NO_STREETS, tiles: null, close: async () => undefined };

/** Opens what the settings name. @param tiles null for none */
export function openStreetMap(tiles: TileServerAddress | null, options: StreetMapOptions): StreetMap {
  if (tiles === null) return NO_STREET_MAP;
  const { url, attribution } = tiles;
  const { clock, userAgent, onFailure } = options;
  const server = new TileServer({ url, userAgent, clock });
  const cached = new CachedTiles(server, new TileCache(clock), onFailure);
  const fine = url.includes('{r}') ? '{r}' : '';
  const note = { tiles: `${TILES_PATH}/{z}/{x}/{y}${fine}`, attribution };
  return { note, tiles: cached, close: () => cached.close() };
}

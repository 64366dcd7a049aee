/** The streets of the pages' maps: what the gateway serves for them, and what the pages must know of it. */
import type { Clock } from '../../proto/clock.js';
import { CachedTiles } from './cached-tiles.js';
import { type MapNote, NO_STREETS, STREETS_PATH, TILES_PATH } from './map-note.js';
import type { TileServerAddress } from './map-tiles.js';
import type { StreetLines } from './street-lines.js';
import { TileCache } from './tile-cache.js';
import { TileServer } from './tile-server.js';

export interface StreetMap {
  readonly note: MapNote;
  /** Null if no tiles are set. */
  readonly tiles: CachedTiles | null;
  /** Null if no lines of streets are set. */
  readonly streets: StreetLines | null;
  readonly close: () => Promise<void>;
}

/** What {@link openStreetMap} needs besides the setting. */
export interface StreetMapOptions {
  readonly clock: Clock;
  readonly userAgent: string;
  /** Called with a sentence when a tile could not be fetched. */
  readonly onFailure: (why: string) => void;
}

/** What the settings name; null for none. */
export interface StreetSettings {
  readonly mapTiles: TileServerAddress | null;
  readonly mapStreets: StreetLines | null;
}

/** A map without streets. */
export const NO_STREET_MAP: StreetMap = {
  note: NO_STREETS,
  tiles: null,
  streets: null,
  close: async () => undefined,
};

/** Opens what the settings name. */
export function openStreetMap({ mapTiles, mapStreets }: StreetSettings, options: StreetMapOptions): StreetMap {
  const streets = mapStreets === null ? '' : `${STREETS_PATH}?v=${mapStreets.version}`;
  const map = { ...NO_STREET_MAP, note: { ...NO_STREETS, streets }, streets: mapStreets };
  if (mapTiles === null) return map;
  const { url, attribution } = mapTiles;
  const { clock, userAgent, onFailure } = options;
  const server = new TileServer({ url, userAgent, clock });
  const tiles = new CachedTiles(server, new TileCache(clock), onFailure);
  const fine = url.includes('{r}') ? '{r}' : '';
  const note = { tiles: `${TILES_PATH}/{z}/{x}/{y}${fine}`, attribution, streets };
  return { ...map, note, tiles, close: () => tiles.close() };
}

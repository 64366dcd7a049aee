/** The routes of what the dashboard's maps show. Only our page calls them, so the OpenAPI document leaves them out. */
import { Type } from 'typebox';
import type { CachedTiles } from '../../../map/cached-tiles.js';
import { STREETS_PATH, TILES_PATH } from '../../../map/map-note.js';
import type { StreetLines } from '../../../map/street-lines.js';
import type { StreetMap } from '../../../map/street-map.js';
import { streetsAnswer, tileAnswer } from '../../shared/map-answer.js';
import type { MerchantRoute } from '../route.js';
import { consoleRoute } from './console-route.js';

/** A view of a map has some thirty tiles, most of which come from memory: they cost far less than other calls. */
const REQUESTS_PER_TILE = 1 / 8;

/** The routes of a map: of tiles, if it has some, and of lines of streets, if it has some. */
export function mapRoutes({ tiles, streets }: StreetMap): readonly MerchantRoute[] {
  return [...(tiles === null ? [] : [tileRoute(tiles)]), ...(streets === null ? [] : [streetsRoute(streets)])];
}

function tileRoute(tiles: CachedTiles): MerchantRoute {
  return consoleRoute({
    method: 'GET',
    path: `${TILES_PATH}/{z}/{x}/{y}`,
    operationId: 'mapTile',
    summary: 'A tile of the map.',
    params: Type.Object({ z: Type.String(), x: Type.String(), y: Type.String() }),
    cost: REQUESTS_PER_TILE,
    handle: async ({ params, signal, waitWithoutPlace }) => {
      return { status: 200, ...(await waitWithoutPlace(() => tileAnswer(tiles, params, signal))) };
    },
  });
}

function streetsRoute(streets: StreetLines): MerchantRoute {
  return consoleRoute({
    method: 'GET',
    path: STREETS_PATH,
    operationId: 'mapStreets',
    summary: 'The lines of streets on the map.',
    handle: async () => ({ status: 200, ...streetsAnswer(streets) }),
  });
}

/** The routes of what the dashboard's maps show. Only our page calls them, so the OpenAPI document leaves them out. */
import { Type } from 'typebox';
import { TILES_PATH } from '../../../map/map-note.js';
import type { StreetMap } from '../../../map/street-map.js';
import { tileAnswer } from '../../shared/tile-answer.js';
import type { MerchantRoute } from '../route.js';
import { consoleRoute } from './console-route.js';

/** A view of a map has some thirty tiles, most of which come from memory: they cost far less than other calls. */
const REQUESTS_PER_TILE = 1 / 8;

/** The routes of a map; none without streets. */
export function mapRoutes({ tiles }: StreetMap): readonly MerchantRoute[] {
  if (tiles === null) return [];
  return [
    consoleRoute({
      method: 'GET',
      path: `${TILES_PATH}/{z}/{x}/{y}`,
      operationId: 'mapTile',
      summary: 'A tile of the map of streets.',
      params: Type.Object({ z: Type.String(), x: Type.String(), y: Type.String() }),
      cost: REQUESTS_PER_TILE,
      handle: async ({ params, signal, waitOutside }) => {
        const { headers, bytes } = await waitOutside(() => tileAnswer(tiles, params, signal));
        return { status: 200, headers, bytes };
      },
    }),
  ];
}

/** The routes of what the console's maps show. Only our page calls them, so the OpenAPI document leaves them out. */
import type { FastifyInstance } from 'fastify';
import { TILES_PATH } from '../../../map/map-note.js';
import type { StreetMap } from '../../../map/street-map.js';
import { tileAnswer } from '../../shared/tile-answer.js';
import type { Callers } from '../callers.js';
import { checkRole } from '../roles.js';

/** Adds the routes of a map; none without streets. */
export function addMapRoutes(fastify: FastifyInstance, callers: Callers, { tiles }: StreetMap): void {
  if (tiles === null) return;
  fastify.get(`${TILES_PATH}/:z/:x/:y`, async (request, reply) => {
    checkRole(callers.of(request).role, 'read');
    const hangUp = new AbortController();
    reply.raw.once('close', () => hangUp.abort());
    const { headers, bytes } = await tileAnswer(tiles, request.params as Record<string, string>, hangUp.signal);
    return await reply.headers(headers).send(bytes);
  });
}

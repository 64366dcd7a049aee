/** The routes of what the console's maps show. Only our page calls them, so the OpenAPI document leaves them out. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { STREETS_PATH, TILES_PATH } from '../../../map/map-note.js';
import type { StreetMap } from '../../../map/street-map.js';
import { streetsAnswer, tileAnswer } from '../../shared/map-answer.js';
import type { Callers } from '../callers.js';
import { checkRole } from '../roles.js';

/** Adds the routes of a map; none without streets. */
export function addMapRoutes(fastify: FastifyInstance, callers: Callers, { tiles, streets }: StreetMap): void {
  const checkReader = (request: FastifyRequest): void => checkRole(callers.of(request).role, 'read');
  if (tiles !== null)
    fastify.get(`${TILES_PATH}/:z/:x/:y`, async (request, reply) => {
      checkReader(request);
      const hangUp = new AbortController();
      reply.raw.once('close', () => hangUp.abort());
      const { headers, bytes } = await tileAnswer(tiles, request.params as Record<string, string>, hangUp.signal);
      return await reply.headers(headers).send(bytes);
    });
  if (streets !== null)
    fastify.get(STREETS_PATH, async (request, reply) => {
      checkReader(request);
      const { headers, bytes } = streetsAnswer(streets);
      return await reply.headers(headers).send(bytes);
    });
}

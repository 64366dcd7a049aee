/**
 * Serves the help to anybody, without login: it is the same text that comes with the program, and has no data. Its
 * pages may load only files from this port.
 */
import type { FastifyInstance } from 'fastify';
import { HELP_PATH, loadHelp } from '../../console/help-pages.js';
import { PAGE_CSP } from '../../console/pages.js';
import { takes } from './console-pages.js';
import { sendNotFound } from './problem.js';

/**
 * The help's path without its last slash. It redirects to the path with it, since the first page's links are relative.
 */
const BARE_PATH = HELP_PATH.slice(0, -1);
/** The router's path of all files. */
const FILE_ROUTE = `${HELP_PATH}*`;
/** The router's paths that need no login. */
export const HELP_ROUTES: readonly string[] = [BARE_PATH, FILE_ROUTE];

/** Adds the help. @throws LockgateError `internal-pages` if the build lacks it */
export function addHelp(fastify: FastifyInstance): void {
  const help = loadHelp();
  // Left out of the OpenAPI document, whose generator reads `hide`; Fastify's own type does not have it.
  const schema = { hide: true } as never;
  const method = ['GET', 'HEAD'];
  fastify.route({ method, url: BARE_PATH, schema, handler: async (_request, reply) => reply.redirect(HELP_PATH, 308) });
  fastify.route({
    method,
    url: FILE_ROUTE,
    schema,
    handler: async (request, reply) => {
      const name = (request.params as { readonly '*': string })['*'];
      const file = await help.file(name, takes(String(request.headers['accept-encoding'] ?? ''), 'gzip'));
      if (file === undefined) {
        sendNotFound(reply);
        return reply;
      }
      if (file.encoding !== null) reply.header('content-encoding', file.encoding);
      reply.header('vary', 'Accept-Encoding').header('content-security-policy', PAGE_CSP);
      reply.header('cache-control', file.hasHash ? 'public, max-age=31536000, immutable' : 'no-cache');
      return await reply.header('content-type', file.type).send(file.bytes);
    },
  });
}

/**
 * Serves a page of the console and its files from memory, to anybody: they contain no data. The page
 * itself is requested each time; its files have a hash in their names, so browsers keep them.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { loadPages, PAGE_CSP, PAGE_FILES_PATH, type PageFile, type PageName } from '../../console/pages.js';
import type { MapNote } from '../../map/map-note.js';
import { sendNotFound } from './problem.js';

/** The path of a page's files, for the router. */
export const PAGE_FILE_ROUTE = `${PAGE_FILES_PATH}:file`;

/** A page and where it is. */
export interface ConsolePage {
  readonly page: PageName;
  /** The router's paths of the page. */
  readonly paths: readonly string[];
  /** What its HTML says about the map. */
  readonly note: MapNote;
}

/** Adds a page and the files of all pages. */
export function addConsolePages(fastify: FastifyInstance, { page, paths, note }: ConsolePage): void {
  const pages = loadPages();
  const html = pages.html(page, note);
  // Left out of the OpenAPI document, whose generator reads `hide`; Fastify's own type does not have it.
  const schema = { hide: true } as never;
  for (const url of paths)
    fastify.route({
      method: ['GET', 'HEAD'],
      url,
      schema,
      handler: async (_request, reply) => {
        reply.header('content-security-policy', PAGE_CSP).header('cache-control', 'no-cache');
        return await reply.header('content-type', 'text/html; charset=utf-8').send(html);
      },
    });
  fastify.route({
    method: ['GET', 'HEAD'],
    url: PAGE_FILE_ROUTE,
    schema,
    handler: async (request, reply) => {
      const file = pages.file((request.params as { readonly file: string }).file);
      if (file === undefined) {
        sendNotFound(reply);
        return reply;
      }
      return await sendPageFile(request, reply, file);
    },
  });
}

async function sendPageFile(request: FastifyRequest, reply: FastifyReply, file: PageFile): Promise<FastifyReply> {
  const { encoding, bytes } = variantFor(String(request.headers['accept-encoding'] ?? ''), file);
  if (encoding !== null) reply.header('content-encoding', encoding);
  // A worker has the policy of its own script, not that of the page.
  reply.header('content-security-policy', PAGE_CSP);
  const vary = reply.getHeader('vary');
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`);
  reply.header('cache-control', 'public, max-age=31536000, immutable');
  return await reply.header('content-type', file.type).send(bytes);
}

/** The content in the smallest form that the client takes. */
function variantFor(accepted: string, { plain, brotli, gzip }: PageFile) {
  if (takes(accepted, 'br')) return { encoding: 'br', bytes: brotli };
  return takes(accepted, 'gzip') ? { encoding: 'gzip', bytes: gzip } : { encoding: null, bytes: plain };
}

/** Whether an `Accept-Encoding` names the encoding, and not with a weight of 0. */
export function takes(accepted: string, encoding: string): boolean {
  return accepted.split(',').some((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((each) => each.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

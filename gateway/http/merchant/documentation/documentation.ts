/**
 * Serves the OpenAPI 3.1 document of the merchants' interface, and a page that shows it (interfaces.md §2). The
 * document is generated from the served routes, so it can't differ from them. The page's scripts and styles come from
 * the same port, so that it works without internet access.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { SCOPES } from '../../../store/contract/merchants/access-store.js';
import { KEY_SCOPES } from '../../../store/contract/merchants/key-scopes.js';
import { VERSION } from '../../../version.js';
import { JSON_TYPE, TAGS } from '../route.js';
import { documentedWebhooks } from './documented-webhooks.js';
import { type MemoryFile, makeMemoryFile, sendFile } from './memory-file.js';
import { loadPageFiles, PAGE_FILES, PAGE_PATH, pageHtml } from './page.js';

export const DOCUMENT_PATH = '/openapi.json';

/** The page may load only files from this port. */
const PAGE_CSP = [
  "default-src 'self'",
  "base-uri 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join('; ');

const DESCRIPTION = `The merchants’ interface of lockgate: a pet registry, users with sessions, a test webhook, and
the merchant’s own locks. Calls need an **API key** as the user of HTTP basic authentication, with an empty password.
\`PUT /v2/pet\` takes a **bearer token** and \`POST /test_webhook\` an \`access_token\`: both come from
\`POST /oauth/token\`. Errors are \`application/problem+json\` (RFC 9457). Unknown members of a body are ignored; null
for an optional member is the same as leaving it out. Whole numbers are exact to the last digit of an int64.`;

const KEY_DESCRIPTION = [
  'The API key as the user, with an empty password. The scopes of a key:',
  ...Object.entries(KEY_SCOPES).map(([scope, meaning]) => `- \`${scope}\`: ${meaning}`),
].join('\n');

/** What a token with each scope may do. */
const SCOPE_WORDS: Readonly<Record<(typeof SCOPES)[number], string>> = {
  'pets:write': 'Update pets.',
  'webhooks:test': 'Send test webhooks.',
};

/** A node of the document. */
interface DocumentNode {
  [member: string]: unknown;
}

/**
 * Adds `/openapi.json` and `/docs`. Must be called before the routes are added, since it collects each route when that
 * is added. `/docs/json` and `/docs/yaml` are the same document, for the page.
 */
export async function addDocumentation(fastify: FastifyInstance): Promise<void> {
  await fastify.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'lockgate', version: VERSION, description: DESCRIPTION.replaceAll('\n', ' ') },
      // Clients call the address that the document came from.
      servers: [{ url: '/' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'basic', description: KEY_DESCRIPTION },
          bearer: {
            type: 'oauth2',
            description: 'A token, issued for the API key as the client.',
            flows: {
              clientCredentials: {
                tokenUrl: '/oauth/token',
                scopes: Object.fromEntries(SCOPES.map((scope) => [scope, SCOPE_WORDS[scope]])),
              },
            },
          },
        },
      },
    },
    transformObject: (document) => {
      const served = ('openapiObject' in document ? document.openapiObject : {}) as DocumentNode;
      return nameSchemas({ ...served, webhooks: documentedWebhooks() }) as never;
    },
  });
  addDocuments(fastify);
  addPage(fastify);
}

/** Adds the document as JSON and YAML, each generated at its first request. */
function addDocuments(fastify: FastifyInstance): void {
  const json = once(() => makeMemoryFile(`${JSON_TYPE}; charset=utf-8`, JSON.stringify(fastify.swagger())));
  const yaml = once(() => makeMemoryFile('application/x-yaml', fastify.swagger({ yaml: true })));
  serveFile(fastify, DOCUMENT_PATH, json);
  serveFile(fastify, `${PAGE_PATH}/json`, json);
  serveFile(fastify, `${PAGE_PATH}/yaml`, yaml);
}

/** Adds the page and the files that it loads. */
function addPage(fastify: FastifyInstance): void {
  const html = (base: string) => once(() => makeMemoryFile('text/html; charset=utf-8', pageHtml(base)));
  // From `/docs`, a relative path would lead to the root; from `/docs/` it also works below a proxy's prefix.
  serveFile(fastify, PAGE_PATH, html(`${PAGE_PATH}/`), PAGE_CSP);
  serveFile(fastify, `${PAGE_PATH}/`, html('./'), PAGE_CSP);
  // Files are loaded now, so that no request waits for them. If that fails, the next request tries again and gets the
  // error.
  loadPageFiles().catch(() => undefined);
  for (const name of PAGE_FILES) {
    const file = async (): Promise<MemoryFile> => (await loadPageFiles()).get(name) as MemoryFile;
    serveFile(fastify, `${PAGE_PATH}/static/${name}`, file, PAGE_CSP);
  }
}

function serveFile(fastify: FastifyInstance, url: string, file: () => Promise<MemoryFile>, csp?: string): void {
  fastify.route({
    method: ['GET', 'HEAD'],
    url,
    // The document does not list these routes. `hide` is a member that @fastify/swagger adds to a route's schema.
    schema: { hide: true } as never,
    handler: async (request, reply) => {
      if (csp !== undefined) reply.header('content-security-policy', csp);
      return await sendFile(request, reply, await file());
    },
  });
}

/** Returns a function that calls `make` at its first call, and returns the same result later unless `make` failed. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= make().catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

/**
 * Moves each schema with a title to `components`, under the title, and refers to it from its old place, so that
 * generated clients get types with these names.
 */
function nameSchemas(document: DocumentNode): DocumentNode {
  const schemas: DocumentNode = {};
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const members = Object.entries(node)
      // HEAD is GET without a body and needs no entry.
      .filter(([name]) => name !== 'head')
      .map(([name, value]) => [name, name === 'example' ? value : visit(value)]);
    const visited: DocumentNode = Object.fromEntries(members);
    const { title, type } = visited;
    if (typeof title !== 'string' || type !== 'object') return visited;
    schemas[title] = visited;
    return { $ref: `#/components/schemas/${title}` };
  };
  const { components, ...rest } = document;
  const named = visit(rest) as DocumentNode;
  return { ...named, components: { ...(components as DocumentNode), schemas } };
}

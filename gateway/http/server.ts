/**
 * HTTP for merchants: the routes of routes.ts, within limits. Errors are problems as RFC 9457 says.
 */
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import { HTTP_LIMITS, MAX_CONNECTIONS } from './limits.js';
import { listen } from './listen.js';
import { answerClientError, sendNotFound, sendProblem, statusOf } from './problem.js';
import { HTTP_ROUTES, type HttpParts } from './routes.js';

export interface HttpServerOptions extends HttpParts {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export class HttpServer {
  readonly #fastify: FastifyInstance;

  private constructor(fastify: FastifyInstance) {
    this.#fastify = fastify;
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: HttpServerOptions): Promise<HttpServer> {
    const fastify = Fastify({
      ...HTTP_LIMITS,
      clientErrorHandler: answerClientError,
      // A 7 where a name belongs is a mistake of the caller's, not the name "7".
      ajv: { customOptions: { coerceTypes: false } },
    });
    fastify.server.maxConnections = MAX_CONNECTIONS;
    fastify.setErrorHandler<FastifyError>((error, _request, reply) => sendProblem(reply, statusOf(error), error));
    fastify.setNotFoundHandler((_request, reply) => sendNotFound(reply));
    const server = new HttpServer(fastify);
    server.#addRoutes(options);
    await listen(fastify, 'the merchants’ interface', options.host, options.port);
    return server;
  }

  get port(): number {
    return (this.#fastify.server.address() as AddressInfo).port;
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    await this.#fastify.close();
  }

  #addRoutes(parts: HttpParts): void {
    for (const { method, path, body, handle } of HTTP_ROUTES) {
      this.#fastify.route({
        method,
        url: path,
        ...(body !== undefined && { schema: { body } }),
        handler: async (request, reply) => {
          const { params, query, headers } = request;
          const answer = await handle(parts, {
            params: params as Record<string, string>,
            query: query as Record<string, unknown>,
            headers,
            body: request.body,
          });
          return await reply
            .status(answer.status)
            .headers({ ...answer.headers })
            .send(answer.body);
        },
      });
    }
  }
}

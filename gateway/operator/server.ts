/**
 * The operator's interface over HTTP: bearer token from a file of mode 600, problems as RFC 9457 says, and a stream of
 * what happens for `tail`.
 */
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { LockgateError } from '../../proto/errors.js';
import type { GatewayEvents } from '../events.js';
import { HTTP_LIMITS } from '../http/limits.js';
import { listen } from '../http/listen.js';
import { answerClientError, sendNotFound, sendProblem, statusOf } from '../http/problem.js';
import { noSuchDevice } from '../store/registry-tables.js';
import type { Store } from '../store/store.js';
import { addBackupRoute } from './backup-route.js';
import { COMMAND_ROUTES } from './command-routes.js';
import { DEVICE_ROUTES } from './device-routes.js';
import { listenToAll } from './event-json.js';
import { addHealthRoutes, type HealthRouteParts, isHealthPath } from './health-routes.js';
import { KEY_ROUTES } from './key-routes.js';
import { NOTICE_ROUTES } from './notice-routes.js';
import { readDate } from './query.js';
import { type OperatorParts, type Query, ROUTES, readMac } from './routes.js';
import { isOperator } from './token.js';
import { type ExportRange, exportTrace } from './trace-export.js';
import { type RecordParts, recordTrace } from './trace-record.js';
import { USAGE_ROUTES } from './usage-routes.js';
import { USER_ROUTES } from './user-routes.js';
import { WEBHOOK_ROUTES } from './webhook-routes.js';

/** What a `tail` that does not read may hold back of the stream, in bytes, before it is cut off. */
const TAIL_BACKLOG_BYTES = 4 * 1024 * 1024;

const JSON_LINES = 'application/jsonl';

/** Which locks, and from when to when by receipt. */
interface TraceQuery {
  readonly mac?: readonly string[];
  readonly since?: string;
  readonly until?: string;
}

const TRACE_SCHEMA = {
  querystring: Type.Object({
    mac: Type.Optional(Type.Array(Type.String())),
    since: Type.Optional(Type.String()),
    until: Type.Optional(Type.String()),
  }),
};

export interface OperatorServerOptions extends OperatorParts, RecordParts, HealthRouteParts {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  readonly events: GatewayEvents;
}

export class OperatorServer {
  readonly #fastify: FastifyInstance;
  readonly #tails = new Set<PassThrough>();

  private constructor(fastify: FastifyInstance) {
    this.#fastify = fastify;
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: OperatorServerOptions): Promise<OperatorServer> {
    const fastify = Fastify({
      ...HTTP_LIMITS,
      clientErrorHandler: answerClientError,
      // A 7 where a name belongs is a mistake of the caller's, not the name "7".
      ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
      // `?mac=a` is a list of one.
      routerOptions: { querystringParser: (text) => parseQuery(text) },
    });
    const server = new OperatorServer(fastify);
    fastify.setErrorHandler<FastifyError>((error, _request, reply) => sendProblem(reply, statusOf(error), error));
    fastify.setNotFoundHandler((_request, reply) => sendNotFound(reply));
    fastify.addHook('onRequest', async (request) => {
      if (!isOperator(request.headers.authorization, options.token))
        throw new LockgateError('unauthorized', 'the operator’s interface wants the token of the data folder');
      // Whoever asks how the stop goes is answered to the end; nothing else begins any more.
      if (options.health.isStopping && !isHealthPath(request.url))
        throw new LockgateError('stopping', 'the gateway is stopping');
    });
    addHealthRoutes(fastify, options);
    addBackupRoute(fastify, options.store);
    server.#addRoutes(options);
    await listen(fastify, 'the operator’s interface', options.host, options.port);
    return server;
  }

  get port(): number {
    return (this.#fastify.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const tail of this.#tails) tail.end();
    await this.#fastify.close();
  }

  #addRoutes(options: OperatorServerOptions): void {
    for (const { method, path, success, body, bodyLimit, handle } of [
      ...ROUTES,
      ...DEVICE_ROUTES,
      ...COMMAND_ROUTES,
      ...USAGE_ROUTES,
      ...WEBHOOK_ROUTES,
      ...KEY_ROUTES,
      ...USER_ROUTES,
      ...NOTICE_ROUTES,
    ]) {
      this.#fastify.route({
        method,
        url: path,
        ...(body !== undefined && { schema: { body } }),
        ...(bodyLimit !== undefined && { bodyLimit }),
        handler: async (request, reply) => {
          const params = request.params as Record<string, string>;
          const query = request.query as Query;
          return await reply.status(success).send(await handle(options, { params, query, body: request.body }));
        },
      });
    }
    this.#addStreams(options);
  }

  #addStreams(options: OperatorServerOptions): void {
    this.#fastify.get('/events', (_request, reply) =>
      this.#live(reply, async (write) => listenToAll(options.events, (event) => write(JSON.stringify(event)))),
    );
    this.#fastify.get<{ Querystring: TraceQuery }>('/trace/live', { schema: TRACE_SCHEMA }, (request, reply) => {
      const macs = request.query.mac?.map(readMac);
      return this.#live(reply, (write) => recordTrace(options, macs && new Set(macs), write));
    });
    this.#fastify.get<{ Querystring: TraceQuery }>('/trace', { schema: TRACE_SCHEMA }, async (request, reply) => {
      const lines = exportTrace(options.store, await readRange(options.store, request.query));
      reply.header('content-type', JSON_LINES);
      return reply.send(Readable.from(withEnds(lines)));
    });
  }

  /** JSON Lines, for as long as the other side listens. `begin` returns the function that ends them. */
  #live(reply: FastifyReply, begin: (write: (line: string) => void) => Promise<() => void>): FastifyReply {
    const stream = new PassThrough();
    const begun = begin((line) => {
      if (stream.writableLength > TAIL_BACKLOG_BYTES) stream.destroy();
      else stream.write(`${line}\n`);
    });
    this.#tails.add(stream);
    stream.on('close', () => {
      void begun.then((end) => end());
      this.#tails.delete(stream);
    });
    // Headers go out at once, so that the other side knows that it listens before the first event.
    reply.header('content-type', JSON_LINES).send(stream);
    reply.raw.flushHeaders();
    return reply;
  }
}

async function readRange(store: Store, { mac, since, until }: TraceQuery): Promise<ExportRange> {
  const wanted = mac?.map(readMac);
  const devices = (await store.listDevices()).map(({ device }) => device);
  for (const each of wanted ?? []) if (devices.every((device) => device.mac !== each)) throw noSuchDevice(each);
  return {
    devices: devices.filter((device) => wanted?.includes(device.mac) ?? true),
    sinceMs: readDate('since', since) ?? Number.NEGATIVE_INFINITY,
    untilMs: readDate('until', until) ?? Number.POSITIVE_INFINITY,
  };
}

/** A query's members; `mac` is always a list. */
function parseQuery(text: string): Record<string, string | string[]> {
  const query = new URLSearchParams(text);
  const members: Record<string, string | string[]> = Object.fromEntries(query);
  if (query.has('mac')) members.mac = query.getAll('mac');
  return members;
}

async function* withEnds(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`;
}

/**
 * The merchants' HTTP server: serves the routes of routes.ts, within limits. Errors are problem documents (RFC 9457).
 *
 * A request is checked in this order: is there such a route, is the body short enough for it, who calls, is the caller
 * within budget, does the body have the right type, does it fit the route's schemas. So a body is not read before its
 * sender is authenticated. Of a request only route, status and id are ever logged: a login has a password in its URL.
 * Authenticated requests count against the merchant's budgets, others against those of their address (interfaces.md §2,
 * Fairness).
 */
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { monotonicMs } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { RequestAnswered } from '../../events.js';
import type { Fairness } from '../../fairness/fairness-settings.js';
import type { HttpBudgets } from '../../fairness/http-budgets.js';
import { OverBudget } from '../../fairness/over-budget.js';
import type { Health } from '../../health/health.js';
import { addressGroup } from '../../network/address-group.js';
import type { TrustedProxies } from '../../network/trusted-proxies.js';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type { HttpConnections } from '../connections/connections.js';
import { checkHost } from '../connections/host-header.js';
import { UNREAD_BODY_BYTES } from '../connections/unread-body.js';
import { HEALTH_ROUTES } from '../shared/health-routes.js';
import { HTTP_LIMITS } from '../shared/limits.js';
import { listen } from '../shared/listen.js';
import { dropNulls } from '../shared/null-members.js';
import { answerClientError, sendNotFound, sendProblem, statusOf } from '../shared/problem.js';
import { routeSchema } from '../shared/route-schema.js';
import { answerPreflight, isAllowed, setHeaders } from './answer-headers.js';
import { checkApiKey, checkBearer } from './authentication.js';
import { assertChecked, faultsOf } from './check-value.js';
import { addDocumentation } from './documentation/documentation.js';
import { readFormBody } from './form-body.js';
import { HeavyTurns } from './heavy-turns.js';
import { readJsonBody } from './json-body.js';
import { Refusal } from './refusal.js';
import { FORM_TYPE, type HttpAnswer, JSON_TYPE, type MerchantRoute, sizeInWords } from './route.js';
import { httpRoutes, methodsOf } from './routes.js';

export interface HttpServerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Whose pages may call from a browser. */
  readonly corsOrigins: readonly string[];
  readonly connections: HttpConnections;
  /** Whose `X-Forwarded-For` counts. */
  readonly proxies: TrustedProxies;
  readonly health: Health;
  readonly fairness: Fairness;
  readonly budgets: HttpBudgets;
  /** What merchants call; undefined until the gateway has started. */
  readonly merchants: () => MerchantParts | undefined;
  readonly onAnswered: (answered: Omit<RequestAnswered, 'atMs'>) => void;
}

/** The content type of generic clients; accepted by routes that say so. */
const PLAIN_TYPE = 'text/plain';

/** Who calls, as found by authentication. */
interface Caller {
  readonly merchantId: number;
  readonly key: ApiKey | undefined;
}

const NOBODY: Caller = { merchantId: 0, key: undefined };

export class HttpServer {
  readonly #fastify: FastifyInstance;
  readonly #options: HttpServerOptions;
  readonly #callers = new WeakMap<FastifyRequest, Caller>();
  readonly #broken = new WeakMap<FastifyRequest, Error>();
  readonly #begun = new WeakMap<FastifyRequest, number>();
  /** Paths of the merchants' routes, which authenticate by themselves. */
  readonly #merchantPaths = new Set<string>();
  /** Requests that were counted for their address. */
  readonly #counted = new WeakSet<FastifyRequest>();
  readonly #heavy = new HeavyTurns();

  private constructor(fastify: FastifyInstance, options: HttpServerOptions) {
    this.#fastify = fastify;
    this.#options = options;
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: HttpServerOptions): Promise<HttpServer> {
    const fastify = Fastify({
      ...HTTP_LIMITS,
      serverFactory: options.connections.makeServer,
      clientErrorHandler: answerClientError,
      genReqId: () => `req_${randomBytes(10).toString('hex')}`,
      // A login has side effects, although it is a GET.
      exposeHeadRoutes: false,
      // An invalid path fails before routing; Fastify's own answer would quote it.
      frameworkErrors: (_error, _request, reply) => {
        sendProblem(reply as FastifyReply, 400, new LockgateError('input-path', 'the path is not valid'));
      },
    });
    const server = new HttpServer(fastify, options);
    server.#readBodies();
    server.#answerFailures();
    server.#watch();
    await addDocumentation(fastify);
    server.#addRoutes();
    await listen(fastify, 'the merchants’ interface', options.host, options.port);
    return server;
  }

  get port(): number {
    return (this.#fastify.server.address() as AddressInfo).port;
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    await this.#fastify.close();
  }

  #readBodies(): void {
    this.#fastify.removeAllContentTypeParsers();
    this.#fastify.addContentTypeParser(
      [JSON_TYPE, PLAIN_TYPE],
      { parseAs: 'buffer' },
      async (request: FastifyRequest, body: Buffer) => {
        this.#countBody(request, body);
        await this.#heavy.next(body.length);
        return readJsonBody(body);
      },
    );
    this.#fastify.addContentTypeParser(
      FORM_TYPE,
      { parseAs: 'buffer' },
      async (_request: FastifyRequest, body: Buffer) => readFormBody(body),
    );
    // Requests are validated by check-value.ts; Fastify uses the schemas for answers only.
    this.#fastify.setValidatorCompiler(() => () => true);
  }

  #answerFailures(): void {
    this.#fastify.setErrorHandler<FastifyError>(async (given, request, reply) => {
      const error = this.#countRefusal(given, request);
      const status = statusOf(error);
      if (status === 500) this.#broken.set(request, error);
      if (error instanceof OverBudget) {
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        await this.#options.budgets.refusalTurn(
          this.#callers.get(request)?.merchantId ?? this.#placeOf(request),
          gone.signal,
        );
      }
      if (hasMuchUnread(request)) reply.header('connection', 'close');
      sendProblem(reply, status, isTooLong(error) ? tooLong(request) : error);
      return reply;
    });
    this.#fastify.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  }

  /** Charges the refusal of an unauthenticated request to its address. Returns the error to answer with. */
  #countRefusal(error: FastifyError, request: FastifyRequest): FastifyError | LockgateError {
    const isStranger = !this.#callers.has(request) && !this.#counted.has(request);
    if (!isStranger || statusOf(error) >= 500) return error;
    try {
      this.#countStranger(request, 'request');
      return error;
    } catch (spent) {
      return spent as LockgateError;
    }
  }

  /** @throws OverBudget `address` */
  #countStranger(request: FastifyRequest, kind: 'request' | 'probe'): void {
    this.#counted.add(request);
    this.#options.budgets.takeStranger(this.#placeOf(request), kind);
  }

  /** The address group that an unauthenticated request counts for. */
  #placeOf(request: FastifyRequest): string {
    return addressGroup(this.#options.proxies.clientOf(request.raw));
  }

  /** Charges a body whose size no header announced. */
  #countBody(request: FastifyRequest, body: Buffer): void {
    const caller = this.#callers.get(request);
    if (caller !== undefined && request.headers['content-length'] === undefined)
      this.#options.budgets.chargeBytes(caller.merchantId, body.length);
  }

  #watch(): void {
    const { connections, corsOrigins, onAnswered } = this.#options;
    this.#fastify.addHook('onRequest', async (request, reply) => {
      this.#begun.set(request, monotonicMs());
      setHeaders(request, reply, corsOrigins);
      checkHost(request.raw, reply.raw);
      if (connections.isReserved(request.raw)) refuseInReserve(request);
      if (!this.#merchantPaths.has(request.routeOptions.url ?? '')) this.#countStranger(request, kindOf(request));
      if (!request.is404) return;
      if (methodsOf(pathOf(request)) !== undefined && answerPreflight(request, reply, corsOrigins)) return reply;
      // Before its body is read.
      refuseMethod(request);
      sendNotFound(reply);
      return reply;
    });
    this.#fastify.addHook('onResponse', async (request, reply) => {
      onAnswered({
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url ?? '(none)',
        status: reply.statusCode,
        durationMs: monotonicMs() - (this.#begun.get(request) ?? monotonicMs()),
        why: this.#broken.get(request)?.message,
      });
    });
  }

  #addRoutes(): void {
    const { health, fairness } = this.#options;
    for (const route of httpRoutes(fairness)) {
      const { method, path: url } = route;
      const schema = routeSchema(route);
      if ('answer' in route) {
        const handler = async (_request: FastifyRequest, reply: FastifyReply) =>
          await send(reply, route.answer(health));
        this.#fastify.route({ method, url, schema, handler });
        // The same without a body; not repeated in the documentation.
        this.#fastify.route({ method: 'HEAD', url, handler });
      } else {
        this.#merchantPaths.add(url);
        this.#addMerchantRoute(route);
      }
    }
  }

  #addMerchantRoute(route: MerchantRoute): void {
    const { proxies } = this.#options;
    for (const schema of [route.query, route.body]) if (schema !== undefined) assertChecked(schema);
    this.#fastify.route({
      method: route.method,
      url: route.path,
      schema: routeSchema(route),
      ...(route.bodyBytes !== undefined && { bodyLimit: route.bodyBytes }),
      onRequest: async (request) => {
        const bytes = lengthOf(request);
        if (route.bodyBytes !== undefined && bytes > route.bodyBytes) throw tooLong(request);
        const caller = await this.#authenticate(route, request);
        if (caller !== NOBODY) {
          this.#callers.set(request, caller);
          this.#options.budgets.takeRequest(caller.merchantId, route.body === undefined ? 0 : bytes);
        }
        if (route.body !== undefined) checkBodyType(request, route, this.#options.corsOrigins);
      },
      handler: async (request, reply) => {
        checkInput(route, request);
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const answer = await route.handle({
          parts: this.#merchants(),
          ...(this.#callers.get(request) ?? NOBODY),
          query: request.query as Record<string, unknown>,
          headers: request.headers,
          body: request.body,
          address: proxies.clientOf(request.raw),
          // As a trusted TLS proxy reports it.
          isHttps: proxies.isHttps(request.raw),
          takeRequest: (merchantId) => {
            this.#callers.set(request, { merchantId, key: undefined });
            this.#options.budgets.takeRequest(merchantId, lengthOf(request));
          },
          signal: gone.signal,
        });
        return await send(reply, answer);
      },
    });
  }

  async #authenticate(route: MerchantRoute, { headers }: FastifyRequest): Promise<Caller> {
    const parts = this.#merchants();
    if (route.scheme === 'api-key') {
      const members: Record<string, string> = route.tag === 'tokens' ? { error: 'invalid_client' } : {};
      const key = await checkApiKey(parts, headers.authorization, members);
      return { merchantId: key.merchantId, key };
    }
    if (route.scheme !== 'bearer') return NOBODY;
    const { merchantId } = await checkBearer(parts, headers.authorization, 'pets:write');
    return { merchantId, key: undefined };
  }

  /** @throws LockgateError `starting`, `stopping` */
  #merchants(): MerchantParts {
    if (this.#options.health.isStopping) throw new LockgateError('stopping', 'the gateway is stopping');
    const parts = this.#options.merchants();
    if (parts === undefined) throw new LockgateError('starting', 'the gateway is starting');
    return parts;
  }
}

/** Requests of load balancers, which are answered even if the port is full. */
const PROBES: ReadonlySet<string> = new Set(HEALTH_ROUTES.map(({ path }) => path));

function kindOf(request: FastifyRequest): 'request' | 'probe' {
  return PROBES.has(pathOf(request)) ? 'probe' : 'request';
}

/** The size of the body in bytes as announced by its header; 0 without one. */
function lengthOf({ headers }: FastifyRequest): number {
  return Number(headers['content-length'] ?? 0);
}

/** Whether an unread body is too long, or of unknown length, to be read and dropped. */
function hasMuchUnread(request: FastifyRequest): boolean {
  if (request.body !== undefined) return false;
  return lengthOf(request) > UNREAD_BODY_BYTES || request.headers['transfer-encoding'] !== undefined;
}

/** Whether Fastify stopped reading a body that is too long. */
function isTooLong(error: FastifyError | LockgateError): boolean {
  return error.code === 'FST_ERR_CTP_BODY_TOO_LARGE';
}

/** It closes the connection, so that the rest of the body is not read. */
function tooLong(request: FastifyRequest): Refusal {
  const most = request.routeOptions.bodyLimit;
  const size = most % 1024 === 0 ? ` (${sizeInWords(most)})` : '';
  return new Refusal({
    status: 413,
    code: 'body-too-large',
    detail: `the body has more than ${most.toLocaleString('en')} bytes${size}, the maximum here`,
    headers: { connection: 'close' },
  });
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? '';
}

/** @throws LockgateError `busy` unless it is a probe */
function refuseInReserve(request: FastifyRequest): void {
  if (PROBES.has(pathOf(request))) return;
  throw new LockgateError('busy', 'too many connections are open; try again in a moment');
}

/** @throws Refusal 405 if the path exists */
function refuseMethod(request: FastifyRequest): void {
  const methods = methodsOf(pathOf(request));
  if (methods === undefined) return;
  const allow = methods.join(', ');
  const detail = `this path does not support ${request.method}, only ${allow}`;
  throw new Refusal({ status: 405, code: 'wrong-method', detail, headers: { allow } });
}

/**
 * JSON may also come as plain text if the route allows it: clients generated from a document that names no type send
 * it, as from the public Petstore's for the lists of users. A foreign page could send that too, without a preflight and
 * with the key that the browser remembers; so it is not accepted from a page whose origin may not call.
 *
 * @throws Refusal 415
 */
function checkBodyType(request: FastifyRequest, route: MerchantRoute, origins: readonly string[]): void {
  const { headers } = request;
  const wanted = route.bodyType ?? JSON_TYPE;
  const length = headers['content-length'];
  const hasBody = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  const given = headers['content-type'];
  if (!hasBody && given === undefined) return;
  const [type = '', ...parameters] = (given ?? '').split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = parameters.every((each) => !each.startsWith('charset=') || /^charset="?utf-?8"?$/.test(each));
  const isPlain = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
  const isOurCaller = headers.origin === undefined || isAllowed(request, origins);
  const isTaken = type === wanted || (route.takesPlainText === true && type === PLAIN_TYPE && isOurCaller);
  if (isTaken && isUtf8 && isPlain) return;
  const detail = `the body must be ${wanted}, in UTF-8 and not compressed`;
  throw new Refusal({ status: 415, code: 'wrong-type', detail, headers: { accept: wanted } });
}

/** @throws Refusal if the query or the body does not fit the route's schemas */
function checkInput(route: MerchantRoute, { query, body }: FastifyRequest): void {
  if (route.mostItems !== undefined && Array.isArray(body) && body.length > route.mostItems)
    throw new Refusal({
      status: 413,
      code: 'too-many-items',
      detail: `the list has ${body.length} items: at most ${route.mostItems} are allowed in one call`,
    });
  if (route.body !== undefined) dropNulls(route.body, body);
  const faults = [
    ...(route.query === undefined ? [] : faultsOf(route.query, query)),
    ...(route.body === undefined ? [] : faultsOf(route.body, body)),
  ];
  if (faults.length === 0) return;
  const detail = `the request does not fit: ${faults[0]?.pointer || 'the body'}: ${faults[0]?.detail}`;
  throw route.refuse?.(faults) ?? new Refusal({ status: 400, code: 'input-body', detail, faults });
}

async function send(reply: FastifyReply, { status, headers = {}, body }: HttpAnswer): Promise<FastifyReply> {
  reply.status(status).headers(headers);
  if (body === undefined) return await reply.send();
  reply.header('content-type', 'application/json; charset=utf-8');
  // Fastify would send a string as it is, not as JSON.
  return await reply.send(typeof body === 'string' ? JSON.stringify(body) : body);
}

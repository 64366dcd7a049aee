/**
 * The merchants' HTTP server: serves the routes of routes.ts, within limits. Errors are problem documents (RFC 9457).
 *
 * The server checks a request in this order: the route, the length of the body, the caller, the caller's budget, the
 * content type, the route's schemas. So no body is read before its sender is authenticated. A request's URL, headers
 * and body are never logged, since the specification's login has a password in its URL. An authenticated request is
 * charged to the merchant's budgets, any other request to the budgets of its address (docs/http.md, "How much").
 */
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { monotonicMs } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import { PageGuard } from '../../console/page-guard.js';
import { CallPlaces } from '../../fairness/call-places.js';
import type { Fairness } from '../../fairness/fairness-settings.js';
import type { HttpBudgets } from '../../fairness/http-budgets.js';
import { OverBudget } from '../../fairness/over-budget.js';
import type { Health } from '../../health/health.js';
import type { StreetMap } from '../../map/street-map.js';
import { addressGroup } from '../../network/address-group.js';
import type { TrustedProxies } from '../../network/trusted-proxies.js';
import type { RequestAnswered } from '../../operation-events.js';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type { UserConsoleSession } from '../../store/contract/operators/console-session-store.js';
import type { HttpConnections } from '../connections/connections.js';
import { checkHost } from '../connections/host-header.js';
import { MAX_UNREAD_BODY_BYTES } from '../connections/unread-body.js';
import { addConsolePages } from '../shared/console-pages.js';
import { HEALTH_ROUTES } from '../shared/health-routes.js';
import { addHelp } from '../shared/help-route.js';
import { HTTP_LIMITS, MAX_PATH_PART_CHARS } from '../shared/limits.js';
import { listen } from '../shared/listen.js';
import { answerClientError, sendNotFound, sendProblem, statusOf } from '../shared/problem.js';
import { routeSchema } from '../shared/route-schema.js';
import { SCHEMA_COMPILERS } from '../shared/schema-compilers.js';
import { explainUnstorableText } from '../shared/unstorable-text.js';
import { answerPreflight, setHeaders } from './answer-headers.js';
import { noteChange, whoOf } from './audited.js';
import { checkApiKey, checkBearer, checkKeyScope } from './authentication.js';
import { assertOnlyCheckedKeywords } from './check-value.js';
import { mapRoutes } from './console/map-routes.js';
import { CONSOLE_ROUTES } from './console/routes.js';
import { addDocumentation } from './documentation/documentation.js';
import { readFormBody } from './form-body.js';
import { HeavyTurns } from './heavy-turns.js';
import { readJsonBody } from './json-body.js';
import { Refusal } from './refusal.js';
import { checkBodyType, checkedQuery, PLAIN_TEXT_TYPE } from './request-input.js';
import { type Call, FORM_TYPE, type HttpAnswer, JSON_TYPE, type MerchantRoute, sizeInWords } from './route.js';
import { httpRoutes, methodsOf, routerPath } from './routes.js';
import { checkSessionRights, findUserSession, mayCall, notLoggedIn } from './user-session.js';

export interface HttpServerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The origins whose pages may call from a browser. */
  readonly corsOrigins: readonly string[];
  readonly connections: HttpConnections;
  /** The proxies whose `X-Forwarded-For` is trusted. */
  readonly proxies: TrustedProxies;
  /** Further names under which the dashboard is reached: those of proxies. */
  readonly consoleHosts?: readonly string[];
  /** The streets of the dashboard's maps. */
  readonly map: StreetMap;
  readonly health: Health;
  readonly fairness: Fairness;
  readonly budgets: HttpBudgets;
  /** The parts that serve merchants; undefined until the gateway has started. */
  readonly merchants: () => MerchantParts | undefined;
  readonly onAnswered: (answered: Omit<RequestAnswered, 'atMs'>) => void;
}

/** The authenticated caller of a request. */
interface Caller {
  readonly merchantId: number;
  readonly key: ApiKey | undefined;
  readonly session: UserConsoleSession | undefined;
}

const UNAUTHENTICATED: Caller = { merchantId: 0, key: undefined, session: undefined };

export class HttpServer {
  readonly #fastify: FastifyInstance;
  readonly #options: HttpServerOptions;
  readonly #callers = new WeakMap<FastifyRequest, Caller>();
  readonly #internalErrors = new WeakMap<FastifyRequest, Error>();
  readonly #startedAtMs = new WeakMap<FastifyRequest, number>();
  /** Paths of the merchants' routes, whose requests are charged to a merchant after authentication. */
  readonly #merchantPaths = new Set<string>();
  /** Requests that were charged to their address. */
  readonly #chargedToAddress = new WeakSet<FastifyRequest>();
  readonly #heavyTurns = new HeavyTurns();
  /** Limits how many calls of one merchant run at once; a call gives its place up while it waits for something else. */
  readonly #places = new CallPlaces();
  /** Checks the requests of the dashboard's page. */
  readonly #guard: PageGuard;

  private constructor(fastify: FastifyInstance, options: HttpServerOptions) {
    this.#fastify = fastify;
    this.#options = options;
    this.#guard = new PageGuard(options.consoleHosts ?? [], options.proxies);
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: HttpServerOptions): Promise<HttpServer> {
    const fastify = Fastify({
      ...HTTP_LIMITS,
      schemaController: SCHEMA_COMPILERS,
      serverFactory: options.connections.makeServer,
      clientErrorHandler: answerClientError,
      genReqId: () => `req_${randomBytes(10).toString('hex')}`,
      // The specification's login has side effects, although it is a GET.
      exposeHeadRoutes: false,
      routerOptions: { maxParamLength: MAX_PATH_PART_CHARS },
      // An invalid path fails before routing; Fastify's own answer would quote it.
      frameworkErrors: (_error, _request, reply) => {
        sendProblem(reply as FastifyReply, 400, new LockgateError('input-path', 'the path is not valid'));
      },
    });
    const server = new HttpServer(fastify, options);
    server.#setBodyParsers();
    server.#setErrorHandlers();
    server.#addHooks();
    await addDocumentation(fastify);
    addConsolePages(fastify, { page: 'merchant', paths: ['/', '/m/:merchant'], note: options.map.note });
    addHelp(fastify);
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

  #setBodyParsers(): void {
    this.#fastify.removeAllContentTypeParsers();
    this.#fastify.addContentTypeParser(
      [JSON_TYPE, PLAIN_TEXT_TYPE],
      { parseAs: 'buffer' },
      async (request: FastifyRequest, body: Buffer) => {
        // Some clients name the type of JSON in every call, also in one without a body.
        if (body.length === 0 && request.routeOptions.schema?.body === undefined) return undefined;
        this.#chargeUnannouncedBody(request, body);
        await this.#heavyTurns.next(body.length);
        return readJsonBody(body);
      },
    );
    this.#fastify.addContentTypeParser(
      FORM_TYPE,
      { parseAs: 'buffer' },
      async (_request: FastifyRequest, body: Buffer) => readFormBody(body),
    );
  }

  #setErrorHandlers(): void {
    this.#fastify.setErrorHandler<FastifyError>(async (thrown, request, reply) => {
      const error = this.#chargeRefusal(explainUnstorableText(thrown, request), request);
      const status = statusOf(error);
      if (status === 500) this.#internalErrors.set(request, error);
      if (error instanceof OverBudget) {
        // The refusal is delayed, so that a client that tries again at once does not keep the gateway busy.
        const hangUp = new AbortController();
        reply.raw.once('close', () => hangUp.abort());
        await this.#options.budgets.waitForRefusal(
          this.#callers.get(request)?.merchantId ?? this.#addressGroupOf(request),
          hangUp.signal,
        );
      }
      if (hasMuchUnread(request)) reply.header('connection', 'close');
      sendProblem(reply, status, isTooLong(error) ? tooLong(request) : error);
      return reply;
    });
    this.#fastify.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  }

  /** Charges the refusal of an unauthenticated request to its address. Returns the error for the answer. */
  #chargeRefusal(error: FastifyError | LockgateError, request: FastifyRequest): FastifyError | LockgateError {
    const isUncharged = !this.#callers.has(request) && !this.#chargedToAddress.has(request);
    if (!isUncharged || statusOf(error) >= 500) return error;
    try {
      this.#chargeAddress(request, 'request');
      return error;
    } catch (overBudget) {
      return overBudget as LockgateError;
    }
  }

  /** @throws OverBudget `address` */
  #chargeAddress(request: FastifyRequest, kind: 'request' | 'probe'): void {
    this.#chargedToAddress.add(request);
    this.#options.budgets.takeStranger(this.#addressGroupOf(request), kind);
  }

  /** The address group to which an unauthenticated request is charged. */
  #addressGroupOf(request: FastifyRequest): string {
    return addressGroup(this.#options.proxies.clientOf(request.raw));
  }

  /** Charges a body to the merchant if its size was not announced by a header and so is not charged yet. */
  #chargeUnannouncedBody(request: FastifyRequest, body: Buffer): void {
    const caller = this.#callers.get(request);
    if (caller !== undefined && request.headers['content-length'] === undefined)
      this.#options.budgets.chargeBytes(caller.merchantId, body.length);
  }

  #addHooks(): void {
    const { connections, corsOrigins, onAnswered } = this.#options;
    this.#fastify.addHook('onRequest', async (request, reply) => {
      this.#startedAtMs.set(request, monotonicMs());
      setHeaders(request, reply, corsOrigins);
      checkHost(request.raw, reply.raw);
      if (connections.isReserved(request.raw)) refuseInReserve(request);
      if (!this.#merchantPaths.has(request.routeOptions.url ?? '')) this.#chargeAddress(request, kindOf(request));
      if (!request.is404) return;
      if (methodsOf(pathOf(request)) !== undefined && answerPreflight(request, reply, corsOrigins)) return reply;
      // The method is refused before the body is read.
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
        durationMs: monotonicMs() - (this.#startedAtMs.get(request) ?? monotonicMs()),
        why: this.#internalErrors.get(request)?.message,
      });
    });
  }

  #addRoutes(): void {
    const { health, fairness } = this.#options;
    for (const route of httpRoutes(fairness)) {
      const { method } = route;
      const url = routerPath(route);
      const schema = routeSchema(route);
      if ('answer' in route) {
        const handler = async (_request: FastifyRequest, reply: FastifyReply) =>
          await send(reply, route.answer(health));
        this.#fastify.route({ method, url, schema, handler });
        // HEAD is the same without a body, and is not documented.
        this.#fastify.route({ method: 'HEAD', url, handler });
      } else {
        // Calls without a key or a token are charged to their address.
        if (route.scheme !== 'none') this.#merchantPaths.add(url);
        this.#addMerchantRoute(route);
      }
    }
    for (const route of [...CONSOLE_ROUTES, ...mapRoutes(this.#options.map)]) {
      // A login on the dashboard is charged to its address.
      if (route.isLogin !== true) this.#merchantPaths.add(routerPath(route));
      this.#addMerchantRoute(route);
    }
  }

  #addMerchantRoute(route: MerchantRoute): void {
    const { proxies } = this.#options;
    for (const schema of [route.params, route.query, route.body])
      if (schema !== undefined) assertOnlyCheckedKeywords(schema);
    this.#fastify.route({
      method: route.method,
      url: routerPath(route),
      schema: routeSchema(route),
      ...(route.bodyBytes !== undefined && { bodyLimit: route.bodyBytes }),
      onRequest: async (request) => {
        const bytes = lengthOf(request);
        if (route.bodyBytes !== undefined && bytes > route.bodyBytes) throw tooLong(request);
        const caller = await this.#authenticate(route, request);
        if (caller !== UNAUTHENTICATED) {
          this.#callers.set(request, caller);
          this.#options.budgets.takeRequest(caller.merchantId, route.body === undefined ? 0 : bytes, route.cost);
        }
        if (caller.key !== undefined)
          checkKeyScope(caller.key, route.keyScope, oauthError(route, 'unauthorized_client'));
        if (caller.session !== undefined) checkSessionRights(caller.session, route);
        if (route.body !== undefined) checkBodyType(request, route, this.#options.corsOrigins);
      },
      handler: async (request, reply) => {
        const query = checkedQuery(route, request);
        const hangUp = new AbortController();
        // The reason of an abort is an exception with a stack, which is not made for each call that was answered.
        reply.raw.once('close', () => !reply.raw.writableFinished && hangUp.abort());
        const caller = this.#callers.get(request) ?? UNAUTHENTICATED;
        const address = proxies.clientOf(request.raw);
        const isOfMerchant = caller.merchantId !== UNAUTHENTICATED.merchantId;
        const place = isOfMerchant ? await this.#places.enter(caller.merchantId, hangUp.signal) : undefined;
        const handle = async () => {
          const call: Call = {
            parts: this.#merchants(),
            ...caller,
            who: whoOf(caller, request, address),
            url: request.url,
            params: request.params as Record<string, string>,
            query,
            headers: request.headers,
            body: request.body,
            address,
            // As a trusted TLS proxy reports it.
            isHttps: proxies.isHttps(request.raw),
            takeRequest: (merchantId) => {
              this.#callers.set(request, { ...UNAUTHENTICATED, merchantId });
              this.#options.budgets.takeRequest(merchantId, lengthOf(request));
            },
            signal: hangUp.signal,
            waitWithoutPlace: place?.waitWithoutPlace ?? ((wait) => wait()),
            isStillAllowed: () => this.#isStillAllowed(route, caller, request),
          };
          return { call, answer: await this.#handleInTurn(route, call) };
        };
        const { call, answer } = await handle().finally(() => place?.leave());
        noteChange(route, call, answer);
        return await send(reply, answer);
      },
    });
  }

  /**
   * Handles a call. A GET with an API key waits for its turn: most of these read tables of the store for some
   * milliseconds without a pause, so several that begin in one turn of the event loop would delay a ping by their sum
   * (interfaces.md §2). People on the dashboard are few.
   */
  async #handleInTurn(route: MerchantRoute, call: Call): Promise<Awaited<ReturnType<MerchantRoute['handle']>>> {
    if (route.method === 'GET' && call.key !== undefined) await call.parts.ownData.readTurns.next(call.signal);
    return await route.handle(call);
  }

  async #authenticate(route: MerchantRoute, request: FastifyRequest): Promise<Caller> {
    const parts = this.#merchants();
    const { authorization } = request.headers;
    const guard = this.#guard;
    if (route.isLogin === true) guard.check(request.raw);
    if (route.scheme === 'session' || (route.scheme === 'api-key' && authorization === undefined)) {
      const session = await findUserSession(parts, guard, request);
      if (session !== undefined) return { merchantId: session.merchantId, key: undefined, session };
      if (route.scheme === 'session' || guard.isFromPage(request.raw)) throw notLoggedIn();
    }
    if (route.scheme === 'api-key') {
      const key = await checkApiKey(parts, authorization, oauthError(route, 'invalid_client'));
      return { ...UNAUTHENTICATED, merchantId: key.merchantId, key };
    }
    if (route.scheme !== 'bearer') return UNAUTHENTICATED;
    const { merchantId } = await checkBearer(parts, authorization, 'pets:write');
    return { ...UNAUTHENTICATED, merchantId };
  }

  /** Whether the caller of a call that lasts long may still make it. */
  async #isStillAllowed(route: MerchantRoute, { key }: Caller, request: FastifyRequest): Promise<boolean> {
    const parts = this.#merchants();
    if (key !== undefined) return await parts.apiKeys.isStillActive(key);
    const session = await findUserSession(parts, this.#guard, request);
    return session !== undefined && mayCall(session, route);
  }

  /** @throws LockgateError `starting`, `stopping` */
  #merchants(): MerchantParts {
    if (this.#options.health.isStopping) throw new LockgateError('stopping', 'the gateway is stopping');
    const parts = this.#options.merchants();
    if (parts === undefined) throw new LockgateError('starting', 'the gateway is starting');
    return parts;
  }
}

/** The paths of probes (requests of load balancers), which are answered even if the port is full. */
const PROBES: ReadonlySet<string> = new Set(HEALTH_ROUTES.map(({ path }) => path));

function kindOf(request: FastifyRequest): 'request' | 'probe' {
  return PROBES.has(pathOf(request)) ? 'probe' : 'request';
}

/** The size of the body in bytes as announced by its header; 0 without one. */
function lengthOf({ headers }: FastifyRequest): number {
  return Number(headers['content-length'] ?? 0);
}

/** Whether an unread body is of unknown length, or too long to be read and dropped. */
function hasMuchUnread(request: FastifyRequest): boolean {
  if (request.body !== undefined) return false;
  return lengthOf(request) > MAX_UNREAD_BODY_BYTES || request.headers['transfer-encoding'] !== undefined;
}

/** Whether Fastify stopped reading a body that is too long. */
function isTooLong(error: FastifyError | LockgateError): boolean {
  return error.code === 'FST_ERR_CTP_BODY_TOO_LARGE';
}

/** The refusal of a body that is too long. It closes the connection, so that the body is not read to its end. */
function tooLong(request: FastifyRequest): Refusal {
  const maxBytes = request.routeOptions.bodyLimit;
  const size = maxBytes % 1024 === 0 ? ` (${sizeInWords(maxBytes)})` : '';
  return new Refusal({
    status: 413,
    code: 'body-too-large',
    detail: `the body has more than ${maxBytes.toLocaleString('en')} bytes${size}, the maximum here`,
    headers: { connection: 'close' },
  });
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? '';
}

/**
 * Refuses a request over a connection of the reserve, which a full port still accepts for probes.
 *
 * @throws LockgateError `busy` unless the request is a probe
 */
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

/** OAuth's member `error`, for the route that issues tokens. */
function oauthError({ tag }: MerchantRoute, error: string): Record<string, string> {
  return tag === 'tokens' ? { error } : {};
}

async function send(reply: FastifyReply, answer: HttpAnswer): Promise<FastifyReply> {
  const { status, headers = {}, body, text, bytes } = answer;
  reply.status(status).headers(headers);
  if (bytes !== undefined) return await reply.send(bytes);
  if (text !== undefined) return await reply.type(text.type).serializer(String).send(text.content);
  if (body === undefined) return await reply.send();
  reply.header('content-type', 'application/json; charset=utf-8');
  // Fastify would send a string unquoted, not as JSON.
  return await reply.send(typeof body === 'string' ? JSON.stringify(body) : body);
}

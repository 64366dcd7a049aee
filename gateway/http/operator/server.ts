/**
 * The operators' HTTP server: authenticates callers by tokens or sessions, checks their roles, validates requests,
 * records changes in the audit log, and answers errors as problem documents (RFC 9457).
 */
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Clock, Days, type Timer } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { PageGuard } from '../../console/page-guard.js';
import { OWNER } from '../../data-folder/data-folder.js';
import type { GatewayEvents } from '../../events.js';
import type { StreetMap } from '../../map/street-map.js';
import type { TrustedProxies } from '../../network/trusted-proxies.js';
import type { AuditWho } from '../../store/contract/operators/audit-store.js';
import type { HttpConnections } from '../connections/connections.js';
import { checkHost } from '../connections/host-header.js';
import { notLoggedIn } from '../merchant/user-session.js';
import { ANSWER_HEADERS } from '../shared/answer-headers.js';
import { addConsolePages, PAGE_FILE_ROUTE } from '../shared/console-pages.js';
import { addHelp, HELP_ROUTES } from '../shared/help-route.js';
import { HTTP_LIMITS, MAX_PATH_PART_CHARS } from '../shared/limits.js';
import { listen } from '../shared/listen.js';
import { dropNulls } from '../shared/null-members.js';
import { answerClientError, sendNotFound, sendProblem, statusOf } from '../shared/problem.js';
import { SCHEMA_COMPILERS } from '../shared/schema-compilers.js';
import { explainUnstorableText } from '../shared/unstorable-text.js';
import { makeAudited, whoOf } from './audited.js';
import { Callers } from './callers.js';
import { bodyCheck, queryCheck } from './check-request.js';
import { addMapRoutes } from './console/map-routes.js';
import { type DocumentedRoute, operatorDocument } from './document.js';
import { LongAnswer, nextLink } from './page.js';
import { checkRole, roleNeeded } from './roles.js';
import { AUDIT_ROUTES } from './routes/audit-routes.js';
import { addBackupRoute, BACKUP_TERMS } from './routes/backup-route.js';
import { CLOCK_ROUTES } from './routes/clock-routes.js';
import { COMMAND_ROUTES } from './routes/command-routes.js';
import { CONFIG_ROUTES } from './routes/config-routes.js';
import { addConsoleRoutes, isConsoleLogin, LINK_TERMS } from './routes/console-routes.js';
import { DEVICE_ROUTES } from './routes/device-routes.js';
import { addHealthRoutes, HEALTH_TERMS, type HealthRouteParts, isHealthPath } from './routes/health-routes.js';
import { INVITATION_ROUTES } from './routes/invitation-routes.js';
import { KEY_ROUTES } from './routes/key-routes.js';
import { LOCK_PAST_ROUTES } from './routes/lock-past-routes.js';
import { MERCHANT_CLOSING_ROUTES } from './routes/merchant-closing-routes.js';
import { MERCHANT_ROUTES } from './routes/merchant-routes.js';
import { NOTICE_ROUTES } from './routes/notice-routes.js';
import { TOKEN_ROUTES } from './routes/token-routes.js';
import { USAGE_ROUTES } from './routes/usage-routes.js';
import { USER_ROUTES } from './routes/user-routes.js';
import { WEBHOOK_ROUTES } from './routes/webhook-routes.js';
import { WEBHOOK_SHOW_ROUTES } from './routes/webhook-show-route.js';
import { WHY_ROUTES } from './routes/why-routes.js';
import { type OperatorParts, type Query, ROUTES, type Route } from './routes.js';
import { Described } from './schemas.js';
import { JSON_LINES, STREAM_ROUTES, Streams } from './streams.js';
import type { OperatorToken } from './token.js';
import type { RecordParts } from './trace-record.js';

/** The detail of 401. */
const UNAUTHORIZED = 'the operator’s interface requires the token in the data folder, or a valid named token';

/** The longest wait of one timer for a token's expiry: Node's timers can't wait for more than 24.8 days. */
const MAX_EXPIRY_WAIT = Days(1);

/** The paths of the console's page, of its files and of the help, which have no data and need no token. */
const PAGE_PATH = '/';
const PAGE_PATHS: readonly string[] = [PAGE_PATH, PAGE_FILE_ROUTE, ...HELP_ROUTES];

/** The route of the document itself. */
const DOCUMENT_TERMS: DocumentedRoute = {
  method: 'GET',
  path: '/openapi.json',
  operation: 'document.show',
  summary: 'This document.',
  answer: Described('An OpenAPI 3.1 document.'),
};

/** Every route that {@link OperatorServer} serves as JSON in the same way: checked, audited and with its role. */
export const OPERATOR_ROUTES: readonly Route[] = [
  ...ROUTES,
  ...MERCHANT_CLOSING_ROUTES,
  ...MERCHANT_ROUTES,
  ...DEVICE_ROUTES,
  ...LOCK_PAST_ROUTES,
  ...COMMAND_ROUTES,
  ...USAGE_ROUTES,
  ...WEBHOOK_ROUTES,
  ...WEBHOOK_SHOW_ROUTES,
  ...KEY_ROUTES,
  ...TOKEN_ROUTES,
  ...USER_ROUTES,
  ...INVITATION_ROUTES,
  ...NOTICE_ROUTES,
  ...AUDIT_ROUTES,
  ...CONFIG_ROUTES,
  ...CLOCK_ROUTES,
  ...WHY_ROUTES,
];

/** Every route of the port that the OpenAPI document has: all but the help, the map and most of the console's. */
export const DOCUMENTED_ROUTES: readonly DocumentedRoute[] = [
  ...OPERATOR_ROUTES,
  ...STREAM_ROUTES.map((route) => ({ answerType: JSON_LINES, ...route })),
  ...HEALTH_TERMS,
  BACKUP_TERMS,
  LINK_TERMS,
  DOCUMENT_TERMS,
];

export interface OperatorServerOptions extends OperatorParts, RecordParts, HealthRouteParts {
  readonly host: string;
  readonly port: number;
  readonly connections: HttpConnections;
  /** The proxies whose `X-Forwarded-For` is trusted. */
  readonly proxies: TrustedProxies;
  readonly token: OperatorToken;
  /** Further names under which the console is reached: those of proxies. */
  readonly consoleHosts?: readonly string[];
  /** The streets of the console's maps. */
  readonly map: StreetMap;
  readonly events: GatewayEvents;
}

export class OperatorServer {
  readonly #fastify: FastifyInstance;
  readonly #streams: Streams;
  readonly #token: OperatorToken;
  readonly #callers: Callers;
  /** Checks the requests of the console's page. */
  readonly #guard: PageGuard;

  private constructor(fastify: FastifyInstance, options: OperatorServerOptions) {
    this.#fastify = fastify;
    this.#token = options.token;
    this.#guard = new PageGuard(options.consoleHosts ?? [], options.proxies);
    const { consoleSessions } = options.merchants;
    this.#callers = new Callers(options.token, options.operatorTokens, consoleSessions, this.#guard);
    this.#streams = new Streams(options, (request) => this.#callers.isStillAllowed(request));
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: OperatorServerOptions): Promise<OperatorServer> {
    const fastify = Fastify({
      ...HTTP_LIMITS,
      schemaController: SCHEMA_COMPILERS,
      serverFactory: options.connections.makeServer,
      clientErrorHandler: answerClientError,
      // An invalid path fails before routing; Fastify's own answer would quote it.
      frameworkErrors: (_error, _request, reply) => {
        sendProblem(reply as FastifyReply, 400, new LockgateError('input-path', 'the path is not valid'));
      },
      routerOptions: { maxParamLength: MAX_PATH_PART_CHARS, querystringParser: (text) => parseQuery(text) },
    });
    const server = new OperatorServer(fastify, options);
    fastify.setErrorHandler<FastifyError>((thrown, request, reply) => {
      const error = explainUnstorableText(thrown, request);
      sendProblem(reply, statusOf(error), error);
    });
    fastify.setNotFoundHandler((_request, reply) => sendNotFound(reply));
    fastify.addHook('onRequest', async (request, reply) => {
      const { token } = options;
      reply.headers(ANSWER_HEADERS);
      checkHost(request.raw, reply.raw);
      const isNewToken = token.refresh();
      const isPageFile = PAGE_PATHS.includes(request.routeOptions.url ?? '');
      const caller = isPageFile ? undefined : await server.#callers.authenticate(request);
      // The first caller with the new token most likely changed it: the command line calls right after the change.
      if (isNewToken) {
        // No name of a token: the entry's detail has that of the new one.
        const who = whoOf(request, options.proxies, null);
        const isDataFolderToken = caller?.tokenId === null;
        server.#tokenChanged(options, isDataFolderToken ? { ...who, actor: 'owner' } : OWNER);
      }
      const needsCaller = !isPageFile && !isConsoleLogin(request.routeOptions.url);
      if (caller === undefined && needsCaller) throw server.#unauthorized(request);
      // While stopping, only health requests are answered.
      if (options.health.isStopping && !isHealthPath(request.url))
        throw new LockgateError('stopping', 'the gateway is stopping');
      const terms = unauditedReadTerms(request.method, request.routeOptions.url);
      if (terms !== undefined && caller !== undefined) checkRole(caller.role, roleNeeded(terms));
    });
    addHealthRoutes(fastify, options);
    addConsolePages(fastify, { page: 'operator', paths: [PAGE_PATH], note: options.map.note });
    addHelp(fastify);
    addBackupRoute(fastify, server.#callers, options);
    addMapRoutes(fastify, server.#callers, options.map);
    addConsoleRoutes(fastify, {
      ...options,
      callers: server.#callers,
      sessions: options.merchants.consoleSessions,
      guard: server.#guard,
      endStreams: (hasEnded) =>
        server.#streams.end((request) => {
          const { sessionId } = server.#callers.of(request);
          return sessionId !== null && hasEnded(sessionId);
        }),
    });
    server.#addRoutes(options);
    await listen(fastify, 'the operator’s interface', options.host, options.port);
    options.token.watch(() => server.#tokenChanged(options, OWNER));
    options.operatorTokens.onRevoked((id) => server.#endStreamsOf(id));
    return server;
  }

  /** The refusal of a call without a caller. Our own page gets one that opens no login dialog of the browser. */
  #unauthorized(request: FastifyRequest): LockgateError {
    return this.#guard.isFromPage(request.raw) ? notLoggedIn() : new LockgateError('unauthorized', UNAUTHORIZED);
  }

  get port(): number {
    return (this.#fastify.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#token.stop();
    this.#streams.end();
    await this.#fastify.close();
  }

  /** Closes the streams that were opened with the old token, and records the change in the audit log. */
  #tokenChanged({ token, audit }: OperatorServerOptions, who: AuditWho): void {
    this.#endStreamsOf(null);
    audit.note('token.change', '', { token: token.name }, who);
  }

  /** Closes the streams that were opened with this named token, or with the token in the data folder. */
  #endStreamsOf(tokenId: number | null): void {
    this.#streams.end((request) => this.#callers.of(request).tokenId === tokenId);
  }

  /** Closes a stream when its token expires; waits for that in parts of {@link MAX_EXPIRY_WAIT}. */
  #endAtExpiry(clock: Clock, request: FastifyRequest, reply: FastifyReply): void {
    let timer: Timer | undefined;
    const wait = (): void => {
      const { expiresAtMs } = this.#callers.of(request);
      if (expiresAtMs === null) return;
      const remainingMs = expiresAtMs - clock.now();
      if (remainingMs > 0) timer = clock.after(Math.min(remainingMs, MAX_EXPIRY_WAIT), wait);
      else this.#streams.end((each) => each === request);
    };
    reply.raw.once('close', () => timer?.cancel());
    wait();
  }

  #addRoutes(options: OperatorServerOptions): void {
    const streams = this.#streams;
    for (const route of OPERATOR_ROUTES) this.#addRoute(options, route);
    for (const { method, path: url, query, stream } of STREAM_ROUTES) {
      const checkQuery = queryCheck(query);
      this.#fastify.route({
        method,
        url,
        handler: async (request, reply) => {
          await checkQuery(request.query as Query);
          this.#endAtExpiry(options.wallClock, request, reply);
          return await stream(streams, request.query as Query, reply);
        },
      });
    }
    // The document is generated at the first request.
    let document: string | undefined;
    this.#fastify.get(DOCUMENT_TERMS.path, async (_request, reply) => {
      document ??= JSON.stringify(operatorDocument(DOCUMENTED_ROUTES));
      return await reply.header('content-type', 'application/json; charset=utf-8').send(document);
    });
  }

  #addRoute(options: OperatorServerOptions, route: Route): void {
    const { method, path: url, query, body, isBodyCheckedByHandler, bodyLimit, success, handle } = route;
    const checkQuery = queryCheck(query);
    const checkBody = body === undefined || isBodyCheckedByHandler === true ? undefined : bodyCheck(body);
    this.#fastify.route({
      method,
      url,
      ...(bodyLimit !== undefined && { bodyLimit }),
      handler: async (request, reply) => {
        const routeRequest = {
          params: request.params as Record<string, string>,
          query: request.query as Query,
          // An absent body is null.
          body: request.body ?? null,
        };
        if (body !== undefined) dropNulls(body, routeRequest.body);
        const { tokenName, role } = this.#callers.of(request);
        const checkAndHandle = async (): Promise<unknown> => {
          checkRole(role, roleNeeded(route));
          await checkQuery(routeRequest.query);
          await checkBody?.(routeRequest.body);
          return await handle(options, routeRequest);
        };
        const answer =
          'audit' in route
            ? await makeAudited(
                route,
                whoOf(request, options.proxies, tokenName),
                options,
                routeRequest,
                checkAndHandle,
              )
            : await checkAndHandle();
        const link = nextLink(request.url, answer);
        if (link !== undefined) reply.header('link', link);
        reply.status(success);
        if (!(answer instanceof LongAnswer)) return await reply.send(answer);
        return await reply.header('content-type', 'application/json; charset=utf-8').send(answer.text);
      },
    });
  }
}

/**
 * The terms of a GET that gets no entry in the audit log; its role is checked before anything else. Undefined for
 * unknown paths, and for all other calls, whose role is checked later, since a refusal gets an entry too.
 */
function unauditedReadTerms(method: string, url: string | undefined): DocumentedRoute | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  return DOCUMENTED_ROUTES.find((terms) => terms.method === 'GET' && terms.path === url && terms !== BACKUP_TERMS);
}

/** Parses a query. A member that is repeated becomes a list, and `mac` always does. */
function parseQuery(text: string): Record<string, string | string[]> {
  const query = new URLSearchParams(text);
  return Object.fromEntries(
    [...new Set(query.keys())].map((name) => {
      const values = query.getAll(name);
      return [name, values.length === 1 && name !== 'mac' ? (values[0] as string) : values];
    }),
  );
}

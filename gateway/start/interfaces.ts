/** Builds and starts the two HTTP interfaces, for merchants and for operators. Only gateway.ts may import this file. */
import type { Socket } from 'node:net';
import { RunClock, systemClock } from '../../proto/clock.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import { type MerchantParts, makeMerchantParts } from '../accounts/merchant-parts.js';
import type { Config } from '../config.js';
import type { GatewayEvents } from '../events.js';
import { DEFAULT_FAIRNESS } from '../fairness/fairness-settings.js';
import { HttpBudgets } from '../fairness/http-budgets.js';
import { UplinkLoad } from '../fairness/uplink-load.js';
import { stopStep } from '../graceful-stop.js';
import { WorstDelay, watchEventLoop } from '../health/event-loop.js';
import { HttpConnections } from '../http/connections/connections.js';
import { PagePace } from '../http/connections/page-pace.js';
import { HttpServer } from '../http/merchant/server.js';
import { clockJson } from '../http/operator/json/clock.js';
import { recipientJson } from '../http/operator/json/recipient.js';
import { OperatorServer, type OperatorServerOptions } from '../http/operator/server.js';
import { endJson, figuresJson, readinessJson } from '../http/operator/status.js';
import { MAX_CONNECTIONS, RESERVED_CONNECTIONS } from '../http/shared/limits.js';
import type { ClosedLocks } from '../locks/list/closed-locks.js';
import type { Locks } from '../locks/locks.js';
import { openStreetMap, type StreetMap } from '../map/street-map.js';
import type { Metrics } from '../metrics/metrics.js';
import { PingRate } from '../metrics/ping-rate.js';
import type { Broker } from '../mqtt/broker.js';
import type { DescriptorWatch } from '../network/descriptor-watch.js';
import type { DescriptorRoom } from '../network/descriptors.js';
import { TrustedProxies } from '../network/trusted-proxies.js';
import type { Notifier } from '../notify/notifier.js';
import { type ResolvedSetting, settingsInForce } from '../resolved-settings.js';
import { OPERATOR_RECIPIENT } from '../store/contract/notify/notification-store.js';
import { VERSION } from '../version.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';
import type { GatewayBase, GatewayOptions } from './gateway-base.js';

/** The HTTP interfaces. They report the gateway's start and stop, so they start early and stop late. */
interface Interfaces {
  /** The worst recent delay of the event loop. */
  readonly delays: WorstDelay;
  readonly http: HttpServer;
  /** Undefined until all parts that the operator's interface reports have started. */
  operator: OperatorServer | undefined;
  /** Undefined until all parts that merchants' calls use have started. */
  merchants: MerchantParts | undefined;
  /** The streets of the pages' maps. */
  readonly map: StreetMap;
  /** How much merchants and strangers may do over HTTP. */
  readonly budgets: HttpBudgets;
  /** Spreads what pages read while locks send very many pings. */
  readonly pages: PagePace;
}

/**
 * Starts the merchants' interface and prepares the operator's. Both answer "not ready" until the parts have started.
 */
export async function startInterfaces(
  config: Config,
  options: GatewayOptions,
  base: GatewayBase,
  metrics: Metrics,
): Promise<Interfaces> {
  const { health, started, events, now, descriptorWatch } = base;
  const fairness = config.fairness ?? DEFAULT_FAIRNESS;
  // Budgets use only differences of times, so their clock may start at 0.
  const budgets = new HttpBudgets(fairness, options.httpBudgetClock ?? new RunClock(0));
  const delays = new WorstDelay();
  const onDelay = (delay: number): void => {
    metrics.noteDelay(delay);
    delays.note(delay);
  };
  // At the gateway's stop the steps of `started` run in reverse order.
  const stopWatching = watchEventLoop({ clock: systemClock, health, onDelay });
  started.push(stopStep('the watch on the event loop', async () => stopWatching()));
  const map = openStreetMap(config, {
    clock: systemClock,
    userAgent: `lockgate/${VERSION}`,
    onFailure: (why) => events.emit('tile-failed', { atMs: now(), why }),
  });
  started.push(stopStep('the map’s tiles', () => map.close()));
  const pages = makePagePace(events);
  started.push(stopStep('the calls of pages', async () => pages.stop()));
  // The server is started before the object exists from which it reads the merchants' parts.
  let interfaces: Interfaces | undefined;
  const http = await HttpServer.start({
    ...httpAccess(config, 'merchant', descriptorWatch, pages),
    host: config.httpHost,
    port: config.httpPort,
    corsOrigins: config.httpCorsOrigin,
    consoleHosts: config.consoleHosts,
    map,
    health,
    fairness,
    budgets,
    merchants: () => interfaces?.merchants,
    onAnswered: (answered) => events.emit('request', { atMs: now(), ...answered }),
  });
  const startedInterfaces: Interfaces = {
    ...{ delays, http, map, budgets, pages },
    ...{ operator: undefined, merchants: undefined },
  };
  interfaces = startedInterfaces;
  started.push(stopStep('the merchants’ interface', () => http.close()));
  started.push(stopStep('the operator’s interface', async () => await startedInterfaces.operator?.close()));
  return startedInterfaces;
}

function makePagePace(events: GatewayEvents): PagePace {
  const load = new UplinkLoad();
  events.on('stored', ({ uplinks }) => load.stored(uplinks.length));
  return new PagePace({ isBusy: () => load.isHigh });
}

/** How sending of notices goes; null if they are not sent. */
async function sendingJson(notifier: Notifier) {
  const [recipient] = await notifier.read(OPERATOR_RECIPIENT);
  return recipient === undefined ? null : recipientJson(recipient);
}

/** Starts serving merchants' calls. */
export function startMerchants(
  parts: Omit<Parameters<typeof makeMerchantParts>[0], 'budgets'>,
  interfaces: Interfaces,
): MerchantParts {
  const merchants = makeMerchantParts({ ...parts, budgets: interfaces.budgets });
  interfaces.merchants = merchants;
  return merchants;
}

/** Starts the operator's interface. */
export function startOperator(
  config: Config,
  parts: Omit<OperatorServerOptions, 'host' | 'port' | 'status' | 'settings' | 'map' | keyof HttpAccess> & {
    readonly broker: Broker;
    readonly descriptorWatch: DescriptorWatch;
    readonly locks: Locks;
    readonly closedLocks: ClosedLocks;
    readonly dispatcher: Dispatcher;
  },
  { http, delays, map, pages }: Interfaces,
  settings: readonly ResolvedSetting[],
): Promise<OperatorServer> {
  const { broker, store, clock: runClock, clocks: recordedClocks, figures, locks, closedLocks, dispatcher } = parts;
  const { descriptors } = parts.descriptorWatch;
  const startedAt = formatDate(systemClock.now());
  const pingRate = new PingRate(parts.events);
  const server: Promise<OperatorServer> = OperatorServer.start({
    ...parts,
    ...httpAccess(config, 'operator', parts.descriptorWatch, pages),
    consoleHosts: config.consoleHosts,
    map,
    host: config.operatorHost,
    port: config.operatorPort,
    settings: async () => {
      const operatorPort = (await server).port;
      const ports = { mqttPort: broker.port, mqttTlsPort: broker.tlsPort, httpPort: http.port, operatorPort };
      return settingsInForce(settings, ports);
    },
    status: async () => ({
      version: VERSION,
      started_at: startedAt,
      ...readinessJson(parts.health),
      pings_per_second: pingRate.perSecond(),
      notices_unread: sumCounts(parts.notices.unread()),
      notices_sending: await sendingJson(parts.notifier),
      store: store.description,
      mqtt: {
        host: config.mqttHost,
        port: broker.port,
        connected: broker.connected,
        refused: { ...broker.refusals },
        certificate_end: endJson(broker.certificateEndMs),
      },
      http: { host: config.httpHost, port: http.port },
      descriptors: { open: descriptors.open ?? null, limit: descriptors.limit ?? null },
      ...figuresJson({
        figures: await figures.read(),
        presences: [...closedLocks.openOnly(locks.all())].map(({ presence }) => presence.presence),
        isCircuitOpen: (urlId) => dispatcher.isCircuitOpen(urlId),
        worstDelayMs: delays.ms,
      }),
      run_clock: formatDate(runClock.now()),
      run_speed: recordedClocks.speed,
      clock: clockJson(recordedClocks.reading()),
    }),
  });
  return server;
}

function sumCounts(counts: Iterable<readonly [name: string, count: number]>): number {
  return [...counts].reduce((sum, [, count]) => sum + count, 0);
}

/** Which connections an HTTP port accepts, and which proxies it trusts. */
type HttpAccess = Pick<OperatorServerOptions, 'connections' | 'proxies'>;

/**
 * The access of one port. Its connections take file descriptors that locks could use, so it accepts at most a quarter
 * as many connections as there may be locks.
 */
function httpAccess(
  { httpPerAddress, trustedProxies }: Config,
  caller: 'merchant' | 'operator',
  descriptorWatch: DescriptorWatch,
  pages: PagePace,
): HttpAccess {
  const proxies = new TrustedProxies(trustedProxies);
  const maxConnections = Math.min(MAX_CONNECTIONS, Math.ceil(descriptorWatch.descriptors.forLocks / 4));
  const limits = { total: maxConnections, perAddress: httpPerAddress, reserve: RESERVED_CONNECTIONS };
  const roomFor = (socket: Socket): DescriptorRoom => descriptorWatch.roomFor(caller, socket);
  return { proxies, connections: new HttpConnections({ limits, proxies, roomFor, pages }) };
}

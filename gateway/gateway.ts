/**
 * The gateway: the only place that builds the parts and knows how they hang together.
 *
 * They start from the store outwards, so that nothing can come in before it can be kept, and stop from the outside
 * inwards: no new connections, what was taken is stored and answered, what is being delivered ends, the store closes.
 * The two HTTP interfaces tell how that goes, so they are there before it begins, and until it has ended.
 */
import type { Socket } from 'node:net';
import { afterThisTurn, type Clock, RunClock, Seconds, systemClock } from '../proto/clock.js';
import { Accounts } from './accounts/accounts.js';
import { type MerchantParts, makeMerchantParts } from './accounts/merchant-parts.js';
import { Audit } from './audit/audit.js';
import { clockListener } from './clocks/clock-listener.js';
import { type ClockDoubt, KeptClocks } from './clocks/kept-clocks.js';
import type { MachineClock } from './clocks/machine-clock.js';
import { Commands, type CommandsParts } from './commands/commands.js';
import { type Config, type ResolvedSetting, settingsInForce } from './config.js';
import { OWNER } from './data-folder/data-folder.js';
import type { Keys } from './data-folder/keys.js';
import { openSecrets } from './data-folder/secrets.js';
import { GatewayEvents, type StateRebuilt } from './events.js';
import { DEFAULT_FAIRNESS } from './fairness/fairness-settings.js';
import { HttpBudgets } from './fairness/http-budgets.js';
import { type StopStep, stopAll, stopStep } from './graceful-stop.js';
import { WorstDelay, watchEventLoop } from './health/event-loop.js';
import { Health } from './health/health.js';
import { StoreWatch } from './health/store.js';
import { HttpConnections } from './http/connections/connections.js';
import { HttpServer } from './http/merchant/server.js';
import { loadRequestChecks } from './http/operator/check-request.js';
import { clockJson } from './http/operator/json/clock.js';
import { OperatorServer, type OperatorServerOptions } from './http/operator/server.js';
import { endJson, figuresJson } from './http/operator/status.js';
import { OperatorToken } from './http/operator/token.js';
import { MAX_CONNECTIONS, RESERVED_CONNECTIONS } from './http/shared/limits.js';
import { Ingest, type IngestParts } from './ingest/ingest.js';
import type { Judging } from './ingest/judging.js';
import { withCurrentStates } from './locks/current-states.js';
import { beginListening, endListening, type ListeningParts } from './locks/listening.js';
import { type KnownLock, Locks } from './locks/locks.js';
import { Figures } from './metrics/figures.js';
import { type MetricSources, Metrics } from './metrics/metrics.js';
import { Broker } from './mqtt/broker.js';
import { budgetWatcher } from './mqtt/budget/budget-events.js';
import { UplinkBudgets } from './mqtt/budget/uplink-budgets.js';
import { GUARD_LIMITS, type GuardLimits } from './mqtt/connection-guard.js';
import { RefusalRecorder } from './mqtt/refusals/refusal-recorder.js';
import type { Session } from './mqtt/sessions.js';
import type { TlsIdentity } from './mqtt/tls-identity.js';
import { DescriptorWatch } from './network/descriptor-watch.js';
import { type DescriptorRoom, Descriptors } from './network/descriptors.js';
import { TrustedProxies } from './network/trusted-proxies.js';
import { Notices } from './notices/notices.js';
import { Retention } from './retention.js';
import type { StoreFailure } from './store/contract/errors.js';
import type { Store } from './store/contract/store.js';
import type { RunSize } from './store/contract/store-options.js';
import { openStore, sqliteUrl } from './store/open-store.js';
import { Usage } from './usage/usage.js';
import { VERSION } from './version.js';
import { Backlogs } from './webhooks/backlogs.js';
import { Dispatcher, type DispatcherParts } from './webhooks/dispatcher.js';
import { makeGuardedAgents } from './webhooks/sending/guarded-agents.js';
import type { LookupAll } from './webhooks/sending/name-service.js';
import { DeliveryClock } from './webhooks/url/delivery-clock.js';
import { Webhooks } from './webhooks/webhooks.js';

/** How long deliveries under way may go on when the gateway stops. */
const DELIVERY_GRACE = Seconds(3);

export interface GatewayOptions {
  /** How fast the run's clock goes, 1 for real life (protocol.md §3, Sped-up runs). */
  readonly speed?: number;
  /** The run's clock in place of the one that the store keeps, for tests that stop time while the network works. */
  readonly runClock?: Clock;
  /** The machine's clocks: the system's, but in tests. */
  readonly machine?: MachineClock;
  /** Chance for the jitter of retries, in [0, 1). */
  readonly random?: () => number;
  /** The clock that deliveries wait by, which never leaps: the system's monotonic one, but in tests. */
  readonly deliveryClock?: Clock;
  /** The clock that deliveries are dated by: the wall's, or in tests the one that they wait by where none is given. */
  readonly deliveryDates?: Clock;
  /** Looks up the names of webhook URLs: the system does, but in tests. */
  readonly lookUp?: LookupAll;
  /** The clock that credentials, tokens, sessions and the pace of forgetting live by: the date, but in tests. */
  readonly wallClock?: Clock;
  /** What the limits of the MQTT listeners are measured by: real time, but in tests. */
  readonly guardClock?: Clock;
  /** What locks' budgets are measured by: real time at the run's speed, but in tests. */
  readonly budgetClock?: Clock;
  /** What judges, and the version that it counts as, for tests in which it fails. */
  readonly judging?: Judging;
  /** Other limits of the MQTT listeners, for tests. */
  readonly guardLimits?: Partial<GuardLimits>;
  /** What merchants' and strangers' budgets over HTTP fill by: real time, but in tests. */
  readonly httpBudgetClock?: Clock;
  /** The clock that months and bills go by: the date, but in tests. */
  readonly usageClock?: Clock;
  /** Whether a thread of its own writes the store's log; it does, but in tests that start gateways by the hundred. */
  readonly logThread?: boolean;
  /** Another size of the log's runs (store/contract/store-options.ts), for tests. */
  readonly runSize?: RunSize | undefined;
  /** Stands between the gateway and its store, for tests that break it on purpose. */
  readonly wrapStore?: (store: Store) => Store;
  /** A data folder that shows that it had a store, and has none, gets a new one. */
  readonly makeNew?: boolean;
  /** Where the settings came from, for whoever asks for them. */
  readonly settings?: readonly ResolvedSetting[];
  /** What happens is told here; given by those who listen from the first moment on. */
  readonly events?: GatewayEvents;
  /** Told once when the store is not to be believed any more: the process has to end, without closing anything. */
  readonly onBroken?: (failure: StoreFailure) => void;
}

export interface Gateway {
  readonly events: GatewayEvents;
  readonly accounts: Accounts;
  readonly commands: Commands;
  readonly webhooks: Webhooks;
  /** What merchants do over HTTP. */
  readonly merchants: MerchantParts;
  /** What operators should know. */
  readonly notices: Notices;
  readonly store: Store;
  readonly usage: Usage;
  /** The run's clock. */
  readonly clock: Clock;
  /** How the machine's clock stands to what is believed. */
  readonly clocks: KeptClocks;
  readonly mqttPort: number;
  /** Undefined where no certificate is set. */
  readonly mqttTlsPort: number | undefined;
  readonly httpPort: number;
  readonly operatorPort: number;
  readonly operatorToken: string;
  /**
   * Reads certificate and key again: whoever connects from now on sees the new one, and no connection ends.
   *
   * @throws LockgateError `tls-file` where they are wrong (the old ones stay in force) or none are set
   */
  reloadTls(): TlsIdentity;
  /**
   * Stops it: nothing that was acknowledged is lost. Resolves when everything is closed. May be called again.
   *
   * @throws LockgateError `stop-hung` where something does not end in time: then the process has to be ended
   */
  close(): Promise<void>;
}

/** What the parts are built on. */
interface Ground {
  readonly store: Store;
  readonly canStore: () => Promise<boolean>;
  readonly events: GatewayEvents;
  readonly health: Health;
  readonly descriptors: DescriptorWatch;
  /** How what was started is stopped, in the order of the start. */
  readonly started: StopStep[];
  readonly stop: () => Promise<void>;
  /** Stamps the events. */
  readonly now: () => number;
  /** The run's clock stamps the events from now on. */
  readonly stampBy: (clock: Clock) => void;
}

/**
 * Starts a gateway on a data folder, making what isn't there.
 *
 * @throws LockgateError where a setting, the folder or a port does not allow it
 * @throws StoreFailure where the store can't be read or written
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const events = options.events ?? new GatewayEvents();
  const opened = await openStore(sqliteUrl(config.data), {
    logThread: options.logThread ?? true,
    figuresThread: true,
    makeNew: options.makeNew,
    onMended: (what) => events.emit('files-mended', { atMs: systemClock.now(), what }),
    quota: config.fairness?.quota,
    runSize: options.runSize,
    onCatchUp: (progress) => events.emit('catching-up', { atMs: systemClock.now(), ...progress }),
  });
  let stamp: Clock = systemClock;
  const now = (): number => stamp.now();
  const health = new Health({ events, clock: systemClock, now });
  const { onBroken, wrapStore } = options;
  const unwatched = wrapStore?.(opened) ?? opened;
  const watch = new StoreWatch({ store: unwatched, health, events, clock: systemClock, now, onBroken });
  const started = [stopStep('the store', () => watch.close())];
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    health.begin('stopping', 'the gateway is stopping');
    stopped ??= stopAll(started, systemClock);
    return stopped;
  };
  const stampBy = (clock: Clock): void => {
    stamp = clock;
  };
  try {
    const { store } = watch;
    const descriptors = new DescriptorWatch({ descriptors: new Descriptors(), events, clock: systemClock, now });
    started.push(stopStep('the watch on descriptors', async () => descriptors.stop()));
    const canStore = (): Promise<boolean> => watch.canWrite();
    return await startParts(config, options, {
      store,
      canStore,
      events,
      health,
      descriptors,
      started,
      stop,
      now,
      stampBy,
    });
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

async function startParts(config: Config, options: GatewayOptions, ground: Ground): Promise<Gateway> {
  const { store, canStore, events, health, descriptors, started, stop } = ground;
  const metrics = new Metrics(events, health, descriptors.descriptors);
  const keys = await openSecrets(store, config);
  const { clocks, clock, wallClock } = await startClocks(options, ground);
  const interfaces = await startInterfaces(config, options, ground, metrics);
  const audit = await startAudit(ground, wallClock);
  const notices = await startNotices(ground, wallClock);
  // It stops after the last connection has, to have counted that too.
  const usage = await Usage.start({ store, clock: options.usageClock ?? clocks.wall, runClock: clock, events });
  started.push(stopStep('the counting of usage', () => usage.stop()));
  const delivering = { store, keys, events, runClock: clock };
  const { dispatcher, webhooks } = makeWebhooks(config, options, clocks.wall, delivering);
  await startDeliveries(dispatcher, webhooks, started);
  const isStoreFailing = (): boolean => health.isStoreFailing;
  const figures = startFigures(options, delivering, dispatcher, isStoreFailing, started);

  // Commands leave by a broker that can't be there before what takes the uplinks is.
  const outlet: { broker?: Broker } = {};
  const onStored: IngestParts['onStored'] = (ids, uplinks) => dispatcher.wake(ids, uplinks);
  const { lastRanMs, doubt } = clocks;
  const { ingest, locks, commands, rebuilt } = await startIngest(
    { store, clock, wallClock, lastRanMs, doubt, events, isStoreFailing, onStored },
    (deviceId) => outlet.broker?.sessions.ofLock(deviceId),
    started,
    options.judging,
  );
  notices.settle({ locks: () => locks.all(), urls: await store.listWebhookUrls() });
  const current = withCurrentStates(store, locks);
  const told = { usage, budgets: makeBudgets(config, options, events, clock), refusals: startRefusals(ground, clock) };
  const shared = { store: current, keys, events, clock, wallClock, ingest, locks, commands, ...told };
  const work = { ...shared, dispatcher, canStore, descriptors };
  const { broker, accounts } = await startIdentity(config, options, work, started);
  outlet.broker = broker;
  started.push(clocks.listen(clockListener({ events, clock, locks, ingest, commands, sessions: broker.sessions })));
  const { budgets } = told;
  metrics.readFrom(metricSources({ broker, ingest, dispatcher, locks, notices, budgets, doubt, figures }));
  const { tester } = webhooks;
  const merchants = startMerchants({ store, keys, clock: wallClock, tester }, interfaces);
  const token = OperatorToken.open(config.data, systemClock);
  const operator = await startOperator(
    config,
    { ...work, webhooks, merchants, notices, audit, accounts, clocks, broker, health, metrics, token, figures },
    interfaces,
    options.settings ?? [],
  );
  interfaces.operator = operator;
  health.end('starting');
  reportRebuilt(events, rebuilt);
  return {
    events,
    accounts,
    commands,
    webhooks,
    merchants,
    notices,
    store: current,
    usage,
    clock,
    clocks,
    mqttPort: broker.port,
    mqttTlsPort: broker.tlsPort,
    httpPort: interfaces.http.port,
    operatorPort: operator.port,
    operatorToken: token.text ?? '',
    reloadTls: () => reloadTls(broker, audit),
    close: stop,
  };
}

/** The clocks that the store keeps, and those that the parts go by: the same, but in tests. */
async function startClocks(options: GatewayOptions, { store, started, stampBy }: Ground) {
  const clocks = await KeptClocks.start({ store, speed: options.speed ?? 1, machine: options.machine });
  const { runClock: clock = clocks.run, wallClock = clocks.wall } = options;
  stampBy(clock);
  started.push(stopStep('the run’s clock', () => clocks.stop()));
  return { clocks, clock, wallClock };
}

/** Only who may signal the process can ask for it. A certificate that is wrong changes nothing and is in the log. */
function reloadTls(broker: Broker, audit: Audit): TlsIdentity {
  const identity = broker.reloadTls();
  const { validTo, fingerprint } = identity;
  audit.note('tls.reload', '', { valid_to: validTo, fingerprint }, OWNER);
  return identity;
}

/** How much each lock may send. They live by real time at the run's speed, which nobody can set. */
function makeBudgets(config: Config, options: GatewayOptions, events: GatewayEvents, clock: Clock): UplinkBudgets {
  const limits = {
    uplinksPerSecond: config.lockUplinksPerSecond,
    burstUplinks: config.lockUplinkBurst,
    uplinksPerDay: config.lockUplinksPerDay,
  };
  const budgetClock = options.budgetClock ?? new RunClock(0, options.speed ?? 1);
  return new UplinkBudgets({ limits, clock: budgetClock, watcher: budgetWatcher(events, clock, limits) });
}

/** What delivers, and what operators do with it. `dates`: the wall's clock as it is believed. */
function makeWebhooks(
  config: Config,
  options: GatewayOptions,
  dates: Clock,
  parts: Pick<DispatcherParts, 'store' | 'keys' | 'events' | 'runClock'>,
): { dispatcher: Dispatcher; webhooks: Webhooks } {
  const delivering: DispatcherParts = {
    ...parts,
    agents: makeGuardedAgents(config.allowWebhookRange, options.lookUp),
    waits: new DeliveryClock(options.deliveryDates ?? options.deliveryClock ?? dates, options.deliveryClock),
    userAgent: `lockgate/${VERSION}`,
    random: options.random ?? cryptoRandom,
  };
  const dispatcher = new Dispatcher(delivering);
  return { dispatcher, webhooks: new Webhooks({ ...delivering, dispatcher }) };
}

/** What is counted when somebody asks, and the watch on URLs that are far behind. */
function startFigures(
  { speed = 1 }: GatewayOptions,
  { store, events, runClock }: Pick<DispatcherParts, 'store' | 'events' | 'runClock'>,
  dispatcher: Dispatcher,
  isStoreFailing: () => boolean,
  started: StopStep[],
): Figures {
  const backlogs = new Backlogs({ store, events, clock: systemClock, runClock, speed });
  backlogs.start();
  started.push(stopStep('the watch on backlogs', () => backlogs.stop()));
  return new Figures({ backlogs, store, settled: () => dispatcher.settled(), isStoreFailing, clock: systemClock });
}

async function startDeliveries(dispatcher: Dispatcher, { tester }: Webhooks, started: StopStep[]): Promise<void> {
  await dispatcher.start();
  started.push(
    stopStep('a delivery', async () => {
      tester.stop();
      await dispatcher.stop(DELIVERY_GRACE);
    }),
  );
}

interface Work {
  readonly store: Store;
  readonly keys: Keys;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly ingest: Ingest;
  readonly locks: Locks;
  readonly commands: Commands;
  readonly usage: Usage;
  readonly budgets: UplinkBudgets;
  readonly refusals: RefusalRecorder;
  readonly dispatcher: Dispatcher;
  readonly canStore: () => Promise<boolean>;
  readonly descriptors: DescriptorWatch;
}

/** Who may connect, who says so, and for how long what they sent is kept. */
async function startIdentity(
  config: Config,
  options: GatewayOptions,
  work: Work,
  started: StopStep[],
): Promise<{ broker: Broker; accounts: Accounts }> {
  const { store, events, clock, wallClock, commands, dispatcher, descriptors } = work;
  const retention = new Retention({ store, events, keepDays: config.keepDays, clock: wallClock, runClock: clock });
  retention.start();
  started.push(stopStep('the deleting of what is old', () => retention.stop()));
  // Once locks are here there may be no descriptor left to load anything with.
  if (descriptors.expectLocks(await store.countDevices())) await loadRequestChecks();
  const broker = await Broker.start({
    ...work,
    host: config.mqttHost,
    port: config.mqttPort,
    tls: config.mqttTls && { host: config.mqttTlsHost, port: config.mqttTlsPort, files: config.mqttTls },
    limits: guardLimits(config, options, descriptors),
    roomFor: (raw) => descriptors.roomFor('lock', raw),
    guardClock: options.guardClock,
    onListening: (session) => commands.listening(session),
  });
  // Locks come in last, and are the first whom nothing more is sent.
  started.push(
    stopStep('the MQTT listener', async () => {
      await commands.stop();
      await broker.close();
    }),
  );
  const accounts = new Accounts({
    ...work,
    clock: wallClock,
    runClock: clock,
    sessions: broker.sessions,
    onWebhookUrl: (url) => dispatcher.add(url),
  });
  return { broker, accounts };
}

/** From now on merchants are served. */
function startMerchants(
  parts: Omit<Parameters<typeof makeMerchantParts>[0], 'budgets'>,
  interfaces: Interfaces,
): MerchantParts {
  const merchants = makeMerchantParts({ ...parts, budgets: interfaces.budgets });
  interfaces.merchants = merchants;
  return merchants;
}

function startOperator(
  config: Config,
  parts: Omit<OperatorServerOptions, 'host' | 'port' | 'status' | 'settings' | keyof HttpAccess> & {
    readonly broker: Broker;
    readonly descriptors: DescriptorWatch;
    readonly locks: Locks;
    readonly dispatcher: Dispatcher;
  },
  { http, delays }: Interfaces,
  settings: readonly ResolvedSetting[],
): Promise<OperatorServer> {
  const { broker, store, clock, clocks, descriptors, figures, locks, dispatcher } = parts;
  const { limit = null } = descriptors.descriptors;
  const server: Promise<OperatorServer> = OperatorServer.start({
    ...parts,
    ...httpAccess(config, 'operator', descriptors),
    host: config.operatorHost,
    port: config.operatorPort,
    settings: async () => {
      const operatorPort = (await server).port;
      const ports = { mqttPort: broker.port, mqttTlsPort: broker.tlsPort, httpPort: http.port, operatorPort };
      return settingsInForce(settings, ports);
    },
    status: async () => ({
      version: VERSION,
      store: store.description,
      mqtt: {
        host: config.mqttHost,
        port: broker.port,
        connected: broker.connected,
        refused: { ...broker.refusals },
        certificate_end: endJson(broker.certificateEndMs),
      },
      http: { host: config.httpHost, port: http.port },
      descriptors: { open: descriptors.descriptors.open ?? null, limit },
      ...figuresJson({
        figures: await figures.read(),
        presences: [...locks.all()].map(({ presence }) => presence.presence),
        isCircuitOpen: (urlId) => dispatcher.isCircuitOpen(urlId),
        worstDelayMs: delays.ms,
      }),
      run_clock: new Date(clock.now()).toISOString(),
      clock: clockJson(clocks.reading()),
    }),
  });
  return server;
}

/** What can be asked from outside: it tells of the start and of the stop, so it begins first and ends last. */
interface Interfaces {
  /** How late the event loop was. */
  readonly delays: WorstDelay;
  readonly http: HttpServer;
  /** Undefined until everything it tells of has begun. */
  operator: OperatorServer | undefined;
  /** The same for what merchants call. */
  merchants: MerchantParts | undefined;
  /** What merchants and strangers may do over HTTP. */
  readonly budgets: HttpBudgets;
}

async function startInterfaces(
  config: Config,
  options: GatewayOptions,
  ground: Ground,
  metrics: Metrics,
): Promise<Interfaces> {
  const { health, started, events, now, descriptors } = ground;
  const fairness = config.fairness ?? DEFAULT_FAIRNESS;
  const budgets = new HttpBudgets(fairness, options.httpBudgetClock ?? new RunClock(0));
  const delays = new WorstDelay();
  const onDelay = (delay: number): void => {
    metrics.noteDelay(delay);
    delays.note(delay);
  };
  const stopWatching = watchEventLoop({ clock: systemClock, health, onDelay });
  started.push(stopStep('the watch on the event loop', async () => stopWatching()));
  let interfaces: Interfaces | undefined;
  const http = await HttpServer.start({
    ...httpAccess(config, 'merchant', descriptors),
    host: config.httpHost,
    port: config.httpPort,
    corsOrigins: config.httpCorsOrigin,
    health,
    fairness,
    budgets,
    merchants: () => interfaces?.merchants,
    onAnswered: (answered) => events.emit('request', { atMs: now(), ...answered }),
  });
  const made: Interfaces = { delays, http, operator: undefined, merchants: undefined, budgets };
  interfaces = made;
  started.push(stopStep('the merchants’ interface', () => http.close()));
  started.push(stopStep('the operator’s interface', async () => await made.operator?.close()));
  return made;
}

/** Who may connect to an HTTP port, and whose word counts for somebody else's address. */
type HttpAccess = Pick<OperatorServerOptions, 'connections' | 'proxies'>;

/** That of one port. Where descriptors are few, a port may have a quarter of those that locks may have. */
function httpAccess(
  { httpPerAddress, trustedProxies }: Config,
  caller: 'merchant' | 'operator',
  watch: DescriptorWatch,
): HttpAccess {
  const proxies = new TrustedProxies(trustedProxies);
  const most = Math.min(MAX_CONNECTIONS, Math.ceil(watch.descriptors.forLocks / 4));
  const limits = { most, perAddress: httpPerAddress, reserve: RESERVED_CONNECTIONS };
  const roomFor = (socket: Socket): DescriptorRoom => watch.roomFor(caller, socket);
  return { proxies, connections: new HttpConnections({ limits, proxies, roomFor }) };
}

/** Those who are silent may have half of the descriptors there are for locks, where these are few. */
function guardLimits(config: Config, options: GatewayOptions, { descriptors }: DescriptorWatch): Partial<GuardLimits> {
  const silentPerAddress = Math.min(GUARD_LIMITS.silentPerAddress, Math.ceil(descriptors.forLocks / 2));
  return { perAddress: config.mqttPerAddress, silentPerAddress, ...options.guardLimits };
}

/** It stops after everything that could change something. */
async function startAudit({ store, events, now, started }: Ground, clock: Clock): Promise<Audit> {
  const audit = await Audit.start({ store, events, clock, now });
  started.push(stopStep('the audit log', () => audit.stop()));
  return audit;
}

/** They stop after everything that could tell them something. */
async function startNotices({ store, events, health, now, started }: Ground, clock: Clock): Promise<Notices> {
  const notices = await Notices.start({ store, events, clock, now, isStoreFailing: () => health.isStoreFailing });
  started.push(stopStep('the notices', () => notices.stop()));
  return notices;
}

/** What is refused of locks is kept from now on; it stops after the last connection has. */
function startRefusals({ store, events, health, started }: Ground, clock: Clock): RefusalRecorder {
  const isStoreFailing = (): boolean => health.isStoreFailing;
  const refusals = new RefusalRecorder({
    store: store.refusals,
    events,
    clock: systemClock,
    now: () => clock.now(),
    isStoreFailing,
  });
  started.push(stopStep('the refusals', () => refusals.stop()));
  return refusals;
}

function metricSources(of: {
  readonly broker: Broker;
  readonly ingest: Ingest;
  readonly dispatcher: Dispatcher;
  readonly locks: Locks;
  readonly notices: Notices;
  readonly budgets: UplinkBudgets;
  readonly doubt: ClockDoubt;
  readonly figures: Figures;
}): MetricSources {
  return {
    connections: () => [...of.broker.sessions.all()].map(({ sender }) => sender.source),
    ingestWaiting: () => of.ingest.waiting,
    figures: () => of.figures.read(),
    isCircuitOpen: (urlId) => of.dispatcher.isCircuitOpen(urlId),
    certificateEndMs: () => of.broker.certificateEndMs,
    noticesUnread: () => of.notices.unread(),
    locksOverBudget: () => of.budgets.countOver(),
    presences: () => [...of.locks.all()].map(({ presence }) => presence.presence),
    clockAheadMs: () => of.doubt.aheadMs,
    locksUnjudged: () => [...of.locks.unjudged()].length,
  };
}

/** The locks that the store knows hear that the gateway listens, and when it does no longer; commands go on. */
async function startIngest(
  parts: Omit<IngestParts & ListeningParts, 'locks' | 'ingest' | 'commands'> &
    Pick<CommandsParts, 'wallClock' | 'doubt'>,
  sessionOf: (deviceId: number) => Session | undefined,
  started: StopStep[],
  judging: Judging | undefined,
): Promise<{ ingest: Ingest; locks: Locks; commands: Commands; rebuilt: readonly StateRebuilt[] }> {
  const { store, clock, wallClock, doubt, events, lastRanMs } = parts;
  const onDue = (due: readonly KnownLock[]): void => {
    for (const { deviceId, mac } of due) ingest.recordEvent(deviceId, mac, { type: 'tick', atMs: clock.now() });
  };
  const locks = new Locks(store, clock, onDue, judging);
  const commands = new Commands({
    store,
    events,
    clock,
    wallClock,
    doubt,
    findLock: (deviceId) => locks.find(deviceId),
    sessionOf,
    recordEvent: (deviceId, mac, event, announce) => ingest.recordEvent(deviceId, mac, event, announce),
  });
  const ingest: Ingest = new Ingest({ ...parts, locks, commands });
  const rebuilt = await beginListening({ locks, ingest, clock, lastRanMs });
  const end = (): Promise<void> => endListening({ locks, ingest, clock });
  started.push(stopStep('the store, which has not kept what came in,', end));
  await commands.load();
  started.push(stopStep('the commands', () => commands.stop()));
  return { ingest, locks, commands, rebuilt };
}

/** Whoever started the gateway shall hear of it too, and has no ear for events before it has the gateway. */
function reportRebuilt(events: GatewayEvents, rebuilt: readonly StateRebuilt[]): void {
  afterThisTurn(() => {
    for (const each of rebuilt) events.emit('state-rebuilt', each);
  });
}

/** Chance from the system: 32 bits in [0, 1). */
function cryptoRandom(): number {
  return (globalThis.crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;
}

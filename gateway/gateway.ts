/**
 * Starts and stops the gateway. Only this file and `start/` build the gateway's parts and connect them.
 *
 * The store starts first and the MQTT listener late, so that no ping can arrive before it can be stored. The parts stop
 * in reverse order: the gateway accepts no new connections, stores and answers received pings, lets running deliveries
 * finish, and closes the store. The two HTTP interfaces report start and stop, so they start early and stop late.
 */
import { afterThisTurn, type Clock, systemClock } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';
import type { Mac } from '../proto/wire/mac.js';
import type { Accounts } from './accounts/accounts.js';
import type { MerchantParts } from './accounts/merchant-parts.js';
import { OperatorTokens } from './accounts/operator-tokens.js';
import { Audit } from './audit/audit.js';
import { clockListener } from './clocks/clock-listener.js';
import { type ClockDoubt, RecordedClocks } from './clocks/recorded-clocks.js';
import type { Commands } from './commands/commands.js';
import type { Config } from './config.js';
import { OWNER } from './data-folder/data-folder.js';
import { openSecrets } from './data-folder/secrets.js';
import { GatewayEvents } from './events.js';
import { type StopStep, stopAll, stopStep } from './graceful-stop.js';
import { Health } from './health/health.js';
import { StoreWatch } from './health/store.js';
import { OperatorToken } from './http/operator/token.js';
import type { Ingest, IngestParts } from './ingest/ingest.js';
import type { StateRebuilt } from './lock-events.js';
import { withCurrentStates } from './locks/current-states.js';
import { ClosedLocks } from './locks/list/closed-locks.js';
import { LockDirectory } from './locks/list/lock-directory.js';
import { watchDevices } from './locks/list/watch-devices.js';
import type { Locks } from './locks/locks.js';
import type { Figures } from './metrics/figures.js';
import { type MetricSources, Metrics } from './metrics/metrics.js';
import type { Broker } from './mqtt/broker.js';
import type { UplinkBudgets } from './mqtt/budget/uplink-budgets.js';
import { SocketCopier } from './mqtt/socket-copier.js';
import type { TlsIdentity } from './mqtt/tls-identity.js';
import { DescriptorWatch } from './network/descriptor-watch.js';
import { Descriptors } from './network/descriptors.js';
import type { Notices } from './notices/notices.js';
import type { Notifier } from './notify/notifier.js';
import { makeWebhooks, startDeliveries, startFigures } from './start/deliveries.js';
import type { GatewayBase, GatewayOptions } from './start/gateway-base.js';
import { startInterfaces, startMerchants, startOperator } from './start/interfaces.js';
import { makeBudgets, startIdentity, startIngest, startRefusals } from './start/lock-services.js';
import { startNotifications } from './start/notifications.js';
import { makeOwnData } from './start/own-data.js';
import type { Store } from './store/contract/store.js';
import { openStore, sqliteUrl } from './store/open-store.js';
import { Usage } from './usage/usage.js';
import type { Dispatcher } from './webhooks/dispatcher.js';
import { NewEventSignal } from './webhooks/new-event-signal.js';
import type { Webhooks } from './webhooks/webhooks.js';

export type { GatewayOptions } from './start/gateway-base.js';

/** A running gateway. */
export interface Gateway {
  readonly events: GatewayEvents;
  readonly accounts: Accounts;
  readonly commands: Commands;
  readonly webhooks: Webhooks;
  /** The parts that merchants' HTTP calls use. */
  readonly merchants: MerchantParts;
  /** The notices for operators. */
  readonly notices: Notices;
  /** Sends notices to operators, and the troubles of webhook URLs to merchants. */
  readonly notifier: Notifier;
  readonly store: Store;
  readonly usage: Usage;
  /** The run's clock, which stamps receipts. A demonstration can run it faster than real time. */
  readonly clock: Clock;
  /** The gateway's clocks, and how the machine's clock compares to them. */
  readonly clocks: RecordedClocks;
  readonly mqttPort: number;
  /** Undefined if no certificate is set. */
  readonly mqttTlsPort: number | undefined;
  readonly httpPort: number;
  readonly operatorPort: number;
  readonly operatorToken: string;
  /**
   * Reads certificate and key again, for new connections. Existing connections stay open.
   *
   * @throws LockgateError `tls-file` if they are wrong (the old ones stay in use) or none are set
   */
  reloadTls(): TlsIdentity;
  /**
   * Stops the gateway without losing acknowledged pings. Resolves when everything is closed. May be called again.
   *
   * @throws LockgateError `stop-hung` if a part does not stop in time: then the caller must end the process
   */
  close(): Promise<void>;
}

/**
 * Starts a gateway on a data folder, creating what is missing.
 *
 * @throws LockgateError if a setting, the folder or a port is wrong
 * @throws StoreFailure if the store can't be read or written
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  refuseSpeed(config, options);
  // Its process starts while the store is opened.
  const copier = options.socketCopies === false ? undefined : new SocketCopier();
  try {
    return await startWithStore(config, options, copier);
  } finally {
    copier?.close();
  }
}

/** Opens the store and starts everything else. */
async function startWithStore(
  config: Config,
  options: GatewayOptions,
  copier: SocketCopier | undefined,
): Promise<Gateway> {
  const events = options.events ?? new GatewayEvents();
  // The store may report trouble before there is a watch, which wraps the open store.
  const late: { watch?: StoreWatch } = {};
  const opened = await openStore(config.store ?? sqliteUrl(config.data), {
    logThread: options.logThread ?? true,
    figuresThread: options.figuresThread ?? true,
    scanThread: options.scanThread ?? true,
    makeNew: options.makeNew,
    onModesCorrected: (what) => events.emit('files-mended', { atMs: systemClock.now(), what }),
    quota: config.fairness?.quota,
    runSize: options.runSize,
    isShared: options.isShared,
    onCatchUp: (progress) => events.emit('catching-up', { atMs: systemClock.now(), ...progress }),
    onWarning: (what) => events.emit('store-warning', { atMs: systemClock.now(), what }),
    onTrouble: (why) => late.watch?.troubled(why),
  });
  // Events are stamped by the system's clock until the run's clock exists.
  let stampClock: Clock = systemClock;
  const now = (): number => stampClock.now();
  const health = new Health({ events, clock: systemClock, now });
  const { onBroken, wrapStore } = options;
  const unwatched = wrapStore?.(opened) ?? opened;
  const watch = new StoreWatch({ store: unwatched, health, events, clock: systemClock, now, onBroken });
  late.watch = watch;
  const started = [stopStep('the store', () => watch.close())];
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    health.stopping();
    stopped ??= stopAll(started, systemClock);
    return stopped;
  };
  const stampBy = (clock: Clock): void => {
    stampClock = clock;
  };
  try {
    const { store } = watch;
    const descriptorWatch = new DescriptorWatch({ descriptors: new Descriptors(), events, clock: systemClock, now });
    started.push(stopStep('the watch on descriptors', async () => descriptorWatch.stop()));
    const canStore = (): Promise<boolean> => watch.canWrite();
    return await startParts(config, options, {
      store,
      copier,
      canStore,
      events,
      health,
      descriptorWatch,
      started,
      stop,
      now,
      stampBy,
    });
  } catch (error) {
    // A failure of the stop would hide why the start failed.
    await stop().catch(() => undefined);
    throw error;
  }
}

/**
 * Refuses a faster run's clock with a database: several gateways may share it, and its records have one time for all of
 * them. @throws LockgateError `input-setting`
 */
function refuseSpeed({ store }: Config, { speed = 1 }: GatewayOptions): void {
  if (store == null || speed === 1) return;
  throw new LockgateError('input-setting', '--store and --speed exclude each other: the database has one time for all');
}

/** Starts all parts after the store, in the order of their dependencies. */
async function startParts(config: Config, options: GatewayOptions, base: GatewayBase): Promise<Gateway> {
  const { store, copier, canStore, events, health, descriptorWatch, started, stop } = base;
  const metrics = new Metrics(events, health, descriptorWatch.descriptors);
  const keys = await openSecrets(store, config);
  const { clocks, clock, wallClock } = await startClocks(options, base);
  const interfaces = await startInterfaces(config, options, base, metrics);
  const audit = await startAudit(base, wallClock);
  const notifyParts = { keys, clock, wallClock, confirmedWallClock: clocks.wall };
  const { notices, notifier } = await startNotifications(config, options, base, notifyParts);
  const usage = await startUsage(base, options.usageClock ?? clocks.wall, clock);
  const deliveryParts = { store, keys, events, runClock: clock };
  const { dispatcher, webhooks } = makeWebhooks(config, options, clocks.wall, deliveryParts);
  await startDeliveries(dispatcher, webhooks, started);
  const isStoreFailing = (): boolean => health.isStoreFailing;
  const figures = startFigures(options, deliveryParts, dispatcher, isStoreFailing, started);

  // Commands go out through the broker, which starts after ingest and is set here then.
  const lateBroker: { broker?: Broker } = {};
  const { newEvents, onStored, onMerchantEvents } = wakeReaders(dispatcher, store, events, started);
  const { lastRanMs, doubt } = clocks;
  const { ingest, locks, commands, rebuilt } = await startIngest(
    { store, clock, wallClock, lastRanMs, doubt, events, isStoreFailing, onStored, onMerchantEvents },
    (deviceId) => lateBroker.broker?.sessions.ofLock(deviceId),
    started,
    options.judging,
  );
  const { directory, closedLocks, currentStore } = await listedStore(store, locks, notices);
  const budgets = makeBudgets(config, options, events, clock);
  const refusals = startRefusals(base, clock);
  const stateParts = { store: currentStore, keys, events, clock, wallClock, ingest, locks, commands };
  const others = { usage, notices, newEvents, caches: [directory, closedLocks] };
  const lockParts = { ...stateParts, ...others, budgets, refusals, dispatcher, canStore, descriptorWatch, started };
  const { broker, accounts } = await startIdentity(config, options, lockParts, started);
  lateBroker.broker = broker;
  started.push(clocks.listen(clockListener({ events, clock, locks, ingest, commands, sessions: broker.sessions })));
  metrics.readFrom(metricSources({ broker, ingest, dispatcher, locks, closedLocks, notices, budgets, doubt, figures }));
  const served = { directory, closedLocks, webhooks, devices: accounts.devices, newEvents, wallClock, audit };
  const merchants = serveMerchants({ ...lockParts, ...served }, interfaces);
  const operators = { ...openTokens(config, store, wallClock), audit, notices, notifier, clocks };
  const operator = await startOperator(
    config,
    { ...lockParts, ...operators, webhooks, merchants, accounts, closedLocks, broker, health, metrics, figures },
    interfaces,
    options.settings ?? [],
  );
  interfaces.operator = operator;
  if (copier !== undefined) await broker.copySockets(copier);
  health.started();
  reportRebuilt(events, rebuilt);
  return {
    events,
    accounts,
    commands,
    webhooks,
    merchants,
    notices,
    notifier,
    store: currentStore,
    usage,
    clock,
    clocks,
    mqttPort: broker.port,
    mqttTlsPort: broker.tlsPort,
    httpPort: interfaces.http.port,
    operatorPort: operator.port,
    operatorToken: operators.token.text ?? '',
    reloadTls: () => reloadTls(broker, audit),
    close: stop,
  };
}

/**
 * Reads the directory of locks and the locks of closed merchants, and returns them with the store that tells both what
 * is written. The notices of locks follow both as well.
 */
async function listedStore(store: GatewayBase['store'], locks: Locks, notices: Notices) {
  const directory = new LockDirectory(store);
  const closedLocks = await ClosedLocks.read(store);
  notices.reconcile({
    locks: () => closedLocks.openOnly(locks.all()),
    isClosed: (mac) => closedLocks.has(mac),
    urls: await store.listWebhookUrls(),
  });
  closedLocks.onChange(() => notices.reconcileLocks());
  const { signals } = store.ownership;
  const others = { changed: (macs: readonly Mac[] | null = null) => signals.send({ type: 'locks', macs }) };
  const currentStore = withCurrentStates(watchDevices(store, directory, closedLocks, others), locks);
  return { directory, closedLocks, currentStore };
}

/** Starts the recorded clocks, and returns them with the clocks that the parts use: the same ones, except in tests. */
async function startClocks(options: GatewayOptions, { store, started, stampBy }: GatewayBase) {
  const clocks = await RecordedClocks.start({ store, speed: options.speed ?? 1, machine: options.machine });
  const { runClock: clock = clocks.run, wallClock = clocks.wall } = options;
  stampBy(clock);
  started.push(stopStep('the run’s clock', () => clocks.stop()));
  return { clocks, clock, wallClock };
}

/** Starts counting usage. It stops after the last connection has closed, so that it counts all of its bytes. */
async function startUsage({ store, events, started }: GatewayBase, months: Clock, runClock: Clock): Promise<Usage> {
  const usage = await Usage.start({ store, clock: months, runClock, events });
  started.push(stopStep('the counting of usage', () => usage.stop()));
  return usage;
}

/** Opens the token in the data folder, and the operators' named tokens. */
function openTokens({ data }: Config, store: Store, clock: Clock) {
  return { token: OperatorToken.open(data, systemClock), operatorTokens: new OperatorTokens({ store, clock }) };
}

/** Reads the TLS files again and notes this in the audit log. @throws LockgateError `tls-file` */
function reloadTls(broker: Broker, audit: Audit): TlsIdentity {
  const identity = broker.reloadTls();
  const { validTo, fingerprint } = identity;
  audit.note('tls.reload', '', { valid_to: validTo, fingerprint }, OWNER);
  return identity;
}

/** Starts serving merchants' calls. `clock` is the run's clock. */
function serveMerchants(
  parts: Omit<Parameters<typeof startMerchants>[0], 'ownData' | 'tester' | 'runClock'> &
    Parameters<typeof makeOwnData>[0] & { readonly wallClock: Clock },
  interfaces: Parameters<typeof startMerchants>[1],
): MerchantParts {
  const { wallClock, clock: runClock, webhooks } = parts;
  const ownData = makeOwnData(parts);
  return startMerchants({ ...parts, clock: wallClock, runClock, ownData, tester: webhooks.tester }, interfaces);
}

/** What must happen after each commit: readers of the log are woken, that is, URL workers and calls that wait. */
function wakeReaders(
  dispatcher: Dispatcher,
  { ownership: { signals } }: Store,
  events: GatewayEvents,
  started: StopStep[],
): { readonly newEvents: NewEventSignal } & Pick<IngestParts, 'onStored' | 'onMerchantEvents'> {
  const newEvents = new NewEventSignal(systemClock);
  // Stops before the merchants' interface, whose stop waits for its calls.
  started.push(stopStep('the waits for events', async () => newEvents.stop()));
  const onStored: IngestParts['onStored'] = (ids, uplinks) => {
    dispatcher.wake(ids, uplinks);
    newEvents.wake(ids);
    if (ids.size > 0) signals.send({ type: 'events', merchantIds: [...ids] });
  };
  // The end of a command is an event for its merchant, and may be stored without a commit of uplinks.
  events.on('command', ({ record }) => {
    if (record.finishedAtMs === null) return;
    dispatcher.wake(new Set([record.merchantId]), 0);
    signals.send({ type: 'events', merchantIds: [record.merchantId] });
  });
  const onMerchantEvents = (): void => {
    dispatcher.wakeAll();
    signals.send({ type: 'events', merchantIds: null });
  };
  return { newEvents, onStored, onMerchantEvents };
}

/** Starts the audit log: before the parts that write to it, and so it stops after them. */
async function startAudit({ store, events, now, started }: GatewayBase, clock: Clock): Promise<Audit> {
  const audit = await Audit.start({ store, events, clock, now });
  started.push(stopStep('the audit log', () => audit.stop()));
  return audit;
}

/** The functions from which metrics read their values. */
function metricSources(parts: {
  readonly broker: Broker;
  readonly ingest: Ingest;
  readonly dispatcher: Dispatcher;
  readonly locks: Locks;
  readonly notices: Notices;
  readonly budgets: UplinkBudgets;
  readonly closedLocks: ClosedLocks;
  readonly doubt: ClockDoubt;
  readonly figures: Figures;
}): MetricSources {
  return {
    connections: () => [...parts.broker.sessions.all()].map(({ sender }) => sender.source),
    ingestWaiting: () => parts.ingest.waiting,
    figures: () => parts.figures.read(),
    isCircuitOpen: (urlId) => parts.dispatcher.isCircuitOpen(urlId),
    certificateEndMs: () => parts.broker.certificateEndMs,
    noticesUnread: () => parts.notices.unread(),
    locksOverBudget: () => parts.budgets.countOver(),
    presences: () => [...parts.closedLocks.openOnly(parts.locks.all())].map(({ presence }) => presence.presence),
    clockAheadMs: () => parts.doubt.aheadMs,
    locksUnjudged: () => [...parts.locks.unjudged()].length,
  };
}

/** Emits events in the next turn of the event loop, so that the caller of {@link startGateway} can listen first. */
function reportRebuilt(events: GatewayEvents, rebuilt: readonly StateRebuilt[]): void {
  afterThisTurn(() => {
    for (const each of rebuilt) events.emit('state-rebuilt', each);
  });
}

/**
 * Starts and stops the gateway: the only place, with `start/`, that builds the parts and connects them.
 *
 * The parts start from the store outwards, so that nothing can come in before it can be stored. They stop from the
 * outside inwards: no new connections, what was taken is stored and answered, deliveries under way end, the store
 * closes. The two HTTP interfaces report how that goes, so they start early and stop late.
 */
import { afterThisTurn, type Clock, systemClock } from '../proto/clock.js';
import type { Accounts } from './accounts/accounts.js';
import type { MerchantParts } from './accounts/merchant-parts.js';
import { Audit } from './audit/audit.js';
import { clockListener } from './clocks/clock-listener.js';
import { type ClockDoubt, KeptClocks } from './clocks/kept-clocks.js';
import type { Commands } from './commands/commands.js';
import type { Config } from './config.js';
import { OWNER } from './data-folder/data-folder.js';
import { openSecrets } from './data-folder/secrets.js';
import { GatewayEvents, type StateRebuilt } from './events.js';
import { stopAll, stopStep } from './graceful-stop.js';
import { Health } from './health/health.js';
import { StoreWatch } from './health/store.js';
import { OperatorToken } from './http/operator/token.js';
import type { Ingest, IngestParts } from './ingest/ingest.js';
import { withCurrentStates } from './locks/current-states.js';
import type { Locks } from './locks/locks.js';
import type { Figures } from './metrics/figures.js';
import { type MetricSources, Metrics } from './metrics/metrics.js';
import type { Broker } from './mqtt/broker.js';
import type { UplinkBudgets } from './mqtt/budget/uplink-budgets.js';
import type { TlsIdentity } from './mqtt/tls-identity.js';
import { DescriptorWatch } from './network/descriptor-watch.js';
import { Descriptors } from './network/descriptors.js';
import { Notices } from './notices/notices.js';
import { makeWebhooks, startDeliveries, startFigures } from './start/deliveries.js';
import type { GatewayOptions, Ground } from './start/ground.js';
import { startInterfaces, startMerchants, startOperator } from './start/interfaces.js';
import { makeBudgets, startIdentity, startIngest, startRefusals } from './start/lock-side.js';
import type { Store } from './store/contract/store.js';
import { openStore, sqliteUrl } from './store/open-store.js';
import { Usage } from './usage/usage.js';
import type { Dispatcher } from './webhooks/dispatcher.js';
import type { Webhooks } from './webhooks/webhooks.js';

export type { GatewayOptions } from './start/ground.js';

/** A running gateway. */
export interface Gateway {
  readonly events: GatewayEvents;
  readonly accounts: Accounts;
  readonly commands: Commands;
  readonly webhooks: Webhooks;
  /** What merchants' HTTP calls work on. */
  readonly merchants: MerchantParts;
  /** The notices for operators. */
  readonly notices: Notices;
  readonly store: Store;
  readonly usage: Usage;
  /** The run's clock. */
  readonly clock: Clock;
  /** The gateway's clocks, and how the machine's clock compares to them. */
  readonly clocks: KeptClocks;
  readonly mqttPort: number;
  /** Undefined where no certificate is set. */
  readonly mqttTlsPort: number | undefined;
  readonly httpPort: number;
  readonly operatorPort: number;
  readonly operatorToken: string;
  /**
   * Reads certificate and key again, for new connections. Existing connections stay open.
   *
   * @throws LockgateError `tls-file` where they are wrong (the old ones stay in force) or none are set
   */
  reloadTls(): TlsIdentity;
  /**
   * Stops it without losing anything that was acknowledged. Resolves when everything is closed. May be called again.
   *
   * @throws LockgateError `stop-hung` where a part does not stop in time: then the process must be ended
   */
  close(): Promise<void>;
}

/**
 * Starts a gateway on a data folder, creating what is missing.
 *
 * @throws LockgateError where a setting, the folder or a port is wrong
 * @throws StoreFailure where the store can't be read or written
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const events = options.events ?? new GatewayEvents();
  const opened = await openStore(sqliteUrl(config.data), {
    logThread: options.logThread ?? true,
    figuresThread: options.figuresThread ?? true,
    makeNew: options.makeNew,
    onModesCorrected: (what) => events.emit('files-mended', { atMs: systemClock.now(), what }),
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
    health.stopping();
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
  // It stops after the last connection has closed, so that it counts that too.
  const usage = await Usage.start({ store, clock: options.usageClock ?? clocks.wall, runClock: clock, events });
  started.push(stopStep('the counting of usage', () => usage.stop()));
  const delivering = { store, keys, events, runClock: clock };
  const { dispatcher, webhooks } = makeWebhooks(config, options, clocks.wall, delivering);
  await startDeliveries(dispatcher, webhooks, started);
  const isStoreFailing = (): boolean => health.isStoreFailing;
  const figures = startFigures(options, delivering, dispatcher, isStoreFailing, started);

  // Commands are sent by the broker, which starts after ingest.
  const outlet: { broker?: Broker } = {};
  const onStored: IngestParts['onStored'] = (ids, uplinks) => dispatcher.wake(ids, uplinks);
  const { lastRanMs, doubt } = clocks;
  const { ingest, locks, commands, rebuilt } = await startIngest(
    { store, clock, wallClock, lastRanMs, doubt, events, isStoreFailing, onStored },
    (deviceId) => outlet.broker?.sessions.ofLock(deviceId),
    started,
    options.judging,
  );
  notices.reconcile({ locks: () => locks.all(), urls: await store.listWebhookUrls() });
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
  health.started();
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

/** The clocks that the store records, and those that the parts use: the same, except in tests. */
async function startClocks(options: GatewayOptions, { store, started, stampBy }: Ground) {
  const clocks = await KeptClocks.start({ store, speed: options.speed ?? 1, machine: options.machine });
  const { runClock: clock = clocks.run, wallClock = clocks.wall } = options;
  stampBy(clock);
  started.push(stopStep('the run’s clock', () => clocks.stop()));
  return { clocks, clock, wallClock };
}

/** On a signal to the process. A wrong certificate changes nothing and is logged. */
function reloadTls(broker: Broker, audit: Audit): TlsIdentity {
  const identity = broker.reloadTls();
  const { validTo, fingerprint } = identity;
  audit.note('tls.reload', '', { valid_to: validTo, fingerprint }, OWNER);
  return identity;
}

/** The audit log stops after everything that could write to it. */
async function startAudit({ store, events, now, started }: Ground, clock: Clock): Promise<Audit> {
  const audit = await Audit.start({ store, events, clock, now });
  started.push(stopStep('the audit log', () => audit.stop()));
  return audit;
}

/** The notices stop after everything that could add one. */
async function startNotices({ store, events, health, now, started }: Ground, clock: Clock): Promise<Notices> {
  const notices = await Notices.start({ store, events, clock, now, isStoreFailing: () => health.isStoreFailing });
  started.push(stopStep('the notices', () => notices.stop()));
  return notices;
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

/** Emitted in the next turn, so that the caller of {@link startGateway} can listen first. */
function reportRebuilt(events: GatewayEvents, rebuilt: readonly StateRebuilt[]): void {
  afterThisTurn(() => {
    for (const each of rebuilt) events.emit('state-rebuilt', each);
  });
}

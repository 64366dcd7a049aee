/**
 * Builds and starts the parts that serve locks: ingest, commands, the broker, accounts, retention. Only gateway.ts may
 * import this file.
 */
import { type Clock, RunClock, systemClock } from '../../proto/clock.js';
import { Accounts } from '../accounts/accounts.js';
import { Commands, type CommandsParts } from '../commands/commands.js';
import type { Config } from '../config.js';
import type { Keys } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import { loadRequestChecks } from '../http/operator/check-request.js';
import { Ingest, type IngestParts } from '../ingest/ingest.js';
import type { VersionedJudge } from '../ingest/judging.js';
import type { StateRebuilt } from '../lock-events.js';
import { type ListeningParts, startListening, stopListening } from '../locks/listening.js';
import { type KnownLock, Locks } from '../locks/locks.js';
import { Broker } from '../mqtt/broker.js';
import { budgetWatcher } from '../mqtt/budget/budget-events.js';
import { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import { GUARD_LIMITS, type GuardLimits } from '../mqtt/connection-guard.js';
import { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import { type Session, Sessions } from '../mqtt/sessions.js';
import type { DescriptorWatch } from '../network/descriptor-watch.js';
import { TrustedProxies } from '../network/trusted-proxies.js';
import type { Notices } from '../notices/notices.js';
import { Leftovers } from '../ownership/leftovers.js';
import { LockOwner } from '../ownership/lock-owner.js';
import { SignalRelay, type SignalRelayParts } from '../ownership/signal-relay.js';
import { Retention } from '../retention.js';
import type { Store } from '../store/contract/store.js';
import type { Usage } from '../usage/usage.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';
import type { NewEventSignal } from '../webhooks/new-event-signal.js';
import type { GatewayBase, GatewayOptions } from './gateway-base.js';

/** What the broker and the accounts use. */
interface LockServiceParts {
  readonly store: Store;
  readonly keys: Keys;
  readonly events: GatewayEvents;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly ingest: Ingest;
  readonly locks: Locks;
  readonly commands: Commands;
  readonly usage: Usage;
  readonly notices: Notices;
  /** Wakes calls that wait for events. */
  readonly newEvents: NewEventSignal;
  /** The caches of locks' data that another gateway's signals make read again. */
  readonly caches: SignalRelayParts['caches'];
  readonly budgets: UplinkBudgets;
  readonly refusals: RefusalRecorder;
  readonly dispatcher: Dispatcher;
  readonly canStore: () => Promise<boolean>;
  readonly descriptorWatch: DescriptorWatch;
}

/** Starts ingest, with a start event for each known lock, and the commands. */
export async function startIngest(
  parts: Omit<IngestParts & ListeningParts, 'locks' | 'ingest' | 'commands'> &
    Pick<CommandsParts, 'wallClock' | 'doubt'>,
  sessionOf: (deviceId: number) => Session | undefined,
  started: StopStep[],
  judging: VersionedJudge | undefined,
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
  const { isSole: ownsAll } = store.ownership.locks;
  const rebuilt = await startListening({ locks, ingest, clock, lastRanMs, ownsAll });
  const stop = (): Promise<void> => stopListening({ locks, ingest, clock });
  started.push(stopStep('the storing of received pings', stop));
  if (ownsAll) await commands.load();
  started.push(stopStep('the commands', () => commands.stop()));
  return { ingest, locks, commands, rebuilt };
}

/** Starts retention and the broker, and builds the accounts. */
export async function startIdentity(
  config: Config,
  options: GatewayOptions,
  parts: LockServiceParts,
  started: StopStep[],
): Promise<{ broker: Broker; accounts: Accounts }> {
  const { store, events, clock, wallClock, commands, dispatcher, descriptorWatch } = parts;
  const retention = new Retention({ store, events, keepDays: config.keepDays, clock: wallClock, runClock: clock });
  retention.start();
  started.push(stopStep('the deletion of old data', () => retention.stop()));
  // Once all locks are connected, no descriptor may be left for loading files.
  if (descriptorWatch.expectLocks(await store.countDevices())) await loadRequestChecks();
  const sessions = new Sessions();
  const { locks, ingest, notices } = parts;
  const ownership = store.ownership.locks;
  const owner = new LockOwner({
    store,
    ownership,
    locks,
    ingest,
    commands,
    sessions,
    notices,
    events,
    clock,
    timers: systemClock,
  });
  const proxies = new TrustedProxies(config.mqttProxies);
  const broker = await Broker.start({
    ...parts,
    sessions,
    owner: ownership.isSole ? undefined : owner,
    host: config.mqttHost,
    port: config.mqttPort,
    tls: config.mqttTls && { host: config.mqttTlsHost, port: config.mqttTlsPort, files: config.mqttTls },
    isProxy: (address) => proxies.trusts(address),
    limits: guardLimits(config, options, descriptorWatch),
    roomFor: (raw) => descriptorWatch.roomFor('lock', raw),
    guardClock: options.guardClock,
    onSubscribed: (session) => commands.subscribed(session),
  });
  // Started last and stopped first, so that no command is sent while other parts stop.
  started.push(
    stopStep('the MQTT listener', async () => {
      await commands.stop();
      await broker.close();
    }),
  );
  owner.start();
  started.push(stopStep('the ownership of locks', () => owner.stop()));
  const relay = new SignalRelay({ ...parts, sessions, ownership: store.ownership, timers: systemClock });
  relay.start();
  started.push(stopStep('the signals of other gateways', () => relay.stop()));
  const leftovers = new Leftovers({ store, ownership: store.ownership, notices, events, clock, timers: systemClock });
  leftovers.start();
  started.push(stopStep('the leftovers of other gateways', () => leftovers.stop()));
  const accounts = new Accounts({
    ...parts,
    clock: wallClock,
    runClock: clock,
    sessions: broker.sessions,
    owner: ownership.isSole ? undefined : owner,
    onWebhookUrl: (url) => dispatcher.add(url),
  });
  return { broker, accounts };
}

/** Starts the recording of refusals; it stops after the last connection has closed. */
export function startRefusals({ store, events, health, started }: GatewayBase, clock: Clock): RefusalRecorder {
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

/** The uplink budgets of locks. They refill in real time at the run's speed; no change of a clock affects them. */
export function makeBudgets(
  config: Config,
  options: GatewayOptions,
  events: GatewayEvents,
  clock: Clock,
): UplinkBudgets {
  const limits = {
    uplinksPerSecond: config.lockUplinksPerSecond,
    burstUplinks: config.lockUplinkBurst,
    uplinksPerDay: config.lockUplinksPerDay,
  };
  // Budgets use only differences of times, so their clock may start at 0.
  const budgetClock = options.budgetClock ?? new RunClock(0, options.speed ?? 1);
  return new UplinkBudgets({ limits, clock: budgetClock, watcher: budgetWatcher(events, clock, limits) });
}

/** The limits of MQTT connections. Silent ones may use at most half of the descriptors for locks. */
export function guardLimits(
  config: Config,
  options: GatewayOptions,
  { descriptors }: DescriptorWatch,
): Partial<GuardLimits> {
  const silentPerAddress = Math.min(GUARD_LIMITS.silentPerAddress, Math.ceil(descriptors.forLocks / 2));
  return { perAddress: config.mqttPerAddress, silentPerAddress, ...options.guardLimits };
}

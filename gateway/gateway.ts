/**
 * The gateway: the only place that builds the parts and knows how they hang together.
 *
 * They start from the store outwards, so that nothing can come in before it can be kept, and stop from the outside
 * inwards: no new connections, what was taken is stored and answered, what is being delivered ends, the store closes.
 */
import { afterThisTurn, type Clock, Seconds, systemClock } from '../proto/clock.js';
import { Accounts } from './accounts.js';
import { Broker } from './broker.js';
import type { Config } from './config.js';
import { GatewayEvents, type StateRebuilt } from './events.js';
import { Ingest, type IngestParts } from './ingest.js';
import { openKeys } from './keys.js';
import { beginListening, endListening, type ListeningParts } from './listening.js';
import { Locks } from './locks.js';
import { OperatorServer } from './operator/server.js';
import { openOperatorToken } from './operator/token.js';
import { startRunClock } from './run-clock.js';
import { openSqliteStore } from './store/sqlite-store.js';
import type { Store } from './store/store.js';
import { VERSION } from './version.js';
import { Dispatcher } from './webhooks/dispatcher.js';
import { makeGuardedAgents } from './webhooks/guarded-agents.js';

/** How long deliveries under way may go on when the gateway stops. */
const DELIVERY_GRACE = Seconds(3);

export interface GatewayOptions {
  /** How fast the run's clock goes, 1 for real life (protocol.md §3, Sped-up runs). */
  readonly speed?: number;
  /** Chance for the jitter of retries, in [0, 1). */
  readonly random?: () => number;
  /** The clock that deliveries live by: the wall's, but in tests. */
  readonly deliveryClock?: Clock;
  /** Stands between the gateway and its store, for tests that break it on purpose. */
  readonly wrapStore?: (store: Store) => Store;
}

export interface Gateway {
  readonly events: GatewayEvents;
  readonly accounts: Accounts;
  readonly store: Store;
  /** The run's clock. */
  readonly clock: Clock;
  readonly mqttPort: number;
  readonly operatorPort: number;
  readonly operatorToken: string;
  /** Stops it: nothing that was acknowledged is lost. Resolves when everything is closed. May be called again. */
  close(): Promise<void>;
}

/**
 * Starts a gateway on a data folder, making what isn't there.
 *
 * @throws LockgateError where a setting, the folder or a port does not allow it
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const opened = await openSqliteStore(config.data);
  const store = options.wrapStore?.(opened) ?? opened;
  const started: (() => Promise<void>)[] = [() => store.close()];
  const stopAll = async (): Promise<void> => {
    for (const each of started.reverse()) await each();
  };
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= stopAll();
    return stopped;
  };
  try {
    return await startParts(config, options, store, started, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(
  config: Config,
  options: GatewayOptions,
  store: Store,
  started: (() => Promise<void>)[],
  stop: () => Promise<void>,
): Promise<Gateway> {
  const keys = openKeys(config.data);
  const events = new GatewayEvents();
  const { clock, lastRanMs, stop: stopClock } = await startRunClock(store, options.speed ?? 1);
  started.push(stopClock);
  const dispatcher = new Dispatcher({
    store,
    keys,
    events,
    agents: makeGuardedAgents(config.allowWebhookRange),
    clock: options.deliveryClock ?? systemClock,
    runClock: clock,
    userAgent: `lockgate/${VERSION}`,
    random: options.random ?? cryptoRandom,
  });
  const accounts = new Accounts({ store, keys, clock: systemClock, onWebhookUrl: (url) => dispatcher.add(url) });
  await dispatcher.start();
  started.push(() => dispatcher.stop(DELIVERY_GRACE));
  const { ingest, locks, rebuilt } = await startIngest(
    { store, clock, lastRanMs, events, onStored: (ids) => dispatcher.wake(ids) },
    started,
  );
  const broker = await Broker.start({
    host: config.mqttHost,
    port: config.mqttPort,
    store,
    keys,
    ingest,
    events,
    clock,
  });
  started.push(() => broker.close());

  const operatorToken = openOperatorToken(config.data);
  const operator = await OperatorServer.start({
    host: config.operatorHost,
    port: config.operatorPort,
    token: operatorToken,
    events,
    store,
    accounts,
    clock,
    ingest,
    locks,
    status: () => ({
      version: VERSION,
      store: store.description,
      mqtt: { host: config.mqttHost, port: broker.port, connected: broker.connected },
      run_clock: new Date(clock.now()).toISOString(),
    }),
  });
  started.push(() => operator.close());
  tellOfRebuilt(events, rebuilt);
  return {
    events,
    accounts,
    store,
    clock,
    mqttPort: broker.port,
    operatorPort: operator.port,
    operatorToken,
    close: stop,
  };
}

/** The locks that the store knows hear that the gateway listens, and when it does no longer. */
async function startIngest(
  parts: Omit<IngestParts & ListeningParts, 'locks' | 'ingest'>,
  started: (() => Promise<void>)[],
): Promise<{ ingest: Ingest; locks: Locks; rebuilt: readonly StateRebuilt[] }> {
  const { store, clock, lastRanMs } = parts;
  const locks = new Locks(store, clock, (due) => {
    for (const { deviceId, mac } of due) ingest.happen(deviceId, mac, { type: 'tick', atMs: clock.now() });
  });
  const ingest = new Ingest({ ...parts, locks });
  const rebuilt = await beginListening({ locks, ingest, clock, lastRanMs });
  started.push(() => endListening({ locks, ingest, clock }));
  return { ingest, locks, rebuilt };
}

/** Whoever started the gateway shall hear of it too, and has no ear for events before it has the gateway. */
function tellOfRebuilt(events: GatewayEvents, rebuilt: readonly StateRebuilt[]): void {
  afterThisTurn(() => {
    for (const each of rebuilt) events.emit('state-rebuilt', each);
  });
}

/** Chance from the system: 32 bits in [0, 1). */
function cryptoRandom(): number {
  return (globalThis.crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;
}

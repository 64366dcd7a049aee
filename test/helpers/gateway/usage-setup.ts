/**
 * Only those parts of a gateway that receive pings and count usage, which merchants are billed for. They are connected
 * as in gateway.ts, with real sockets, with and without TLS, and with a manual clock for months.
 */

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { Accounts } from '../../../gateway/accounts/accounts.js';
import type { GatewayEvents } from '../../../gateway/events.js';
import type { Broker } from '../../../gateway/mqtt/broker.js';
import { Listener } from '../../../gateway/mqtt/listener.js';
import { ProxiedConnections } from '../../../gateway/mqtt/proxied-connections.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { Usage } from '../../../gateway/usage/usage.js';
import { ManualClock, systemClock } from '../../../proto/clock.js';
import { startBrokerParts } from '../mqtt/broker-parts.js';
import { memoryFolder, type Teardown } from '../store/temp-folder.js';
import { MERCHANT } from './test-gateway.js';

/** Ten seconds before a month ends, in the far future, so that every wall-clock time is earlier. */
export const BEFORE_MONTH_END_MS = Date.UTC(2099, 10, 30, 23, 59, 50);

/** The parts, and what tests do with them. */
export interface UsageSetup {
  readonly store: Store;
  readonly accounts: Accounts;
  readonly usage: Usage;
  readonly broker: Broker;
  readonly events: GatewayEvents;
  /** The clock of months and bills. */
  readonly clock: ManualClock;
  /** The raw sockets of connections to the ports of {@link openPort}, in order. */
  readonly sockets: Socket[];
  /** Resolves when all these sockets are closed: their bytes are counted by then. */
  waitForSocketsClosed(): Promise<void>;
  /** Opens another port for the broker's connections. Returns the port. */
  openPort(how: 'tcp' | 'tls'): Promise<number>;
  /** Stops all parts; may be called again. */
  close(): Promise<void>;
}

/** `data` may be a folder with data; `wrapStore` may replace methods of the store. */
export interface UsageSetupOptions {
  readonly data?: string;
  readonly clock?: ManualClock;
  readonly wrapStore?: (store: Store) => Store;
}

/** Starts the parts, with a merchant if the folder is new. */
export async function setUpUsage(test: Teardown, options: UsageSetupOptions = {}): Promise<UsageSetup> {
  const clock = options.clock ?? new ManualClock(BEFORE_MONTH_END_MS);
  const parts = await startBrokerParts({
    data: options.data ?? memoryFolder(test),
    usageClock: clock,
    ...(options.wrapStore !== undefined && { wrapStore: options.wrapStore }),
  });
  const { store, keys, events, usage, locks, ingest, broker } = parts;
  const accounts = new Accounts({
    store,
    keys,
    clock: systemClock,
    runClock: systemClock,
    sessions: broker.sessions,
    ingest,
    locks,
    dispatcher: {
      forgetLock: async () => undefined,
      flushOutcomes: async () => undefined,
      reload: async () => undefined,
    },
    commands: { cancelled: () => undefined },
    refusals: { writeWaiting: async () => undefined, forget: async () => undefined },
    onWebhookUrl: () => undefined,
  });
  // A folder with data has its merchant already.
  if ((await store.listMerchants()).length === 0) await accounts.addMerchant(MERCHANT);
  const sockets: Socket[] = [];
  const closeListeners: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    const listenersClosed = closeListeners.map((closeListener) => closeListener());
    await parts.stop();
    await Promise.all(listenersClosed);
  };
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= closeAll());
  test.teardown(close);
  const openPort = async (how: 'tcp' | 'tls'): Promise<number> => {
    const { port, closeListener } = await listen(broker, sockets, how === 'tls' ? await certificate() : undefined);
    closeListeners.push(closeListener);
    return port;
  };
  const waitForSocketsClosed = async (): Promise<void> => {
    for (const socket of sockets) if (!socket.closed) await once(socket, 'close');
  };
  return { store, accounts, usage, broker, events, clock, sockets, waitForSocketsClosed, openPort, close };
}

/** A certificate and its private key, PEM. */
interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** Makes a self-signed certificate. */
async function certificate(): Promise<Certificate> {
  const { generate } = await import('selfsigned');
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
  });
  return { key, cert };
}

/**
 * Accepts connections for the broker, with TLS if there is a certificate. Adds each connection's socket to `sockets`.
 */
async function listen(
  broker: Broker,
  sockets: Socket[],
  tls: Certificate | undefined,
): Promise<{ port: number; closeListener: () => Promise<unknown> }> {
  const context = tls && createSecureContext(tls);
  const listener = await Listener.start({
    host: '127.0.0.1',
    port: 0,
    proxied: new ProxiedConnections({ trusts: () => false, clock: systemClock, onRefused: () => undefined }),
    ...(context !== undefined && { tls: () => context }),
    onConnection: (connection) => {
      sockets.push(connection.raw);
      broker.take(connection);
    },
  });
  return { port: listener.port, closeListener: () => listener.close() };
}

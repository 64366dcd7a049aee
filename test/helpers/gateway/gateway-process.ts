/**
 * The program of a gateway in a separate process, for tests that kill it. It takes one argument,
 * {@link GatewayProcessOptions} as JSON, prints a {@link GatewayReady} as JSON when it is ready, and exits after
 * SIGTERM when everything is closed. If something is left open, the process does not exit, and the test that waits for
 * its exit fails. After SIGUSR2 it collects garbage and prints a line `memory {…}`.
 */
import { closeGateway, exitBroken } from '../../../cli/commands/serve/gateway-end.js';
import { type GatewayOptions, startGateway } from '../../../gateway/gateway.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { RunSize } from '../../../gateway/store/contract/store-options.js';
import type { UsageDelta } from '../../../gateway/store/contract/usage-store.js';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { collectGarbage } from '../collect-garbage.js';
import { SABOTAGES, type SabotageName, withOverrides } from '../durability/sabotage.js';
import { isSqlSabotage, sabotageSql } from '../durability/sql-sabotage.js';
import { FAULTS, type StoreFault } from '../store/store-faults.js';

/** What the process is started with. */
export interface GatewayProcessOptions {
  readonly data: string;
  /** The database with the store; SQLite in the data folder if undefined. */
  readonly store?: string | undefined;
  /** Whether other gateways may use the database at the same time. */
  readonly isShared?: boolean | undefined;
  readonly mqttPort: number;
  readonly operatorPort: number;
  /** Makes the gateway lose or repeat something on purpose, so that a test shows that it would notice. */
  readonly sabotage?: SabotageName | undefined;
  /** A fault of the store, which starts when the test calls `beginFault` of store-faults.ts. */
  readonly fault?: StoreFault | undefined;
  /** How fast the gateway's clock runs; 1, real time, if undefined. */
  readonly speed?: number | undefined;
  /** Where notices are sent; nowhere if undefined. */
  readonly notifyUrl?: string | undefined;
  /** Prints a line `usage […]` for each commit of counted usage when it is on disk. */
  readonly printsUsage?: boolean | undefined;
  /** After how many uplinks the store sorts them into its indexes; by default the gateway's numbers. */
  readonly runSize?: RunSize | undefined;
}

/** What the process prints when it is ready. */
export interface GatewayReady {
  readonly mqttPort: number;
  readonly operatorPort: number;
  readonly httpPort: number;
  readonly operatorToken: string;
}

/** The store's wrapper that the options ask for; at most one of the three. */
function storeWrapper(
  sabotage: SabotageName | undefined,
  fault: StoreFault | undefined,
  printsUsage: boolean | undefined,
  data: string,
): Pick<GatewayOptions, 'wrapStore'> {
  if (printsUsage) return { wrapStore: printingUsage };
  if (sabotage !== undefined && !isSqlSabotage(sabotage)) return { wrapStore: SABOTAGES[sabotage] };
  return fault === undefined ? {} : { wrapStore: (store) => FAULTS[fault](store, data) };
}

/** A store that prints the counted usage after each commit of it. */
function printingUsage(store: Store): Store {
  const { usage } = store;
  const add = async (deltas: readonly UsageDelta[], nowMs: number): Promise<void> => {
    await usage.add(deltas, nowMs);
    process.stdout.write(`usage ${JSON.stringify(deltas)}\n`);
  };
  return withOverrides(store, { usage: withOverrides(usage, { add }) });
}

function memoryAfterCollection(): NodeJS.MemoryUsage {
  collectGarbage();
  return process.memoryUsage();
}

/** Starts a gateway with the options in the process's argument, prints its ports as JSON, and stops it at SIGTERM. */
async function main(): Promise<void> {
  // The process must not outlive the test, which holds the other end of stdin.
  process.stdin.on('end', () => process.exit(1)).resume();
  // Waiting for stdin must not prevent the exit after SIGTERM.
  (process.stdin as NodeJS.ReadStream & { unref?: () => void }).unref?.();
  const options = JSON.parse(process.argv[2] ?? '') as GatewayProcessOptions;
  const { sabotage, fault, printsUsage, runSize, speed = 1, notifyUrl = null, isShared, ...locations } = options;
  if (isSqlSabotage(sabotage)) await sabotageSql(sabotage, options.store ?? '');
  // In these settings 0 means any free port, any number, or for ever.
  const gateway = await startGateway(
    {
      ...locations,
      keyFile: null,
      mqttHost: '127.0.0.1',
      mqttTlsHost: '127.0.0.1',
      mqttTlsPort: 0,
      mqttTls: null,
      mqttPerAddress: 0,
      lockUplinksPerSecond: 200,
      lockUplinkBurst: 2000,
      lockUplinksPerDay: 200_000,
      httpPerAddress: 0,
      mqttProxies: [],
      trustedProxies: [],
      httpHost: '127.0.0.1',
      httpPort: 0,
      httpCorsOrigin: [],
      consoleHosts: [],
      mapTiles: null,
      mapStreets: null,
      operatorHost: '127.0.0.1',
      logFormat: 'json',
      logLevel: 'info',
      allowWebhookRange: [parseRange('127.0.0.0/8')],
      notifyUrl,
      keepDays: 0,
    },
    { ...storeWrapper(sabotage, fault, printsUsage, locations.data), speed, runSize, isShared, onBroken: exitBroken },
  );
  gateway.events.on('store-failed', ({ why }) => process.stderr.write(`store failed: ${why}\n`));
  gateway.events.on('store-broken', ({ why }) => process.stderr.write(`store broken: ${why}\n`));
  process.on('SIGUSR2', () => process.stdout.write(`memory ${JSON.stringify(memoryAfterCollection())}\n`));
  process.once('SIGTERM', () => void closeGateway(gateway, (why) => process.stderr.write(`${why}\n`)));
  const { mqttPort, operatorPort, httpPort, operatorToken } = gateway;
  const ready: GatewayReady = { mqttPort, operatorPort, httpPort, operatorToken };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
}

// Without await, because its bundle is a CommonJS file.
void main();

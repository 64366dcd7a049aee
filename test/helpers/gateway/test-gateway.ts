/**
 * A real gateway on free ports and a new data folder, with a merchant, for tests in one process.
 */
import type { Config } from '../../../gateway/config.js';
import type { GatewayEventMap } from '../../../gateway/events.js';
import { type Gateway, type GatewayOptions, startGateway } from '../../../gateway/gateway.js';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, type Ping, type Uplink } from '../../../proto/wire/ping.js';
import { makeStore } from '../store/new-store.js';
import { memoryFolder, type Teardown } from '../store/temp-folder.js';

/** The merchant of {@link testGateway}. */
export const MERCHANT = 'Amber';

/**
 * The settings of a gateway for tests: free ports, loopback allowed for webhooks. 0 means any free port, any number, or
 * for ever.
 */
export function testConfig(data: string): Config {
  return {
    data,
    keyFile: null,
    mqttHost: '127.0.0.1',
    mqttTlsHost: '127.0.0.1',
    mqttPort: 0,
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
    operatorPort: 0,
    logFormat: 'json',
    logLevel: 'info',
    allowWebhookRange: [parseRange('127.0.0.0/8')],
    notifyUrl: null,
    keepDays: 0,
  };
}

/** Without threads the store works in the test's thread. Starting three threads for each gateway costs CPU time. */
export const NO_THREADS: GatewayOptions = {
  logThread: false,
  figuresThread: false,
  scanThread: false,
  socketCopies: false,
};

/** Starts a gateway that is closed after the test; closing it earlier is fine. */
export async function testGateway(
  test: Teardown,
  options: GatewayOptions = {},
  settings: Partial<Config> = {},
): Promise<Gateway> {
  const gateway = await openGateway(test, memoryFolder(test), options, settings);
  await gateway.accounts.addMerchant(MERCHANT);
  return gateway;
}

/** Starts a gateway on a folder that may hold data already. */
export async function openGateway(
  test: Teardown,
  data: string,
  options: GatewayOptions = {},
  settings: Partial<Config> = {},
): Promise<Gateway> {
  await makeStore(data);
  const gateway = await startGateway({ ...testConfig(data), ...settings }, { ...NO_THREADS, ...options });
  let closed: Promise<void> | undefined;
  const gatewayClosedOnce: Gateway = { ...gateway, close: () => (closed ??= gateway.close()) };
  test.teardown(() => gatewayClosedOnce.close());
  return gatewayClosedOnce;
}

/** A MAC for a test, different for each number. */
export function testMac(number = 1): Mac {
  const mac = parseMac((0xa4c138000000 + number).toString(16));
  if (!mac.ok) throw new Error(mac.error.message);
  return mac.value;
}

/** The ping of {@link testUplink}. */
const CELLULAR: Ping = {
  kind: 'cellular',
  reason: 'REASON_STATE_PING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

/** The time of an uplink with sequence number 1, ms since the epoch. */
const FIRST_UPLINK_MS = Date.UTC(2025, 10, 20, 6, 0, 1);

/** A valid uplink (a lock's message), with some members replaced. Each is made a second after the previous one. */
export function testUplink(sequence: number, members: Partial<Uplink> = {}): Uplink {
  return {
    boot: 1,
    sequence,
    timeMs: FIRST_UPLINK_MS + (sequence - 1) * 1000,
    power: DEFAULT_POWER,
    kept: 0,
    dropped: 0,
    body: CELLULAR,
    ...members,
  };
}

/** The bytes of a test uplink. */
export function testBytes(sequence: number, members: Partial<Uplink> = {}): Buffer {
  return Buffer.from(encodeUplink(testUplink(sequence, members)));
}

/** Resolves when the gateway has emitted `count` events of this name for which `matches` returns true. */
export function waitForEvents<Name extends keyof GatewayEventMap>(
  gateway: Gateway,
  name: Name,
  count: number,
  matches: (event: GatewayEventMap[Name][0]) => boolean = () => true,
): Promise<GatewayEventMap[Name][0][]> {
  return new Promise((resolve) => {
    const seen: GatewayEventMap[Name][0][] = [];
    // For a name that is not known yet, TypeScript can't match the listener with the event: hence `as never` below.
    const listener = (event: GatewayEventMap[Name][0]): void => {
      if (!matches(event)) return;
      seen.push(event);
      if (seen.length < count) return;
      gateway.events.off(name, listener as never);
      resolve(seen);
    };
    gateway.events.on(name, listener as never);
  });
}

/** Finds the gateway of a live run: where locks connect, the locks' secrets, and the gateway's time. */
import { readFileSync } from 'node:fs';
import { fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import type { MqttAddress } from '../../../firmware-sim/link/mqtt-link.js';
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { GatewayClient } from '../../client.js';
import { readClocks } from '../../gateway-clocks.js';
import { printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { provisionLocks, readSecrets, requireSecrets, type Secrets } from '../trace/replay/secrets.js';
import type { SimFlags } from './flags.js';
import { DEFAULT_LOCKS, plural } from './summary.js';

/** The maximum number of locks that one process simulates live. */
const MAX_LIVE_LOCKS = 10_000;
const DEFAULT_PORTS = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** The gateway of a live run, and the locks. */
export interface SimGateway {
  readonly address: MqttAddress;
  /** The MQTT address, to display. */
  readonly url: string;
  readonly macs: readonly Mac[];
  readonly secrets: Secrets;
  /** The time by the gateway's clock, ms since the epoch. */
  readonly startMs: number;
  /** The operator interface; null if it is unknown. Then the gateway's findings are unknown too. */
  readonly client: GatewayClient | null;
}

/** The members of the gateway's status that a run needs. */
interface Status {
  readonly mqtt: { readonly host: string; readonly port: number };
}

/**
 * Finds the gateway and the locks, and creates the locks' secrets unless a file has them.
 *
 * @param macsAt returns the MACs of a run that starts at the given time of the gateway's clock
 * @param wanted the MACs, overriding flags and files; a file of secrets must then have their secrets
 * @throws LockgateError `input-…` for a wrong flag or file, otherwise as {@link GatewayClient.get}
 */
export async function findGateway(
  flags: SimFlags,
  signal: AbortSignal,
  macsAt: (runMs: number) => readonly Mac[] = () => fleetMacs(flags.seed, lockCount(flags.locks)),
  wanted?: readonly Mac[],
): Promise<SimGateway> {
  const mqtt = readMqttAddress(flags);
  const givenSecrets = flags.secrets === undefined ? undefined : readSecrets(flags.secrets);
  if (givenSecrets !== undefined && wanted !== undefined)
    requireSecrets(givenSecrets, new Set(wanted), flags.secrets as string);
  const givenMacs = wanted ?? (givenSecrets === undefined ? undefined : firstLocksOf(givenSecrets, flags));
  // Null only if the MQTT address and the secrets are given; otherwise the gateway is asked for what is missing.
  const client = operatorOf(flags, mqtt !== undefined, givenSecrets !== undefined);
  // Throws for too many locks before any request is sent.
  if (givenMacs === undefined) lockCount(flags.locks);
  const status = await client?.get<Status>('/status');
  const runMs = client === null ? systemClock.now() : (await readClocks(client)).runMs;
  const macs = givenMacs ?? macsAt(runMs);
  const address = mqtt ?? addressOf(status as Status, client as GatewayClient);
  const speedCheck = client === null ? undefined : new SpeedCheck(runMs);
  const secrets = givenSecrets ?? (await createSecrets(client as GatewayClient, macs, flags.merchant, signal));
  const gatewayNowMs = client === null ? undefined : await speedCheck?.compare(client, flags.speed);
  if (status === undefined && flags.speed !== 1)
    printNote(
      `The gateway must also run at ${flags.speed} × speed. Without its operator interface this can't be checked.`,
    );
  return { address, url: urlOf(address), macs, secrets, startMs: gatewayNowMs ?? systemClock.now(), client };
}

async function createSecrets(
  client: GatewayClient,
  macs: readonly Mac[],
  merchant: string | undefined,
  signal: AbortSignal,
): Promise<Secrets> {
  const progress = new ProgressLine(() => `Creating secrets for ${plural(macs.length, 'lock')}`);
  try {
    return await provisionLocks(client, new Set(macs), merchant, signal);
  } finally {
    progress.end();
  }
}

/** The number of locks. @throws LockgateError `input-locks` if it is too high */
function lockCount(wanted: number | undefined): number {
  const count = wanted ?? DEFAULT_LOCKS;
  if (count <= MAX_LIVE_LOCKS) return count;
  const limit = MAX_LIVE_LOCKS.toLocaleString('en-US');
  throw new LockgateError('input-locks', `--locks is ${count}: one process simulates at most ${limit} locks live`);
}

/** The locks of a file of secrets, as many as --locks says. */
function firstLocksOf(secrets: Secrets, { locks, secrets: file }: SimFlags): Mac[] {
  const count = lockCount(locks ?? Math.max(1, secrets.size));
  if (count <= secrets.size) return [...secrets.keys()].slice(0, count);
  throw new LockgateError('input-locks', `--locks is ${count}, but ${file} has the secrets of ${secrets.size}`);
}

/** The MQTT address of --gateway; undefined if --gateway is the operator interface's URL, or is not given. */
function readMqttAddress({ gateway, ca }: SimFlags): MqttAddress | undefined {
  const url = gateway !== undefined && URL.canParse(gateway) ? new URL(gateway) : undefined;
  const isOperator = gateway === undefined || url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isOperator) {
    if (ca !== undefined) throw new LockgateError('input-gateway', '--ca requires --gateway mqtts://host:port');
    return undefined;
  }
  if ((url?.protocol !== 'mqtt:' && url?.protocol !== 'mqtts:') || url.hostname === '')
    throw new LockgateError(
      'input-gateway',
      `--gateway is "${gateway}": expected mqtt://host:port, mqtts:// or http://`,
    );
  // A URL has an IPv6 address in brackets, such as [::1]; a socket needs it without them.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port);
  if (url.protocol === 'mqtt:' && ca !== undefined)
    throw new LockgateError('input-gateway', '--ca requires --gateway mqtts://host:port');
  if (url.protocol === 'mqtt:') return { host, port };
  return { host, port, tls: { servername: host, ...(ca !== undefined && { ca: readCa(ca) }) } };
}

function readCa(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new LockgateError('input-ca', `${file} can't be read: ${(error as Error).message}`);
  }
}

/**
 * The client of the operator interface; null if flags give an MQTT address and secrets. Then the client is not needed,
 * and the token in the data folder may belong to another gateway.
 */
function operatorOf(flags: SimFlags, hasMqtt: boolean, hasSecrets: boolean): GatewayClient | null {
  if (hasMqtt && hasSecrets) return null;
  const { token, data } = flags;
  const gateway = hasMqtt || flags.gateway === undefined ? {} : { gateway: flags.gateway };
  return new GatewayClient({ ...gateway, ...(token !== undefined && { token }), ...(data !== undefined && { data }) });
}

/** The gateway's MQTT address. If it listens on every address, the operator interface's host is used. */
function addressOf({ mqtt: { host, port } }: Status, client: GatewayClient): MqttAddress {
  const isEveryAddress = host === '0.0.0.0' || host === '::';
  return { host: (isEveryAddress ? client.host : host).replace(/^\[|\]$/g, ''), port };
}

function urlOf({ host, port, tls }: MqttAddress): string {
  return `${tls === undefined ? 'mqtt' : 'mqtts'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** How long the gateway's clock is observed to measure its speed. */
const MEASURING_TIME_MS: Milliseconds = Seconds(0.5);
/** Two speeds count as the same if they differ by at most this factor. */
const MAX_SPEED_RATIO = 1.5;

/** Checks whether the gateway's clock runs at the speed of the locks. */
class SpeedCheck {
  /** The gateway's time and this process's time at the first reading. */
  readonly #runMs: number;
  readonly #realMs = monotonicMs();

  constructor(runMs: number) {
    this.#runMs = runMs;
  }

  /** Warns if the speeds differ. Returns the gateway's time, ms since the epoch. */
  async compare(client: GatewayClient, speed: number): Promise<number> {
    const remainingMs = MEASURING_TIME_MS - (monotonicMs() - this.#realMs);
    if (remainingMs > 0) await new Promise<void>((resolve) => void systemClock.after(remainingMs, resolve));
    const { runMs } = await readClocks(client);
    const measuredSpeed = (runMs - this.#runMs) / (monotonicMs() - this.#realMs);
    const isSame = measuredSpeed <= speed * MAX_SPEED_RATIO && measuredSpeed * MAX_SPEED_RATIO >= speed;
    if (isSame) return runMs;
    const [gatewaySpeed, effect] = [Math.round(measuredSpeed * 10) / 10, 'findings that depend on time will be wrong'];
    printNote(`The gateway's clock runs at about ${gatewaySpeed} × speed but the locks at ${speed} ×: ${effect}.`);
    return runMs;
  }
}

/** What a live run needs of a gateway: where its locks connect, their secrets, and the gateway's time. */
import { readFileSync } from 'node:fs';
import { fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import type { MqttAddress } from '../../../firmware-sim/link/mqtt-link.js';
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { GatewayClient } from '../../client.js';
import { note } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { requireSecrets, provisionLocks, readSecrets, type Secrets } from '../trace/replay/secrets.js';
import type { SimFlags } from './flags.js';
import { DEFAULT_LOCKS, plural } from './summary.js';

/** The most locks that one process simulates live. */
const MOST_LIVE_LOCKS = 10_000;
const DEFAULT_PORTS = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** What a live run needs of a gateway. */
export interface SimGateway {
  readonly address: MqttAddress;
  /** For people. */
  readonly url: string;
  readonly macs: readonly Mac[];
  readonly secrets: Secrets;
  /** The time by the run's clock, ms since the epoch. */
  readonly startMs: number;
  /** The operator's interface; null where it is unknown, so that findings are unknown too. */
  readonly client: GatewayClient | null;
}

interface Status {
  readonly mqtt: { readonly host: string; readonly port: number };
  readonly run_clock: string;
}

/**
 * Finds the gateway and the locks, and creates their secrets unless a file has them.
 *
 * @param macsAt the MACs of a run that starts at that time of the run's clock
 * @param wanted the MACs, overriding flags and files; a file of secrets must then have theirs
 * @throws LockgateError `input-…` for a flag or a file, or the reason why the gateway can't be reached
 */
export async function findGateway(
  flags: SimFlags,
  signal: AbortSignal,
  macsAt: (runMs: number) => readonly Mac[] = () => fleetMacs(flags.seed, lockCount(flags.locks)),
  wanted?: readonly Mac[],
): Promise<SimGateway> {
  const mqtt = readMqttAddress(flags);
  const known = flags.secrets === undefined ? undefined : readSecrets(flags.secrets);
  if (known !== undefined && wanted !== undefined) requireSecrets(known, new Set(wanted), flags.secrets as string);
  const listed = wanted ?? (known === undefined ? undefined : firstOf(known, flags));
  const client = operatorOf(flags, mqtt !== undefined, known !== undefined);
  // Too many locks are refused before a gateway is looked for.
  if (listed === undefined) lockCount(flags.locks);
  const status = await client?.get<Status>('/status');
  const runMs = status === undefined ? systemClock.now() : Date.parse(status.run_clock);
  const macs = listed ?? macsAt(runMs);
  const address = mqtt ?? addressOf(status as Status, client as GatewayClient);
  const watch = status === undefined ? undefined : new SpeedWatch(status);
  const secrets = known ?? (await givenSecrets(client as GatewayClient, macs, flags.merchant, signal));
  const latest = client === null ? undefined : await watch?.compare(client, flags.speed);
  if (status === undefined && flags.speed !== 1)
    note(`The gateway must run at ${flags.speed} × speed too. Without its operator's interface this can't be checked.`);
  return { address, url: urlOf(address), macs, secrets, startMs: latest ?? systemClock.now(), client };
}

async function givenSecrets(
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

function lockCount(wanted: number | undefined): number {
  const count = wanted ?? DEFAULT_LOCKS;
  if (count <= MOST_LIVE_LOCKS) return count;
  const most = MOST_LIVE_LOCKS.toLocaleString('en-US');
  throw new LockgateError('input-locks', `--locks is ${count}: one process simulates at most ${most} locks live`);
}

function firstOf(secrets: Secrets, { locks, secrets: file }: SimFlags): Mac[] {
  const count = lockCount(locks ?? Math.max(1, secrets.size));
  if (count <= secrets.size) return [...secrets.keys()].slice(0, count);
  throw new LockgateError('input-locks', `--locks is ${count}, and ${file} has the secrets of ${secrets.size}`);
}

/** The MQTT address, if --gateway is one; undefined where it is the operator's interface, or left out. */
function readMqttAddress({ gateway, ca }: SimFlags): MqttAddress | undefined {
  const url = gateway !== undefined && URL.canParse(gateway) ? new URL(gateway) : undefined;
  const isOperator = gateway === undefined || url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isOperator) {
    if (ca !== undefined) throw new LockgateError('input-gateway', '--ca goes with --gateway mqtts://host:port');
    return undefined;
  }
  if ((url?.protocol !== 'mqtt:' && url?.protocol !== 'mqtts:') || url.hostname === '')
    throw new LockgateError(
      'input-gateway',
      `--gateway is "${gateway}": expected mqtt://host:port, mqtts:// or http://`,
    );
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port);
  if (url.protocol === 'mqtt:' && ca !== undefined)
    throw new LockgateError('input-gateway', '--ca goes with --gateway mqtts://host:port');
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
 * With an MQTT address and secrets the operator's interface is not needed, and is not looked for: the token in this
 * folder may be that of another gateway.
 */
function operatorOf(flags: SimFlags, hasMqtt: boolean, hasSecrets: boolean): GatewayClient | null {
  if (hasMqtt && hasSecrets) return null;
  const { token, data } = flags;
  const where = hasMqtt || flags.gateway === undefined ? {} : { gateway: flags.gateway };
  return new GatewayClient({ ...where, ...(token !== undefined && { token }), ...(data !== undefined && { data }) });
}

/** A gateway that listens on every address is reached at the host of its operator's interface. */
function addressOf({ mqtt: { host, port } }: Status, client: GatewayClient): MqttAddress {
  const isEvery = host === '0.0.0.0' || host === '::';
  return { host: (isEvery ? client.host : host).replace(/^\[|\]$/g, ''), port };
}

function urlOf({ host, port, tls }: MqttAddress): string {
  return `${tls === undefined ? 'mqtt' : 'mqtts'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** How long the run's clock is observed to measure its speed. */
const WATCHED_FOR: Milliseconds = Seconds(0.5);
/** The factor by which two speeds may differ and count as the same. */
const SAME_WITHIN = 1.5;

/** Measures whether the gateway's clock runs at the speed of the locks. */
class SpeedWatch {
  readonly #runMs: number;
  readonly #realMs = monotonicMs();

  constructor({ run_clock }: Status) {
    this.#runMs = Date.parse(run_clock);
  }

  /** Warns where it does not. Returns the gateway's time, ms since the epoch. */
  async compare(client: GatewayClient, speed: number): Promise<number> {
    const left = WATCHED_FOR - (monotonicMs() - this.#realMs);
    if (left > 0) await new Promise<void>((resolve) => void systemClock.after(left, resolve));
    const runMs = Date.parse((await client.get<Status>('/status')).run_clock);
    const seen = (runMs - this.#runMs) / (monotonicMs() - this.#realMs);
    const isSame = seen <= speed * SAME_WITHIN && seen * SAME_WITHIN >= speed;
    if (isSame) return runMs;
    const [itsSpeed, wrong] = [Math.round(seen * 10) / 10, 'findings that depend on time will be wrong'];
    note(`The gateway's clock runs at about ${itsSpeed} × speed and the locks run at ${speed} ×: ${wrong}.`);
    return runMs;
  }
}

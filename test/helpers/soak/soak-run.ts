/**
 * The soak test: a gateway under a steady load, with connections that are cut and made again (quality.md §2, "one hour
 * at 1,000 pings/s with 5 % churn"). The load pauses regularly for a measurement of the gateway's memory, sockets,
 * descriptors and number of connections. Locks and merchant count pings; the gateway's counts are not used.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ChildProgram } from '../../bench/load/child-program.js';
import { BENCH_MERCHANT, lockLogins, registerLocks } from '../../bench/load/lock-logins.js';
import { newBootNumber, SEQUENCE_BEFORE_FIRST } from '../../bench/load/ping-template.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import type { SabotageName } from '../durability/sabotage.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import type { Teardown } from '../store/temp-folder.js';
import type { SoakRequest, SoakTally } from './soak-locks.js';
import { SoakMerchant } from './soak-merchant.js';

/** The size of the test. */
export interface SoakOptions {
  readonly seed: number;
  /** The number of locks. Each lock sends one ping a second. */
  readonly locks: number;
  /** The number of load periods; a measurement follows each. */
  readonly measurements: number;
  readonly secondsBetweenMeasurements: number;
  /** At the end, the test waits for webhooks until none has arrived for this long. */
  readonly stallSeconds: number;
  /** Breaks the gateway on purpose (sabotage.ts), to show that the test notices. */
  readonly sabotage?: SabotageName;
}

/** A measurement of the gateway while the load pauses. */
export interface SoakMeasurement {
  /** Minutes of load so far, without the pauses. */
  readonly atMinute: number;
  /** The size of the heap after garbage collections. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** The number of open file descriptors of the process. */
  readonly descriptors: number;
  /** Established connections of the MQTT port, according to the operating system. */
  readonly sockets: number;
  /** Connections of the MQTT port, according to the gateway. */
  readonly connections: number;
}

/** The result of the test; counts are of pings unless they say otherwise. */
export interface SoakResult {
  readonly measurements: readonly SoakMeasurement[];
  readonly tally: SoakTally;
  /** The number of acknowledged pings. */
  readonly acked: number;
  /** The number of received webhooks. */
  readonly arrivals: number;
  /** Acknowledged pings that the merchant did not receive, and received pings that no lock sent. */
  readonly missing: number;
  readonly neverSent: number;
  /** Wrong signatures, and repeats that differ, as sentences. */
  readonly mistakes: readonly string[];
  readonly errorLines: readonly string[];
  readonly exitCode: number | null;
}

/** The test that gets the run's comments. */
type Test = Teardown & { comment(line: string): void };

const LOCKS_PROGRAM = fileURLToPath(new URL('./soak-locks.js', import.meta.url));
/** A gateway stops within this time (quality.md §2). */
const STOP_SECONDS = 10;
/** The operating system shows with a short delay that a connection has closed. */
const SOCKET_DELAY_MS = 300;
const MAX_SOCKET_READINGS = 5;
/** The state of an established connection in `/proc/net/tcp`. */
const ESTABLISHED = '01';
const MEGABYTE = 1e6;

/** Runs the soak test to its end. */
export async function runSoak(test: Test, options: SoakOptions): Promise<SoakResult> {
  const gateway = await GatewayChild.create(test, { sabotage: options.sabotage });
  await registerLocks(gateway.options.data, options.locks);
  await gateway.start();
  const merchant = await SoakMerchant.start();
  test.teardown(() => merchant.close());
  const { secret } = await gateway.post<{ secret: string }>('/webhooks', {
    url: merchant.url,
    merchant: BENCH_MERCHANT,
  });
  merchant.verifyWith(secret);
  const { locks, seed } = options;
  const request: SoakRequest = { port: gateway.mqttPort, locks, boot: newBootNumber(), seed };
  const locksProgram = new ChildProgram(process.execPath, [LOCKS_PROGRAM, JSON.stringify(request)]);
  test.teardown(() => locksProgram.stop());
  await locksProgram.readAnswer();

  const measurements: SoakMeasurement[] = [];
  let tally = await locksProgram.ask<SoakTally>('still');
  for (let round = 0; round <= options.measurements; round += 1) {
    const measurement = await measure(gateway, round * options.secondsBetweenMeasurements);
    measurements.push(measurement);
    test.comment(describeMeasurement(measurement, tally, merchant));
    if (round === options.measurements) break;
    await locksProgram.ask('go');
    await realDelay(options.secondsBetweenMeasurements * 1000);
    tally = await locksProgram.ask<SoakTally>('still');
  }
  return await conclude({ gateway, merchant, locksProgram, measurements, tally, stallSeconds: options.stallSeconds });
}

/** Waits until the merchant has every acknowledged ping or gets no more, stops everything, and compares the counts. */
async function conclude(run: {
  readonly gateway: GatewayChild;
  readonly merchant: SoakMerchant;
  readonly locksProgram: ChildProgram;
  readonly measurements: readonly SoakMeasurement[];
  readonly tally: SoakTally;
  readonly stallSeconds: number;
}): Promise<SoakResult> {
  const { gateway, merchant, locksProgram, measurements, tally } = run;
  const changeSignal = new ChangeSignal();
  merchant.onArrival = () => changeSignal.notify();
  const acked = ackedOf(tally);
  await changeSignal.waitUntilOrStalled(
    () => merchant.pings >= acked,
    () => merchant.arrivals,
    run.stallSeconds,
  );
  await locksProgram.stop();
  const exitCode = await gateway.stop(STOP_SECONDS);
  const compared = lockLogins(tally.lastAcked.length).map(({ mac }, index) =>
    merchant.compare(mac, tally.lastAcked[index] ?? 0),
  );
  return {
    measurements,
    tally,
    acked,
    arrivals: merchant.arrivals,
    missing: compared.reduce((sum, { missing }) => sum + missing, 0),
    neverSent: compared.reduce((sum, { neverSent }) => sum + neverSent, 0),
    mistakes: merchant.mistakes,
    errorLines: gateway.errorLines,
    exitCode,
  };
}

/** The number of acknowledged pings of all locks. */
function ackedOf({ lastAcked }: SoakTally): number {
  return lastAcked.reduce((sum, value) => sum + value - SEQUENCE_BEFORE_FIRST, 0);
}

/** Measures the gateway's memory, descriptors and connections. @param seconds since the first measurement */
async function measure(gateway: GatewayChild, seconds: number): Promise<SoakMeasurement> {
  await realDelay(SOCKET_DELAY_MS);
  const { heapUsed, rss } = await gateway.memoryAfterCollection();
  const { mqtt } = await gateway.get<{ mqtt: { connected: number } }>('/status');
  let sockets = establishedConnections(gateway.mqttPort);
  // The system's list changes while it is read, so one reading may miss connections.
  for (let retries = 0; retries < MAX_SOCKET_READINGS && sockets !== mqtt.connected; retries += 1)
    sockets = establishedConnections(gateway.mqttPort);
  return {
    atMinute: seconds / 60,
    heapBytes: heapUsed,
    residentBytes: rss,
    descriptors: readdirSync(`/proc/${gateway.program.pid}/fd`).length,
    sockets,
    connections: mqtt.connected,
  };
}

/** The number of established connections to a port of 127.0.0.1, on the server's side. Works on Linux only. */
export function establishedConnections(port: number): number {
  return countEstablished(readFileSync('/proc/net/tcp', 'utf8'), port);
}

/**
 * Counts the established connections to a port of 127.0.0.1 in the text of `/proc/net/tcp`. The system may list a
 * connection twice if another one closes while the text is read.
 */
export function countEstablished(table: string, port: number): number {
  // Linux lists 127.0.0.1:1883 as `0100007F:075B`: the address's bytes in reverse order, in hex.
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const clients = new Set<string>();
  for (const row of table.split('\n').slice(1)) {
    const [, from, to = '', state] = row.trim().split(/\s+/);
    if (from === local && state === ESTABLISHED) clients.add(to);
  }
  return clients.size;
}

function describeMeasurement(measurement: SoakMeasurement, tally: SoakTally, merchant: SoakMerchant): string {
  const { atMinute, heapBytes, residentBytes, descriptors, sockets, connections } = measurement;
  return [
    `minute ${atMinute.toFixed(1)}: heap ${(heapBytes / MEGABYTE).toFixed(2)} MB`,
    `resident ${(residentBytes / MEGABYTE).toFixed(0)} MB, ${descriptors} descriptors`,
    `${connections} connections, ${sockets} sockets`,
    `${ackedOf(tally)} acknowledged, ${merchant.pings} delivered, ${tally.connects} connects, ${tally.repeats} repeats`,
  ].join(', ');
}

/** The slope of the heap size from a minute on, in bytes a minute, by linear regression. */
export function heapSlope(measurements: readonly SoakMeasurement[], fromMinute: number): number {
  const later = measurements.filter(({ atMinute }) => atMinute >= fromMinute);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanMinute = mean(later.map(({ atMinute }) => atMinute));
  const meanBytes = mean(later.map(({ heapBytes }) => heapBytes));
  const covariance = later.reduce(
    (sum, { atMinute, heapBytes }) => sum + (atMinute - meanMinute) * (heapBytes - meanBytes),
    0,
  );
  return covariance / later.reduce((sum, { atMinute }) => sum + (atMinute - meanMinute) ** 2, 0);
}

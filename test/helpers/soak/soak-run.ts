/**
 * The long run: a gateway under a steady load whose connections come and go, looked at now and then while the load
 * stands still. Locks and merchant keep count; of the gateway itself only memory, sockets and descriptors are read, and
 * the number of connections that it says it has (quality.md §2, "one hour at 1,000 pings/s with 5 % churn").
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ChildProgram } from '../../bench/load/child-program.js';
import { crowdLocks, MERCHANT, provisionCrowd } from '../../bench/load/crowd-accounts.js';
import { FIRST_SEQUENCE, nextBoot } from '../../bench/load/ping-template.js';
import { Bell, oddMoment } from '../clocks/bell.js';
import type { SabotageName } from '../durability/sabotage.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import type { Teardown } from '../store/temp-folder.js';
import type { SoakRequest, SoakTally } from './soak-crowd.js';
import { SoakMerchant } from './soak-merchant.js';

export interface SoakOptions {
  readonly seed: number;
  /** Each sends one ping a second. */
  readonly locks: number;
  /** Pieces of load between two looks. */
  readonly looks: number;
  readonly secondsBetweenLooks: number;
  /** Nothing more is expected of the merchant when it has heard nothing for so long. */
  readonly stillSeconds: number;
  readonly sabotage?: SabotageName;
}

/** The gateway while nothing is sent. */
export interface SoakLook {
  /** Since the load began, the looks left out. */
  readonly atMinute: number;
  /** After collections of garbage, bytes. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** Open descriptors of the process. */
  readonly descriptors: number;
  /** Established connections of the MQTT port, as the system has them. */
  readonly sockets: number;
  /** The same, as the gateway counts them. */
  readonly connections: number;
}

export interface SoakResult {
  readonly looks: readonly SoakLook[];
  readonly tally: SoakTally;
  /** Pings that were acknowledged, each once. */
  readonly acked: number;
  readonly arrivals: number;
  readonly missing: number;
  readonly neverSent: number;
  readonly wrongs: readonly string[];
  readonly complaints: readonly string[];
  readonly exitCode: number | null;
}

type Test = Teardown & { comment(line: string): void };

const CROWD = fileURLToPath(new URL('./soak-crowd.js', import.meta.url));
const STOP_SECONDS = 10;
/** The system tells of an end a moment after it. */
const SETTLE_MS = 300;
const LOOKS_AT_SOCKETS = 5;
const ESTABLISHED = '01';
const MEGABYTE = 1e6;

/** Runs it to its end. */
export async function runSoak(test: Test, options: SoakOptions): Promise<SoakResult> {
  const gateway = await GatewayChild.make(test, options.sabotage);
  await provisionCrowd(gateway.request.data, options.locks);
  await gateway.start();
  const merchant = await SoakMerchant.start();
  test.teardown(() => merchant.close());
  const { secret } = await gateway.post<{ secret: string }>('/webhooks', { url: merchant.url, merchant: MERCHANT });
  merchant.trust(secret);
  const { locks, seed } = options;
  const request: SoakRequest = { port: gateway.mqttPort, locks, boot: nextBoot(), seed };
  const crowd = new ChildProgram(process.execPath, [CROWD, JSON.stringify(request)]);
  test.teardown(() => crowd.end());
  await crowd.answer();

  const looks: SoakLook[] = [];
  let tally = await crowd.answer<SoakTally>('still');
  for (let round = 0; round <= options.looks; round += 1) {
    const look = await lookAt(gateway, round * options.secondsBetweenLooks);
    looks.push(look);
    test.comment(told(look, tally, merchant));
    if (round === options.looks) break;
    await crowd.answer('go');
    await oddMoment(options.secondsBetweenLooks * 1000);
    tally = await crowd.answer<SoakTally>('still');
  }
  return await conclude({ gateway, merchant, crowd, looks, tally, stillSeconds: options.stillSeconds });
}

async function conclude(run: {
  readonly gateway: GatewayChild;
  readonly merchant: SoakMerchant;
  readonly crowd: ChildProgram;
  readonly looks: readonly SoakLook[];
  readonly tally: SoakTally;
  readonly stillSeconds: number;
}): Promise<SoakResult> {
  const { gateway, merchant, crowd, looks, tally } = run;
  const bell = new Bell();
  merchant.onArrival = () => bell.ring();
  const acked = ackedOf(tally);
  await bell.untilOrStill(
    () => merchant.pings >= acked,
    () => merchant.arrivals,
    run.stillSeconds,
  );
  await crowd.end();
  const exitCode = await gateway.stop(STOP_SECONDS);
  const compared = crowdLocks(tally.last.length).map(({ mac }, index) => merchant.compare(mac, tally.last[index] ?? 0));
  return {
    looks,
    tally,
    acked,
    arrivals: merchant.arrivals,
    missing: compared.reduce((sum, { missing }) => sum + missing, 0),
    neverSent: compared.reduce((sum, { never_sent }) => sum + never_sent, 0),
    wrongs: merchant.wrongs,
    complaints: gateway.complaints,
    exitCode,
  };
}

function ackedOf({ last }: SoakTally): number {
  return last.reduce((sum, each) => sum + each - FIRST_SEQUENCE, 0);
}

async function lookAt(gateway: GatewayChild, seconds: number): Promise<SoakLook> {
  await oddMoment(SETTLE_MS);
  const { heapUsed, rss } = await gateway.memoryAfterCollection();
  const { mqtt } = await gateway.get<{ mqtt: { connected: number } }>('/status');
  let sockets = establishedOn(gateway.mqttPort);
  // The system's list is read in pieces while connections move in it, so one look may miss some.
  for (let again = 0; again < LOOKS_AT_SOCKETS && sockets !== mqtt.connected; again += 1)
    sockets = establishedOn(gateway.mqttPort);
  return {
    atMinute: seconds / 60,
    heapBytes: heapUsed,
    residentBytes: rss,
    descriptors: readdirSync(`/proc/${gateway.program.pid}/fd`).length,
    sockets,
    connections: mqtt.connected,
  };
}

/** The server's side of the connections to a port of 127.0.0.1, from Linux alone. */
export function establishedOn(port: number): number {
  return establishedIn(readFileSync('/proc/net/tcp', 'utf8'), port);
}

/** The same, in the text of `/proc/net/tcp`. It is read in pieces, and has a row twice where others ended meanwhile. */
export function establishedIn(table: string, port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const clients = new Set<string>();
  for (const row of table.split('\n').slice(1)) {
    const [, from, to = '', state] = row.trim().split(/\s+/);
    if (from === local && state === ESTABLISHED) clients.add(to);
  }
  return clients.size;
}

function told(look: SoakLook, tally: SoakTally, merchant: SoakMerchant): string {
  const { atMinute, heapBytes, residentBytes, descriptors, sockets, connections } = look;
  return [
    `minute ${atMinute.toFixed(1)}: heap ${(heapBytes / MEGABYTE).toFixed(2)} MB`,
    `resident ${(residentBytes / MEGABYTE).toFixed(0)} MB, ${descriptors} descriptors`,
    `${connections} connections, ${sockets} sockets`,
    `${ackedOf(tally)} acknowledged, ${merchant.pings} delivered, ${tally.connects} connects, ${tally.repeats} repeats`,
  ].join(', ');
}

/** The slope of the heap from a minute on, in bytes a minute: the line with the least squares. */
export function heapSlope(looks: readonly SoakLook[], fromMinute: number): number {
  const later = looks.filter(({ atMinute }) => atMinute >= fromMinute);
  const mean = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0) / values.length;
  const [x, y] = [mean(later.map(({ atMinute }) => atMinute)), mean(later.map(({ heapBytes }) => heapBytes))];
  const above = later.reduce((sum, { atMinute, heapBytes }) => sum + (atMinute - x) * (heapBytes - y), 0);
  return above / later.reduce((sum, { atMinute }) => sum + (atMinute - x) ** 2, 0);
}

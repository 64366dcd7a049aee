/**
 * Webhooks (quality.md §1): how many leave in a second beside plain got, how soon after its PUBACK a ping arrives, and
 * what five URLs take from the pings. Gateway, locks, receivers and the peer have a process each.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encodeUplink } from '../../proto/codec.js';
import { GatewayChild } from '../helpers/gateway-child.js';
import { publishPacket, RawLock } from '../helpers/raw-mqtt.js';
import type { Teardown } from '../helpers/temp-folder.js';
import { testUplink } from '../helpers/test-gateway.js';
import type { SenderRequest } from './got-sender.js';
import { type Row, ratesOf } from './measure.js';
import { Obedient } from './obedient.js';
import type { FloodRequest } from './ping-flood.js';
import type { HostRequest, Manner } from './webhook-host.js';

const ROUNDS = 5;
const DELIVERIES = 3000;
/** As a URL's worker has it. */
const CONCURRENCY = 16;
const FLOOD = 8000;
const FLOOD_LOCKS = 200;
const UNLOADED_PINGS = 150;
const SINCE_EVER = '2000-01-01T00:00:00Z';

type Timed = { readonly ms: number };

/** What is ended when the bench ends, last first. */
export class Stage implements Teardown {
  readonly #ends: (() => unknown)[] = [];

  teardown(end: () => unknown): void {
    this.#ends.push(end);
  }

  program(script: string, argument: unknown): Obedient {
    const program = new Obedient(script, argument);
    this.teardown(() => program.end());
    return program;
  }

  async receivers(receivers: readonly Manner[]): Promise<{ host: Obedient; urls: readonly string[] }> {
    const host = this.program('./webhook-host.js', { receivers } satisfies HostRequest);
    return { host, ...(await host.answer<{ urls: string[] }>()) };
  }

  /** Locks of the gateway that are connected and wait for a word. */
  async locks(gateway: GatewayChild, count: number): Promise<Obedient> {
    const macs = Array.from({ length: count }, (_, index) => (0xa4c138000001 + index).toString(16).toUpperCase());
    const locks: FloodRequest['locks'][number][] = [];
    for (const mac of macs) locks.push({ mac, secret: await gateway.addLock(mac) });
    const flood = this.program('./ping-flood.js', { port: gateway.mqttPort, locks } satisfies FloodRequest);
    await flood.answer();
    return flood;
  }

  async end(): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}

/** Does the work on a stage of its own. */
export async function onStage<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = new Stage();
  try {
    return await work(stage);
  } finally {
    await stage.end();
  }
}

/** Deliveries a second to one healthy receiver, beside plain got with keep-alive at the same concurrency. */
export function benchDeliveries(): Promise<Row> {
  return onStage(async (stage) => {
    const gateway = await GatewayChild.start(stage);
    await (await stage.locks(gateway, 2 * CONCURRENCY)).answer(`flood ${DELIVERIES}`);
    const { host, urls } = await stage.receivers(['good']);
    const body = JSON.stringify({ event_id: 'x'.repeat(50), padding: 'x'.repeat(400) });
    const peer = { url: urls[0] ?? '', body, concurrency: CONCURRENCY } satisfies SenderRequest;
    const sender = stage.program('./got-sender.js', peer);
    await sender.answer();
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round <= ROUNDS; round++) {
      const { id } = await gateway.post<{ id: number }>('/webhooks', { url: urls[0], since: SINCE_EVER });
      const mine = (await host.answer<Timed>(`await ${DELIVERIES}`)).ms;
      await gateway.post(`/webhooks/${id}/remove`, {});
      const arrived = host.answer<Timed>(`await ${DELIVERIES}`);
      await sender.answer(String(DELIVERIES));
      const other = (await arrived).ms;
      // The first round is the warm-up.
      if (round > 0) {
        ours.push(DELIVERIES / (mine / 1000));
        theirs.push(DELIVERIES / (other / 1000));
      }
    }
    const [rates, peerRates] = [ratesOf(ours), ratesOf(theirs)];
    const ratio = rates.median / peerRates.median;
    return {
      name: 'webhook deliveries to one healthy receiver',
      unit: 'a second',
      rates,
      peer: { name: 'a second with plain got', rates: peerRates },
      ratio,
      floor: '0.5 ×',
      aim: '≥ 0.9 ×',
    };
  });
}

/** From a ping's PUBACK to its webhook's arrival, with nothing else going on: the 99th percentile of each round. */
export function benchArrival(): Promise<Row> {
  return onStage(async (stage) => {
    const gateway = await GatewayChild.start(stage);
    let arrived: (atMs: number) => void = () => undefined;
    const server = createServer((request, response) => {
      const atMs = performance.now();
      request.resume().on('end', () => {
        response.writeHead(204).end();
        arrived(atMs);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stage.teardown(() => server.close());
    await gateway.addWebhook(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
    let acked: () => void = () => undefined;
    const mac = 'A4C138000001';
    const lock = await RawLock.connect(gateway.mqttPort, mac, await gateway.addLock(mac), () => acked());
    stage.teardown(() => lock.socket.destroy());
    const p99s: number[] = [];
    let sequence = 0;
    for (let round = 0; round <= ROUNDS; round++) {
      const lags: number[] = [];
      for (let ping = 0; ping < UNLOADED_PINGS; ping++) {
        sequence += 1;
        const arrival = new Promise<number>((resolve) => {
          arrived = resolve;
        });
        const puback = new Promise<number>((resolve) => {
          acked = () => resolve(performance.now());
        });
        lock.socket.write(publishPacket(sequence, encodeUplink(testUplink(sequence))));
        const [ackedMs, arrivedMs] = await Promise.all([puback, arrival]);
        lags.push(Math.max(arrivedMs - ackedMs, 0));
      }
      if (round > 0) p99s.push(percentile(lags, 0.99));
    }
    return {
      name: 'from PUBACK to arrival, unloaded, p99 of a round',
      unit: 'ms',
      rates: ratesOf(p99s),
      peer: null,
      ratio: null,
      floor: '50 ms',
      aim: '10 ms',
    };
  });
}

/** Durable pings a second of a merchant with five URLs, beside one with one URL. */
export function benchUrls(): Promise<Row> {
  return onStage(async (stage) => {
    const five = await floodSite(stage, 5);
    const one = await floodSite(stage, 1);
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round <= ROUNDS; round++) {
      // They take turns at being first: what one leaves to do is not the other's.
      const order = round % 2 === 0 ? [five, one] : [one, five];
      for (const site of order) {
        const rate = await site();
        if (round > 0) (site === five ? ours : theirs).push(rate);
      }
    }
    const [rates, peerRates] = [ratesOf(ours), ratesOf(theirs)];
    return {
      name: 'durable pings with 5 URLs',
      unit: 'a second',
      rates,
      peer: { name: 'a second with 1 URL', rates: peerRates },
      ratio: rates.median / peerRates.median,
      floor: '0.8 ×',
      aim: '≥ 0.95 ×',
    };
  });
}

/** A gateway whose merchant has so many URLs; gives the pings a second of one flood, while they are followed. */
async function floodSite(stage: Stage, count: number): Promise<() => Promise<number>> {
  const gateway = await GatewayChild.start(stage);
  const flood = await stage.locks(gateway, FLOOD_LOCKS);
  const { urls } = await stage.receivers(Array.from({ length: count }, () => 'good' as const));
  return async () => {
    const ids: number[] = [];
    for (const url of urls) ids.push((await gateway.post<{ id: number }>('/webhooks', { url })).id);
    const { ms } = await flood.answer<Timed>(`flood ${FLOOD}`);
    // What is left to deliver is none of the next flood's.
    for (const id of ids) await gateway.post(`/webhooks/${id}/remove`, {});
    return FLOOD / (ms / 1000);
  };
}

/** The smallest of them that is not exceeded by this share of them. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.ceil(sorted.length * share), sorted.length) - 1] ?? 0;
}

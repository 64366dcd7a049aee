/**
 * Webhooks (quality.md §1): how many leave in a second beside plain got, and how soon after its PUBACK a ping arrives.
 * Gateway, locks, receivers and the peer have a process each.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GatewayClient } from '../../../cli/client.js';
import { systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { publishPacket, RawLock } from '../../helpers/mqtt/raw-mqtt.js';
import { crowdLocks, provisionCrowd } from '../load/crowd-accounts.js';
import type { SenderRequest } from '../load/got-sender.js';
import { nextBoot, rideUplink } from '../load/ping-template.js';
import { inTurns, percentile, ratesOf, roundsOf } from '../measure.js';
import { atLeast, atMost, type BenchOptions, fixedBar, type Row, ratioTo } from '../row.js';
import { ServeSite, startReceivers, startServe } from '../serve-site.js';
import { onStage, type Stage } from '../stage.js';

const DELIVERIES = 3000;
/** As a URL's worker has it. */
const CONCURRENCY = 16;
const UNLOADED_PINGS = 150;
const SINCE_EVER = '2000-01-01T00:00:00Z';

type Timed = { readonly ms: number };

/** Deliveries a second to one healthy receiver, beside plain got with keep-alive at the same concurrency. */
export function benchDeliveries({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const site = await ServeSite.open(stage, { locks: 2 * CONCURRENCY, urls: 0 });
    await site.generator.flood(DELIVERIES);
    const { host, urls } = await startReceivers(stage, 1);
    const body = JSON.stringify({ event_id: 'x'.repeat(50), padding: 'x'.repeat(400) });
    const peer = { url: urls[0] ?? '', body, concurrency: CONCURRENCY } satisfies SenderRequest;
    const sender = stage.script('load/got-sender.js', peer);
    await sender.answer();
    const ours = async (): Promise<number> => {
      const { id } = await site.client.post<{ id: number }>('/webhooks', { url: urls[0], since: SINCE_EVER });
      const { ms } = await host.answer<Timed>(`await ${DELIVERIES}`);
      await site.client.post(`/webhooks/${id}/remove`, {});
      return DELIVERIES / (ms / 1000);
    };
    const theirs = async (): Promise<number> => {
      const arrived = host.answer<Timed>(`await ${DELIVERIES}`);
      await sender.answer(String(DELIVERIES));
      return DELIVERIES / ((await arrived).ms / 1000);
    };
    const [rates, bare] = (await inTurns([ours, theirs], roundsOf(quick))).map(ratesOf);
    if (rates === undefined || bare === undefined) throw new Error('nothing was measured');
    return {
      name: 'deliveries',
      title: 'webhook deliveries to one healthy receiver',
      unit: 'a second',
      rates,
      against: [ratioTo('plain got, signing and storing nothing', rates, bare, atLeast(0.5), atLeast(0.9))],
      details: [],
    };
  });
}

/** From a ping's PUBACK to its webhook's arrival, with nothing else going on: the 99th percentile of each round. */
export function benchArrival({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const measure = await arrivals(stage);
    const p99s: number[] = [];
    for (let round = 0; round <= roundsOf(quick); round++) {
      const lags = await measure(UNLOADED_PINGS);
      if (round > 0) p99s.push(percentile(lags, 0.99));
    }
    const rates = ratesOf(p99s);
    return {
      name: 'arrival',
      title: 'from PUBACK to the webhook’s arrival, unloaded, p99',
      unit: 'ms',
      rates,
      against: [fixedBar(rates.median, 'ms', atMost(50, 'ms'), atMost(10, 'ms'))],
      details: [],
    };
  });
}

/** A gateway, one lock, one receiver; gives the ms from PUBACK to arrival of so many pings, one after the other. */
async function arrivals(stage: Stage): Promise<(pings: number) => Promise<number[]>> {
  const data = stage.folder();
  await provisionCrowd(data, 1);
  const { port } = await startServe(stage, data);
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
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  await new GatewayClient({ data }).post('/webhooks', { url });
  let acked: () => void = () => undefined;
  const [{ mac, secret } = { mac: '', secret: '' }] = crowdLocks(1);
  const lock = await RawLock.connect(port, mac, secret, () => acked());
  stage.teardown(() => lock.socket.destroy());
  const boot = nextBoot();
  let sequence = 0;
  return async (pings) => {
    const lags: number[] = [];
    for (let ping = 0; ping < pings; ping++) {
      sequence += 1;
      const arrival = new Promise<number>((resolve) => {
        arrived = resolve;
      });
      const puback = new Promise<number>((resolve) => {
        acked = () => resolve(performance.now());
      });
      lock.socket.write(publishPacket(sequence, encodeUplink(rideUplink(boot, sequence, systemClock.now()))));
      const [ackedMs, arrivedMs] = await Promise.all([puback, arrival]);
      lags.push(Math.max(arrivedMs - ackedMs, 0));
    }
    return lags;
  };
}

/**
 * The rows `deliveries` and `arrival` (quality.md §1): how many webhooks the gateway delivers in a second, compared
 * with plain got; and how soon after its PUBACK a ping arrives as a webhook. The gateway, the locks, the receivers and
 * the peer each run in a separate process.
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
import { alternate, percentile, ratesOf, roundsOf } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atLeast, atMost, type BenchOptions, type Row, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup, startReceivers, startServe } from '../serve-setup.js';

const DELIVERIES = 3000;
/** The maximum of a URL's worker. */
const CONCURRENCY = 16;
const UNLOADED_PINGS = 150;
const BEFORE_ALL_PINGS = '2000-01-01T00:00:00Z';

type Duration = { readonly ms: number };

/** The row `deliveries`: to one healthy receiver, compared with plain got with keep-alive at the same concurrency. */
export function benchDeliveries({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const setup = await ServeSetup.open(resources, { locks: 2 * CONCURRENCY, urls: 0 });
    await setup.generator.flood(DELIVERIES);
    const { host, urls } = await startReceivers(resources, 1);
    const body = JSON.stringify({ event_id: 'x'.repeat(50), padding: 'x'.repeat(400) });
    const peer = { url: urls[0] ?? '', body, concurrency: CONCURRENCY } satisfies SenderRequest;
    const sender = resources.script('load/got-sender.js', peer);
    await sender.answer();
    const deliverWithLockgate = async (): Promise<number> => {
      const { id } = await setup.client.post<{ id: number }>('/webhooks', { url: urls[0], since: BEFORE_ALL_PINGS });
      const { ms } = await host.answer<Duration>(`await ${DELIVERIES}`);
      await setup.client.post(`/webhooks/${id}/remove`, {});
      return DELIVERIES / (ms / 1000);
    };
    const deliverWithGot = async (): Promise<number> => {
      const arrived = host.answer<Duration>(`await ${DELIVERIES}`);
      await sender.answer(String(DELIVERIES));
      return DELIVERIES / ((await arrived).ms / 1000);
    };
    const [rates, bare] = (await alternate([deliverWithLockgate, deliverWithGot], roundsOf(quick))).map(ratesOf);
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

/**
 * The row `arrival`: from a ping's PUBACK to its webhook's arrival on an idle gateway, the 99th percentile per round.
 */
export function benchArrival({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const measure = await arrivals(resources);
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
      against: [withoutPeer(rates.median, 'ms', atMost(50, 'ms'), atMost(10, 'ms'))],
      details: [],
    };
  });
}

/**
 * Starts a gateway, one lock and one receiver. The returned function sends pings one by one and returns each delay, ms.
 */
async function arrivals(resources: Resources): Promise<(pings: number) => Promise<number[]>> {
  const data = resources.folder();
  await provisionCrowd(data, 1);
  const { port } = await startServe(resources, data);
  let arrived: (atMs: number) => void = () => undefined;
  const server = createServer((request, response) => {
    const atMs = performance.now();
    request.resume().on('end', () => {
      response.writeHead(204).end();
      arrived(atMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resources.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  await new GatewayClient({ data }).post('/webhooks', { url });
  let onPuback: () => void = () => undefined;
  const [{ mac, secret } = { mac: '', secret: '' }] = crowdLocks(1);
  const lock = await RawLock.connect(port, mac, secret, () => onPuback());
  resources.teardown(() => lock.socket.destroy());
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
        onPuback = () => resolve(performance.now());
      });
      lock.socket.write(publishPacket(sequence, encodeUplink(rideUplink(boot, sequence, systemClock.now()))));
      const [ackedMs, arrivedMs] = await Promise.all([puback, arrival]);
      lags.push(Math.max(arrivedMs - ackedMs, 0));
    }
    return lags;
  };
}

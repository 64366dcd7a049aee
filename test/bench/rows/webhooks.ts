/**
 * The bench's rows `deliveries` and `arrival` (quality.md §1): how many webhooks the gateway delivers in a second,
 * compared with the HTTP client got; and how soon after its PUBACK a ping arrives as a webhook. The gateway, the locks,
 * the receivers and got each run in a separate process.
 */
import { GatewayClient } from '../../../cli/client.js';
import { startArrivals } from '../load/arrival-times.js';
import type { SenderRequest } from '../load/got-sender.js';
import { registerLocks } from '../load/lock-logins.js';
import { measureAlternating, percentile, roundCount, summarizeFigures } from '../measure.js';
import { withResources } from '../resources.js';
import { atLeast, atMost, type BenchOptions, type BenchRow, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup, startReceivers, startServe } from '../serve-setup.js';

const DELIVERIES = 3000;
/** The maximum number of requests that the gateway has under way to one URL; got uses the same. */
const CONCURRENCY = 16;
/** Pings of one round of `arrival`, sent one by one. */
export const PINGS_PER_ROUND = 150;
/** A URL that is added with this time gets the events of all stored pings. */
const BEFORE_ALL_PINGS = '2000-01-01T00:00:00Z';

type TimeSpan = { readonly ms: number };

/** The row `deliveries`: to one healthy receiver, compared with plain got with keep-alive at the same concurrency. */
export function benchDeliveries({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    // A lock has one first attempt under way at a time, so with twice as many locks some always wait.
    const setup = await ServeSetup.open(resources, { locks: 2 * CONCURRENCY, urls: 0 });
    await setup.generator.flood(DELIVERIES);
    const { host, urls } = await startReceivers(resources, 1);
    const body = JSON.stringify({ event_id: 'x'.repeat(50), padding: 'x'.repeat(400) });
    const senderRequest = { url: urls[0] ?? '', body, concurrency: CONCURRENCY } satisfies SenderRequest;
    const sender = resources.startScript('load/got-sender.js', senderRequest);
    await sender.readAnswer();
    const deliverWithLockgate = async (): Promise<number> => {
      const { id } = await setup.client.post<{ id: number }>('/webhooks', { url: urls[0], since: BEFORE_ALL_PINGS });
      const { ms } = await host.ask<TimeSpan>(`await ${DELIVERIES}`);
      await setup.client.post(`/webhooks/${id}/remove`, {});
      return DELIVERIES / (ms / 1000);
    };
    const deliverWithGot = async (): Promise<number> => {
      const arrived = host.ask<TimeSpan>(`await ${DELIVERIES}`);
      await sender.ask(String(DELIVERIES));
      return DELIVERIES / ((await arrived).ms / 1000);
    };
    const [rates, gotRates] = (await measureAlternating([deliverWithLockgate, deliverWithGot], roundCount(quick))).map(
      summarizeFigures,
    );
    if (rates === undefined || gotRates === undefined) throw new Error('nothing was measured');
    return {
      name: 'deliveries',
      title: 'webhook deliveries to one healthy receiver',
      unit: 'a second',
      rates,
      against: [
        ratioTo('plain got, signing and storing nothing', rates, gotRates, { floor: atLeast(0.5), aim: atLeast(0.9) }),
      ],
      details: [],
    };
  });
}

/**
 * The row `arrival`: from a ping's PUBACK to its webhook's arrival on an idle gateway, the 99th percentile per round.
 */
export function benchArrival({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const data = resources.makeFolder();
    await registerLocks(data, 1);
    const { port } = await startServe(resources, data);
    const measureArrivals = await startArrivals(resources, new GatewayClient({ data }), [port]);
    const p99s: number[] = [];
    for (let round = 0; round <= roundCount(quick); round++) {
      const lags = await measureArrivals(0, PINGS_PER_ROUND);
      // The first round is the warm-up.
      if (round > 0) p99s.push(percentile(lags, 0.99));
    }
    const rates = summarizeFigures(p99s);
    return {
      name: 'arrival',
      title: 'from PUBACK to the webhook’s arrival, unloaded, p99',
      unit: 'ms',
      rates,
      against: [withoutPeer(rates.median, 'ms', { floor: atMost(50, 'ms'), aim: atMost(10, 'ms') })],
      details: [],
    };
  });
}

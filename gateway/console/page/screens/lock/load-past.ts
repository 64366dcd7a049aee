/** Loads what the Lock screen shows of a lock's past: states, pings, findings, commands and deliveries. */
import { Days, Minutes } from '../../../../../proto/clock.js';
import type { TimeRange } from '../../../timeline/timeline-data.js';
import { merchantApi } from '../../api/merchant.js';
import type { Command, WebhookUrl } from '../../api/shapes.js';
import { runClock } from '../../app/run-clock.js';
import type { LockDelivery, LockPast } from '../../timeline/lock-timeline.js';

/** A lock that was heard for the first time lately has a shorter timeline, but none shorter than this. */
const MIN_SHOWN = Minutes(10);
const BEFORE_FIRST_PING = Minutes(1);
/** The maximum number of pings, commands and findings that are loaded, and of deliveries to each URL. */
const MAX_LOADED = 1000;
const MAX_DELIVERIES = 300;
/** The maximum number of URLs whose deliveries are loaded. */
const MAX_URLS = 6;

/** A lock's past, and the time that it covers. */
export interface LoadedPast {
  readonly whole: TimeRange;
  readonly past: LockPast;
}

/** @throws ApiFailure */
export async function loadPast(mac: string, days: number): Promise<LoadedPast> {
  const toMs = runClock.now();
  const fromMs = toMs - Days(days);
  const from = new Date(fromMs).toISOString();
  const [history, pings, findings, commands, deliveries] = await Promise.all([
    merchantApi.history(mac, { from }),
    merchantApi.pings(mac, { from, limit: MAX_LOADED }),
    merchantApi.findings(mac, { limit: MAX_LOADED }),
    // A viewer may not read commands.
    merchantApi.commands({ mac_addr: mac, limit: MAX_LOADED }).catch(() => ({ data: [] as Command[] })),
    loadDeliveries(mac, from),
  ]);
  const past = { history, pings: pings.data, findings: findings.data, commands: commands.data, deliveries };
  const firstMs = Math.min(toMs - MIN_SHOWN, ...pings.data.map(({ received_at }) => Date.parse(received_at)));
  return { whole: { fromMs: Math.max(fromMs, firstMs - BEFORE_FIRST_PING), toMs }, past };
}

async function loadDeliveries(mac: string, from: string): Promise<LockDelivery[]> {
  const { data: urls } = await merchantApi.webhooks();
  const loaded = urls.slice(0, MAX_URLS).map(async (url) => {
    const { data } = await merchantApi.deliveries(url.id, { mac_addr: mac, from, limit: MAX_DELIVERIES });
    return data.map((delivery) => ({ target: targetOf(url, urls), delivery }));
  });
  return (await Promise.all(loaded)).flat();
}

function targetOf({ id, origin }: WebhookUrl, urls: readonly WebhookUrl[]): string {
  return urls.some((url) => url.origin === origin && url.id !== id) ? `${origin} (${id})` : origin;
}

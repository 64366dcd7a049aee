/**
 * Loads what the Lock screen shows of a lock's past: states, pings, findings and deliveries. The first load has all of
 * it, later ones have what came since: open screens of busy locks must not delay pings. Makes no calls by itself.
 */
import { Days, type Milliseconds, Minutes, monotonicMs } from '../../../../../proto/clock.js';
import type { TimeRange } from '../../../timeline/timeline-data.js';
import type { ConsoleApi } from '../../api/console-calls.js';
import type { Finding, LockDelivery, LockHistory, Ping, WebhookUrl } from '../../api/shapes.js';
import { runClock } from '../../app/run-clock.js';
import type { LockPast } from '../../timeline/lock-timeline.js';
import { NewestItems } from './newest-items.js';

/** The timeline starts shortly before the first ping, but is never shorter than this. */
const MIN_SHOWN = Minutes(10);
const BEFORE_FIRST_PING = Minutes(1);
/**
 * A load has all of the past if the last such load was longer ago. It shows what loads of the newest can't: findings
 * that were withdrawn later, deliveries that were repeated, URLs that were added.
 */
const LOAD_ALL_AFTER: Milliseconds = Minutes(1);

/** The past without the lock's commands, which the screen loads by themselves. */
export type PastWithoutCommands = Omit<LockPast, 'commands'>;

/** A lock's past, and the time that it covers. */
export interface LoadedPast {
  readonly whole: TimeRange;
  readonly past: PastWithoutCommands;
  /** Whether there are older pings of this time, or older findings, that were not loaded. */
  readonly hasMore: { readonly pings: boolean; readonly findings: boolean };
}

export type PastCalls = Pick<ConsoleApi, 'history' | 'pings' | 'findings' | 'webhooks' | 'lockDeliveries'>;

/** What is known besides the lists. */
interface Known {
  /** When all was loaded, in the page's monotonic time. */
  readonly allAtMs: Milliseconds;
  /** The signs for which {@link history} was loaded. */
  readonly signs: string;
  readonly history: LockHistory;
  readonly urls: readonly WebhookUrl[];
  readonly deliveries: readonly LockDelivery[];
  /** The time of the load, by the run's clock. */
  readonly loadedToMs: number;
}

export class PastLoader {
  readonly #api: PastCalls;
  readonly #mac: string;
  readonly #days: number;
  readonly #monotonic: () => Milliseconds;
  readonly #pings: NewestItems<Ping>;
  readonly #findings: NewestItems<Finding>;
  #known: Known | null = null;
  /** The last load. Each begins after the one before, whose results it needs. */
  #running: Promise<unknown> = Promise.resolve();

  /** @param days how much of the past, up to the present */
  constructor(api: PastCalls, mac: string, days: number, monotonic: () => Milliseconds = monotonicMs) {
    [this.#api, this.#mac, this.#days, this.#monotonic] = [api, mac, days, monotonic];
    this.#pings = new NewestItems({
      load: (limit) => api.pings(mac, { from: this.#startAt(runClock.now()), limit }),
      idOf: ({ event_id }) => event_id,
    });
    this.#findings = new NewestItems({ load: (limit) => api.findings(mac, { limit }), idOf: ({ id }) => id });
  }

  /**
   * @param signs a text that changes when the lock enters another state, connects or disconnects
   * @throws ApiFailure
   */
  load(signs: string): Promise<LoadedPast> {
    const loading = this.#running.then(() => this.#loadNext(signs));
    this.#running = loading.catch(() => undefined);
    return loading;
  }

  async #loadNext(signs: string): Promise<LoadedPast> {
    const known = this.#known;
    const toMs = runClock.now();
    const isDue = known === null || this.#monotonic() - known.allAtMs >= LOAD_ALL_AFTER;
    this.#known = isDue ? await this.#loadAll(signs, toMs) : await this.#loadNew(known, signs, toMs);
    const [pings, findings] = [this.#pings, this.#findings];
    const firstMs = Math.min(toMs - MIN_SHOWN, ...pings.items.map(({ received_at }) => Date.parse(received_at)));
    const { history, deliveries } = this.#known;
    return {
      whole: { fromMs: Math.max(toMs - Days(this.#days), firstMs - BEFORE_FIRST_PING), toMs },
      past: { history, pings: pings.items, findings: findings.items, deliveries },
      hasMore: { pings: pings.hasMore, findings: findings.hasMore },
    };
  }

  async #loadAll(signs: string, toMs: number): Promise<Known> {
    const allAtMs = this.#monotonic();
    const from = this.#startAt(toMs);
    const [history, { urls, deliveries }] = await Promise.all([
      this.#api.history(this.#mac, { from }),
      this.#loadUrls(from),
      this.#pings.loadAll(),
      this.#findings.loadAll(),
    ]);
    return { allAtMs, signs, history, urls, deliveries, loadedToMs: toMs };
  }

  async #loadUrls(from: string): Promise<Pick<Known, 'urls' | 'deliveries'>> {
    const { data: urls } = await this.#api.webhooks();
    return { urls, deliveries: await this.#loadDeliveries(urls, from) };
  }

  async #loadNew(known: Known, signs: string, toMs: number): Promise<Known> {
    const from = firstToReload(known);
    const [history, deliveries] = await Promise.all([
      // The lock's messages alone change nothing here.
      signs === known.signs ? known.history : this.#api.history(this.#mac, { from: this.#startAt(toMs) }),
      this.#loadDeliveries(known.urls, from),
      this.#pings.loadNew(),
      this.#findings.loadNew(),
    ]);
    const earlier = known.deliveries.filter(({ delivery }) => delivery.received_at < from);
    return { ...known, signs, history, deliveries: [...deliveries, ...earlier], loadedToMs: toMs };
  }

  async #loadDeliveries(urls: readonly WebhookUrl[], from: string): Promise<readonly LockDelivery[]> {
    return urls.length === 0 ? [] : await this.#api.lockDeliveries(this.#mac, { from, urls });
  }

  /** Since when the past is loaded. */
  #startAt(nowMs: number): string {
    return new Date(nowMs - Days(this.#days)).toISOString();
  }
}

/**
 * The time of the first event whose deliveries may be others now: of the oldest that waits, or else, since URLs may be
 * behind, of the newest at the URL that is furthest behind.
 */
function firstToReload({ deliveries, loadedToMs }: Known): string {
  const newest = new Map<string, string>();
  const waiting: string[] = [];
  for (const { target, delivery } of deliveries) {
    const { received_at, state } = delivery;
    if (state === 'pending') waiting.push(received_at);
    if (received_at > (newest.get(target) ?? '')) newest.set(target, received_at);
  }
  // All are in the gateway's form of RFC 3339, so their order is that of the texts.
  return [...waiting, ...newest.values()].sort()[0] ?? new Date(loadedToMs).toISOString();
}

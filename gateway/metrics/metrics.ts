/**
 * Provides the values of the metrics in table.ts: counted from the gateway's events, or read from its parts at a
 * scrape. docs/contributing.md says how to add a metric.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Presence } from '../../proto/power/judge/presence.js';
import { isPingUplink, type Source } from '../../proto/wire/ping.js';
import { REASONS } from '../../proto/wire/reasons.js';
import type { GatewayEvents } from '../events.js';
import type { Health } from '../health/health.js';
import type { Descriptors } from '../network/descriptors.js';
import type { UrlBacklog } from '../store/contract/store-figures.js';
import { VERSION } from '../version.js';
import type { ReadFigures } from './figures.js';
import { MetricRegistry, type Reading } from './registry.js';

/** How many URLs have their own series; all further URLs share one. */
const MAX_URL_SERIES = 100;

const KNOWN_REASONS: ReadonlySet<string> = new Set(REASONS.map(({ name }) => name));

/** The values that are read from the gateway's parts at a scrape. */
export interface MetricSources {
  readonly connections: () => Iterable<Source>;
  readonly ingestWaiting: () => number;
  /** Figures that are read asynchronously. */
  readonly figures: () => Promise<ReadFigures>;
  readonly isCircuitOpen: (urlId: number) => boolean;
  /** When the certificate of the MQTT port expires, ms since the epoch; null without TLS. */
  readonly certificateEndMs: () => number | null;
  /** The number of unread notices of each kind. */
  readonly noticesUnread: () => Iterable<readonly [kind: string, unread: number]>;
  /** How many budgets of locks and their phones are exceeded. */
  readonly locksOverBudget: () => number;
  readonly locksUnjudged: () => number;
  readonly presences: () => Iterable<Presence['presence']>;
  /** By how much the machine's clock is ahead of the confirmed time, in ms; 0 if it is not in doubt. */
  readonly clockAheadMs: () => Milliseconds;
}

export class Metrics {
  readonly #registry = new MetricRegistry();
  #sources: MetricSources | undefined;

  constructor(events: GatewayEvents, health: Health, descriptors: Pick<Descriptors, 'open' | 'limit'>) {
    const registry = this.#registry;
    // A reading is a value, then the values of the metric's labels; a metric has any number of readings.
    registry.read('lockgate_build_info', () => [[1, VERSION]]);
    registry.read('lockgate_ready', () => [[health.isReady ? 1 : 0]]);
    registry.read('process_open_fds', () => known(descriptors.open));
    registry.read('process_max_fds', () => known(descriptors.limit));
    registry.read('process_resident_memory_bytes', () => [[process.memoryUsage.rss()]]);
    registry.read('process_cpu_seconds_total', () => {
      const { user, system } = process.cpuUsage();
      // Node counts microseconds.
      return [[(user + system) / 1e6]];
    });
    countConnections(events, registry);
    countUplinks(events, registry);
    countDeliveries(events, registry);
    countCommits(events, registry);
    countRequests(events, registry);
  }

  /** Sets the gateway's parts to read from, once they exist. */
  readFrom(sources: MetricSources): void {
    const registry = this.#registry;
    registry.read('lockgate_connections', () => countEach(['lock', 'phone'], sources.connections()));
    registry.read('lockgate_ingest_waiting', () => [[sources.ingestWaiting()]]);
    registry.read('lockgate_notices_unread', () => [...sources.noticesUnread()].map(([kind, count]) => [count, kind]));
    registry.read('lockgate_budgets_over', () => [[sources.locksOverBudget()]]);
    registry.read('lockgate_clock_ahead_seconds', () => [[sources.clockAheadMs() / Seconds(1)]]);
    registry.read('lockgate_locks_unjudged', () => [[sources.locksUnjudged()]]);
    registry.read('lockgate_certificate_end_seconds', () => {
      const endMs = sources.certificateEndMs();
      return endMs === null ? [] : [[endMs / Seconds(1)]];
    });
    this.#sources = sources;
  }

  /** Sets the figures that were read for this scrape. */
  #readScraped({ store, disk, oldestAgeMs }: ReadFigures, sources: MetricSources): void {
    const registry = this.#registry;
    const presences = [...sources.presences()];
    const neverSeen = Math.max((store?.locksInService ?? 0) - presences.length, 0);
    registry.read('lockgate_presence', () => addNeverSeen(countEach(PRESENCES, presences), neverSeen));
    registry.read('lockgate_store_bytes', () => (disk === undefined ? [] : [[disk.storeBytes]]));
    registry.read('lockgate_disk_free_bytes', () => (disk?.freeBytes == null ? [] : [[disk.freeBytes]]));
    const backlogs = store?.backlogs ?? [];
    const ofEach = (value: (backlog: UrlBacklog) => number): Iterable<Reading> =>
      limitSeries(backlogs.map((backlog) => [backlog.urlId, value(backlog)]));
    registry.read('lockgate_deliveries_waiting', () => ofEach(({ behind, pending }) => behind + pending));
    registry.read('lockgate_url_events', () => urlEvents(ofEach));
    // Ages and states can't be summed up, so only the first URLs have them.
    const firstUrls = backlogs.slice(0, MAX_URL_SERIES);
    const ofFirst = (value: (backlog: UrlBacklog) => number): Iterable<Reading> =>
      firstUrls.map((backlog) => [value(backlog), String(backlog.urlId)]);
    registry.read('lockgate_url_oldest_seconds', () => ofFirst((url) => (oldestAgeMs(url) ?? 0) / Seconds(1)));
    registry.read('lockgate_url_circuit_open', () => ofFirst(({ urlId }) => Number(sources.isCircuitOpen(urlId))));
    registry.read('lockgate_url_disabled', () => ofFirst(({ isDisabled }) => Number(isDisabled)));
  }

  /** Records a measured delay of the event loop. */
  noteDelay(delay: Milliseconds): void {
    this.#registry.histogram('lockgate_event_loop_delay_seconds').observe(inSeconds(delay));
  }

  /** All metrics, in Prometheus' text format. */
  async text(): Promise<{ readonly contentType: string; readonly body: string }> {
    if (this.#sources !== undefined) this.#readScraped(await this.#sources.figures(), this.#sources);
    return await this.#registry.text();
  }
}

/** The presences that have a series even while no lock has them. */
const PRESENCES: readonly Presence['presence'][] = ['never-seen', 'online', 'asleep', 'late'];

function countConnections(events: GatewayEvents, registry: MetricRegistry): void {
  const connects = registry.tally('lockgate_connects_total');
  const disconnects = registry.tally('lockgate_disconnects_total');
  const refusals = registry.tally('lockgate_refusals_total');
  events.on('connected', ({ source }) => connects.add(source));
  events.on('disconnected', ({ cause }) => disconnects.add(cause));
  events.on('refused', ({ what, reason }) => refusals.add(what, reason));
}

function countUplinks(events: GatewayEvents, registry: MetricRegistry): void {
  const uplinks = registry.tally('lockgate_uplinks_total');
  const pings = registry.tally('lockgate_pings_total');
  const quarantined = registry.tally('lockgate_quarantined_total');
  const findings = registry.tally('lockgate_findings_total');
  const ack = registry.histogram('lockgate_ack_seconds');
  events.on('stored', (stored) => {
    for (const { uplink, repeated, findings: uplinkFindings } of stored.uplinks) {
      uplinks.add(uplink.body.kind, repeated ? 'repeat' : 'new');
      if (!repeated && isPingUplink(uplink)) {
        const { reason } = uplink.body;
        pings.add(KNOWN_REASONS.has(reason) ? reason : 'unrecognized');
      }
      for (const { rule, severity } of uplinkFindings) findings.add(rule, severity);
    }
  });
  events.on('finding', ({ finding: { rule, severity } }) => findings.add(rule, severity));
  events.on('quarantined', ({ code }) => quarantined.add(code));
  events.on('acknowledged', ({ durationMs }) => ack.observe(inSeconds(durationMs)));
}

function countDeliveries(events: GatewayEvents, registry: MetricRegistry): void {
  const attempts = registry.tally('lockgate_delivery_attempts_total');
  const disabled = registry.tally('lockgate_urls_disabled_total');
  const duration = registry.histogram('lockgate_delivery_seconds');
  events.on('delivery', ({ outcome, durationMs }) => {
    attempts.add(outcome);
    duration.observe(inSeconds(durationMs));
  });
  events.on('url-disabled', () => disabled.add());
}

function countCommits(events: GatewayEvents, registry: MetricRegistry): void {
  const failures = registry.tally('lockgate_store_failures_total');
  const duration = registry.histogram('lockgate_store_commit_seconds');
  const rows = registry.histogram('lockgate_store_commit_rows');
  events.on('commit', ({ what, failure, durationMs, rows: count }) => {
    if (failure !== undefined) {
      failures.add(what, failure);
      return;
    }
    duration.observe({ what }, inSeconds(durationMs));
    rows.observe({ what }, count);
  });
}

function countRequests(events: GatewayEvents, registry: MetricRegistry): void {
  const requests = registry.tally('lockgate_http_requests_total');
  const duration = registry.histogram('lockgate_http_seconds');
  events.on('request', ({ route, status, durationMs }) => {
    requests.add(route, String(status));
    duration.observe({ route }, inSeconds(durationMs));
  });
}

function inSeconds(duration: Milliseconds): number {
  return duration / Seconds(1);
}

/** One reading without labels; none if the value is unknown. */
function known(value: number | undefined): Reading[] {
  return value === undefined ? [] : [[value]];
}

/** How often each of `names` occurs in `occurrences`, including 0. */
function* countEach<Name extends string>(names: readonly Name[], occurrences: Iterable<Name>): Iterable<Reading> {
  const counts = new Map<Name, number>(names.map((name) => [name, 0]));
  for (const name of occurrences) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const [name, count] of counts) yield [count, name];
}

/** Adds locks that have never done anything, which the gateway does not have in memory, to those never seen. */
function* addNeverSeen(readings: Iterable<Reading>, neverSeen: number): Iterable<Reading> {
  for (const [count, presence = ''] of readings)
    yield [presence === 'never-seen' ? count + neverSeen : count, presence];
}

const URL_STATES = ['behind', 'pending', 'dead', 'damaged'] as const;

/** The number of events in each state at each URL. */
function* urlEvents(ofEach: (value: (backlog: UrlBacklog) => number) => Iterable<Reading>): Iterable<Reading> {
  for (const state of URL_STATES) {
    for (const [count, urlId = ''] of ofEach((backlog) => backlog[state])) yield [count, urlId, state];
  }
}

/** A reading for each of the first URLs, and one with the sum of all further URLs. */
function* limitSeries(countByUrl: Iterable<readonly [urlId: number, count: number]>): Iterable<Reading> {
  let urls = 0;
  let sumOfOthers = 0;
  for (const [urlId, count] of countByUrl) {
    urls += 1;
    if (urls <= MAX_URL_SERIES) yield [count, String(urlId)];
    else sumOfOthers += count;
  }
  if (urls > MAX_URL_SERIES) yield [sumOfOthers, 'others'];
}

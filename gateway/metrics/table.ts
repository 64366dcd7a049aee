/**
 * The table of all metrics in `/metrics`: name, type, labels and meaning. README.md of this folder has the same table,
 * and a test compares the two.
 *
 * A label has few values, known in advance or made by lockgate: never a MAC, a URL, a secret or text from a stranger.
 */

export interface MetricRow {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** A histogram's upper bounds. */
  readonly buckets?: readonly number[];
}

/** In seconds: from half a millisecond, the fastest fsync, to ten seconds, which nothing should take. */
const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** In seconds: a delivery lasts 15 s at most. */
const DELIVERY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
/** In rows. */
const BATCH_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
/** In seconds. */
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5];

export const METRICS = [
  { name: 'lockgate_build_info', type: 'gauge', labels: ['version'], help: 'Always 1; the version is a label.' },
  { name: 'lockgate_ready', type: 'gauge', labels: [], help: 'Whether /readyz says ready: 1 or 0.' },
  {
    name: 'lockgate_connections',
    type: 'gauge',
    labels: ['source'],
    help: 'Authenticated connections now, of locks and of phones.',
  },
  { name: 'lockgate_connects_total', type: 'counter', labels: ['source'], help: 'Connections that were accepted.' },
  {
    name: 'lockgate_disconnects_total',
    type: 'counter',
    labels: ['cause'],
    help: 'Accepted connections that ended, by what ended them.',
  },
  {
    name: 'lockgate_refusals_total',
    type: 'counter',
    labels: ['what', 'reason'],
    help: 'A CONNECT, PUBLISH or SUBSCRIBE that was refused, by the kind of reason.',
  },
  {
    name: 'lockgate_uplinks_total',
    type: 'counter',
    labels: ['kind', 'copy'],
    help: 'Uplinks that were decoded and stored, new ones and repeats.',
  },
  {
    name: 'lockgate_pings_total',
    type: 'counter',
    labels: ['reason'],
    help: 'New pings by their reason; unrecognized for any reason that is not in the table of reasons.',
  },
  {
    name: 'lockgate_quarantined_total',
    type: 'counter',
    labels: ['code'],
    help: 'Uplinks that could not be accepted, by what was wrong with them.',
  },
  {
    name: 'lockgate_findings_total',
    type: 'counter',
    labels: ['rule', 'severity'],
    help: 'Findings of the judge, by rule.',
  },
  {
    name: 'lockgate_presence',
    type: 'gauge',
    labels: ['presence'],
    help: 'Locks in service, by what their connection or silence means now.',
  },
  {
    name: 'lockgate_budgets_over',
    type: 'gauge',
    labels: [],
    help: 'Locks, and locks’ phones, that send more than they may and are read more slowly.',
  },
  {
    name: 'lockgate_clock_ahead_seconds',
    type: 'gauge',
    labels: [],
    help: 'By how much the machine’s clock is ahead of the trusted time, or behind (negative); 0 while they agree.',
  },
  {
    name: 'lockgate_locks_unjudged',
    type: 'gauge',
    labels: [],
    help: 'Locks that are not judged, because the judge failed or their states can’t be read.',
  },
  {
    name: 'lockgate_ack_seconds',
    type: 'histogram',
    labels: [],
    help: 'From the arrival of a publish at QoS 1 to the handing of its PUBACK to the socket.',
    buckets: LATENCY_BUCKETS,
  },
  { name: 'lockgate_ingest_waiting', type: 'gauge', labels: [], help: 'Uplinks that wait for a commit.' },
  {
    name: 'lockgate_deliveries_waiting',
    type: 'gauge',
    labels: ['url_id'],
    help: 'Events without an outcome, for the first 100 URLs each, and for all further URLs together.',
  },
  {
    name: 'lockgate_url_events',
    type: 'gauge',
    labels: ['url_id', 'state'],
    help: 'Events that a URL has not received: behind (not reached by its cursor), pending, dead or damaged.',
  },
  {
    name: 'lockgate_url_oldest_seconds',
    type: 'gauge',
    labels: ['url_id'],
    help: 'Age of the oldest event without an outcome, by the run’s clock; 0 where there is none.',
  },
  {
    name: 'lockgate_url_circuit_open',
    type: 'gauge',
    labels: ['url_id'],
    help: 'Whether every attempt at the URL fails, so that it gets only probes: 1 or 0.',
  },
  {
    name: 'lockgate_url_disabled',
    type: 'gauge',
    labels: ['url_id'],
    help: 'Whether the URL is disabled: 1 or 0.',
  },
  {
    name: 'lockgate_delivery_attempts_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Attempts at webhooks: delivered, pending (to be tried again) or dead (given up).',
  },
  {
    name: 'lockgate_delivery_seconds',
    type: 'histogram',
    labels: [],
    help: 'How long an attempt at a webhook took.',
    buckets: DELIVERY_BUCKETS,
  },
  {
    name: 'lockgate_notices_unread',
    type: 'gauge',
    labels: ['kind'],
    help: 'Unread notices for operators, by kind.',
  },
  { name: 'lockgate_urls_disabled_total', type: 'counter', labels: [], help: 'Webhook URLs that were disabled.' },
  {
    name: 'lockgate_store_commit_seconds',
    type: 'histogram',
    labels: ['what'],
    help: 'How long a durable write took, including its wait for the one before; the count is that of commits.',
    buckets: LATENCY_BUCKETS,
  },
  {
    name: 'lockgate_store_commit_rows',
    type: 'histogram',
    labels: ['what'],
    help: 'The size of one durable write: uplinks and other log entries, or outcomes of deliveries.',
    buckets: BATCH_BUCKETS,
  },
  {
    name: 'lockgate_http_requests_total',
    type: 'counter',
    labels: ['route', 'status'],
    help: 'Calls of the merchants’ interface that were answered; (none) is the route of every unknown path.',
  },
  {
    name: 'lockgate_http_seconds',
    type: 'histogram',
    labels: ['route'],
    help: 'How long a call of the merchants’ interface took, from its head to the end of its answer.',
    buckets: LATENCY_BUCKETS,
  },
  {
    name: 'lockgate_store_failures_total',
    type: 'counter',
    labels: ['what', 'kind'],
    help: 'Durable writes that failed: full, io, busy, away (the database can’t be reached), fenced or other.',
  },
  {
    name: 'lockgate_event_loop_delay_seconds',
    type: 'histogram',
    labels: [],
    help: 'How late a timer fires that is set every 0.1 s.',
    buckets: DELAY_BUCKETS,
  },
  { name: 'process_open_fds', type: 'gauge', labels: [], help: 'Descriptors in use: open files and connections.' },
  { name: 'process_max_fds', type: 'gauge', labels: [], help: 'Maximum number of descriptors of the process.' },
  {
    name: 'lockgate_store_bytes',
    type: 'gauge',
    labels: [],
    help: 'The size of the store’s files on the disk, including the WAL.',
  },
  {
    name: 'lockgate_disk_free_bytes',
    type: 'gauge',
    labels: [],
    help: 'Free space on the disk of the data folder.',
  },
  {
    name: 'lockgate_certificate_end_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the certificate of the MQTT port expires, in seconds since 1970; absent without TLS.',
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    labels: [],
    help: 'Resident memory of the process.',
  },
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    labels: [],
    help: 'CPU time of the process, user and system together.',
  },
] as const satisfies readonly MetricRow[];

export type MetricName = (typeof METRICS)[number]['name'];

/**
 * The alert rules for Prometheus: when a person should look, and at what. {@link alertRulesText} makes the file
 * deploy/monitoring/alerts.yaml of them. Each rule names a trouble that lasts; what ends by itself is on the dashboard.
 */
import type { MetricName } from '../table.js';

/**
 * How urgent an alert is. Critical: pings are not acknowledged, or soon will not be. Warning: a person has to mend
 * something. Info: a person should know.
 */
export type AlertSeverity = 'critical' | 'warning' | 'info';

/** A row of {@link ALERTS}. */
export interface Alert {
  /** The name, as Prometheus shows it. */
  readonly alert: string;
  /** A query of PromQL; the alert fires for each series in its result. */
  readonly expr: string;
  /** How long the query must have had a result. */
  readonly for: string;
  readonly severity: AlertSeverity;
  /** What is wrong. */
  readonly summary: string;
  /** What to do first. */
  readonly advice: string;
}

/** The name of a metric, which the compiler compares with the table. */
const metric = (name: MetricName): MetricName => name;

/**
 * A query for counters that have grown in the last `span`. `increase` does not see a series whose first value is
 * already more than 0. The second part finds it, if Prometheus saw the gateway before without this series.
 */
function grew(name: MetricName, span: string, labels = ''): string {
  const series = `${name}${labels}`;
  const wasSeen = `and on (instance) ${metric('lockgate_ready')} offset ${span}`;
  return `(increase(${series}[${span}]) > 0) or ((${series} unless ${series} offset ${span}) > 0 ${wasSeen})`;
}

/** A query for a quantile of a histogram over five minutes, for each gateway. */
function quantile(share: number, name: MetricName): string {
  return `histogram_quantile(${share}, sum by (le, instance) (rate(${name}_bucket[5m])))`;
}

/** A query for the locks of each gateway, all or those with a label. */
function locksBy(label: string): string {
  return `sum by (instance) (${metric('lockgate_presence')}${label})`;
}

/** Every alert, the most serious first. */
export const ALERTS: readonly Alert[] = [
  {
    alert: 'LockgateDown',
    expr: 'up{job="lockgate"} == 0',
    for: '1m',
    severity: 'critical',
    summary: 'The gateway {{ $labels.instance }} does not answer.',
    advice: 'Look at its log: journalctl -u lockgate. Locks keep their pings and send them later.',
  },
  {
    alert: 'LockgateNotReady',
    expr: `${metric('lockgate_ready')} == 0`,
    for: '1m',
    severity: 'critical',
    summary: 'The gateway {{ $labels.instance }} runs, but takes no pings.',
    advice: 'lockgate status says why; often the disk is full.',
  },
  {
    alert: 'LockgateStoreFails',
    expr: grew('lockgate_store_failures_total', '5m'),
    for: '0m',
    severity: 'critical',
    summary: 'A durable write failed ({{ $labels.kind }}).',
    advice: 'Check the disk and its free space; the log names the error.',
  },
  {
    alert: 'LockgateDiskLow',
    expr: `${metric('lockgate_disk_free_bytes')} < 1e9`,
    for: '5m',
    severity: 'critical',
    summary: 'Less than 1 GB is free on the disk of the data folder.',
    advice: 'Make room, or shorten --keep-days. Without room, pings are no longer acknowledged.',
  },
  {
    alert: 'LockgateDescriptorsLow',
    expr: `${metric('process_open_fds')} / ${metric('process_max_fds')} > 0.8`,
    for: '5m',
    severity: 'warning',
    summary: 'Over 80 % of the descriptors are in use, so new connections will soon be refused.',
    advice: 'Raise LimitNOFILE of the service, or the limit of ulimit -n.',
  },
  {
    alert: 'LockgateCertificateEnds',
    expr: `${metric('lockgate_certificate_end_seconds')} - time() < 14 * 86400`,
    for: '1h',
    severity: 'warning',
    summary: 'The certificate of the MQTT port expires within 14 days.',
    advice: 'Renew it, then send SIGHUP (systemctl reload lockgate).',
  },
  {
    alert: 'LockgateClockDoubted',
    expr: `${metric('lockgate_clock_ahead_seconds')} != 0`,
    for: '5m',
    severity: 'warning',
    summary: 'The machine’s clock differs from the trusted time by {{ $value | humanizeDuration }}.',
    advice: 'Check the date; if it is right: lockgate config confirm-clock.',
  },
  {
    alert: 'LockgateLocksUnjudged',
    expr: `${metric('lockgate_locks_unjudged')} > 0`,
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} locks are not judged, though their pings are stored and delivered.',
    advice: 'lockgate notices names them; lockgate device rejudge MAC tries again.',
  },
  {
    alert: 'LockgateAcksSlow',
    expr: `${quantile(0.99, 'lockgate_ack_seconds')} > 0.5`,
    for: '5m',
    severity: 'warning',
    summary: 'One in a hundred pings waits over 0.5 s for its acknowledgement.',
    advice: 'Compare the dashboard’s commits and event loop: a slow disk, or too little CPU.',
  },
  {
    alert: 'LockgateLocksLate',
    expr: `${locksBy('{presence="late"}')} / ${locksBy('')} > 0.2`,
    for: '15m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the locks are late.',
    advice: 'Many at once point to the network or the MQTT port rather than to locks: lockgate tail shows refusals.',
  },
  {
    alert: 'LockgateUplinksQuarantined',
    expr: grew('lockgate_quarantined_total', '15m'),
    for: '0m',
    severity: 'warning',
    summary: 'Uplinks can’t be decoded or accepted ({{ $labels.code }}).',
    advice: 'lockgate tail names the locks; lockgate device show MAC lists the uplinks.',
  },
  {
    alert: 'LockgateWebhookFails',
    expr: `${metric('lockgate_url_circuit_open')} == 1`,
    for: '10m',
    severity: 'warning',
    summary: 'Every attempt at webhook URL {{ $labels.url_id }} fails.',
    advice: 'lockgate webhook show {{ $labels.url_id }} has the last error. Events wait and are not lost.',
  },
  {
    alert: 'LockgateWebhookDisabled',
    expr: `${metric('lockgate_url_disabled')} == 1`,
    for: '1m',
    severity: 'warning',
    summary: 'Webhook URL {{ $labels.url_id }} is disabled; its events are kept.',
    advice: 'When the receiver works: lockgate webhook set {{ $labels.url_id }} --enable, then webhook recover.',
  },
  {
    alert: 'LockgateWebhookBehind',
    expr: `${metric('lockgate_url_oldest_seconds')} > 3600`,
    for: '5m',
    severity: 'warning',
    summary: 'The oldest event of webhook URL {{ $labels.url_id }} has waited for {{ $value | humanizeDuration }}.',
    advice: 'lockgate webhook show {{ $labels.url_id }} has its backlog and its last error.',
  },
  {
    alert: 'LockgateEventsDead',
    expr: grew('lockgate_delivery_attempts_total', '1h', '{outcome="dead"}'),
    for: '0m',
    severity: 'warning',
    summary: 'Deliveries were given up after their last attempt.',
    advice: 'lockgate webhook deliveries --state dead lists them; webhook recover sends them again.',
  },
  {
    alert: 'LockgateEventsDamaged',
    expr: `${metric('lockgate_url_events')}{state="damaged"} > 0`,
    for: '0m',
    severity: 'warning',
    summary: '{{ $value }} events of webhook URL {{ $labels.url_id }} are corrupt on the disk and are not sent.',
    advice: 'lockgate db check, on a backup; then look at the disk.',
  },
  {
    alert: 'LockgateServerErrors',
    // A tile server that fails costs streets of a map; the log says so.
    expr: grew('lockgate_http_requests_total', '5m', '{status=~"5..",route!="/console/tiles/:z/:x/:y"}'),
    for: '0m',
    severity: 'warning',
    summary: 'The merchants’ interface answered {{ $labels.status }} to {{ $labels.route }}.',
    advice: 'The log has the error, with the request’s id.',
  },
  {
    alert: 'LockgateNoticesUnread',
    expr: `sum by (instance, kind) (${metric('lockgate_notices_unread')}) > 0`,
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} notices of the kind {{ $labels.kind }} have been unread for an hour.',
    advice: 'lockgate notices',
  },
];

const HEAD = `# Alert rules for Prometheus, which npm run gen makes from gateway/metrics/monitoring/alerts.ts.
# They expect a job named lockgate. README.md of this folder says how to use them.
groups:
  - name: lockgate
    rules:
`;

/** The longest line of the file, apart from single words. */
const MAX_COLUMNS = 110;

/** A text as a folded block of YAML below a key with this indentation: its line breaks are blanks. */
function folded(text: string, indent: number): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + indent < MAX_COLUMNS) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return `>-\n${lines.map((line) => `${' '.repeat(indent + 2)}${line}`).join('\n')}`;
}

/** The file of alert rules, in YAML. */
export function alertRulesText(): string {
  const rules = ALERTS.map(
    ({ alert, expr, for: lasting, severity, summary, advice }) => `      - alert: ${alert}
        expr: ${folded(expr, 8)}
        for: ${lasting}
        labels: { severity: ${severity} }
        annotations:
          summary: ${folded(summary, 10)}
          description: ${folded(advice, 10)}
`,
  );
  return HEAD + rules.join('');
}

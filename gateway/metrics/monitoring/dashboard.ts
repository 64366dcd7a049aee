/**
 * The Grafana dashboard: a panel for each metric of the table, in sections. {@link dashboardText} makes the file
 * deploy/monitoring/dashboard.json.
 */
import { METRICS, type MetricName, type MetricRow } from '../table.js';

/** The sections, from top to bottom, and their metrics. A test finds each metric of the table in one of them. */
export const SECTIONS: readonly (readonly [title: string, metrics: readonly MetricName[]])[] = [
  [
    'Is all well?',
    [
      'lockgate_ready',
      'lockgate_build_info',
      'lockgate_presence',
      'lockgate_notices_unread',
      'lockgate_locks_unjudged',
      'lockgate_clock_ahead_seconds',
      'lockgate_certificate_end_seconds',
    ],
  ],
  [
    'Pings',
    [
      'lockgate_uplinks_total',
      'lockgate_pings_total',
      'lockgate_ack_seconds',
      'lockgate_ingest_waiting',
      'lockgate_quarantined_total',
      'lockgate_findings_total',
    ],
  ],
  [
    'Connections',
    [
      'lockgate_connections',
      'lockgate_connects_total',
      'lockgate_disconnects_total',
      'lockgate_refusals_total',
      'lockgate_budgets_over',
    ],
  ],
  [
    'Webhooks',
    [
      'lockgate_delivery_attempts_total',
      'lockgate_delivery_seconds',
      'lockgate_deliveries_waiting',
      'lockgate_url_events',
      'lockgate_url_oldest_seconds',
      'lockgate_url_circuit_open',
      'lockgate_url_disabled',
      'lockgate_urls_disabled_total',
    ],
  ],
  ['Merchants’ interface', ['lockgate_http_requests_total', 'lockgate_http_seconds']],
  [
    'Store and process',
    [
      'lockgate_store_commit_seconds',
      'lockgate_store_commit_rows',
      'lockgate_store_failures_total',
      'lockgate_store_bytes',
      'lockgate_disk_free_bytes',
      'lockgate_event_loop_delay_seconds',
      'process_open_fds',
      'process_max_fds',
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
    ],
  ],
];

/** A query of a panel, and the name of its series. */
interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

/** The grid has 24 columns. */
const GRID = { columns: 24, width: 8, height: 7 } as const;
/** Only series of the gateways that are selected at the top of the dashboard. */
const SELECTED = 'instance=~"$instance"';
const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
/** The metrics that are shown as a single value and not as a line. */
const STATS: readonly MetricName[] = ['lockgate_ready', 'lockgate_build_info', 'lockgate_certificate_end_seconds'];

/** The queries for a metric: its value, its rate, or the median and the slowest one in a hundred. */
export function targetsOf({ name, type, labels }: MetricRow): readonly Target[] {
  const by = ['instance', ...labels];
  const legend = by.map((label) => `{{${label}}}`).join(' ');
  if (name === 'lockgate_certificate_end_seconds')
    return [{ expr: `${name}{${SELECTED}} - time()`, legendFormat: legend }];
  if (type === 'gauge') return [{ expr: `${name}{${SELECTED}}`, legendFormat: legend }];
  if (type === 'counter')
    return [{ expr: `sum by (${by.join(', ')}) (rate(${name}{${SELECTED}}[$__rate_interval]))`, legendFormat: legend }];
  const rate = `sum by (${['le', ...by].join(', ')}) (rate(${name}_bucket{${SELECTED}}[$__rate_interval]))`;
  return [0.5, 0.99].map((share) => ({
    expr: `histogram_quantile(${share}, ${rate})`,
    legendFormat: `${share === 0.5 ? 'median' : 'p99'} ${legend}`,
  }));
}

/** Grafana's unit for a metric's panel. */
function unitOf({ name, type }: MetricRow): string {
  if (/_seconds(_total)?$/.test(name)) return name === 'process_cpu_seconds_total' ? 'percentunit' : 's';
  if (/_bytes$/.test(name)) return 'bytes';
  return type === 'counter' ? 'cps' : 'short';
}

function panelOf(row: MetricRow, id: number, x: number, y: number): Record<string, unknown> {
  const rate = row.type === 'counter' ? ' Per second.' : '';
  return {
    id,
    type: STATS.includes(row.name as MetricName) ? 'stat' : 'timeseries',
    title: row.name.replace(/^lockgate_|_total$/g, '').replaceAll('_', ' '),
    description: `${row.help}${rate}`,
    datasource: DATASOURCE,
    gridPos: { x, y, w: GRID.width, h: GRID.height },
    fieldConfig: {
      defaults: { unit: unitOf(row), min: row.name === 'lockgate_clock_ahead_seconds' ? null : 0 },
      overrides: [],
    },
    targets: targetsOf(row).map((target, index) => ({ refId: 'AB'[index], datasource: DATASOURCE, ...target })),
  };
}

/** The rows and panels, each with its place on the grid. */
function panels(): readonly Record<string, unknown>[] {
  const placed: Record<string, unknown>[] = [];
  let y = 0;
  for (const [title, names] of SECTIONS) {
    placed.push({
      id: placed.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: GRID.columns, h: 1 },
      panels: [],
    });
    y += 1;
    names.forEach((name, index) => {
      const row = METRICS.find((each) => each.name === name) as MetricRow;
      const x = (index * GRID.width) % GRID.columns;
      placed.push(
        panelOf(row, placed.length + 1, x, y + Math.floor((index * GRID.width) / GRID.columns) * GRID.height),
      );
    });
    y += Math.ceil((names.length * GRID.width) / GRID.columns) * GRID.height;
  }
  return placed;
}

/** The dashboard, as JSON that Grafana imports. */
export function dashboardText(): string {
  const instances = { query: 'label_values(lockgate_build_info, instance)', refId: 'instances' };
  const dashboard = {
    title: 'lockgate',
    uid: 'lockgate',
    description: 'Made from the table of metrics by npm run gen.',
    tags: ['lockgate'],
    timezone: 'utc',
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Prometheus' },
        {
          name: 'instance',
          type: 'query',
          label: 'Gateway',
          datasource: DATASOURCE,
          query: instances,
          refresh: 2,
          multi: true,
          includeAll: true,
          current: { text: 'All', value: '$__all' },
        },
      ],
    },
    panels: panels(),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

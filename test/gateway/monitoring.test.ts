/**
 * The dashboard and the alert rules in deploy/monitoring name metrics that exist, and Prometheus' own tool fires each
 * alert when it should: on made-up values that just reach its limit, and some on what a real gateway in trouble serves.
 * Real gateways provoke the others in test/deploy/alerts.slow.test.ts.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ALERTS, alertRulesText } from '../../gateway/metrics/monitoring/alerts.js';
import { dashboardText, SECTIONS, targetsOf } from '../../gateway/metrics/monitoring/dashboard.js';
import { METRICS, type MetricRow } from '../../gateway/metrics/table.js';
import { ALERTS_FILE, checkFired, needsTool, type Series, scrape, seriesOf } from '../helpers/deploy/alert-cases.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { root } from '../helpers/house/our-files.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { FillingStore } from '../helpers/store/store-faults.js';

t.test('the files are up to date', async (t) => {
  t.equal(readFileSync(ALERTS_FILE, 'utf8'), alertRulesText(), 'npm run gen');
  const dashboard = readFileSync(path.join(root, 'deploy/monitoring/dashboard.json'), 'utf8');
  t.equal(dashboard, dashboardText(), 'npm run gen');
});

/** The faults of a query: metrics that the table lacks, and labels that they do not have. */
function faultsOf(expr: string): string[] {
  const faults: string[] = [];
  for (const [, name = '', labels = ''] of expr.matchAll(/\b((?:lockgate|process)_\w+)(?:\{([^}]*)\})?/g)) {
    const row: MetricRow | undefined = METRICS.find((each) => each.name === name.replace(/_bucket$/, ''));
    if (row === undefined || name.endsWith('_bucket') !== (row.type === 'histogram')) faults.push(name);
    for (const [, label = ''] of labels.matchAll(/(\w+)=/g))
      if (label !== 'instance' && !row?.labels.includes(label)) faults.push(`${name}{${label}}`);
  }
  return faults;
}

t.test('each figure that alerts and dashboard name exists, and the dashboard has every one', async (t) => {
  t.same(faultsOf('lockgate_nothing + lockgate_ready{no="1"} + lockgate_ack_seconds'), [
    ...['lockgate_nothing', 'lockgate_ready{no}', 'lockgate_ack_seconds'],
  ]);
  for (const { alert, expr } of ALERTS) t.same(faultsOf(expr), [], alert);
  for (const row of METRICS) for (const { expr } of targetsOf(row)) t.same(faultsOf(expr), [], row.name);
  t.same(SECTIONS.flatMap(([, names]) => names).sort(), METRICS.map(({ name }) => name).sort());
  const { panels } = JSON.parse(dashboardText());
  t.equal(panels.length, METRICS.length + SECTIONS.length);
  t.equal(new Set(panels.map(({ id }: { id: number }) => id)).size, panels.length, 'ids are unique');
});

/** A histogram that has 100 more acknowledgements at each scrape, of which `slow` took longer than half a second. */
const slowAcks = (slow: number): Series => ({
  'lockgate_ack_seconds_bucket{le="0.5"}': `0+${100 - slow}x100`,
  'lockgate_ack_seconds_bucket{le="1"}': '0+100x100',
  'lockgate_ack_seconds_bucket{le="+Inf"}': '0+100x100',
});
/** Days in seconds: time 0 is when the values begin. */
const days = (count: number) => count * 86_400;

/** For each alert values that fire it, and values that come close (`_x9`: nothing for nine minutes). */
const CASES: Readonly<Record<string, readonly [fires: Series, quiet: Series]>> = {
  LockgateDown: [
    { 'up{job="lockgate"}': '1 0+0x9' },
    { 'up{job="lockgate"}': '1 0 1+0x9', 'up{job="other"}': '0+0x9' },
  ],
  LockgateNotReady: [{ lockgate_ready: '1 0 0 1' }, { lockgate_ready: '1 0 1' }],
  LockgateStoreFails: [
    { 'lockgate_store_failures_total{kind="full"}': '_x9 1+0x50', lockgate_ready: '1+0x60' },
    { 'lockgate_store_failures_total{kind="full"}': '7+0x100', lockgate_ready: '1+0x100' },
  ],
  LockgateDiskLow: [{ lockgate_disk_free_bytes: '999999999+0x9' }, { lockgate_disk_free_bytes: '1e9+0x9' }],
  LockgateDescriptorsLow: [
    { process_open_fds: '81+0x9', process_max_fds: '100+0x9' },
    { process_open_fds: '80+0x9', process_max_fds: '100+0x9' },
  ],
  LockgateCertificateEnds: [
    { lockgate_certificate_end_seconds: `${days(14)}+0x100` },
    { lockgate_certificate_end_seconds: `${days(15)}+0x100` },
  ],
  LockgateClockDoubted: [{ lockgate_clock_ahead_seconds: '-90000+0x9' }, { lockgate_clock_ahead_seconds: '0+0x9' }],
  LockgateLocksUnjudged: [{ lockgate_locks_unjudged: '1+0x9' }, { lockgate_locks_unjudged: '1+0x4 0+0x9' }],
  LockgateAcksSlow: [slowAcks(2), slowAcks(0.5)],
  LockgateLocksLate: [
    { 'lockgate_presence{presence="late"}': '21+0x20', 'lockgate_presence{presence="online"}': '79+0x20' },
    { 'lockgate_presence{presence="late"}': '20+0x20', 'lockgate_presence{presence="online"}': '80+0x20' },
  ],
  LockgateUplinksQuarantined: [
    { 'lockgate_quarantined_total{code="truncated"}': '3+0x50 4+0x50' },
    { 'lockgate_quarantined_total{code="truncated"}': '3+0x100' },
  ],
  LockgateWebhookFails: [
    { 'lockgate_url_circuit_open{url_id="1"}': '1+0x12' },
    { 'lockgate_url_circuit_open{url_id="1"}': '1+0x8 0+0x9' },
  ],
  LockgateWebhookDisabled: [
    { 'lockgate_url_disabled{url_id="1"}': '1+0x3' },
    { 'lockgate_url_disabled{url_id="1"}': '0+0x9' },
  ],
  LockgateWebhookBehind: [
    { 'lockgate_url_oldest_seconds{url_id="1"}': '3601+0x9' },
    { 'lockgate_url_oldest_seconds{url_id="1"}': '3600+0x9' },
  ],
  LockgateEventsDead: [
    { 'lockgate_delivery_attempts_total{outcome="dead"}': '2+0x80 3+0x9' },
    { 'lockgate_delivery_attempts_total{outcome="pending"}': '2+0x80 3+0x9' },
  ],
  LockgateEventsDamaged: [
    { 'lockgate_url_events{url_id="1",state="damaged"}': '1' },
    { 'lockgate_url_events{url_id="1",state="dead"}': '1', 'lockgate_url_events{url_id="1",state="damaged"}': '0' },
  ],
  LockgateServerErrors: [
    { 'lockgate_http_requests_total{route="/v1/locks",status="500"}': '_x9 1+0x9', lockgate_ready: '1+0x20' },
    { 'lockgate_http_requests_total{route="/v1/locks",status="404"}': '_x9 1+0x9', lockgate_ready: '1+0x20' },
  ],
  LockgateNoticesUnread: [
    { 'lockgate_notices_unread{kind="lock-late"}': '1+0x70' },
    { 'lockgate_notices_unread{kind="lock-late"}': '1+0x50 0+0x9' },
  ],
};

t.test('each alert fires at its limit, and not just below', needsTool, async (t) => {
  t.same(Object.keys(CASES).sort(), ALERTS.map(({ alert }) => alert).sort());
  const cases = Object.entries(CASES).flatMap(([alert, [fires, quiet]]) => [
    { name: `${alert} fires`, series: fires, fired: [alert] },
    { name: `${alert} is quiet`, series: quiet, fired: [] },
  ]);
  checkFired(t, cases);
});

t.test('no alert fires for a real gateway that works', needsTool, async (t) => {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const before = await scrape(gateway);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  await delivered;
  const after = await scrape(gateway);
  t.ok(after.size > 50, 'there are values');
  checkFired(t, [{ name: 'a gateway that works', series: seriesOf(before, after), fired: [] }]);
});

t.test('a real gateway in trouble fires the alerts that it provokes', needsTool, async (t) => {
  const store = new FillingStore();
  const gateway = await testGateway(t, { wrapStore: store.wrapStore });
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const before = await scrape(gateway);
  const noticed = waitForEvents(gateway, 'notices', 1);
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  await noticed;
  await lock.send(Buffer.from('no uplink at all'));
  store.isFull = true;
  await t.rejects(gateway.accounts.rotateLockSecret(testMac()), { name: 'StoreFailure' });
  const after = await scrape(gateway);
  const fired = [
    ...['LockgateEventsDead', 'LockgateNotReady', 'LockgateNoticesUnread', 'LockgateStoreFails'],
    ...['LockgateUplinksQuarantined', 'LockgateWebhookDisabled'],
  ];
  checkFired(t, [{ name: 'a gateway in trouble', series: seriesOf(before, after), fired }]);
});

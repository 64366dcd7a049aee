/**
 * The metrics at `/metrics` (interfaces.md §4): each is documented, counts what its help says, and reveals no secret in
 * its labels.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import got from 'got';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { METRICS } from '../../gateway/metrics/table.js';
import { authenticate } from '../../gateway/mqtt/authentication.js';
import { readConnect } from '../../gateway/mqtt/packets/connect-packet.js';
import { FrameCounter, firstPacket } from '../../gateway/mqtt/packets/frames.js';
import { publishFault, subscribeFault } from '../../gateway/mqtt/packets/topics.js';
import { formatMac } from '../../proto/wire/mac.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { root } from '../helpers/house/our-files.js';
import { connackCode, connectedLock } from '../helpers/mqtt/test-lock.js';
import { FillingStore } from '../helpers/store/store-faults.js';

const MAC = testMac();

/** The text of `/metrics`. */
async function scrape(gateway: Gateway): Promise<string> {
  const { headers, body } = await got(`http://127.0.0.1:${gateway.operatorPort}/metrics`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  if (!/^text\/plain; version=0\.0\.4/.test(String(headers['content-type']))) throw new Error('no Prometheus text');
  return body;
}

/** The value of one series; undefined where there is none. */
function value(metricsText: string, series: string): number | undefined {
  const line = metricsText.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

t.test('the README, the code and /metrics have the same table of metrics', async (t) => {
  const readme = readFileSync(path.join(root, 'gateway/metrics/README.md'), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `(lockgate|process)_/.test(line));
  const expected = METRICS.map(({ name, type, labels, help }) => {
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
  });
  t.same(rows, expected);
  const metricsText = await scrape(await testGateway(t));
  const served = metricsText
    .split('\n')
    .flatMap((line) => /^# HELP (\S+) (.*)$/.exec(line)?.slice(1, 3).join(' ') ?? []);
  t.same(
    served,
    METRICS.map(({ name, help }) => `${name} ${help}`),
  );
  const types = metricsText
    .split('\n')
    .flatMap((line) => /^# TYPE (\S+) (.*)$/.exec(line)?.slice(1, 3).join(' ') ?? []);
  t.same(
    types,
    METRICS.map(({ name, type }) => `${name} ${type}`),
  );
});

t.test('events are counted, and no label has a MAC, a URL or a stranger’s text', async (t) => {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  const delivered = waitForEvents(gateway, 'delivery', 2);
  await lock.send(testBytes(1));
  await lock.send(testBytes(1));
  const unusualPing = {
    kind: 'cellular',
    reason: 'REASON_UNRECOGNIZED_77',
    lockState: 'locked',
    batteryPercent: 5,
  } as const;
  const otherFields = { firmwareVersion: '2', ebikeVolts: null, tetherState: 'detached', position: null } as const;
  await lock.send(testBytes(2, { body: { ...unusualPing, ...otherFields } }));
  await lock.send(Buffer.from('no uplink at all'));
  await delivered;
  const stranger = { clientId: 'stranger', username: 'stranger', password: 'lgs_guess' };
  t.equal(await connackCode(gateway.mqttPort, stranger), 5, 'not authorized');
  const metricsText = await scrape(gateway);
  const expected = {
    lockgate_ready: 1,
    'lockgate_connections{source="lock"}': 1,
    'lockgate_connections{source="phone"}': 0,
    'lockgate_connects_total{source="lock"}': 1,
    'lockgate_refusals_total{what="connect",reason="identity"}': 1,
    'lockgate_uplinks_total{kind="cellular",copy="new"}': 2,
    'lockgate_uplinks_total{kind="cellular",copy="repeat"}': 1,
    'lockgate_pings_total{reason="REASON_STATE_PING"}': 1,
    'lockgate_pings_total{reason="unrecognized"}': 1,
    'lockgate_presence{presence="online"}': 1,
    lockgate_ack_seconds_count: 4,
    lockgate_ingest_waiting: 0,
    'lockgate_deliveries_waiting{url_id="1"}': 0,
    'lockgate_delivery_attempts_total{outcome="delivered"}': 2,
    lockgate_delivery_seconds_count: 2,
  };
  for (const [series, count] of Object.entries(expected)) t.equal(value(metricsText, series), count, series);
  t.equal(value(metricsText, 'lockgate_certificate_end_seconds'), undefined, 'absent without TLS');
  t.match(metricsText, /lockgate_quarantined_total\{code="[a-z-]+"\} 1\n/);
  t.match(metricsText, /lockgate_findings_total\{rule="[a-z-]+",severity="(violation|warning)"\} \d/);
  t.ok((value(metricsText, 'lockgate_store_commit_seconds_count{what="ingest"}') ?? 0) >= 4);
  t.ok((value(metricsText, 'lockgate_store_commit_rows_sum{what="ingest"}') ?? 0) >= 4);
  for (const secret of [MAC, formatMac(MAC), receiver.url, 'stranger', 'lgs_', gateway.operatorToken, '127.0.0.1'])
    t.notMatch(metricsText, secret);
});

t.test('a failed write is counted by the kind of failure', async (t) => {
  const store = new FillingStore();
  const gateway = await testGateway(t, { wrapStore: store.wrapStore });
  store.isFull = true;
  await t.rejects(gateway.accounts.rotateLockSecret(MAC), { name: 'StoreFailure' });
  const metricsText = await scrape(gateway);
  t.equal(value(metricsText, 'lockgate_store_failures_total{what="other",kind="full"}'), 1);
  t.equal(value(metricsText, 'lockgate_ready'), 0);
});

t.test('each kind of refusal has a named reason', async (t) => {
  /** The most bytes that a packet may have. */
  const maxBytes = 4096;
  const keys = { hashSecret: () => Buffer.alloc(32, 1) };
  // Only the members that are used here: there is no lock.
  const dependencies = { store: { findLock: async () => null }, keys } as unknown as Parameters<typeof authenticate>[0];
  const login = { clientId: String(MAC), username: String(MAC), password: undefined, hasWill: false };
  const reasonOf = async (members: Partial<typeof login>): Promise<string> => {
    const nowMs = 0;
    const answer = await authenticate(dependencies, { ...login, ...members }, nowMs);
    return answer.ok ? 'let in' : answer.cause.reason;
  };
  t.equal(await reasonOf({}), 'unknown-lock');
  t.equal(await reasonOf({ hasWill: true }), 'will');
  t.equal(await reasonOf({ clientId: 'x' }), 'identity');
  t.match(publishFault({ topic: 'a', qos: 1, retain: false }), { reason: 'topic' });
  t.match(publishFault({ topic: 'up', qos: 2, retain: false }), { reason: 'qos-2' });
  t.match(publishFault({ topic: 'up', qos: 1, retain: true }), { reason: 'retained' });
  t.match(subscribeFault('phone', 'down', 1), { reason: 'phone' });
  t.match(subscribeFault('lock', 'a', 1), { reason: 'topic' });
  t.match(firstPacket(Buffer.from([0x30, 0]), maxBytes), { fault: { reason: 'not-connect' } }, 'a PUBLISH');
  t.match(firstPacket(Buffer.from([0x11, 0]), maxBytes), { fault: { reason: 'malformed' } }, 'a CONNECT with flags');
  const hugeConnect = Buffer.from([0x10, 0xff, 0xff, 0xff, 0x7f]);
  t.match(firstPacket(hugeConnect, maxBytes), { fault: { reason: 'packet' } }, 'its length is 256 MiB');
  t.match(new FrameCounter().pass(Buffer.from([0x40, 0]), maxBytes), { reason: 'malformed' }, 'a PUBACK of no length');
  t.match(new FrameCounter().pass(Buffer.from([0x50, 2]), maxBytes), { reason: 'packet' }, 'a PUBREC');
  // A CONNECT with this protocol level (4 is MQTT 3.1.1) and these flags (2: a clean session), without a client id.
  const connect = (level: number, flags: number): Buffer =>
    Buffer.from([0x10, 12, 0, 4, ...Buffer.from('MQTT'), level, flags, 0, 0, 0, 0]);
  t.match(readConnect(connect(4, 0)).fault, { reason: 'identity' }, 'an empty client id');
  t.match(readConnect(connect(6, 2)).fault, { reason: 'protocol-level' });
  t.match(readConnect(connect(4, 3)).fault, { reason: 'malformed' }, 'a reserved flag');
});

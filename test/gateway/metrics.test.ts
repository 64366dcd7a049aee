/**
 * The figures: each is documented, each counts what it says, and none gives anything away.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import got from 'got';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { METRICS } from '../../gateway/metrics/table.js';
import { authenticate } from '../../gateway/mqtt/authentication.js';
import { refusalReason } from '../../gateway/mqtt/refusals/refusal-reason.js';
import { formatMac } from '../../proto/wire/mac.js';
import { overriding } from '../helpers/durability/sabotage.js';
import { eventsOf, testBytes, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { root } from '../helpers/house/our-files.js';
import { connackOf, connectedLock } from '../helpers/mqtt/test-lock.js';
import { sqliteError } from '../helpers/store/store-faults.js';

const MAC = testMac();

async function scrape(gateway: Gateway): Promise<string> {
  const { headers, body } = await got(`http://127.0.0.1:${gateway.operatorPort}/metrics`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  if (!/^text\/plain; version=0\.0\.4/.test(String(headers['content-type']))) throw new Error('no Prometheus text');
  return body;
}

/** The value of one series, as its line has it; undefined where there is none. */
function value(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

t.test('the table in the documentation is the table in the code, and both are what is served', async (t) => {
  const readme = readFileSync(path.join(root, 'gateway/README.md'), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `(lockgate|process)_/.test(line));
  const expected = METRICS.map(({ name, type, labels, help }) => {
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
  });
  t.same(rows, expected);
  const text = await scrape(await testGateway(t));
  const served = text.split('\n').flatMap((line) => /^# HELP (\S+) (.*)$/.exec(line)?.slice(1, 3).join(' ') ?? []);
  t.same(
    served,
    METRICS.map(({ name, help }) => `${name} ${help}`),
  );
  const types = text.split('\n').flatMap((line) => /^# TYPE (\S+) (.*)$/.exec(line)?.slice(1, 3).join(' ') ?? []);
  t.same(
    types,
    METRICS.map(({ name, type }) => `${name} ${type}`),
  );
});

t.test('what happens is counted, and no label has a MAC, a URL or what a stranger wrote', async (t) => {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  const delivered = eventsOf(gateway, 'delivery', 2);
  await lock.send(testBytes(1));
  await lock.send(testBytes(1));
  const odd = { kind: 'cellular', reason: 'REASON_UNRECOGNIZED_77', lockState: 'locked', batteryPercent: 5 } as const;
  const rest = { firmwareVersion: '2', ebikeVolts: null, tetherState: 'detached', position: null } as const;
  await lock.send(testBytes(2, { body: { ...odd, ...rest } }));
  await lock.send(Buffer.from('no uplink at all'));
  await delivered;
  const stranger = { clientId: 'stranger', username: 'stranger', password: 'lgs_guess' };
  t.equal(await connackOf(gateway.mqttPort, stranger), 5);
  const text = await scrape(gateway);
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
  for (const [series, count] of Object.entries(expected)) t.equal(value(text, series), count, series);
  t.match(text, /lockgate_quarantined_total\{code="[a-z-]+"\} 1\n/);
  t.match(text, /lockgate_findings_total\{rule="[a-z-]+",severity="(violation|warning)"\} \d/);
  t.ok((value(text, 'lockgate_store_commit_seconds_count{what="ingest"}') ?? 0) >= 4);
  t.ok((value(text, 'lockgate_store_commit_rows_sum{what="ingest"}') ?? 0) >= 4);
  for (const secret of [MAC, formatMac(MAC), receiver.url, 'stranger', 'lgs_', gateway.operatorToken, '127.0.0.1'])
    t.notMatch(text, secret);
});

t.test('a write that fails is counted by its kind', async (t) => {
  let isFull = false;
  const full = (): never => {
    throw sqliteError('SQLITE_FULL', 'database or disk is full');
  };
  // All writes fail, the probes of the watch on the store too: it stays unready, however long the scrape takes.
  const gateway = await testGateway(t, {
    wrapStore: (store) =>
      overriding(store, {
        replaceLockCredential: async () => full(),
        append: async (commit) => (isFull ? full() : await store.append(commit)),
      }),
  });
  isFull = true;
  await t.rejects(gateway.accounts.rotateLockSecret(MAC), { name: 'StoreFailure' });
  const text = await scrape(gateway);
  t.equal(value(text, 'lockgate_store_failures_total{what="other",kind="full"}'), 1);
  t.equal(value(text, 'lockgate_ready'), 0);
});

t.test('each refusal of ours is of a kind that has a name', async (t) => {
  const known = { hashSecret: () => Buffer.alloc(32, 1) };
  const parts = { store: { findLock: async () => null }, keys: known } as unknown as Parameters<typeof authenticate>[0];
  const claim = { clientId: String(MAC), username: String(MAC), password: undefined, hasWill: false };
  const reasonOf = async (members: Partial<typeof claim>): Promise<string> => {
    const answer = await authenticate(parts, { ...claim, ...members }, 0);
    return answer.ok ? 'let in' : refusalReason(answer.why);
  };
  t.equal(await reasonOf({}), 'unknown-lock');
  t.equal(await reasonOf({ hasWill: true }), 'will');
  t.equal(await reasonOf({ clientId: 'x' }), 'identity');
  t.equal(refusalReason('wrong secret'), 'wrong-secret');
  t.equal(refusalReason('an expired credential'), 'expired');
  t.equal(refusalReason('a packet announces 268,435,455 bytes: at most 4,096 are taken'), 'packet');
  t.equal(refusalReason('the CONNECT was not finished within 5 s'), 'slow');
  t.equal(refusalReason('10,000 connections are not authenticated yet'), 'crowd');
  t.equal(refusalReason('the address has 8,192 connections without a CONNECT'), 'crowd');
  t.equal(refusalReason('descriptors (open files and connections) are short'), 'descriptors');
  t.equal(refusalReason('topic "a": a lock publishes to "up" alone'), 'topic');
  t.equal(refusalReason('a malformed PUBACK: its length is 0 and not 2'), 'malformed');
  t.equal(refusalReason('protocol level 5: this is MQTT 3.1.1, which has level 4'), 'protocol-level');
  t.equal(refusalReason('an empty client id, and the session is not to be a clean one'), 'identity');
  t.equal(refusalReason('Invalid header flag bits'), 'other');
});
